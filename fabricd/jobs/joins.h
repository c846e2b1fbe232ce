/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs of the cluster whose hosts have joined the partition of their job: on the host that manages the subnet, in
 * STATE/joins.yaml. A job's partition is decided once, when the job joins, because its processes keep it. Main thread
 * only. Errors are negative errnos, and all is then as before.
 */
#ifndef FABRICD_JOBS_JOINS_H
#define FABRICD_JOBS_JOINS_H

#include "fabricd/base/text.h"
#include "fabricd/policy/hosts.h"
#include "fabricd/proto/proto.h"

#include <limits.h>

#define JOINS_MAX      4096
#define JOINS_FILE_MAX (32u << 20)

struct join {
    char job[FD_JOB_MAX];
    uint32_t run;     /* 1 + the scheduler's number of the run; 0: unknown */
    uint32_t pkey;    /* 15 bits */
    uint64_t until_s; /* seconds of the epoch when the job has left in any case; 0: no limit */
    uint64_t serial;  /* of the join; not kept */
    char *hosts;      /* names, a space between two */
};

struct joins {
    char path[PATH_MAX];
    unsigned n;
    struct join *join;
    uint64_t serial; /* of the last change */
};

/* False: the file is damaged, and was put aside: what could be read of it is known. */
bool joins_open(struct joins *j, const char *state_dir, struct diag *d);
void joins_close(struct joins *j);

const struct join *joins_find(const struct joins *j, const char *job);
/* Adds a job, or replaces it. Its hosts are copied. -ENOSPC: there are too many. */
int joins_set(struct joins *j, const struct join *join);
/* -ENOENT: no such job. */
int joins_delete(struct joins *j, const char *job);
/* A job whose time is over at now_s, or NULL. */
const struct join *joins_due(const struct joins *j, uint64_t now_s);

/* All hosts with their partitions. */
void joins_keys(const struct joins *j, struct host_keys *out);
/* The jobs after one of them, or all (""), in the order of their ids: YAML, a line each, up to about max bytes. Returns
 * the last one's id if there are more, else NULL. */
const char *joins_text(const struct joins *j, const char *after, size_t max, struct text *out);

/* Moves *p behind the next of names with spaces between; len gets its length. NULL: there is none. */
const char *joins_next_host(const char **p, size_t *len);

#endif
