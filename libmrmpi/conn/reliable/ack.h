/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiver's side of one direction of a virtual channel: the contents of acknowledgements, and their time. Pure: no
 * network, no clock; times are the caller's. The reorder queue puts packets into order; this file hears the result for
 * each.
 *
 * An ACK (struct mr_ack_msg) says all: the packets in order, packets after a gap, and the number of packets that the
 * peer may have in flight. An ACK goes with any packet to the peer (piggybacked), or in a packet of its own when no
 * other has taken it in time:
 * - after half of the shortest time-out (M. Koop, R. Kumar, D. Panda, "Can Software Reliability Outperform Hardware
 *   Reliability on High Performance Interconnects?", ICS 2008, section 6.2: t_timeout/2),
 * - at once after so many packets without an ACK,
 * - at once, but not too often, for a duplicate (its ACK was lost, or the peer was impatient) and for a gap. Only
 *   packets of lossy links (UC, UD) call for an ACK: a native link (RC) has confirmed its packets itself.
 *
 * On the wire an ACK is 4 bytes, and 12 with packets after a gap. The number is cut to 27 bits and completed at the
 * other end against the window, which is less than 2^15 packets. 16 bits would do for ACKs in order; but an ACK may
 * wait in a stalled queue pair, for as long as RC tries again, while 2^16 packets go by another rail. The ACK would
 * then be taken for a new one, and confirm lost packets.
 */
#ifndef MRMPI_ACK_H
#define MRMPI_ACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/wire.h"

#define MR_ACK_EARLY 1024 /* packets after a gap that are noted: a power of two, 64 or more */
#define MR_ACK_NAMED 64   /* of these, an ACK names the first */
#define MR_ACK_APART 64   /* that part of the delay lies between two ACKs for duplicates or gaps */

struct mr_ack_msg {
    uint32_t cum;    /* all earlier packets have arrived */
    uint32_t flight; /* so many later packets may be in flight */
    uint64_t sack;   /* bit i: packet cum + 1 + i has come */
};

struct mr_ack {
    uint32_t cum;
    uint32_t furthest; /* the last packet of a lossy link after a gap; means nothing unless it is after cum */
    uint32_t owed;     /* packets of lossy links since the last ACK */
    uint32_t every;
    uint32_t flight, told; /* the present limit, and the limit in the last ACK */
    uint64_t due_ns;       /* UINT64_MAX: nothing has to be said */
    uint64_t hasty_ns;     /* no ACK for a duplicate or a gap before */
    uint64_t delay_ns;
    uint64_t early[MR_ACK_EARLY / 64]; /* set of packets after the gap, by number */
};

/* Packets are expected from seq on. every: packets without an ACK, at most. */
void mr_ack_init(struct mr_ack *a, uint32_t seq, uint64_t delay_ns, unsigned every, unsigned flight);

/*
 * A packet has arrived and is kept; a packet dropped for lack of memory has not arrived. expected: the first missing
 * packet, now. lossy: it arrived by a link without confirmation. now_ns 0: the time is unknown, and ACKs that are not
 * immediate are due some time after mr_ack_check.
 */
void mr_ack_arrived(struct mr_ack *a, uint32_t seq, uint32_t expected, bool lossy, uint64_t now_ns);

/*
 * The peer may have `flight` packets in flight from now on, with an ACK for every so many (0 counts as 1). A limit of
 * more than twice the known one is sent at once; any other goes with the next ACK.
 */
void mr_ack_set_flight(struct mr_ack *a, unsigned every, unsigned flight, uint64_t now_ns);
/* The next packet of a lossy link is answered at once. */
static inline void mr_ack_hasten(struct mr_ack *a)
{
    a->owed = a->every - 1;
}

#define MR_ACK_LATER (UINT64_MAX - 1) /* due, at a time not known yet */

/* Before mr_ack_deadline, with the time. */
static inline void mr_ack_check(struct mr_ack *a, uint64_t now_ns)
{
    if (a->due_ns == MR_ACK_LATER)
        a->due_ns = now_ns + a->delay_ns;
}
/* True: an ACK should go with the next packet to the peer, whenever that is. */
static inline bool mr_ack_owed(const struct mr_ack *a)
{
    return a->due_ns != UINT64_MAX;
}
/* The time for a packet of its own; UINT64_MAX: never. */
static inline uint64_t mr_ack_deadline(const struct mr_ack *a)
{
    return a->due_ns;
}
/* The ACK for a packet posted now. Nothing is owed afterwards. */
struct mr_ack_msg mr_ack_take(struct mr_ack *a, uint64_t now_ns);

/* Writes an ACK, returns its length: MR_ACK_WIRE_MIN or MR_ACK_WIRE_MAX. */
size_t mr_ack_encode(const struct mr_ack_msg *ack, void *out);
/*
 * Reads an ACK from len bytes; base: the oldest unconfirmed packet (struct mr_window). Returns its length (the larger
 * if long_form), 0 for too few bytes. Any bytes give some ACK: mr_window_acked judges it.
 */
size_t mr_ack_decode(const void *data, size_t len, bool long_form, uint32_t base, struct mr_ack_msg *ack);

#endif
