/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hosts that a scheduler has given to the job mrrun runs in: Slurm's SLURM_JOB_NODELIST and SLURM_TASKS_PER_NODE,
 * or the file of PBS and Torque, PBS_NODEFILE.
 */
#ifndef MRRUN_ALLOCATION_H
#define MRRUN_ALLOCATION_H

#include <stddef.h>

/* A host takes `slots` ranks; hosts may repeat. Nonzero ends the list. */
typedef int allocation_fn(void *arg, const char *host, int slots);

/* How many were told; 0: there is no scheduler; -1 with a message in *why. */
int allocation_list(allocation_fn *fn, void *arg, char *why, size_t cap);
/* The same from texts; pure. tasks NULL: one task each. */
int allocation_of_slurm(const char *nodes, const char *tasks, allocation_fn *fn, void *arg, char *why, size_t cap);

#endif
