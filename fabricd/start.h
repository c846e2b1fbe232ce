/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon begins, looks at the fabric and its own ports from time to time, obeys signals, and ends. */
#ifndef FABRICD_START_H
#define FABRICD_START_H

#include "fabricd/daemon.h"

/* events: the functions for the server, called with d (requests.h). 0 or a negative errno, which has been logged. */
int daemon_start(struct daemon *d, const struct conf *conf, const struct server_events *events);
void daemon_stop(struct daemon *d);

#endif
