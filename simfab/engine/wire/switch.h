/* SPDX-License-Identifier: BSD-3-Clause */
/* Switches, the highest file of the wire. */
#ifndef SIMFAB_SWITCH_H
#define SIMFAB_SWITCH_H

struct sim;

/* Makes the links of the fabric. Links into a switch bring their packets here, others to sim.adapter_end. */
void wire_init(struct sim *s);

#endif
