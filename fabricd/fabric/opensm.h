/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opensm: what fabricd writes into its configuration and how it is made to take it.
 *
 * fabricd owns the options qos, lmc, max_op_vls and qos_*{max_vls,high_limit,vlarb_high,vlarb_low,sl2vl} of every set
 * (ca, sw0, swe, rtr and the common one); it writes the common set only. Everything else in the file is the
 * administrator's and is kept line by line.
 */
#ifndef FABRICD_FABRIC_OPENSM_H
#define FABRICD_FABRIC_OPENSM_H

#include "fabricd/policy/compile.h"

#include <limits.h>

#define OPENSM_CONF_MAX     (1u << 20)
#define OPENSM_DEFAULT_CONF "/etc/opensm/opensm.conf" /* what it reads without -F */

/* The new text of the file, appended to out. Merging twice gives the same as once. */
void opensm_conf_merge(const char *old, const struct qos_tables *t, struct text *out);

/* The value of an option in the file's text (the last one counts, as for opensm); false if it is not there. */
bool opensm_conf_get(const char *text, const char *key, char *value, size_t size);

/*
 * How to reach this node's opensm. It is a process of root, or of who runs this, whose program is opensm; without a
 * pid file, each that reads config (with two ports in one subnet there is one for each, and one of them waits).
 */
struct opensm {
    const char *config;   /* path of opensm.conf */
    const char *pid_file; /* or NULL */
    const char *restart;  /* shell command that restarts it, or NULL */
};

#define OPENSM_PORTS_MAX 8

/* The partition file that it reads: its command line says which, or the text of its configuration, or it is its own. */
#define OPENSM_DEFAULT_PARTITIONS "/etc/opensm/partitions.conf"
void opensm_partitions(const struct opensm *o, const char *conf, char path[PATH_MAX]);

/*
 * How many there are: negative errno if opensm does not run. guid: of the port that each serves, 0 if neither its
 * command line nor its configuration says.
 */
int opensm_pids(const struct opensm *o, int pid[OPENSM_PORTS_MAX]);
/* It certainly does not run: there is no such process, whatever became of its pid file. */
bool opensm_is_gone(const struct opensm *o);
int opensm_running(const struct opensm *o, uint64_t guid[OPENSM_PORTS_MAX]);
/* True: it computes, or waits for a processor that others have. cpu_ms gets what it has computed until now. */
bool opensm_is_ready(const struct opensm *o, uint64_t *cpu_ms);
/* One of its processes is stopped, as by SIGSTOP or a debugger: what it was told it does only when it goes on. */
bool opensm_is_stopped(const struct opensm *o);
/* How often its threads have had a processor: the same number twice says that it has not run between. */
uint64_t opensm_turns(const struct opensm *o);
/* Make it read its configuration again. */
int opensm_reload(const struct opensm *o);
/* Run the restart command and wait for its end: 0, a negative errno or the command's exit status (> 0). */
int opensm_restart(const struct opensm *o, int timeout_ms);

#endif
