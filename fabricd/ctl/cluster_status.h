/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policy of all hosts in one document: each host is asked by a launcher that runs `fabricctl status` there, many at
 * a time. What hosts answer is not trusted: it is bounded, parsed strictly, and printed as quoted text.
 */
#ifndef FABRICD_CLUSTER_STATUS_H
#define FABRICD_CLUSTER_STATUS_H

#include "fabricd/ctl/answer.h"

#define CLUSTER_LAUNCHER  "ssh -o BatchMode=yes -o ConnectTimeout=5"
#define CLUSTER_HOSTS_MAX 65536u
#define CLUSTER_EXIT_AWAY 6 /* hosts that answered have the policy, others did not answer */

struct cluster_options {
    const char *launcher; /* words, to which the host and the command are added */
    uint32_t timeout_s, parallel;
};

/* num 0: the hosts that Slurm knows. The exit status. */
int cluster_status(const struct answer_to *to, const struct cluster_options *o, unsigned num, char *const hosts[]);

#endif
