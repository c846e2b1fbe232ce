/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The subnet managers under our control: the opensm processes of this host that read a configuration named in
 * fabricd.yaml. There are several if this host manages several subnets (planes), or has two ports in one. Each gets the
 * tables of its plane.
 *
 * Errors are negative errnos; why then has the reason, a line without its end.
 */
#ifndef FABRICD_FABRIC_SMS_H
#define FABRICD_FABRIC_SMS_H

#include "fabricd/base/conf.h"
#include "fabricd/fabric/opensm.h"
#include "fabricd/fabric/partitions.h"
#include "fabricd/fabric/verify.h"

struct sm {
    struct opensm opensm;
    struct text old_conf, new_conf; /* present and future contents of its file */
    char partitions[PATH_MAX];      /* its partition file */
    uint64_t turns;                 /* opensm_turns when sms_note_stopped found it stopped; else 0 */
    struct partition_file old_part, new_part;
};

struct sms {
    unsigned n; /* running processes here */
    struct sm sm[CONF_OPENSM_MAX];
    unsigned num_ports;
    struct smp_port
        port[VERIFY_SUBNETS_MAX]; /* the served ports; "" if neither the process nor fabricd.yaml names the port */
    unsigned sm_of_port[VERIFY_SUBNETS_MAX];
};

/* Finds the running processes, and the M_Keys of the subnets. Frees nothing: to begin with, or after sms_free. */
void sms_find(struct sms *s, const struct conf *c);
void sms_free(struct sms *s);

/* Reads the files. A missing file is an empty file. */
int sms_read(struct sms *s, struct text *why);
/* Merges the tables of the planes into the new contents. False: the files have them already. */
bool sms_merge(struct sms *s, const struct qos_tables *common, const struct plane_tables *planes);
/* The tables for the opensm of this file. conf: the contents, if no running process reads the file. */
const struct qos_tables *sms_tables(const struct sms *s, const char *config, const char *conf,
                                    const struct qos_tables *common, const struct plane_tables *planes);
/* False: opensm processes of planes with different tables read the same file. */
bool sms_fit_planes(const struct sms *s, const struct qos_tables *common, const struct plane_tables *planes,
                    struct text *why);

/*
 * The same for partitions; p NULL: no policy. jobs, adapters: for partitions_merge; adapters NULL: the members in the
 * files stay. False: the files have them already.
 */
bool sms_merge_partitions(struct sms *s, const struct policy *p, const struct host_keys *jobs, const char *adapters);
/* False: a partition of the administrator has the key of a class that p gives members; why says where. */
bool sms_partitions_free(const struct sms *s, const struct policy *p, struct text *why);

/* Makes the old contents the new contents. */
void sms_keep(struct sms *s);

/* Writes each file as a whole or not at all; stops at the first that cannot be written, or tries all. */
int sms_write(const struct sms *s, struct text *why);
int sms_write_all(const struct sms *s, struct text *why);
/* Writes one of them, by its path; an absent partition file is removed. */
int sms_write_file(const char *config, const struct text *conf, struct text *why);
int sms_read_partitions(const char *path, struct partition_file *f);
int sms_write_partitions(const char *path, const struct partition_file *f, struct text *why);
/* Removes incomplete files of a killed daemon. */
void sms_clean(const char *config);
/* Writes tables other than those in new_conf. */
int sms_write_tables(const struct sms *s, const struct qos_tables *common, const struct plane_tables *planes,
                     struct text *why);

/* True if the opensm that reads this file runs. */
bool sms_runs(const struct sms *s, const char *config);
/* -ESRCH: a process has ended since sms_find. */
int sms_all_run(const struct sms *s, struct text *why);
/* Drops processes that have ended; dead gets their ports. Returns their number. */
unsigned sms_leave_dead(struct sms *s, struct smp_port dead[VERIFY_SUBNETS_MAX]);
/* Makes all processes read their files, also after one that cannot be reached. */
int sms_reload(const struct sms *s, struct text *why);
bool sms_can_restart(const struct sms *s, struct text *why);
int sms_restart(const struct sms *s, struct text *why);

/*
 * A stopped opensm that may act on signals when it continues, or NULL. undo: signals since sms_note_stopped are undone,
 * so a process that was stopped then, and has not run since, finds its known state.
 */
const struct opensm *sms_stopped(const struct sms *s, bool undo);
void sms_note_stopped(struct sms *s);
/* Context switches of all so far. */
uint64_t sms_turns(const struct sms *s);
/* True: a process computes, or waits for a processor. cpu_ms gets the processor time of all so far. */
bool sms_ready(const struct sms *s, uint64_t *cpu_ms);

/* Their name for people: "opensm (pid 1, 2)". */
void sms_name(const struct sms *s, struct text *out);

/*
 * The reason why none runs, for people: what to start, and where else to apply. -ESRCH, or the error of finding them.
 */
int sms_none(const struct conf *c, struct text *why);

#endif
