/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks on what comes in over the socket, apart from any socket so that they can be tested and fuzzed alone. A message
 * that passes is of a type that a client may send, of the length that the type asks for, and its texts are terminated
 * and printable.
 */
#ifndef FABRICD_MESSAGE_H
#define FABRICD_MESSAGE_H

#include "fabricd/proto/proto.h"

#include <stdbool.h>
#include <stddef.h>

/* 0, or -EPROTO: not ours or malformed, -EINVAL: a text that is not allowed. msg must be aligned as a struct is. */
int message_check(const void *msg, size_t len);

/* A text field: terminated, printable ASCII (it goes to files, logs and terminals). */
bool message_good_text(const char *s, size_t size, bool may_be_empty);

static inline struct fd_header message_header(enum fd_type type, size_t length, uint32_t seq)
{
    return (struct fd_header){FD_MAGIC, FD_VERSION, (uint16_t)type, (uint32_t)length, seq};
}

#endif
