/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capabilities of a port before a manager has seen the port: widths, speeds, MTU, lanes, arbitration entries, buffers.
 * All ports begin with the model's link section; items of the model's list `ports` then change single ports.
 */
#ifndef SIMFAB_PORT_CAPS_H
#define SIMFAB_PORT_CAPS_H

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/fabric/netlist.h"

#define CAP_EXT_SPEEDS 0x00004000u /* PortInfo.CapabilityMask: the extended speeds are there */

/* MTU, lanes with even arbitration, buffers: as the model says of all ports. */
void port_caps_init(struct port *p, const struct model *m);

/* Sets width and speed given for the port's cable; missing values are the model's. */
void port_caps_set_rate(struct port *p, const struct link_rate *said, const struct model *m);

/* The model's list of single ports, once all cables are there. -1 with err filled: no such node or port. */
int port_caps_apply(struct fabric *f, struct parse_error *err);

#endif
