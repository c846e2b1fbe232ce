/* SPDX-License-Identifier: BSD-3-Clause */
/* The UNIX socket: clients, what they may, and the messages of fabricd/proto.h. */
#ifndef FABRICD_SERVER_H
#define FABRICD_SERVER_H

#include "fabricd/daemon.h"

/* Listens on the socket that systemd passed, or on path. NULL with errno set (and logged). */
struct server *server_start(struct daemon *d, const char *path);
void server_stop(struct server *s);

/* Something in the daemon's state has changed: every subscriber to whom it matters gets a new FD_STATE. */
void server_publish(struct server *s);
/* Now and then: budgets that clients share grow when some have left. */
void server_tick(struct server *s);

/* To the client that asked for a task, if it is still there. */
void server_progress(struct server *s, uint64_t client, const char *text, size_t len);
void server_done(struct server *s, uint64_t client, int status);

/* To the client that has asked for it, if it is still there. One that does not read is dropped later. */
void server_place(struct server *s, struct sa_asker who, const struct sa_place *place);

/* Classes that read over a slow bus (pace.h), and how fast they may; nothing if there is no such bus. */
void server_pace_text(const struct server *s, struct text *out);

unsigned server_clients(const struct server *s);

/* How many clients have been told one of these service levels since they connected? A bit each. */
unsigned server_users(const struct server *s, uint16_t levels);

#endif
