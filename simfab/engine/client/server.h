/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's socket and its loop: accepts connections, reads hellos and requests, hears doorbells, and lets the
 * simulation run in between. A connection is a process (it owns a struct proc), a questioner, or, after its hello,
 * the management plane's.
 */
#ifndef SIMFAB_SERVER_H
#define SIMFAB_SERVER_H

#include <stdbool.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/clock/proc.h"

struct server;

struct server *server_open(struct sim *s, const char *dir); /* NULL: logged */
void server_turn(struct server *v);                         /* waits for the next events and serves them */
bool server_has_input(const struct server *v);              /* a request or a ring has not been served yet */
void server_close(struct server *v);
void server_detach(struct proc *p); /* the process is gone, or has to go */

#endif
