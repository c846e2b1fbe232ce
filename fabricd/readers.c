/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells clients how fast they may read: see readers.h. */
#include "fabricd/readers.h"
#include "fabricd/daemon.h"
#include "fabricd/proto/message.h"
#include "fabricd/policy/pace.h"
#include "fabricd/server.h"

#include <inttypes.h>
#include <stdlib.h>

/* Reading is divided anew after this time at the earliest, and more for each client: all of them may get a message. */
#define PACE_LEAST_US  1000u
#define PACE_CLIENT_US 20u
#define PACE_FINE      8 /* a client that is not at its limit hears of changes by such a part */

/* The policy knows classes that could hold each other up. */
static bool is_divided(const struct daemon *d)
{
    return d->current.valid && d->current.tables.num_classes > 1;
}

/* True if no two classes read here. */
static bool is_one_class(const struct daemon *d)
{
    unsigned classes = 0;
    for (const struct client *c = server_clients(d->server); c; c = c->next)
        classes |= c->subscriber.subscribed ? 1u << c->subscriber.class_index : 0;
    return !(classes & (classes - 1));
}

/* True if the client can be told. */
static bool is_paced(const struct client *c)
{
    return c->reader.paces && c->subscriber.subscribed && !c->drop;
}

/* On rail i, among n processes, into their messages. */
static void divide_rail(const struct daemon *d, unsigned i, struct pace_process *p, unsigned n, struct fd_pace *next)
{
    double share[POLICY_CLASSES_MAX] = {0};
    bool alone = is_one_class(d);
    uint32_t room_kb = rails_bus_room(&d->rails, i);
    for (unsigned k = 0; k < d->current.tables.num_classes; k++)
        share[k] = d->current.tables.classes[k].share;
    if (room_kb)
        pace_divide(share, room_kb, p, n);
    for (unsigned k = 0; k < n && room_kb; k++) {
        uint32_t kb = (uint32_t)(p[k].part * room_kb);
        next[k].rate_kb[i] = alone ? FD_PACE_ALONE : kb ? kb : 1;
    }
}

static bool pace_differs(const struct client *c, const struct fd_pace *next)
{
    for (unsigned i = 0; i < FD_RAILS_MAX; i++) {
        uint32_t a = c->reader.pace.rate_kb[i], b = next->rate_kb[i], off = a > b ? a - b : b - a;
        if (off && (!a || !b || c->reader.want_kb == FD_READS_ALL || off > a / PACE_FINE))
            return true;
    }
    return false;
}

static void tell_pace(struct client *c, const struct fd_pace *next)
{
    if (!pace_differs(c, next))
        return;
    c->reader.pace = *next;
    c->reader.pace.h = message_header(FD_PACE, sizeof(c->reader.pace), 0);
    server_send(c, &c->reader.pace, sizeof(c->reader.pace));
}

static void divide_reading(struct daemon *d)
{
    bool on = is_divided(d);
    unsigned n = 0, k = 0;
    struct pace_process *p = calloc(server_num_clients(d->server) + 1, sizeof(*p));
    struct fd_pace *next = calloc(server_num_clients(d->server) + 1, sizeof(*next));
    d->readers.timer = sd_event_source_unref(d->readers.timer);
    sd_event_now(d->event, CLOCK_MONOTONIC, &d->readers.divided_us);
    for (struct client *c = server_clients(d->server); p && next && c; c = c->next)
        if (is_paced(c)) {
            c->reader.want_kb = on ? c->reader.want_kb : 0;
            p[n++] = (struct pace_process){.class_index = c->subscriber.class_index, .want_kb = c->reader.want_kb};
        }
    for (unsigned i = 0; on && n && i < d->rails.n; i++)
        divide_rail(d, i, p, n, next);
    for (struct client *c = server_clients(d->server); n && c; c = c->next)
        if (is_paced(c))
            tell_pace(c, &next[k++]);
    free(next);
    free(p);
}

static int on_pace_timer(sd_event_source *source, uint64_t usec, void *arg)
{
    struct daemon *d = arg;
    divide_reading(d);
    server_free_dropped(d->server);
    return 0;
}

void readers_divide_soon(struct daemon *d)
{
    uint64_t now, next = d->readers.divided_us + PACE_LEAST_US + PACE_CLIENT_US * server_num_clients(d->server);
    if (d->readers.timer)
        return;
    if (sd_event_now(d->event, CLOCK_MONOTONIC, &now) < 0 || now >= next ||
        sd_event_add_time(d->event, &d->readers.timer, CLOCK_MONOTONIC, next, 1, on_pace_timer, d) < 0)
        divide_reading(d);
}

void readers_stop(struct daemon *d)
{
    d->readers.timer = sd_event_source_unref(d->readers.timer);
}

void readers_on_reads(struct daemon *d, struct client *c, const struct fd_reads *m)
{
    if (c->reader.want_kb == m->want_kb)
        return;
    c->reader.want_kb = m->want_kb;
    readers_divide_soon(d);
}

/* Of all rails together. */
static uint64_t rate_of(const struct client *c)
{
    uint64_t kb = 0;
    for (unsigned i = 0; i < FD_RAILS_MAX; i++)
        kb += c->reader.pace.rate_kb[i] == FD_PACE_ALONE ? 0 : c->reader.pace.rate_kb[i];
    return kb;
}

void readers_text(const struct daemon *d, struct text *out)
{
    const struct policy *p = &d->current.policy;
    bool any = false;
    for (unsigned k = 0; is_divided(d) && k < p->num_classes; k++) {
        unsigned readers = 0;
        uint64_t kb = 0;
        for (const struct client *c = server_clients(d->server); c; c = c->next) {
            uint64_t rate = rate_of(c), want = c->reader.want_kb;
            if (c->subscriber.class_index == k && rate && want) {
                readers++;
                kb += want == FD_READS_ALL || want > rate ? rate : want;
            }
        }
        if (!readers)
            continue;
        text_printf(out, "%s  - {name: ", any ? "" : "reading:\n");
        text_yaml_string(out, p->classes[k].name);
        text_printf(out, ", processes: %u, mbytes_per_s: %" PRIu64 "}\n", readers, kb / 1000);
        any = true;
    }
}
