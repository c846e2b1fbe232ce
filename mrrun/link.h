/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection between two neighbours of the tree of agents: frames over a pair of descriptors that never block. Bytes
 * to send wait in memory; windows of channels bound their number. The other side sends at least every LINK_PING_MS;
 * long silence means that the other side is dead.
 */
#ifndef MRRUN_LINK_H
#define MRRUN_LINK_H

#include <stdbool.h>

#include "mrrun/watch.h"
#include "mrrun/wire.h"

enum { LINK_PING_MS = 500 };

struct link {
    int set;
    struct watch in, out;
    char *got; /* an incomplete frame */
    size_t got_len, got_room;
    char *waits; /* to be sent */
    size_t start, len, room;
    uint64_t heard_ms, sent_ms; /* CLOCK_MONOTONIC */
    /* A whole frame; false: it is not to be borne. */
    bool (*frame)(struct link *l, const struct wire_frame *f);
    /* The end of the connection, once; why is words. It may be closed then. */
    void (*broken)(struct link *l, const char *why);
};

/* The descriptors become the link's. out_fd -1: nothing can be sent. */
void link_open(struct link *l, int set, int in_fd, int out_fd);
void link_close(struct link *l);
void link_send(struct link *l, const struct wire_frame *f);
void link_send_bytes(struct link *l, const void *bytes, size_t len);
/* Bytes received before the link existed. */
void link_feed(struct link *l, const char *bytes, size_t len);
/* Sends a sign of life, if due. */
void link_ping(struct link *l, uint64_t now_ms);
uint64_t link_now_ms(void);

#endif
