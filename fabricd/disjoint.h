/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers clients' questions for the LID paths to a port (FD_PATHS), and people's questions for the paths between two
 * hosts (FD_PATHS_SHOW). Answers come later, when the subnet administration has sent the missing parts
 * (fabric/paths.h).
 */
#ifndef FABRICD_DISJOINT_H
#define FABRICD_DISJOINT_H

#include "fabricd/daemon.h"

struct client;

/* Anybody may ask: every host of the subnet can get the same facts. */
void disjoint_on_paths(struct daemon *d, struct client *c, const struct fd_paths *m);
/* Answered by FD_TEXT and FD_DONE. */
void disjoint_on_show(struct daemon *d, struct client *c, const struct fd_ends *m);

/* For paths_start(); arg: the daemon. */
void disjoint_told(void *arg, struct sa_asker who, const struct paths_question *q, int status,
                   const struct routes_pair *pair);
void disjoint_moved(void *arg, const char *device, uint8_t port);

/* The number of clients that have asked for paths. */
unsigned disjoint_clients(const struct daemon *d);
/* Now and then: clients that have asked get news when forwarding has changed. */
void disjoint_tick(struct daemon *d);

#endif
