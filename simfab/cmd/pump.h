/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting in the supervisor: signals of the guardian, ends of children and a descriptor, in one loop. The owner of
 * struct run fills in sm_ended.
 */
#ifndef SIMFAB_CMD_PUMP_H
#define SIMFAB_CMD_PUMP_H

#include "simfab/cmd/run.h"

/* True when the run cannot go on: guardian or engine gone, or CMD done. */
static inline bool run_is_over(const struct run *r)
{
    return r->guardian_gone || r->engine_gone || r->command_done;
}

/* In a forked child: ordinary signals again, and die with the supervisor. */
void run_child_setup(const struct run *r);
/* Waits for fd (or -1) to be readable, doing due work meanwhile: 1 readable, 0 time is up, -1 the run is over. */
int run_pump(struct run *r, int fd, int timeout_ms);

#endif
