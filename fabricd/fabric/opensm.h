/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opensm: the options that fabricd writes into its configuration, and the ways to make opensm read them.
 *
 * fabricd owns the options qos, lmc, max_op_vls and qos_*{max_vls,high_limit,vlarb_high,vlarb_low,sl2vl} of every set
 * (ca, sw0, swe, rtr and the common one), and writes the common set only. All other lines of the file are the
 * administrator's and are kept.
 */
#ifndef FABRICD_FABRIC_OPENSM_H
#define FABRICD_FABRIC_OPENSM_H

#include "fabricd/policy/compile.h"

#include <limits.h>

#define OPENSM_CONF_MAX     (1u << 20)
#define OPENSM_DEFAULT_CONF "/etc/opensm/opensm.conf" /* the default without -F */

/* The new text of the file, appended to out. Merging twice gives the same as once. */
void opensm_conf_merge(const char *old, const struct qos_tables *t, struct text *out);

/* The value of an option in the file's text (the last occurrence counts, as for opensm); false if missing. */
bool opensm_conf_get(const char *text, const char *key, char *value, size_t size);

/*
 * This node's opensm: a process of root, or of the caller's user, whose program is opensm; without a pid file, each
 * that reads config (with two ports in one subnet there is a process for each, and one of them waits).
 */
struct opensm {
    const char *config;   /* path of opensm.conf */
    const char *pid_file; /* or NULL */
    const char *restart;  /* shell command that restarts opensm, or NULL */
};

#define OPENSM_PORTS_MAX 8

/* The partition file of opensm: named by its command line or by the text of its configuration, else its default. */
#define OPENSM_DEFAULT_PARTITIONS "/etc/opensm/partitions.conf"
void opensm_partitions(const struct opensm *o, const char *conf, char path[PATH_MAX]);

/*
 * The number of processes: negative errno if opensm does not run. guid: of the port that each serves, 0 if neither its
 * command line nor its configuration names a port.
 */
int opensm_pids(const struct opensm *o, int pid[OPENSM_PORTS_MAX]);
/* True if opensm certainly does not run: no such process exists, whatever its pid file says. */
bool opensm_is_gone(const struct opensm *o);
int opensm_running(const struct opensm *o, uint64_t guid[OPENSM_PORTS_MAX]);
/* True: opensm computes, or waits for a processor. cpu_ms gets its processor time so far. */
bool opensm_is_ready(const struct opensm *o, uint64_t *cpu_ms);
/* True if a process of opensm is stopped, as by SIGSTOP or a debugger: it acts on signals only after it continues. */
bool opensm_is_stopped(const struct opensm *o);
/* The number of turns of its threads on a processor: an equal number later means that opensm has not run between. */
uint64_t opensm_turns(const struct opensm *o);
/* Makes opensm read its configuration again. */
int opensm_reload(const struct opensm *o);
/* Run the restart command and wait for its end: 0, a negative errno or the command's exit status (> 0). */
int opensm_restart(const struct opensm *o, int timeout_ms);

#endif
