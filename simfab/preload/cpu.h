/* SPDX-License-Identifier: BSD-3-Clause */
/* Processors of actors. */
#ifndef SIMFAB_PRELOAD_CPU_H
#define SIMFAB_PRELOAD_CPU_H

#include "simfab/proto.h"

/*
 * This thread gets its former affinity back, before a thread or a child inherits the affinity (lend), or for
 * good (leave). The last function: call before a system call of this number.
 */
void sfp_cpu_lend(const struct sf_actor *a);
void sfp_cpu_leave(struct sf_actor *a);
void sfp_cpu_asked(long number);

#endif
