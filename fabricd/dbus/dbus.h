/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * org.mrmpi.Fabric1 on the system bus: what schedulers and administrators' tools order and ask, and signals for all
 * that changes. A second door beside the socket: the daemon does not know of it, and is as well off without a bus.
 * Described in org.mrmpi.Fabric1(5); the same as XML in etc/dbus.
 *
 * Everything belongs to the main thread, and nothing waits: who asks is looked up by a call whose answer comes later.
 */
#ifndef FABRICD_DBUS_H
#define FABRICD_DBUS_H

#include "fabricd/daemon.h"

struct dbus;

/*
 * Take part in the system bus (DBUS_SYSTEM_BUS_ADDRESS, else the one of this host) as soon as there is one, and again
 * whenever it is started anew, until dbus_stop. From now on this listens to d. NULL: out of memory.
 */
struct dbus *dbus_start(struct daemon *d);
void dbus_stop(struct dbus *b); /* NULL: nothing */

#endif
