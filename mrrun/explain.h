/* SPDX-License-Identifier: BSD-3-Clause */
/* mrrun --explain: the library's decisions in this job's ranks, with reasons, for people. Nothing is started. */
#ifndef MRRUN_EXPLAIN_H
#define MRRUN_EXPLAIN_H

#include <stdbool.h>

#include "mrrun/hosts.h"
#include "mrrun/options.h"

struct explain {
    const struct mrrun_options *opts;
    const char *job_id;        /* as ranks would be told */
    bool simulated;            /* ranks would be on simulated hosts */
    char *const *outer;        /* mrrun's own environment */
    char **env;                /* the environment of the ranks */
    const struct hosts *hosts; /* NULL: hosts are unknown */
    int num_used;              /* how many these are */
    int fullest, emptiest;     /* ranks of such hosts; 0: not known */
    const char *why_no_hosts;
};

/* Prints to standard output. 0, or 1: ranks would not start with these settings. */
int explain(const struct explain *e);

#endif
