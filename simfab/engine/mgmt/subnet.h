/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A subnet that is configured by nobody: for tests of the data plane, and for programs that need no subnet manager.
 * LIDs in the order of the netlist, forwarding along shortest paths, every port Active, one service level per lane.
 */
#ifndef SIMFAB_SUBNET_H
#define SIMFAB_SUBNET_H

#include <stdint.h>

#include "simfab/engine/fabric/fabric.h"

/* lmc: every adapter's port gets 2^lmc LIDs, whose paths differ where there are several shortest ones. */
void subnet_configure(struct fabric *f, uint8_t lmc);

#endif
