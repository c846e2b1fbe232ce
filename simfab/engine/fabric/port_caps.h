/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a port can do before a manager has seen it: widths, speeds, MTU, lanes, arbitration entries, buffers. All ports
 * begin with what the model's link section says; items of its list `ports` then change single ones.
 */
#ifndef SIMFAB_PORT_CAPS_H
#define SIMFAB_PORT_CAPS_H

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/fabric/netlist.h"

#define CAP_EXT_SPEEDS 0x00004000u /* PortInfo.CapabilityMask: the extended speeds are there */

/* MTU, lanes with even arbitration, buffers: as the model says of all ports. */
void port_caps_init(struct port *p, const struct model *m);

/* Width and speed as said of its cable; what is not said is the model's. */
void port_caps_set_rate(struct port *p, const struct link_rate *said, const struct model *m);

/* The model's list of single ports, once all cables are there. -1 with err filled: no such node or port. */
int port_caps_apply(struct fabric *f, struct parse_error *err);

#endif
