/* SPDX-License-Identifier: BSD-3-Clause */
/* Control verbs: requests over a connection, and their answers. */
#ifndef SIMFAB_REQUEST_H
#define SIMFAB_REQUEST_H

#include <stddef.h>

struct proc;

/* One message of a PROC connection. Returns the bytes of the answer in rep, *fd a descriptor to send. */
size_t request_handle(struct proc *p, const void *msg, size_t len, void *rep, size_t cap, int *fd);

#endif
