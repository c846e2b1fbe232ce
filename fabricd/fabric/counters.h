/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error counters of the ports at both ends of a rail's cable, from performance management agents (as perfquery reads):
 * of 64 bits if an agent has such counters, else of 4 to 32 bits. If this host's port cannot be asked, its counters
 * come from sysfs, and those of the far port are unknown. Reading changes no counter. A reader waits for answers, up to
 * a second for a silent port, so readers need a thread of their own.
 */
#ifndef FABRICD_FABRIC_COUNTERS_H
#define FABRICD_FABRIC_COUNTERS_H

#include "fabricd/policy/health.h"

struct counters;

/* device and port of fd_rail. Never fails: each reading tries again to open missing parts. */
struct counters *counters_open(const char *device, unsigned port);
void counters_close(struct counters *c);
/* Everything but now_us. */
void counters_read(struct counters *c, struct health_look *look);
/* The far end: "leaf1 port 3"; "": unknown. */
const char *counters_far_name(const struct counters *c);

#endif
