/* SPDX-License-Identifier: BSD-3-Clause */
/* Control requests. */
#ifndef SIMFAB_PRELOAD_CALL_H
#define SIMFAB_PRELOAD_CALL_H

#include <stddef.h>

#include "simfab/proto.h"

/*
 * A control request. The answer's body goes to rep (at most rep_size bytes; *rep_len: actual length), the answer's
 * descriptor to *fd (-1: none). rep_len and fd may be NULL: then the body must be exactly rep_size.
 */
int sfp_call(enum sf_op op, const void *req, size_t req_len, void *rep, size_t rep_size, size_t *rep_len, int *fd);

/* Around a fork, no request is under way: hold them back; go on, in the parent; begin anew, in the child. */
void sfp_calls_hold(void);
void sfp_calls_release(void);
void sfp_calls_renew(void);

#endif
