/* SPDX-License-Identifier: BSD-3-Clause */
/* The hosts of opensm. */
#ifndef SIMFAB_CMD_PLACE_H
#define SIMFAB_CMD_PLACE_H

#include "simfab/cmd/run.h"

/* Places opensm, one for each subnet; false: complained, the command line is impossible. */
bool sms_place(struct run *r);

#endif
