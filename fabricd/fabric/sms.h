/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The subnet managers that are ours to configure: those opensm processes of this host that read a configuration which
 * fabricd.yaml names. There are several where this host manages several subnets (planes), or has two ports in one. Each
 * is given the tables of its plane.
 *
 * Errors are negative errnos, and why then says what was wrong, a line without its end.
 */
#ifndef FABRICD_FABRIC_SMS_H
#define FABRICD_FABRIC_SMS_H

#include "fabricd/base/conf.h"
#include "fabricd/fabric/opensm.h"
#include "fabricd/fabric/partitions.h"
#include "fabricd/fabric/verify.h"

struct sm {
    struct opensm opensm;
    struct text old_conf, new_conf; /* what its file has, and is to have */
    char partitions[PATH_MAX];      /* its partition file */
    uint64_t turns;                 /* opensm_turns when sms_note_stopped found it stopped; else 0 */
    struct partition_file old_part, new_part;
};

struct sms {
    unsigned n; /* that run here */
    struct sm sm[CONF_OPENSM_MAX];
    unsigned num_ports;
    struct smp_port port[VERIFY_SUBNETS_MAX]; /* that they serve; "" where neither they nor fabricd.yaml say which */
    unsigned sm_of_port[VERIFY_SUBNETS_MAX];
};

/* Which run now. Frees nothing: to begin with, or after sms_free. */
void sms_find(struct sms *s, const struct conf *c);
void sms_free(struct sms *s);

/* What their files have. A file that is not there is an empty one. */
int sms_read(struct sms *s, struct text *why);
/* What the files are to have: the tables of their planes. False: it is what they have. */
bool sms_merge(struct sms *s, const struct qos_tables *common, const struct plane_tables *planes);
/* The tables that the opensm of this file is to write. conf: what the file has, if none that runs reads it. */
const struct qos_tables *sms_tables(const struct sms *s, const char *config, const char *conf,
                                    const struct qos_tables *common, const struct plane_tables *planes);
/* False: one file is read by opensm of planes that need different tables. */
bool sms_fit_planes(const struct sms *s, const struct qos_tables *common, const struct plane_tables *planes,
                    struct text *why);

/*
 * The same of partitions; p NULL: no policy. adapters: as partitions_merge needs them; NULL: members stay those that
 * the files have. False: it is what they have.
 */
bool sms_merge_partitions(struct sms *s, const struct policy *p, const char *adapters);
/* False: a partition of the administrator has the key of a class that p gives members; why says where. */
bool sms_partitions_free(const struct sms *s, const struct policy *p, struct text *why);

/* The files are to have what they had. */
void sms_keep(struct sms *s);

/* Each file at once or not at all; the first that cannot be written is the last that is tried, or all are tried. */
int sms_write(const struct sms *s, struct text *why);
int sms_write_all(const struct sms *s, struct text *why);
/* One of them, by its path; a partition file that is not to be there is removed. */
int sms_write_file(const char *config, const struct text *conf, struct text *why);
int sms_read_partitions(const char *path, struct partition_file *f);
int sms_write_partitions(const char *path, const struct partition_file *f, struct text *why);
/* What a daemon that was killed has left of writing it. */
void sms_clean(const char *config);
/* Tables that are not in new_conf. */
int sms_write_tables(const struct sms *s, const struct qos_tables *common, const struct plane_tables *planes,
                     struct text *why);

/* Does the one that reads this file run? */
bool sms_runs(const struct sms *s, const char *config);
/* -ESRCH: one of them has ended since sms_find. */
int sms_all_run(const struct sms *s, struct text *why);
/* Those that have ended are ours no longer; dead gets the ports that they served. How many. */
unsigned sms_leave_dead(struct sms *s, struct smp_port dead[VERIFY_SUBNETS_MAX]);
/* Have them take what is in their files: all are told, also after one that cannot be. */
int sms_reload(const struct sms *s, struct text *why);
bool sms_can_restart(const struct sms *s, struct text *why);
int sms_restart(const struct sms *s, struct text *why);

/*
 * The opensm that is stopped and may do something of what it was told when it goes on, or NULL. undo: what it was told
 * since sms_note_stopped is undone, so that one which was stopped then, and has not run since, finds what it knows.
 */
const struct opensm *sms_stopped(const struct sms *s, bool undo);
void sms_note_stopped(struct sms *s);
/* True: one computes, or waits for a processor that others have. cpu_ms gets what all have computed until now. */
bool sms_ready(const struct sms *s, uint64_t *cpu_ms);

/* Who they are, for people: "opensm (pid 1, 2)". */
void sms_name(const struct sms *s, struct text *out);

/* Why none runs, for people: what to start, and where else to apply. -ESRCH, or what finding them failed with. */
int sms_none(const struct conf *c, struct text *why);

#endif
