/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine without processes for unit tests: built as in main.c, around a model and a fabric loaded by the test. The
 * engine configures the subnet.
 */
#ifndef TESTS_SIMFAB_SIM_LAB_H
#define TESTS_SIMFAB_SIM_LAB_H

#include "simfab/engine/base/sim.h"
#include "simfab/engine/fabric/fabric.h"

/* s->model and s->fabric are there, the rest of s is zero. */
void sim_lab_up(struct sim *s, uint8_t lmc);
/* The whole engine, with the model's faults and flows: err has their errors. An invalid model leaves s empty. */
struct parse_error sim_lab_load(struct sim *s, const char *model, const char *netlist_path, uint8_t lmc);
/* Frees everything, model and fabric too; an empty s stays empty. */
void sim_lab_down(struct sim *s);

struct port *sim_lab_port(const struct sim *s, const char *node, unsigned num);

#endif
