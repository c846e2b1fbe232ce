/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The management plane: management datagrams (MADs), the agents of every port, and the umad and issm devices.
 *
 * One struct mad serves one fabric. It owns the connections of kind SF_CONN_UMAD and SF_CONN_ISSM once they are
 * accepted, and a timer; both are behind one descriptor (an epoll instance) that the engine's loop watches. Datagrams
 * take no virtual time: a datagram is carried to its end, through the forwarding tables and port states of fabric.h,
 * in the call that sent it. Time-outs, retries and repeated traps count real time.
 *
 * The engine's loop needs:
 *     m = mad_new(fabric);                    after fabric_load
 *     watch mad_fd(m) for EPOLLIN             and call mad_run(m) whenever it is readable
 *     mad_accept(m, fd, &hello)               for a connection whose hello says UMAD or ISSM
 *     mad_port_event(p, ev)                   from port_notify
 *     sysfs_answer(...)                       for SF_OP_SYSFS
 *     mad_free(m)                             before fabric_free
 */
#ifndef SIMFAB_MAD_H
#define SIMFAB_MAD_H

#include <stddef.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/proto.h"

struct mad;

/* NULL with errno set when the machine refuses a descriptor or memory. */
struct mad *mad_new(struct fabric *f);
void mad_free(struct mad *m);

/* A descriptor to watch for reading; mad_run does what is due and never blocks. */
int mad_fd(const struct mad *m);
void mad_run(struct mad *m);

/* A line for `simfab status`: what programs hold, and what waits for an answer. */
struct text;
void mad_status(const struct mad *m, struct text *t);

/* Take over the connection fd, in every case: answer the hello (struct sf_welcome) and serve it, or answer with an
   errno and close it. A second opener of an issm waits for its answer unless SF_UMAD_NONBLOCK is set in hello->arg. */
void mad_accept(struct mad *m, int fd, const struct sf_hello *hello);

/* Something about the port changed: send the traps that go with it. Called by port_notify. */
void mad_port_event(struct port *p, enum port_event ev);

/*
 * A packet with a wrong key has come to the port p, of an adapter or of an enforcing switch: tell the subnet manager
 * (traps 257, 258, 259), but not more often than the port's subnet time-out allows.
 */
void mad_bad_key(struct port *p, const struct bad_key *b);

/* The time for which fabric_upcalls.samples_later was called is over. */
void samples_due(struct port *at);

/*
 * What host sees at path (below /sys/class/infiniband, infiniband_mad, infiniband_verbs, or in /dev/infiniband):
 * a struct sf_sysfs and its data into body. Returns the bytes written, 0 when cap is too small.
 */
size_t sysfs_answer(const struct host *host, const char *path, void *body, size_t cap);

#endif
