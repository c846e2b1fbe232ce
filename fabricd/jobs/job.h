/* SPDX-License-Identifier: BSD-3-Clause */
/* A job: facts told to the daemon, which are kept in a file, and the daemon's observations since. Plain data. */
#ifndef FABRICD_JOBS_JOB_H
#define FABRICD_JOBS_JOB_H

#include "fabricd/proto/proto.h"

enum job_source { SOURCE_RULE, SOURCE_USER, SOURCE_SCHEDULER };

struct job {
    char id[FD_JOB_MAX];
    char class_name[FD_NAME_MAX]; /* assigned class; empty: by wish, or by the rules */
    char wish[FD_NAME_MAX];       /* the class requested by its user; empty: none */
    char account[FD_JOB_MAX], qos[FD_JOB_MAX], partition[FD_JOB_MAX], name[FD_JOB_MAX];
    char cgroup[FD_CGROUP_MAX];     /* contains all its processes, and the job ends with it; empty: unknown */
    char small_ratio[FD_RATIO_MAX]; /* ratio.h; empty: none */
    uint32_t lease_s;               /* the job ends after so long without a process; 0: no lease */
    uint32_t uid;   /* its owner; FD_UID_ANY: from a file without owners. No process belongs to the job then */
    uint32_t run;   /* 1 + the scheduler's number of its run; 0: unknown, the job is in every run */
    uint32_t since; /* the time of its class: seconds of the epoch; 0: unknown */
    char seat_class[FD_NAME_MAX]; /* its class, if the class has limits and was not assigned; else empty */

    /* not kept in the file */
    uint64_t alive_us;           /* the last time that the job was set, renewed, or had a process (CLOCK_BOOTTIME) */
    bool peopled;                /* its cgroup has had processes */
    unsigned seat;               /* 1 + the index of its class in the deciding policy; 0: not decided */
    enum job_source source;      /* the source of its class */
    unsigned full;               /* 1 + the index of its class if that class had room; 0: none */
    unsigned processes, sharers; /* of small_ratio: subscribers (subscribers.h); and as a power of two */
    unsigned at;                 /* its place in struct jobs */
};

#endif
