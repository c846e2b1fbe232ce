/* SPDX-License-Identifier: BSD-3-Clause */
/* The subnets of a fabric. */
#ifndef SIMFAB_PLANES_H
#define SIMFAB_PLANES_H

#include "simfab/engine/fabric/fabric.h"

struct text;

/* "SUBNET HOST DEVICE PORT GUID" for every port of an adapter that has a cable; subnets count from 1. */
void subnets_text(struct fabric *f, struct text *t);

#endif
