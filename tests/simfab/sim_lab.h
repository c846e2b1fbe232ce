/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine without processes, as unit tests of it want one: what main.c builds, around a model and a fabric that the
 * test has loaded. The subnet is configured by the engine itself.
 */
#ifndef TESTS_SIMFAB_SIM_LAB_H
#define TESTS_SIMFAB_SIM_LAB_H

#include "simfab/engine/base/sim.h"
#include "simfab/engine/fabric/fabric.h"

/* s->model and s->fabric are there, the rest of s is zero. */
void sim_lab_up(struct sim *s, uint8_t lmc);
/* The whole of it, and with the list of faults and flows in its model: err tells what is wrong with them. A model that
   is none leaves s empty. */
struct parse_error sim_lab_load(struct sim *s, const char *model, const char *netlist_path, uint8_t lmc);
/* Takes all of it away, model and fabric too; an empty s stays so. */
void sim_lab_down(struct sim *s);

struct port *sim_lab_port(const struct sim *s, const char *node, unsigned num);

#endif
