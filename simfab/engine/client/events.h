/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of ports, as programs and both planes hear of them. */
#ifndef SIMFAB_EVENTS_H
#define SIMFAB_EVENTS_H

struct sim;

/* Fill in the calls that come up from fabric, wire, clock and adapters (fabric.h, link.h, sched.h, hca.h). */
void events_init(struct sim *s);

#endif
