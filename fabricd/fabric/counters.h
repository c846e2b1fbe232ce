/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error counters of the ports at both ends of a rail's cable, as performance management agents tell them (what
 * perfquery asks): of 64 bits where an agent has such counters, else of 4 to 32 bits. If this host's port cannot be
 * asked, its counters come from sysfs, and those of the far port are not known. Reading changes no counter. A reader
 * waits for answers, up to a second for a port that does not answer, so it belongs to a thread of its own.
 */
#ifndef FABRICD_FABRIC_COUNTERS_H
#define FABRICD_FABRIC_COUNTERS_H

#include "fabricd/policy/health.h"

struct counters;

/* device and port of fd_rail. Never fails: what cannot be opened is tried again at each reading. */
struct counters *counters_open(const char *device, unsigned port);
void counters_close(struct counters *c);
/* Everything but now_us. */
void counters_read(struct counters *c, struct health_look *look);
/* What is at the far end: "leaf1 port 3"; "": not known. */
const char *counters_far_name(const struct counters *c);

#endif
