/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The management plane: management datagrams (MADs), the agents of every port, and the umad and issm devices.
 *
 * One struct mad serves one fabric. The struct owns the connections of kind SF_CONN_UMAD and SF_CONN_ISSM once
 * accepted, and a timer; both are behind one descriptor (an epoll instance), watched by the engine's loop. Datagrams
 * take no virtual time: a datagram is carried to its end, through the forwarding tables and port states of fabric.h, in
 * the sending call. Time-outs, retries and repeated traps count real time.
 *
 * The engine's loop needs:
 *     m = mad_new(fabric);                    after fabric_load
 *     watch mad_fd(m) for EPOLLIN             and call mad_run(m) whenever readable
 *     mad_accept(m, fd, &hello)               for a connection of kind UMAD or ISSM
 *     mad_free(m)                             before fabric_free
 */
#ifndef SIMFAB_MAD_H
#define SIMFAB_MAD_H

#include "simfab/engine/fabric/fabric.h"
#include "simfab/proto.h"

struct mad;

/* NULL with errno set when the machine refuses a descriptor or memory. */
struct mad *mad_new(struct fabric *f);
void mad_free(struct mad *m);

/* A descriptor to watch for reading; mad_run does all pending work and never blocks. */
int mad_fd(const struct mad *m);
void mad_run(struct mad *m);

/* A line for `simfab status`: files held by programs, and requests waiting for an answer. */
struct text;
void mad_status(const struct mad *m, struct text *t);

/*
 * Takes over the connection fd, in every case: answers the hello (struct sf_welcome) and serves the connection, or
 * answers with an errno and closes the connection. A second opener of an issm waits for its answer unless
 * SF_UMAD_NONBLOCK is set in hello->arg.
 */
void mad_accept(struct mad *m, int fd, const struct sf_hello *hello);

#endif
