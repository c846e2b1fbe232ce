/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders about a job on all of its nodes, through the scheduler that started the job there. */
#ifndef FABRICD_CLUSTER_H
#define FABRICD_CLUSTER_H

#include "fabricd/ctl/answer.h"

/*
 * Gives a running job of Slurm another class on each of its nodes ("-": none; "=": the same), and another small ratio
 * (unless NULL): by the script fabric-job (slurm/), beside our libraries or in the PATH. The exit status: the script's,
 * or 1 if the script cannot be run.
 */
int cluster_give(const struct answer_to *to, const char *job, const char *class_name, const char *small_ratio);

#endif
