/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What clients ask for: each message of proto.h that comes in is checked, allowed or refused by its sender's
 * credentials, handed to the part of the daemon that does it, and answered. The server calls this (server.h); nothing
 * else calls it.
 */
#ifndef FABRICD_REQUESTS_H
#define FABRICD_REQUESTS_H

#include "fabricd/server.h"

/* For server_start, with the struct daemon as arg. */
extern const struct server_events requests_events;

/* For users_start, with the daemon: what had to wait for this user goes on. */
void requests_user_known(void *arg, uid_t uid);

#endif
