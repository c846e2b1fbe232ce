/* SPDX-License-Identifier: BSD-3-Clause */
/* opensm inside a fabric: the processes that the supervisor starts and stops. */
#ifndef SIMFAB_CMD_OPENSM_H
#define SIMFAB_CMD_OPENSM_H

#include "simfab/cmd/run.h"

bool sm_start(struct run *r, struct sm *sm); /* false: complained */
void sm_stop(struct run *r, struct sm *sm, int patience_ms);
bool sm_wait_up(struct run *r, struct sm *sm);           /* false: complained, unless the run is over */
void sm_ended(struct run *r, struct sm *sm, int status); /* struct run.sm_ended */

#endif
