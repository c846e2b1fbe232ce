/* SPDX-License-Identifier: BSD-3-Clause */
/* See rail_health.h. The file is RAILS in the state directory: a document of YAML of bounded length. */
#include "fabricd/fabric/rail_health.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/base/ydoc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RAILS    "rails.yaml"
#define FILE_MAX 262144u
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const states[] = {"healthy", "degraded", "bad", "drained", NULL};

/* ---- rails ---- */

static struct ward *find_ward(const struct rail_health *r, const char *device, unsigned port)
{
    for (unsigned i = 0; i < r->n; i++)
        if (r->ward[i].port == port && !strcmp(r->ward[i].device, device))
            return (struct ward *)&r->ward[i];
    return NULL;
}

const struct ward *rail_health_ward(const struct rail_health *r, const char *device, unsigned port)
{
    return find_ward(r, device, port);
}

/* NULL: there are too many. */
static struct ward *get(struct rail_health *r, const char *device, unsigned port)
{
    struct ward *w = find_ward(r, device, port);
    if (w || r->n == FD_RAILS_MAX)
        return w;
    w = &r->ward[r->n++];
    *w = (struct ward){.port = port};
    snprintf(w->device, sizeof(w->device), "%s", device);
    health_init(&w->health, clock_us());
    return w;
}

static const struct fd_rail *rail_of(const struct rails *rails, const char *device, unsigned port)
{
    for (unsigned i = 0; i < rails->n; i++)
        if (rails->rail[i].port == port && !strcmp(rails->rail[i].device, device))
            return &rails->rail[i];
    return NULL;
}

/* ---- what is remembered ---- */

static const struct rail_event *event_at(const struct ward *w, unsigned i)
{
    return &w->event[i % RAIL_EVENTS];
}

static unsigned first_event(const struct ward *w)
{
    return w->num_events > RAIL_EVENTS ? w->num_events - RAIL_EVENTS : 0;
}

static void put_percent(struct text *out, uint32_t weight)
{
    text_printf(out, "%u.%02u", weight / FD_HEALTHY, weight % FD_HEALTHY * 100 / FD_HEALTHY);
}

static void put_events(struct text *out, const struct ward *w, const char *indent)
{
    for (unsigned i = first_event(w); i < w->num_events; i++) {
        const struct rail_event *e = event_at(w, i);
        text_printf(out, "%s- {at: %" PRId64 ", state: %s, weight: %u, why: ", indent, e->at, states[e->state],
                    e->weight);
        text_yaml_string(out, e->why);
        text_printf(out, "}\n");
    }
}

static void keep_health(struct rail_health *r)
{
    struct text t = {0};
    for (unsigned i = 0; i < r->n; i++) {
        const struct ward *w = &r->ward[i];
        text_printf(&t, "- device: ");
        text_yaml_string(&t, w->device);
        text_printf(&t, "\n  port: %u\n  state: %s\n  drained: %s\n  flaps: %u\n  relapses: %u\n  events:%s\n", w->port,
                    states[w->health.own_state], w->health.drained ? "true" : "false", w->health.flaps,
                    w->health.relapses, w->num_events ? "" : " []");
        put_events(&t, w, "  ");
    }
    if (t.len)
        watch_keep(r->watch, t.s, t.len);
    text_free(&t);
}

static void note(struct ward *w)
{
    struct rail_event *e = &w->event[w->num_events++ % RAIL_EVENTS];
    struct text why = {0}, weight = {0};
    health_reason_text(&why, &w->health.reason);
    *e = (struct rail_event){.at = (int64_t)time(NULL), .state = w->health.state, .weight = w->health.weight};
    snprintf(e->why, sizeof(e->why), "%s", text_str(&why));
    put_percent(&weight, w->health.weight);
    log_event(LOG_RAIL_HEALTH, w->health.state == FD_RAIL_HEALTHY ? SD_INFO : SD_WARNING,
              "rail %s port %u is %s, weight %s: %s%s%s", w->device, w->port, states[w->health.state],
              text_str(&weight), text_str(&why), *w->far_name ? "; its cable leads to " : "", w->far_name);
    text_free(&why);
    text_free(&weight);
}

static void read_event(struct ydoc *y, yaml_node_t *n, struct ward *w)
{
    struct ykey k[] = {{"at", true, NULL}, {"state", true, NULL}, {"weight", true, NULL}, {"why", true, NULL}};
    struct rail_event e = {0};
    uint32_t at = 0;
    if (!ydoc_map(y, n, "an event", k, COUNT(k)))
        return;
    int state = ydoc_choice(y, k[1].value, "state", states);
    if (state < 0 || !ydoc_uint(y, k[0].value, "at", 0, UINT32_MAX, &at) ||
        !ydoc_uint(y, k[2].value, "weight", 0, FD_HEALTHY, &e.weight) ||
        !ydoc_string(y, k[3].value, "why", e.why, sizeof(e.why)))
        return;
    e.at = at;
    e.state = (enum fd_rail_state)state;
    w->event[w->num_events++ % RAIL_EVENTS] = e;
}

static void read_ward(struct ydoc *y, yaml_node_t *n, struct rail_health *r)
{
    struct ykey k[] = {{"device", true, NULL}, {"port", true, NULL},     {"state", true, NULL}, {"drained", true, NULL},
                       {"flaps", true, NULL},  {"relapses", true, NULL}, {"events", true, NULL}};
    char device[FD_DEV_MAX];
    uint32_t port, flaps, relapses;
    bool drained;
    if (!ydoc_map(y, n, "a rail", k, COUNT(k)) || !ydoc_string(y, k[0].value, "device", device, sizeof(device)) ||
        !ydoc_uint(y, k[1].value, "port", 1, 254, &port) || !ydoc_bool(y, k[3].value, "drained", &drained) ||
        !ydoc_uint(y, k[4].value, "flaps", 0, UINT32_MAX, &flaps) ||
        !ydoc_uint(y, k[5].value, "relapses", 0, HEALTH_RELAPSES, &relapses) || !ydoc_list(y, k[6].value, "events"))
        return;
    int state = ydoc_choice(y, k[2].value, "state", states);
    struct ward *w = state >= 0 && state < FD_RAIL_DRAINED ? get(r, device, port) : NULL;
    yaml_node_t *item;
    if (!w)
        return;
    health_restore(&w->health, (enum fd_rail_state)state, drained, flaps, relapses, clock_us());
    for (size_t i = 0; i < RAIL_EVENTS && (item = ydoc_item(y, k[6].value, i)); i++)
        read_event(y, item, w);
}

static void keep_corrupt(const char *path, const struct text *t, const struct diag *d)
{
    char aside[PATH_MAX + 64];
    text_corrupt_name(path, aside, sizeof(aside));
    int rc = text_write_file(aside, text_str(t), t->len);
    log_error("%sthe rails that cannot be read begin anew; the file as it was %s %s%s%s", text_str(&d->out),
              rc ? "could not be kept as" : "is kept as", aside, rc ? ": " : "", rc ? strerror(-rc) : "");
}

/* Unreadable parts are reported once, and written anew with the next change. */
static void load_health(struct rail_health *r, const char *path)
{
    struct text t = {0};
    struct diag d = {.file = path};
    struct ydoc y;
    yaml_node_t *item;
    int rc = text_read_file(&t, path, FILE_MAX);
    if (!rc && ydoc_load(&y, text_str(&t), t.len, &d)) {
        if (ydoc_list(&y, ydoc_root(&y), "the rails"))
            for (size_t i = 0; i < FD_RAILS_MAX && (item = ydoc_item(&y, ydoc_root(&y), i)); i++)
                read_ward(&y, item, r);
        ydoc_free(&y);
    }
    if (rc && rc != -ENOENT)
        log_error("%s: %s: what became of rails before, and which are drained, is not known", path,
                  text_read_error(rc));
    else if (d.errors)
        keep_corrupt(path, &t, &d);
    text_free(&d.out);
    text_free(&t);
}

int rail_health_start(struct rail_health *r, const char *state_dir, unsigned interval_ms)
{
    char path[PATH_MAX + sizeof(RAILS) + 1];
    snprintf(path, sizeof(path), "%s/" RAILS, state_dir);
    load_health(r, path);
    r->watch = watch_start(interval_ms, path);
    return r->watch ? 0 : -errno;
}

void rail_health_stop(struct rail_health *r)
{
    watch_stop(r->watch);
    r->watch = NULL;
}

/* ---- what changes ---- */

static bool has_hint(const struct ward *w, uint64_t now_us)
{
    for (unsigned i = 0; i < RAIL_HINTS; i++)
        if (w->hint[i].until_us > now_us)
            return true;
    return false;
}

/* Drops expired hints. True if there was one. */
static bool forget_hints(struct rail_health *r)
{
    uint64_t now_us = clock_us();
    bool any = false;
    for (unsigned i = 0; i < r->n; i++)
        for (unsigned k = 0; k < RAIL_HINTS; k++) {
            struct rail_hint *h = &r->ward[i].hint[k];
            if (!h->until_us || h->until_us > now_us)
                continue;
            h->until_us = 0;
            any = true;
        }
    return any;
}

bool rail_health_take(struct rail_health *r, const struct health_rules *rules)
{
    static struct watch_reading reading[FD_RAILS_MAX];
    unsigned num = watch_take(r->watch, reading);
    bool changed = false;
    for (unsigned i = 0; i < num; i++) {
        struct ward *w = get(r, reading[i].device, reading[i].port);
        struct health_rules mine = *rules;
        if (!w)
            continue;
        mine.suspected = has_hint(w, reading[i].look.now_us);
        if (*reading[i].far_name)
            memcpy(w->far_name, reading[i].far_name, sizeof(w->far_name));
        if (!health_take(&w->health, &mine, &reading[i].look))
            continue;
        if (w->health.own_state == FD_RAIL_HEALTHY)
            memset(w->hint, 0, sizeof(w->hint));
        note(w);
        changed = true;
    }
    if (changed)
        keep_health(r);
    return forget_hints(r) || changed;
}

int rail_health_drain(struct rail_health *r, const struct rails *rails, const struct fd_rail_order *o, bool drain,
                      bool *changed)
{
    struct ward *w = rail_of(rails, o->device, o->port) ? get(r, o->device, o->port) : find_ward(r, o->device, o->port);
    *changed = false;
    if (!w)
        return -ENOENT;
    *changed = health_drain(&w->health, drain, clock_us());
    if (!drain)
        memset(w->hint, 0, sizeof(w->hint));
    if (*changed) {
        note(w);
        keep_health(r);
    }
    return 0;
}

static struct rail_hint *hint_of(struct ward *w, uint32_t uid, uint64_t now_us)
{
    struct rail_hint *free_one = NULL;
    for (unsigned i = 0; i < RAIL_HINTS; i++) {
        if (w->hint[i].until_us > now_us && w->hint[i].uid == uid)
            return &w->hint[i];
        if (w->hint[i].until_us <= now_us)
            free_one = &w->hint[i];
    }
    return free_one;
}

bool rail_health_hint(struct rail_health *r, const struct rails *rails, const struct fd_seen *m, uint32_t uid)
{
    uint64_t now_us = clock_us();
    struct ward *w = rail_of(rails, m->device, m->port) ? get(r, m->device, m->port) : NULL;
    if (!w || !quota_take(&r->hints, uid, now_us))
        return false;
    w->told_broken += m->broken;
    w->told_resent += m->resent;
    struct rail_hint *h = hint_of(w, uid, now_us);
    if (!h)
        return false; /* there are as many as are remembered */
    bool first = h->until_us <= now_us;
    *h = (struct rail_hint){
        .since_us = first ? now_us : h->since_us, .until_us = now_us + RAIL_HINT_S * 1000000ull, .uid = uid};
    if (first)
        log_by_uid(uid, SD_INFO, "a process of uid %u says of rail %s port %u: %u breaks, %u packets again", uid,
                   w->device, w->port, m->broken, m->resent);
    return first;
}

/* ---- what is told ---- */

void rail_health_fill(const struct rail_health *r, struct rails *rails)
{
    for (unsigned i = 0; i < rails->n; i++) {
        const struct ward *w = find_ward(r, rails->rail[i].device, rails->rail[i].port);
        struct rail_judgement *j = &rails->judgement[i];
        struct text why = {0};
        *j = (struct rail_judgement){.state = FD_RAIL_HEALTHY, .weight = FD_HEALTHY};
        if (!w)
            continue;
        j->known = true;
        j->state = (uint8_t)w->health.state;
        j->weight = (uint16_t)w->health.weight;
        j->flaps = w->health.flaps;
        j->since_us = w->health.since_us;
        health_reason_text(&why, &w->health.reason);
        snprintf(j->why, sizeof(j->why), "%s", text_str(&why));
        text_free(&why);
    }
}

struct fd_rail_health rail_health_for(const struct rail_health *r, const struct rails *rails, unsigned i, uint32_t uid,
                                      uint64_t since_us)
{
    struct fd_rail_health h = {.weight = rails->judgement[i].weight, .state = rails->judgement[i].state};
    const struct ward *w = find_ward(r, rails->rail[i].device, rails->rail[i].port);
    uint64_t now_us = clock_us();
    for (unsigned k = 0; w && k < RAIL_HINTS; k++)
        if (w->hint[k].uid == uid && w->hint[k].until_us > now_us && w->hint[k].since_us <= since_us && h.weight) {
            h.weight = 0;
            h.state = FD_RAIL_DEGRADED;
        }
    return h;
}

static void put_port(struct text *out, const struct ward *w, enum health_end e, const char *name)
{
    const char *sep = "";
    text_printf(out, "%s: {", name);
    if (e == HEALTH_FAR) {
        text_printf(out, "where: ");
        text_yaml_string(out, w->far_name);
        sep = ", ";
    }
    if (!w->health.end[e].seen) {
        text_printf(out, "%scounters: not known}\n", sep);
        return;
    }
    for (unsigned c = 0; c < HEALTH_COUNTERS; c++) {
        text_printf(out, "%s%s: %" PRIu64, sep, health_counter_name(c), w->health.end[e].value[c]);
        sep = ", ";
    }
    text_printf(out, ", cleared_by_others: %u, at_maximum: %s}\n", w->health.end[e].cleared,
                w->health.end[e].saturated ? "true" : "false");
}

int rail_health_show(const struct rail_health *r, const struct rails *rails, const struct fd_rail_order *o,
                     struct text *out)
{
    const struct ward *w = find_ward(r, o->device, o->port);
    uint64_t now_us = clock_us();
    struct text why = {0};
    unsigned hints = 0;
    if (!w)
        return -ENOENT;
    text_printf(out, "device: ");
    text_yaml_string(out, w->device);
    text_printf(out, "\nport: %u\npresent: %s\nhealth: %s\nweight: ", w->port,
                rail_of(rails, o->device, o->port) ? "true" : "false", states[w->health.state]);
    put_percent(out, w->health.weight);
    health_reason_text(&why, &w->health.reason);
    text_printf(out, "\nwhy: ");
    text_yaml_string(out, text_str(&why));
    text_free(&why);
    for (unsigned i = 0; i < RAIL_HINTS; i++)
        hints += w->hint[i].until_us > now_us;
    text_printf(out, "\nsince_s: %" PRIu64 "\nflaps: %u\nusers_who_complain: %u\n",
                (now_us - w->health.since_us) / 1000000, w->health.flaps, hints);
    put_port(out, w, HEALTH_HERE, "this_port");
    put_port(out, w, HEALTH_FAR, "far_port");
    text_printf(out, "history:%s\n", w->num_events ? "" : " []");
    put_events(out, w, "  ");
    return 0;
}
