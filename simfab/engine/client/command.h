/* SPDX-License-Identifier: BSD-3-Clause */
/* The command rings of processes. */
#ifndef SIMFAB_COMMAND_H
#define SIMFAB_COMMAND_H

#include <stdbool.h>

struct proc;
struct sim;

/* Take all commands of all processes, in the order of stamp, process, ring. */
void commands_drain(struct sim *s);
bool commands_drain_one(struct proc *p); /* true if there were any */

#endif
