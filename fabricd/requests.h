/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of clients: each message of proto.h is checked, allowed or refused by its sender's credentials, handed to a
 * part of the daemon, and answered. Only the server (server.h) calls these functions.
 */
#ifndef FABRICD_REQUESTS_H
#define FABRICD_REQUESTS_H

#include "fabricd/server.h"

/* For server_start, with the struct daemon as arg. */
extern const struct server_events requests_events;

/* For users_start, with the daemon: requests that waited for this user continue. */
void requests_user_known(void *arg, uid_t uid);

#endif
