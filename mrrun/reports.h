/* SPDX-License-Identifier: BSD-3-Clause */
/* Agents' reports about ranks and hosts, from frames to events in order. Decoding is pure. */
#ifndef MRRUN_REPORTS_H
#define MRRUN_REPORTS_H

#include <sys/types.h>

#include "mrrun/processes.h"
#include "mrrun/strangers.h"
#include "mrrun/wire.h"

enum agents_event_kind {
    AGENTS_UP,       /* all hosts: the job can be run */
    AGENTS_LOST,     /* host; text: reason; NULL: reached through a host already reported */
    AGENTS_STARTED,  /* rank, pid; text: its binding, or "" */
    AGENTS_UNABLE,   /* rank; code: errno; text: reason of the failed start */
    AGENTS_EXIT,     /* rank; code: its wait status */
    AGENTS_LOOKED,   /* ending[ranks], by the time of agents_look() or later */
    AGENTS_STRANGER, /* stranger */
    AGENTS_SAY,      /* text */
};

struct agents_event {
    enum agents_event_kind kind;
    int host, rank, code;
    pid_t pid;
    char *text;               /* the taker frees these */
    enum ending *ending;      /* [ranks] */
    struct stranger stranger; /* index: the rank; text: the other MPI */
};

struct reports_queued;

struct reports {
    struct reports_queued *first, **last;
};

void reports_open(struct reports *q);
void reports_post(struct reports *q, const struct agents_event *event);
bool reports_next(struct reports *q, struct agents_event *event);
void reports_close(struct reports *q);

/* Decodes a frame of a kind that is an event. False: another kind, or invalid. */
bool reports_decode(const struct wire_frame *f, struct agents_event *event);
/* WIRE_ENDINGS into ending[ranks]; NULL: only a check. */
bool reports_decode_endings(const struct wire_frame *f, int ranks, enum ending *ending);

#endif
