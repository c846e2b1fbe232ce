/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders about a job on all of its nodes, through the scheduler that started it there. */
#ifndef FABRICD_CLUSTER_H
#define FABRICD_CLUSTER_H

/*
 * Give a running job of Slurm another class on each of its nodes ("-": none): the script fabric-job does it (slurm/),
 * beside our libraries or in the PATH. Returns only if that cannot be run: the exit status, with why on standard error.
 */
int cluster_give(const char *job, const char *class_name);

#endif
