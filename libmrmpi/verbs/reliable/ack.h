/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiver's side of one direction of a virtual channel: what the peer is to be told of the packets that have come,
 * and when. Pure: no network, no clock; times are the caller's. Putting packets into order is channel/vc/reorder.h's;
 * this hears what came of each.
 *
 * An ACK (struct mr_ack_msg) says all: the packets in order, those after a gap, and how many the peer may have in
 * flight. It goes with any packet to the peer (piggybacked), or in a packet of its own when no other has taken it in
 * time:
 * - after half of the shortest time-out (M. Koop, R. Kumar, D. Panda, "Can Software Reliability Outperform Hardware
 *   Reliability on High Performance Interconnects?", ICS 2008, section 6.2: t_timeout/2),
 * - at once after so many packets without an ACK,
 * - at once, but not too often, for a duplicate (its ACK was lost, or the peer was impatient) and for a gap.
 * Only packets of lossy links (UC, UD) call for an ACK: a native link (RC) has confirmed its packets itself.
 *
 * On the wire an ACK is 4 bytes, and 12 with packets after a gap. The number is cut to 27 bits and completed at the
 * other end against the window, which is less than 2^15 packets. 16 bits would do for ACKs in order; but an ACK may
 * wait in a stalled queue pair, for as long as RC tries again, while 2^16 packets go by another rail. It would then be
 * taken for a new one, and confirm what was lost.
 */
#ifndef MRMPI_ACK_H
#define MRMPI_ACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_ACK_EARLY 1024 /* packets after a gap that are noted: a power of two, 64 or more */
#define MR_ACK_WORD  64   /* of which an ACK names the first */
#define MR_ACK_APART 64   /* that part of the delay lies between two ACKs for duplicates or gaps */

#define MR_ACK_WIRE_MIN 4
#define MR_ACK_WIRE_MAX 12

struct mr_ack_msg {
    uint32_t cum;   /* all packets before it have come */
    uint32_t grant; /* as many after that may be in flight */
    uint64_t sack;  /* bit i: packet cum + 1 + i has come */
};

struct mr_ack {
    uint32_t cum;
    uint32_t furthest; /* the last packet of a lossy link after a gap; means nothing unless it is after cum */
    uint32_t owed;     /* packets of lossy links since the last ACK */
    uint32_t every;
    uint32_t grant, told; /* what holds, and what the last ACK said */
    uint64_t due_ns;      /* UINT64_MAX: nothing has to be said */
    uint64_t hasty_ns;    /* no ACK for a duplicate or a gap before */
    uint64_t delay_ns;
    uint64_t early[MR_ACK_EARLY / 64]; /* set of those after the gap, by number */
};

/* Packets are expected from seq on. every: packets without an ACK, at most. */
void mr_ack_init(struct mr_ack *a, uint32_t seq, uint64_t delay_ns, unsigned every, unsigned grant);

/*
 * A packet has come and is kept; one that had to be dropped for want of memory has not come. expected: the first that
 * is still missing, now. lossy: it came by a link that does not confirm. now_ns 0: the time is not known, and what is
 * not to be said at once is due some time after mr_ack_look.
 */
void mr_ack_arrived(struct mr_ack *a, uint32_t seq, uint32_t expected, bool lossy, uint64_t now_ns);

/*
 * The peer may have so many packets in flight from now on, and there is an ACK for so many (0 counts as 1). More than
 * twice of what it knows is said at once; anything else goes with the next ACK.
 */
void mr_ack_grant(struct mr_ack *a, unsigned every, unsigned grant, uint64_t now_ns);
/* The next packet of a lossy link is answered at once. */
static inline void mr_ack_hasten(struct mr_ack *a)
{
    a->owed = a->every - 1;
}

#define MR_ACK_LATER (UINT64_MAX - 1) /* due, but it is not known yet when */

/* Before mr_ack_deadline, with the time. */
static inline void mr_ack_look(struct mr_ack *a, uint64_t now_ns)
{
    if (a->due_ns == MR_ACK_LATER)
        a->due_ns = now_ns + a->delay_ns;
}
/* True: an ACK should go with the next packet to the peer, whenever that is. */
static inline bool mr_ack_owed(const struct mr_ack *a)
{
    return a->due_ns != UINT64_MAX;
}
/* When it has to go in a packet of its own; UINT64_MAX: never. */
static inline uint64_t mr_ack_deadline(const struct mr_ack *a)
{
    return a->due_ns;
}
/* The ACK for a packet that is posted now. With it nothing is owed any more. */
struct mr_ack_msg mr_ack_take(struct mr_ack *a, uint64_t now_ns);

/* Writes an ACK, returns its length: MR_ACK_WIRE_MIN or MR_ACK_WIRE_MAX. */
size_t mr_ack_encode(const struct mr_ack_msg *ack, void *out);
/*
 * Reads an ACK from len bytes; base: the oldest packet that is not confirmed (struct mr_window). Returns its length
 * (the larger one if long_form), 0 if there are too few bytes. Any bytes give some ACK: mr_window_acked judges it.
 */
size_t mr_ack_decode(const void *data, size_t len, bool long_form, uint32_t base, struct mr_ack_msg *ack);

#endif
