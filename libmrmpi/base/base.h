/* SPDX-License-Identifier: BSD-3-Clause */
/* The common ground of all subsystems: settings, log, clock, counters. Nothing above is included here. */
#ifndef MRMPI_BASE_H
#define MRMPI_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/base/stats.h"

#define MR_EAGER_LEAST 64 /* bytes that every rank takes unasked */

/* ---- settings: config_table.c, read once from the environment by mr_config_init() -------------------------------- */

/*
 * Sizes in bytes, times as named. A variable of the environment is MRMPI_ + the field in upper case. Fields that a tool
 * may change at any time, in any thread, are atomic; the others are fixed from mr_config_init on.
 */
struct mr_config {
    size_t eager_max;       /* MR_EAGER_LEAST..; of the packets of messages sent eagerly between hosts */
    int eager_packets;      /* packets of such a message */
    size_t shm_eager_max;   /* the same inside a host */
    int single_copy;        /* large messages inside a host by process_vm_readv */
    char *shm_copy;         /* their copy mode: auto, push, read, split */
    int shm_stream;         /* copies for others to read pass the cache: 1 yes, 0 no, -1 where that is faster */
    int rc_peers, rc_after; /* peers that have connections if ud may be used, too; packets to a peer before */
    char *rules;            /* the messages of each kind (conn/route/rules.h) */
    char *links, *reliable; /* kinds of links, in order; whether their packets are acknowledged */
    int ring_peers, ring_after, ring_slots; /* ranks that may write into rings here; packets before; slots of each */
    size_t ring_size;                       /* the longest payload of a slot; 0: by the design */
    char *ring_design;                      /* verbs/link/kinds.c */
    char *rndv;                             /* the mover of large messages between hosts: auto, write, read */
    char *ud_rndv;                          /* large messages as datagrams: zcopy, copy */
    int ud_pool;                            /* queue pairs of a rail for zcopy */
    int ud_pool_depth;                      /* receives of each */
    char *devices;                          /* comma list "mlx5_0:1,mlx5_1" of rails to use, "" for all active ones */
    char *roce_gid;         /* index, or words as "roce-v2/ipv6"; "" for the usual order (verbs/gid.h) */
    int pkey;               /* P_Key of the partition that is preferred; 0: none is (verbs/pkey.c) */
    int rails_max;          /* rails to use at most; 0: all */
    char *pairs;            /* the pairs of two ranks' rails: matched, all */
    int paths;              /* LID paths used between each pair of rails */
    _Atomic int unsent_max; /* packets to a peer that may wait for room before sends do */
    size_t unexpected_max, unexpected_total; /* credits for eager messages: of each peer, of all */
    _Atomic size_t stripe_min;               /* messages below are not striped */
    char *policy_small, *policy_large;
    int srq_depth, sq_depth;
    size_t reg_cache_max;   /* bytes kept registered */
    char *odp;              /* memory without pinning: auto, yes, no */
    int reg_cache_entries;  /* number of registrations; 0: by the devices' room */
    int connect_timeout_ms; /* UD connection set-up: first retransmission after this */
    int connect_retries;
    int patience;                        /* seconds to wait for a rail to a peer */
    int rc_timeout, rc_retry, rnr_retry; /* QP attributes */
    _Atomic int spin_us;                 /* time of polling before yielding */
    int oversubscribed;                  /* more ranks than cores: 1 yes, 0 no, -1 count them */
    char *model;                         /* costs (base/model.h) */
    char *coll;                          /* algorithms for collectives (coll/select.c) */
    char *coll_table;                    /* a file with algorithms for this machine (coll/select.c) */
    int async_progress;                  /* api/init/helper.c */
    _Atomic int check_args;
    char *fabricd_socket; /* %h: host name */
    char *job_id;         /* MRMPI_JOBID, else SLURM_JOB_ID */
    char *launcher;       /* the source of this process's identity: auto, pmix, pmi2, pmi1, none */
    int launcher_timeout_s;
    _Atomic int log_level; /* 0 errors, 1 warnings, 2 info, 3 debug */
    _Atomic int stats;     /* print counters at finalize */
    char *record;      /* file for the figures and the timeline of this rank (base/record.h); %r: its rank; "": none */
    int record_events; /* events kept in the record */
    char *parent;      /* port of the program that started this job; "": none */
    char *inquiry;     /* directory of the launcher's inquiries (api/inquiry.h); "": none */
    int recover;       /* the launcher tells of ranks that die, and the others go on */
    _Atomic int leaks; /* report objects that were not freed, at finalize */
    _Atomic int check; /* report their numbers in one line */
};
extern struct mr_config mr_config;
/*
 * Unknown MRMPI_ names and bad values (which keep their default) are remembered; rank 0 warns once its rank is known.
 */
int mr_config_init(void);
void mr_config_finalize(void);
void mr_config_complain(void);                   /* print the remembered complaints, and forget them */
size_t mr_config_complaints(const char **first); /* their number, and the text of the first ("") */
/*
 * For tools (MPI_T), which may come before mr_init, and in other threads: reads the settings once; a later
 * mr_config_init leaves them alone. 0 or negative errno. Any thread may call the functions below.
 */
int mr_config_early(void);
enum mr_setting_kind { MR_SETTING_SIZE, MR_SETTING_INT, MR_SETTING_BOOL, MR_SETTING_STRING };
struct mr_setting {
    const char *name, *help,
        *unit; /* help: a sentence without its capital letter and full stop; unit: "" for settings without a unit */
    const char *standard; /* the default, in the user's notation */
    long long min, max;   /* of sizes and numbers */
    enum mr_setting_kind kind;
    enum mr_topic topic;
    bool live;  /* a change works at once; others are used at mr_init */
    bool fixed; /* it has been used: not to be changed any more */
};
/* The rows of the table; libmrmpi(7) and the control variables of MPI_T are made of them. false: there is no i-th. */
bool mr_config_setting(size_t i, struct mr_setting *out);
size_t mr_config_count(void);
/* To buf: a size_t, an int (a truth value too), or a string, cut to len bytes with its end. */
bool mr_config_get(size_t i, void *buf, size_t len);
/* 0; -EINVAL: not a value for it; -EPERM: fixed. Then nothing changed. */
int mr_config_set(size_t i, const char *value);
/* A variable that is no setting of ours, such as a launcher's; NULL: not set. Needs no init. */
const char *mr_config_foreign(const char *name);

/* ---- log: to stderr, prefixed with rank and host once known ------------------------------------------------------ */
enum mr_log_level { MR_LOG_ERROR, MR_LOG_WARN, MR_LOG_INFO, MR_LOG_DEBUG };
/* local_rank: among the ranks of this host. Rank 0 prints the complaints about settings here. */
void mr_log_identity(int rank, int local_rank, const char *host);
bool mr_log_for_host(void); /* true in the one process that logs for all ranks of its host */
void mr_log_print(enum mr_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Advice for an error of making queues or of registering memory, as the end of a sentence; "": none. */
const char *mr_log_memory_advice(int err);
#define mr_log(level, ...)                                                                                             \
    do {                                                                                                               \
        if ((int)(level) <= mr_config.log_level)                                                                       \
            mr_log_print(level, __VA_ARGS__);                                                                          \
    } while (0)

/* ---- clock: the only place that reads the time ------------------------------------------------------------------- */
uint64_t mr_clock_ns(void); /* CLOCK_MONOTONIC */

#endif
