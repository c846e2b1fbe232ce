/* SPDX-License-Identifier: BSD-3-Clause */
/* Adapters' ports by cables between switches: see cables.h. */
#include "fabricd/fabric/cables.h"

#include <stdlib.h>

/* All cables between the same two switches. */
struct trunk {
    struct cable ends;
    unsigned cables;
};

/* A switch, in a depth-first search over trunks. Other nodes have only the first two. */
struct place {
    unsigned adapters, cables; /* ports of adapters here; cables to other switches */
    uint32_t next, end;        /* its trunks that have not been followed */
    uint32_t via, parent;      /* the trunk that found the switch, and its other end */
    uint32_t seen, low; /* the number of its discovery, from 1; the earliest number reached from below otherwise */
    unsigned below;     /* adapters' ports of the switch and of the switches behind */
};

static void *cleared(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    if (!p)
        abort();
    return p;
}

static unsigned by_cables(unsigned ports, unsigned cables)
{
    return ports / cables + (ports % cables != 0);
}

static int order(const void *x, const void *y)
{
    const struct cable *p = x, *q = y;
    return p->a != q->a ? (p->a > q->a) - (p->a < q->a) : (p->b > q->b) - (p->b < q->b);
}

/* Counts the ports of each switch, and leaves the cables between two switches in order. Returns their number. */
static size_t count_ports(const bool *is_switch, struct place *places, struct cable *c, size_t num)
{
    size_t kept = 0;
    for (size_t i = 0; i < num; i++) {
        uint32_t a = c[i].a, b = c[i].b;
        if (a == b)
            continue;
        if (is_switch[a] && is_switch[b]) {
            places[a].cables++;
            places[b].cables++;
            c[kept++] = a < b ? (struct cable){a, b} : (struct cable){b, a};
        } else {
            places[is_switch[a] ? a : b].adapters++;
        }
    }
    qsort(c, kept, sizeof(*c), order);
    return kept;
}

static size_t make_trunks(const struct cable *c, size_t num, struct trunk *out)
{
    size_t n = 0;
    for (size_t i = 0; i < num; i++) {
        if (!i || order(&c[i - 1], &c[i]))
            out[n++].ends = c[i];
        out[n - 1].cables++;
    }
    return n;
}

/* The trunks of each switch, one after the other. */
static uint32_t *list_trunks(const struct trunk *t, size_t num, struct place *places, size_t n)
{
    uint32_t *of = cleared(2 * num, sizeof(*of)), at = 0;
    for (size_t i = 0; i < num; i++) {
        places[t[i].ends.a].end++;
        places[t[i].ends.b].end++;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t mine = places[i].end;
        places[i].next = places[i].end = at;
        at += mine;
    }
    for (size_t i = 0; i < num; i++) {
        of[places[t[i].ends.a].end++] = (uint32_t)i;
        of[places[t[i].ends.b].end++] = (uint32_t)i;
    }
    return of;
}

static void found(struct place *p, uint32_t from, uint32_t via, uint32_t *clock)
{
    p->parent = from;
    p->via = via;
    p->seen = p->low = ++*clock;
    p->below = p->adapters;
}

/* Everything that is connected with the first switch. A chain of switches may be long: no recursion. */
static void search(const struct trunk *t, const uint32_t *trunks_of, struct place *places, uint32_t first)
{
    uint32_t clock = 0, at = first;
    found(&places[first], first, UINT32_MAX, &clock);
    for (;;) {
        struct place *p = &places[at];
        if (p->next < p->end) {
            uint32_t via = trunks_of[p->next++], to = t[via].ends.a ^ t[via].ends.b ^ at;
            if (!places[to].seen) {
                found(&places[to], at, via, &clock);
                at = to;
            } else if (via != p->via && places[to].seen < p->low) {
                p->low = places[to].seen;
            }
        } else if (at != first) {
            struct place *parent = &places[p->parent];
            parent->low = p->low < parent->low ? p->low : parent->low;
            parent->below += p->below;
            at = p->parent;
        } else {
            return;
        }
    }
}

unsigned cables_oversubscription(const bool *is_switch, size_t n, struct cable *cables, size_t num)
{
    struct place *places = cleared(n, sizeof(*places));
    size_t between = count_ports(is_switch, places, cables, num);
    struct trunk *trunks = cleared(between, sizeof(*trunks));
    size_t num_trunks = make_trunks(cables, between, trunks);
    uint32_t *trunks_of = list_trunks(trunks, num_trunks, places, n);
    unsigned most = 1;
    if (num_trunks)
        search(trunks, trunks_of, places, trunks[0].ends.a);
    for (size_t i = 0; i < n; i++) {
        const struct place *p = &places[i];
        if (!is_switch[i] || !p->cables)
            continue;
        unsigned of_switch = by_cables(p->adapters, p->cables), of_bridge = 0;
        if (p->via != UINT32_MAX && p->low == p->seen) { /* nothing behind leads back before the switch */
            unsigned other = places[trunks[0].ends.a].below - p->below;
            of_bridge = by_cables(p->below < other ? p->below : other, trunks[p->via].cables);
        }
        most = of_switch > most ? of_switch : most;
        most = of_bridge > most ? of_bridge : most;
    }
    free(trunks_of);
    free(trunks);
    free(places);
    return most;
}
