/* SPDX-License-Identifier: BSD-3-Clause */
/* The arbiter of an output port: see arbiter.h. */
#include "fabricd/policy/arbiter.h"

#include <string.h>

#define BLOCK       64u
#define LIMIT_BLOCK (4096u / BLOCK)
#define LIMIT_NONE  255u

struct turn {
    unsigned at;
    int left; /* blocks left for the entry */
    bool begun;
};

struct port {
    const struct qos_tables *t;
    const struct arbiter_lane *lane;
    struct turn high, low;
    unsigned high_sent;           /* blocks since the low table's last chance */
    unsigned next[ARBITER_LANES]; /* packet of the list */
    double asked[ARBITER_LANES];  /* bytes sent by a lane with a limit */
    double now;
};

static unsigned blocks(unsigned bytes)
{
    return (bytes + BLOCK - 1) / BLOCK;
}

static const struct arbiter_packet *first_packet(const struct port *p, unsigned vl)
{
    return &p->lane[vl].packet[p->next[vl]];
}

static bool is_ready(const struct port *p, unsigned vl)
{
    const struct arbiter_lane *l = &p->lane[vl];

    return l->num_packets && (l->most <= 0 || p->asked[vl] <= l->most * p->now);
}

/* The next lane of a table, which is booked; -1: none is ready. */
static int take_turn(const struct port *p, struct turn *turn, const struct vlarb *e, unsigned n)
{
    if (n && !turn->begun)
        *turn = (struct turn){.left = e[0].weight, .begun = true};
    for (unsigned step = 0; step <= n && n; step++) {
        unsigned vl = e[turn->at].vl;

        if (turn->left > 0 && is_ready(p, vl)) {
            turn->left -= (int)blocks(first_packet(p, vl)->bytes);
            return (int)vl;
        }
        turn->at = (turn->at + 1) % n;
        turn->left = e[turn->at].weight;
    }
    return -1;
}

static int pick_high(struct port *p)
{
    int vl = take_turn(p, &p->high, p->t->high, p->t->num_high);

    if (vl >= 0 && p->t->high_limit != LIMIT_NONE)
        p->high_sent += blocks(first_packet(p, (unsigned)vl)->bytes);
    return vl;
}

static int pick(struct port *p)
{
    unsigned limit = p->t->high_limit;
    bool reached = limit != LIMIT_NONE && p->high_sent && p->high_sent >= limit * LIMIT_BLOCK;
    int vl = reached ? -1 : pick_high(p);

    if (vl >= 0)
        return vl;
    p->high_sent = 0;
    vl = take_turn(p, &p->low, p->t->low, p->t->num_low);
    return vl >= 0 ? vl : reached ? pick_high(p) : -1;
}

/* When a lane with a limit may send again; now: none is waiting for that. */
static double next_time(const struct port *p)
{
    double at = p->now;

    for (unsigned vl = 0; vl < ARBITER_LANES; vl++) {
        const struct arbiter_lane *l = &p->lane[vl];
        double then = l->num_packets && l->most > 0 ? p->asked[vl] / l->most : 0;

        if (then > p->now && (at <= p->now || then < at))
            at = then;
    }
    return at;
}

void arbiter_run(const struct qos_tables *t, const struct arbiter_lane lane[ARBITER_LANES], double bytes,
                 struct arbiter_sent *out)
{
    struct port p = {.t = t, .lane = lane};

    memset(out, 0, sizeof *out);
    while (p.now < bytes) {
        int vl = pick(&p);
        double then;

        if (vl < 0) {
            then = next_time(&p);
            if (then <= p.now)
                break; /* no lane will ever be ready */
            p.now = then + 1e-6;
            continue;
        }
        const struct arbiter_packet *k = first_packet(&p, (unsigned)vl);
        out->bytes[vl][k->owner] += k->bytes;
        p.asked[vl] += k->bytes;
        p.now += k->bytes;
        p.next[vl] = (p.next[vl] + 1) % lane[vl].num_packets;
    }
    out->time = p.now;
}
