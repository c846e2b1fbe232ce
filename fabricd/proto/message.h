/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks of messages from the socket. The checks need no socket, so tests and fuzzers can call them alone. A message
 * that passes has a type that a client may send and the length of its type; its texts are terminated and printable.
 */
#ifndef FABRICD_MESSAGE_H
#define FABRICD_MESSAGE_H

#include "fabricd/proto/proto.h"

#include <stdbool.h>
#include <stddef.h>

/* 0, or -EPROTO: foreign or malformed, -EINVAL: a text is not allowed. msg must be aligned like a struct. */
int message_check(const void *msg, size_t len);

/* A text field: terminated, printable ASCII (it goes to files, logs and terminals). */
bool message_good_text(const char *s, size_t size, bool may_be_empty);

static inline struct fd_header message_header(enum fd_type type, size_t length, uint32_t seq)
{
    return (struct fd_header){FD_MAGIC, FD_VERSION, (uint16_t)type, (uint32_t)length, seq};
}

#endif
