/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers about LID paths: see disjoint.h. */
#include "fabricd/disjoint.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/log.h"
#include "fabricd/proto/message.h"
#include "fabricd/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ASKING_MAX 64 /* by one client */

/* ---- the library's questions ---- */

/* How many paths large messages of the client's class may use. */
static unsigned most_paths(const struct daemon *d, const struct client *c)
{
    int i = subscribers_class(d, c);
    return i >= 0 ? d->current.policy.classes[i].paths : FD_PATHS_MAX;
}

/* path: num disjoint paths; the class may use fewer. */
static void send_paths(const struct daemon *d, struct client *c, uint32_t seq, const struct paths_question *q,
                       int status, const uint8_t *path, unsigned num)
{
    struct fd_disjoint m = {.h = message_header(FD_DISJOINT, sizeof(m), seq), .port = q->port, .lid = q->to};
    unsigned most = most_paths(d, c);
    memcpy(m.device, q->device, sizeof(m.device));
    m.status = status;
    if (!status) {
        m.num = (uint8_t)(num < most ? num : most);
        memcpy(m.path, path, m.num);
    }
    server_send(c, &m, sizeof(m));
}

void disjoint_told(void *arg, struct sa_asker who, const struct paths_question *q, int status,
                   const struct routes_pair *pair)
{
    struct daemon *d = arg;
    struct client *c = server_client(d->server, who.client);
    uint8_t path[FD_PATHS_MAX] = {0};
    if (!c)
        return;
    c->asking--;
    send_paths(d, c, who.seq, q, status, path, status ? 0 : routes_order(pair, path));
}

static const struct fd_rail *find_rail(const struct daemon *d, const char *device, uint8_t port)
{
    for (unsigned i = 0; i < d->rails.n; i++)
        if (d->rails.rail[i].port == port && !strcmp(d->rails.rail[i].device, device))
            return d->rails.rail[i].infiniband ? &d->rails.rail[i] : NULL;
    return NULL;
}

void disjoint_on_paths(struct daemon *d, struct client *c, const struct fd_paths *m)
{
    const struct fd_rail *r = find_rail(d, m->device, m->port);
    unsigned lmc = r && r->lmc < m->lmc ? r->lmc : m->lmc;
    struct paths_question q = {.port = m->port, .to = m->lid, .num = 1u << lmc};
    int rc = -ENODEV;
    memcpy(q.device, m->device, sizeof(q.device));
    if (r && (!lmc || most_paths(d, c) == 1)) { /* nothing to choose */
        send_paths(d, c, m->h.seq, &q, 0, (const uint8_t[]){0}, 1);
        return;
    }
    if (r)
        q.from = r->lid;
    if (r && c->asking >= ASKING_MAX) {
        rc = -EBUSY;
    } else if (r) {
        c->asking++; /* the answer may come at once */
        c->depends_on_paths = true;
        rc = paths_ask(d->paths, &q, (struct sa_asker){c->id, m->h.seq});
        if (rc)
            c->asking--;
    }
    if (rc)
        send_paths(d, c, m->h.seq, &q, rc, NULL, 0);
}

/* ---- changes ---- */

void disjoint_moved(void *arg, const char *device, uint8_t port)
{
    struct daemon *d = arg;
    unsigned told = 0;
    d->reroutes++;
    d->rerouted_us = clock_us();
    for (struct client *c = server_clients(d->server); c; c = c->next)
        if (c->depends_on_paths)
            told += subscribers_tell_paths(c);
    log_info("%s port %u: the subnet's forwarding has changed: %u processes of jobs ask again for LID paths", device,
             port, told);
}

unsigned disjoint_clients(const struct daemon *d)
{
    unsigned n = 0;
    for (const struct client *c = server_clients(d->server); c; c = c->next)
        n += c->depends_on_paths && !c->drop;
    return n;
}

void disjoint_tick(struct daemon *d)
{
    if (disjoint_clients(d))
        paths_look(d->paths);
    else
        paths_rest(d->paths);
}

/* ---- people's ---- */

/* Two hosts are looked for in the subnet of each port of this host, until one has both. */
struct search {
    struct daemon *d;
    struct fd_ends ends;
    unsigned next; /* rail */
};

static bool try_next(struct search *s, struct sa_asker who, int *status);

static void end_search(struct search *s, struct sa_asker who, int status, const struct text *out)
{
    struct client *c = server_client(s->d->server, who.client);
    if (c && out && out->len)
        server_send_text(c, who.seq, out->s, out->len);
    if (c)
        c->asking--;
    if (c)
        server_send_done(c, who.seq, status);
    free(s);
}

static void on_shown(void *arg, struct sa_asker who, int status, const struct text *out)
{
    struct search *s = arg;
    int rc;
    if (status == -ENOENT && try_next(s, who, &rc))
        return;
    end_search(s, who, status, out);
}

/* True: on_shown follows, or has been called. */
static bool try_next(struct search *s, struct sa_asker who, int *status)
{
    while (s->next < s->d->rails.n) {
        const struct fd_rail *r = &s->d->rails.rail[s->next++];
        if (!r->infiniband || r->state != 4) /* active */
            continue;
        *status = paths_show(s->d->paths, r->device, r->port, &s->ends, who, on_shown, s);
        if (!*status)
            return true;
    }
    return false;
}

void disjoint_on_show(struct daemon *d, struct client *c, const struct fd_ends *m)
{
    struct search *s = c->asking < ASKING_MAX ? calloc(1, sizeof(*s)) : NULL;
    int status = -ENETDOWN;
    if (!s) {
        server_send_done(c, m->h.seq, -EBUSY);
        return;
    }
    *s = (struct search){.d = d, .ends = *m};
    c->asking++;
    if (!try_next(s, (struct sa_asker){c->id, m->h.seq}, &status))
        end_search(s, (struct sa_asker){c->id, m->h.seq}, status, NULL);
}
