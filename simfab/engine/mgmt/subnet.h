/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configures a subnet without a manager, for tests of the data plane and for programs without need of a manager. LIDs
 * in the order of the netlist, forwarding along shortest paths, every port Active, one service level per lane.
 */
#ifndef SIMFAB_SUBNET_H
#define SIMFAB_SUBNET_H

#include <stdint.h>

#include "simfab/engine/fabric/fabric.h"

/* lmc: every adapter port gets 2^lmc LIDs, with different paths if there are several shortest paths. */
void subnet_configure(struct fabric *f, uint8_t lmc);

#endif
