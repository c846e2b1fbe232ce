/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The estimated time of a message by each protocol: the costs of base/model.h added up, for mrrun --explain. A message
 * is alone under way, and its receive is posted. The time begins with the send and ends when the receive is complete.
 *
 * Pure.
 */
#ifndef MRMPI_COST_H
#define MRMPI_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/base/model.h"
#include "libmrmpi/p2p/choice/alone.h"

#define MR_COST_INLINE 256u /* bytes */

/* The rails to a peer. */
struct mr_cost_way {
    uint32_t packet;      /* bytes of the longest packet */
    uint32_t packet_mbps; /* MB/s of the rail that carries a packet */
    uint32_t all_mbps;    /* MB/s of all rails together, over which large messages are cut, */
    uint32_t cut_at;      /* from this length on */
    unsigned devices;     /* whose memory is registered */
    bool outruns;         /* a rail carries more than a processor copies */
    bool datagrams;       /* large messages are datagrams into the receiver's memory */
};

static inline uint64_t mr_cost_wire_ns(uint64_t bytes, uint32_t mbps)
{
    return bytes * 1000 / mbps;
}

/*
 * Sent unasked, in packets: of several packets the copies overlap with each other and with the wire. The adapter
 * fetches the data of packets that are too long to be posted inline.
 */
static inline uint64_t mr_cost_eager_ns(const struct mr_model *m, const struct mr_cost_way *w, uint64_t len)
{
    uint64_t part = len < w->packet ? len : w->packet, rest = len - part,
             slowest = w->packet_mbps < m->copy_mbps ? w->packet_mbps : m->copy_mbps,
             fetch_ns = len > MR_COST_INLINE ? m->post_ns : 0;

    return m->trip_ns / 2 + fetch_ns + 2 * mr_model_copy_ns(m, part) + mr_cost_wire_ns(part, w->packet_mbps) +
           mr_cost_wire_ns(rest, (uint32_t)slowest);
}

/* The same after a request. */
static inline uint64_t mr_cost_asked_ns(const struct mr_model *m, const struct mr_cost_way *w, uint64_t len)
{
    return m->trip_ns + mr_cost_eager_ns(m, w, len);
}

/*
 * Read by the receiver, or written by the sender when the receiver has answered: both are three trips one way. Before
 * datagrams the receiver posts a place for each, and clears the sender: a round trip more.
 */
static inline uint64_t mr_cost_rdma_ns(const struct mr_model *m, const struct mr_cost_way *w, uint64_t len)
{
    return m->gap_ns + (w->datagrams ? m->trip_ns : 0) +
           mr_cost_wire_ns(len, len < w->cut_at ? w->packet_mbps : w->all_mbps);
}

/* Registrations at both sides, one after the other. With rails that outrun copies, of one device first. */
static inline uint64_t mr_cost_registers_ns(const struct mr_model *m, const struct mr_cost_way *w, uint64_t len)
{
    return 2 * mr_model_register_ns(m, len, w->outruns ? 1 : w->devices);
}

/* In new memory a message waited for is copied instead (net/stripe/keys.c, alone.h). */
static inline bool mr_cost_copies(const struct mr_model *m, const struct mr_cost_way *w, uint64_t len)
{
    return w->outruns ? len / MR_ALONE_TIMES < m->read_at : len < (uint64_t)m->register_at * w->devices;
}

#endif
