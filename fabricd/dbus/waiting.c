/* SPDX-License-Identifier: BSD-3-Clause */
/* Callers of the bus waiting for the end of a task of the manager, with the lines of the task. */
#include "fabricd/dbus/internal.h"

#include <stdlib.h>

#define SAID_MAX 16384 /* of a reply */

static struct waiting **find_waiting(struct dbus *b, uint64_t asker)
{
    struct waiting **p = &b->waiting;
    while (*p && (*p)->asker != asker)
        p = &(*p)->next;
    return p;
}

static void free_waiting(struct waiting **p)
{
    struct waiting *w = *p;
    *p = w->next;
    sd_bus_message_unref(w->m);
    text_free(&w->said);
    free(w);
}

struct waiting *waiting_add(struct dbus *b, sd_bus_message *m, waiting_reply *reply)
{
    struct waiting *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    *w = (struct waiting){.next = b->waiting,
                          .m = sd_bus_message_ref(m),
                          .reply = reply,
                          .asker = DAEMON_LISTENER_ASKERS + b->last_asker++};
    b->waiting = w;
    return w;
}

void waiting_said(struct dbus *b, uint64_t asker, const char *line, size_t len)
{
    struct waiting *w = *find_waiting(b, asker);
    size_t room = w ? SAID_MAX - w->said.len : 0;
    if (w)
        text_put(&w->said, line, len < room ? len : room);
}

void waiting_done(struct dbus *b, uint64_t asker, int status)
{
    struct waiting **p = find_waiting(b, asker), *w = *p;
    if (!w)
        return;
    while (w->said.len && w->said.s[w->said.len - 1] == '\n')
        w->said.s[--w->said.len] = 0;
    w->reply(b, w, status);
    free_waiting(p);
}

void waiting_forget(struct dbus *b)
{
    while (b->waiting)
        free_waiting(&b->waiting);
}
