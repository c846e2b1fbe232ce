/* SPDX-License-Identifier: BSD-3-Clause */
/* The worst wait of a lane: see wait.h. */
#include "fabricd/policy/wait.h"

#define BLOCK       64u
#define LIMIT_BYTES 4096u
#define LIMIT_NONE  255u
#define DEFAULT_MTU 4096u

/* The most that a table sends: packets and their bytes. */
struct burst {
    uint64_t packets, bytes;
};

/* An entry sends the most packets when all but the last are small, and the last may exceed the weight. */
static struct burst high_entry(unsigned weight, unsigned packet)
{
    return (struct burst){weight, (uint64_t)(weight - 1) * BLOCK + packet};
}

/* Bulk packets are of full size. */
static struct burst low_entry(unsigned weight, unsigned packet)
{
    unsigned blocks = (packet + BLOCK - 1) / BLOCK, n = (weight + blocks - 1) / blocks;
    return (struct burst){n, (uint64_t)n * packet};
}

/* The most between two turns of the lane. False: not in the table. */
static bool longest_gap(const struct vlarb *e, unsigned n, unsigned vl, unsigned packet,
                        struct burst (*entry)(unsigned, unsigned), struct burst *out)
{
    bool found = false;
    *out = (struct burst){0};
    for (unsigned start = 0; start < n; start++) {
        struct burst gap = {0};
        if (e[start].vl != vl || !e[start].weight)
            continue;
        found = true;
        for (unsigned k = 1; k < n; k++) {
            const struct vlarb *x = &e[(start + k) % n];
            if (!x->weight)
                continue;
            if (x->vl == vl)
                break;
            struct burst b = entry(x->weight, packet);
            gap.packets += b.packets;
            gap.bytes += b.bytes;
        }
        if (gap.packets > out->packets || (gap.packets == out->packets && gap.bytes > out->bytes))
            *out = gap;
    }
    return found;
}

static bool has_weight(const struct vlarb *e, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (e[i].weight)
            return true;
    return false;
}

/* Bytes of the low-priority table that the high limit lets go in between. */
static uint64_t low_between(const struct qos_tables *t, const struct burst *high, unsigned packet)
{
    if (t->high_limit == LIMIT_NONE)
        return 0;
    if (!t->high_limit)
        return high->packets * packet;
    return high->bytes / (t->high_limit * LIMIT_BYTES) * packet;
}

/* Bytes of the high-priority table before one packet of the low one. */
static uint64_t high_before(const struct qos_tables *t, unsigned packet)
{
    if (!has_weight(t->high, t->num_high))
        return 0;
    return t->high_limit ? (uint64_t)t->high_limit * LIMIT_BYTES + packet - 1 : packet;
}

uint64_t tables_wait_ns(const struct qos_tables *t, unsigned vl, const struct fabric_caps *c,
                        const struct wait_load *load)
{
    unsigned mtu = c->mtu ? c->mtu : DEFAULT_MTU, hops = c->hops ? c->hops : WAIT_HOPS;
    unsigned high = (load && load->high_bytes && load->high_bytes < mtu ? load->high_bytes : mtu) + WAIT_OVERHEAD;
    unsigned low = (load && load->low_bytes && load->low_bytes < mtu ? load->low_bytes : mtu) + WAIT_OVERHEAD;
    struct burst gap;
    uint64_t bytes = low; /* in service */
    if (longest_gap(t->high, t->num_high, vl, high, high_entry, &gap)) {
        bytes += gap.bytes + low_between(t, &gap, low);
    } else if (longest_gap(t->low, t->num_low, vl, low, low_entry, &gap)) {
        if (t->high_limit == LIMIT_NONE && has_weight(t->high, t->num_high))
            return WAIT_UNBOUNDED;
        bytes += gap.bytes + (gap.packets + 1) * high_before(t, high);
    } else {
        return WAIT_UNBOUNDED;
    }
    return c->rate_mbps ? (bytes * hops * 8000 + c->rate_mbps - 1) / c->rate_mbps : 0;
}
