/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * org.mrmpi.Fabric1 on the system bus: orders and questions of schedulers and administrators' tools, and signals for
 * all changes. A second interface beside the socket: the daemon does not depend on this interface, and works without a
 * bus. Described in org.mrmpi.Fabric1(5); the same as XML in etc/dbus.
 *
 * The main thread owns everything, and nothing waits: a sender is looked up by a call with a later answer.
 */
#ifndef FABRICD_DBUS_H
#define FABRICD_DBUS_H

#include "fabricd/daemon.h"

struct dbus;

/*
 * Takes part in the system bus (DBUS_SYSTEM_BUS_ADDRESS, else the bus of this host) as soon as there is one, and again
 * after each start of the bus, until dbus_stop. From now on the result listens to d. NULL: out of memory.
 */
struct dbus *dbus_start(struct daemon *d);
void dbus_stop(struct dbus *b); /* NULL: nothing */

#endif
