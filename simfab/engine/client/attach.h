/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes come and go. */
#ifndef SIMFAB_ATTACH_H
#define SIMFAB_ATTACH_H

#include <stdint.h>
#include <sys/types.h>

struct host;
struct proc;
struct sim;

struct proc *proc_new(struct sim *s, struct host *host, pid_t pid, int sock, uint32_t rank);
void proc_free(struct proc *p); /* frees the process with all its objects */

#endif
