/* SPDX-License-Identifier: BSD-3-Clause */
/* A job: what the daemon was told of it, which is kept in a file, and what it has seen of it since. Plain data. */
#ifndef FABRICD_JOBS_JOB_H
#define FABRICD_JOBS_JOB_H

#include "fabricd/proto/proto.h"

enum job_source { SOURCE_RULE, SOURCE_USER, SOURCE_SCHEDULER };

struct job {
    char id[FD_JOB_MAX];
    char class_name[FD_NAME_MAX]; /* that it was given; empty: by wish, or by the rules */
    char wish[FD_NAME_MAX];       /* the class that its user asks for; empty: none */
    char account[FD_JOB_MAX], qos[FD_JOB_MAX], partition[FD_JOB_MAX], name[FD_JOB_MAX];
    char cgroup[FD_CGROUP_MAX]; /* its processes are in it and nowhere else, and it ends with it; empty: not known */
    char small_ratio[FD_RATIO_MAX]; /* ratio.h; empty: none */
    uint32_t lease_s; /* it ends when none of its processes has been seen for so long; 0: that does not end it */
    uint32_t uid;     /* its owner; FD_UID_ANY: a file of before jobs had owners does not say. Nobody is of it then */
    uint32_t run;     /* 1 + the scheduler's number of its run; 0: not known, and so it is in every run */
    uint32_t since;   /* that it has its class: seconds of the epoch; 0: not known */
    char seat_class[FD_NAME_MAX]; /* the class that it has, if that has limits and was not given; else empty */

    /* not kept in the file */
    uint64_t alive_us;           /* when it was set, renewed, or a process of it was seen last (CLOCK_BOOTTIME) */
    bool peopled;                /* processes have been seen in its cgroup */
    unsigned seat;               /* 1 + the index of its class in the policy by which that was decided; 0: it was not */
    enum job_source source;      /* how it came to that */
    unsigned full;               /* 1 + the index of the class that it would have, had that room; 0: none */
    unsigned processes, sharers; /* of small_ratio: subscribers (subscribers.h); and as a power of two */
    unsigned at;                 /* where it is in struct jobs */
};

#endif
