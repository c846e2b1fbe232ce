/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What travels on an SF_CONN_UMAD connection after the hello: the socket is the descriptor that the program holds as
 * its /dev/infiniband/umadN, so that poll, epoll, fcntl, dup and fork work on it without help. write, read and ioctl
 * on it are interposed by libsimfab.so and become these messages.
 */
#ifndef SIMFAB_UMAD_PROTO_H
#define SIMFAB_UMAD_PROTO_H

#include <stdint.h>

#endif
