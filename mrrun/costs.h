/* SPDX-License-Identifier: BSD-3-Clause */
/* mrrun --explain: the costs by which the library chooses between protocols, and the times of messages that follow. */
#ifndef MRRUN_COSTS_H
#define MRRUN_COSTS_H

#include <stdbool.h>

#include "libmrmpi/p2p/choice/cost.h"

/* The costs, the lengths at which protocols change, and messages inside a host. False: MRMPI_MODEL is wrong. */
bool costs_print(const char *origin);
/* The same of messages to a peer on another host. mover: reads or writes large messages; NULL: no RDMA. */
void costs_print_to(const struct mr_cost_way *w, const char *mover);

#endif
