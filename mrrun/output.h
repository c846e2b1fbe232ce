/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output of ranks. A source is the read end of a rank's pipe; it gathers bytes until a line is whole and hands lines to
 * a sink, so that lines of different ranks never mix. A sink is mrrun's stdout or stderr; it queues bytes until its
 * descriptor takes them, and never blocks. Nothing is dropped: while a sink is full its sources are not read, and ranks
 * wait in write(), as they would on a slow terminal.
 */
#ifndef MRRUN_OUTPUT_H
#define MRRUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OUTPUT_LINE_MAX = 65536,   /* a longer line is passed on in pieces */
    OUTPUT_SINK_HIGH = 262144, /* queued bytes from which sources must wait */
    OUTPUT_LAST_MAX = 128,     /* so much is kept of a source's last line */
};

struct sink {
    int fd;
    int own_fd;     /* of the same pipe, and never blocks: others may fill the pipe between poll() and write(); or -1 */
    bool is_socket; /* these can be asked not to block */
    char *bytes;
    size_t start, len, room;
    bool broken;       /* nothing can be written any more: what comes is thrown away, and sources should be closed */
    int error;         /* and why: an errno */
    uint64_t moved_ms; /* when the descriptor last took something, CLOCK_MONOTONIC */
};

struct source {
    int fd;          /* -1: closed */
    bool owner_gone; /* the rank has ended: when nothing more is there to read, close */
    struct sink *sink;
    char *line; /* OUTPUT_LINE_MAX, allocated when first needed */
    size_t len;
    char label[16];             /* "" or "[3] " */
    bool mid_line;              /* a piece of an unfinished line has been handed on */
    char last[OUTPUT_LAST_MAX]; /* how the last line that was handed on begins, without newline; "" before there was one
                                 */
    uint64_t last_ms;           /* when something was read last, CLOCK_MONOTONIC */
    bool far;                   /* bytes come from an agent, until source_close() */
    uint32_t owed;              /* of these, not yet acknowledged */
};

void sink_init(struct sink *s, int fd);
void sink_put(struct sink *s, const char *bytes, size_t len);
bool sink_full(const struct sink *s);
/* Write once if the descriptor is ready (so that no signal waits behind a slow reader). */
void sink_flush(struct sink *s);
/* Write everything, waiting as long as it takes. */
void sink_drain(struct sink *s);
void sink_clear(struct sink *s);

/* Bytes have come: pass on the lines that are whole. Pure but for the sink's memory. */
void source_feed(struct source *src, const char *bytes, size_t len);
/* Pass on the piece of a line that is there: a prompt, say. Other ranks' lines may come between it and its rest. */
void source_pass_piece(struct source *src);
/* Pass on what is left without its newline (one is added with labels, where a line must end). */
void source_finish(struct source *src);
/* Bytes have come from an agent. */
void source_take(struct source *src, const char *bytes, size_t len);
/* Read once; false at end of file, when the source has been finished and closed. */
bool source_read(struct source *src);
/* Finish and close, whatever may still come. */
void source_close(struct source *src);

#endif
