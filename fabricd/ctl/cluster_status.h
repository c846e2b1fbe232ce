/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policy of all hosts in one document: a launcher runs `fabricctl status` on each host, many at a time. Answers of
 * hosts are not trusted: they are bounded, parsed strictly, and printed as quoted text.
 */
#ifndef FABRICD_CLUSTER_STATUS_H
#define FABRICD_CLUSTER_STATUS_H

#include "fabricd/ctl/answer.h"

#define CLUSTER_LAUNCHER  "ssh -o BatchMode=yes -o ConnectTimeout=5"
#define CLUSTER_HOSTS_MAX 65536u
#define CLUSTER_EXIT_AWAY 6 /* hosts that answered have the policy, others did not answer */

struct cluster_options {
    const char *launcher; /* words before the host and the command */
    uint32_t timeout_s, parallel;
};

/* num 0: the hosts known to Slurm. Returns the exit status. */
int cluster_status(const struct answer_to *to, const struct cluster_options *o, unsigned num, char *const hosts[]);

#endif
