/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream of bytes between a local descriptor and a descriptor at the other end of the tree: output and input of a
 * rank, its connection to the PMIx server, the file of its record. At most a window of bytes is under way in each
 * direction, so a slow reader delays only its own writer. WIRE_END is the end of both directions, without an answer.
 */
#ifndef MRRUN_CHANNEL_H
#define MRRUN_CHANNEL_H

#include <stdbool.h>

#include "mrrun/watch.h"
#include "mrrun/wire.h"

struct channel;

/* Common state of all channels of a process. */
struct channel_base {
    int set;
    uint32_t window;
    void (*send)(const struct channel_base *b, const struct wire_frame *f);
    void (*gone)(const struct channel_base *b,
                 struct channel *c); /* both descriptors are closed; the channel may be freed */
};

struct channel {
    const struct channel_base *base;
    unsigned host;
    uint32_t id;
    struct watch from; /* read, and sent; fd -1: none */
    struct watch to;   /* incoming bytes are written here; fd -1: none */
    uint32_t credit;   /* bytes that may be sent */
    bool file;         /* from is a file: always ready */
    bool ended;        /* no more bytes come: closed when all waiting bytes are written */
    bool open;
    char *waits;
    size_t start, len;
};

/* Descriptors (-1: none) become the channel's. */
void channel_open(struct channel *c, const struct channel_base *b, unsigned host, uint32_t id, int from, int to);
/* A frame for this channel. False: it breaks the rules. */
bool channel_take(struct channel *c, const struct wire_frame *f);
/* Reads the present bytes, within the window. At end of file, the channel is gone. */
void channel_drain(struct channel *c);
/* from is a file: sends all of it, within the window. Without a descriptor, the file is empty. */
void channel_read_file(struct channel *c);
/* Close, and tell the other end. */
void channel_end(struct channel *c);

#endif
