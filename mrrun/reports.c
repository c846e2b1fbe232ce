/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/reports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reports_queued {
    struct reports_queued *next;
    struct agents_event event;
};

void reports_open(struct reports *q)
{
    q->first = NULL;
    q->last = &q->first;
}

void reports_post(struct reports *q, const struct agents_event *event)
{
    struct reports_queued *r = malloc(sizeof(*r));

    if (!r)
        abort();
    *r = (struct reports_queued){.event = *event};
    *q->last = r;
    q->last = &r->next;
}

bool reports_next(struct reports *q, struct agents_event *event)
{
    struct reports_queued *r = q->first;

    if (!r)
        return false;
    *event = r->event;
    q->first = r->next;
    if (!q->first)
        q->last = &q->first;
    free(r);
    return true;
}

void reports_close(struct reports *q)
{
    struct agents_event event;

    while (reports_next(q, &event)) {
        free(event.text);
        free(event.ending);
    }
}

/* ---- decoding ---- */

static void read_stranger(struct wire_reader *r, struct stranger *s)
{
    s->pid = (pid_t)wire_get_number(r);
    snprintf(s->program, sizeof(s->program), "%s", wire_get_string(r));
    snprintf(s->library, sizeof(s->library), "%s", wire_get_string(r));
}

/* The numbers of each kind; a text, if any, is the rest. */
static bool read_numbers(const struct wire_frame *f, struct wire_reader *r, struct agents_event *e)
{
    switch (f->kind) {
    case WIRE_LOST:
        e->kind = AGENTS_LOST;
        return true;
    case WIRE_STARTED:
        e->kind = AGENTS_STARTED;
        e->pid = (pid_t)wire_get_number(r);
        return e->pid > 0;
    case WIRE_UNABLE:
        e->kind = AGENTS_UNABLE;
        e->code = (int)wire_get_number(r);
        return true;
    case WIRE_EXIT:
        e->kind = AGENTS_EXIT;
        e->code = (int)wire_get_number(r);
        return true;
    case WIRE_FOUND:
        e->kind = AGENTS_STRANGER;
        e->stranger.index = e->rank;
        read_stranger(r, &e->stranger);
        return true;
    case WIRE_SAY:
        e->kind = AGENTS_SAY;
        return true;
    default:
        return false;
    }
}

bool reports_decode(const struct wire_frame *f, struct agents_event *e)
{
    struct wire_reader r = wire_read(f);
    const char *text = NULL;

    *e = (struct agents_event){.host = (int)f->host, .rank = (int)f->arg};
    if (!read_numbers(f, &r, e))
        return false;
    if (f->kind != WIRE_EXIT)
        text = wire_get_string(&r);
    if (!wire_whole(&r))
        return false;
    if (text && !*text && (f->kind == WIRE_LOST || f->kind == WIRE_FOUND))
        text = NULL;
    e->text = text ? strdup(text) : NULL;
    if (text && !e->text)
        abort();
    e->stranger.whose = e->text;
    return true;
}

bool reports_decode_endings(const struct wire_frame *f, int ranks, enum ending *out)
{
    struct wire_reader r = wire_read(f);

    while (r.left && !r.bad) {
        uint32_t rank = wire_get_number(&r), ending = wire_get_number(&r);

        if (r.bad || rank >= (uint32_t)ranks || ending > ENDING_SELF)
            return false;
        if (out)
            out[rank] = ending;
    }
    return wire_whole(&r);
}
