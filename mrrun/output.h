/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output of ranks. A source is the read end of a rank's pipe; it gathers bytes until a line is whole and hands lines to
 * a sink, so lines of different ranks never mix. A sink is mrrun's stdout or stderr; it queues bytes until its
 * descriptor takes them, and never blocks. Nothing is dropped: while a sink is full its sources are not read, and ranks
 * wait in write(), as on a slow terminal.
 */
#ifndef MRRUN_OUTPUT_H
#define MRRUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OUTPUT_LINE_MAX = 65536,   /* a longer line is passed on in pieces */
    OUTPUT_SINK_HIGH = 262144, /* queued bytes from which sources must wait */
    OUTPUT_LAST_MAX = 128,     /* bytes kept of a source's last line */
};

struct sink {
    int fd;
    int own_fd;     /* of the same pipe, and never blocks: others may fill the pipe between poll() and write(); or -1 */
    bool is_socket; /* these can be asked not to block */
    char *bytes;
    size_t start, len, room;
    bool broken;       /* writing failed for good: bytes are dropped, and sources should be closed */
    int error;         /* and why: an errno */
    uint64_t moved_ms; /* when the descriptor last took something, CLOCK_MONOTONIC */
};

struct source {
    int fd;          /* -1: closed */
    bool owner_gone; /* the rank has ended: when nothing more is there to read, close */
    struct sink *sink;
    char *line; /* OUTPUT_LINE_MAX, allocated when first needed */
    size_t len;
    char label[16]; /* "" or "[3] " */
    bool mid_line;  /* a piece of an unfinished line has been handed on */
    char
        last[OUTPUT_LAST_MAX]; /* the beginning of the last line passed on, without newline; "" before the first line */
    uint64_t last_ms;          /* when something was read last, CLOCK_MONOTONIC */
    bool far;                  /* bytes come from an agent, until source_close() */
    uint32_t owed;             /* of these, not yet acknowledged */
};

void sink_init(struct sink *s, int fd);
void sink_put(struct sink *s, const char *bytes, size_t len);
bool sink_full(const struct sink *s);
/* Writes once if the descriptor is ready (so no signal waits behind a slow reader). */
void sink_flush(struct sink *s);
/* Writes everything, without time limit. */
void sink_drain(struct sink *s);
void sink_clear(struct sink *s);

/* Bytes have come: pass on the lines that are whole. Pure but for the sink's memory. */
void source_feed(struct source *src, const char *bytes, size_t len);
/* Passes on an incomplete line, such as a prompt. Other ranks' lines may come between this piece and its rest. */
void source_pass_piece(struct source *src);
/* Passes on the rest without a newline (with labels, a newline is added). */
void source_finish(struct source *src);
/* Bytes have come from an agent. */
void source_take(struct source *src, const char *bytes, size_t len);
/* Read once; false at end of file, when the source has been finished and closed. */
bool source_read(struct source *src);
/* Finish and close, whatever may still come. */
void source_close(struct source *src);

#endif
