/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The health of a way, from this process's observations: the part of its rate that the way is expected to carry. Pure.
 * The owner keeps one struct for each way (a pair of rails and a LID path), all zero at first, and reports its
 * observations: questions answered or not, reliable connections that stand still, retransmissions.
 *
 * There are two estimates; the lesser counts. Their counts fade, more slowly with each failure in a row.
 * - By loss. The loss p is lost / (tried + PRIOR): a few arrived packets are assumed, so little evidence has little
 *   effect. An adapter is told once that a packet is missing. If the repetition is lost, too, the connection stands
 *   still until a process notices. This happens once in 1/p^2 packets and costs the time of s packets
 *   (MR_TRUST_STALL_NS at the rate of the way), so the way carries 1 / (1 + p^2 s) of its rate.
 *   A way begins to lose packets at some time: arrivals before the first loss would hide the losses since then, and
 *   count no more than the assumed arrivals as soon as a second packet is lost.
 * - By time. Of stood + moved + PRIOR_NS the way stood still for stood.
 *
 * A program that waits for all of its messages stands still with the way. With the way all ways have the value times
 * the sum of their rates, without the way the sum less its rate: below that part the way costs more than it carries.
 */
#ifndef MRMPI_TRUST_H
#define MRMPI_TRUST_H

#include <stdbool.h>
#include <stdint.h>

#define MR_TRUST_FULL     1024u    /* the whole rate */
#define MR_TRUST_STALL_NS 6000000u /* time that a connection stands still */

struct mr_trust {
    uint64_t seen_ns;            /* the time of the counts */
    uint64_t late_ns;            /* a confirmation was late last; 0: none was */
    uint32_t tried, lost;        /* packets, in 65536ths, */
    uint32_t before;             /* and those of tried that arrived before the first loss, until the second one */
    uint32_t stood_us, moved_us; /* time without progress, and time with progress since the first stall */
    uint8_t failures;            /* in a row, since packets were lost */
};

/* The way: its rate, and the rate of all others to the peer. */
struct mr_trust_way {
    uint32_t rate_mbps, others_mbps;
    uint32_t mtu; /* bytes of a packet */
};

/* tried packets went over the way, and lost of these did not arrive. */
void mr_trust_tried(struct mr_trust *t, unsigned tried, unsigned lost, uint64_t now_ns);
/* The way failed since packets were lost: both a packet and its repetition, at least. */
void mr_trust_failed(struct mr_trust *t, uint64_t now_ns);
/* The way has been in use for so long without a failure: the next failure may be the first of a row. */
void mr_trust_steady(struct mr_trust *t, uint64_t used_ns);
/* A confirmation is late, for once perhaps. True: others were late lately, or packets were lost. */
bool mr_trust_late(struct mr_trust *t, uint64_t now_ns);
/* A connection over the way stood still for so long, since packets were lost, and moves again. */
void mr_trust_stood(struct mr_trust *t, uint64_t stood_ns, uint64_t now_ns);
/* All traffic under way has moved for so long. */
void mr_trust_moved(struct mr_trust *t, uint64_t moved_ns, uint64_t now_ns);
/* Up to MR_TRUST_FULL. */
uint32_t mr_trust_value(const struct mr_trust *t, const struct mr_trust_way *way, uint64_t now_ns);
/* The value below which the way costs more than it carries: 0 without another way. */
uint32_t mr_trust_least(const struct mr_trust_way *way);
/* The estimated loss, in millionths. */
uint32_t mr_trust_loss(const struct mr_trust *t, uint64_t now_ns);

#endif
