/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The health of a way, as this process sees it: the part of its rate that the way is expected to carry. Pure. The owner
 * keeps one struct for each way (a pair of rails and a LID path), all zero at first, and tells what it observes:
 * questions that were answered or not, reliable connections that stand still, retransmissions.
 *
 * The estimate of loss is lost / (tried + PRIOR): a few packets that arrived are assumed, so little evidence says
 * little. Both counts fade, and the more slowly the more often the way has failed in a row.
 *
 * The value follows from the loss p. An adapter is told once that a packet is missing. If the repetition is lost, too,
 * the connection stands still until somebody notices. That happens once in 1/p^2 packets and costs the time of STALL
 * packets, so the way carries 1 / (1 + p^2 STALL) of its rate.
 */
#ifndef MRMPI_TRUST_H
#define MRMPI_TRUST_H

#include <stdbool.h>
#include <stdint.h>

#define MR_TRUST_FULL  1024u  /* the whole rate */
#define MR_TRUST_WELL  512u   /* more: the way may be used beside others that are well. That is a loss of 1 % */
#define MR_TRUST_STALL 10000u /* packets in the time that a connection stands still: 6 ms of 4 KiB at 50 Gbit/s */

struct mr_trust {
    uint64_t seen_ns;     /* the counts are those of this time */
    uint32_t tried, lost; /* packets, in 65536ths */
    uint8_t failures;     /* in a row, since packets were lost */
    uint8_t stalls;       /* times that it stood still, with little time between two, */
    uint64_t stalls_ns;   /* from this time on, */
    uint64_t stalled_ns;  /* until this, */
    uint64_t stood_ns;    /* and for so long in sum */
};

/* So many packets went over the way, and so many of these did not arrive. */
void mr_trust_tried(struct mr_trust *t, unsigned tried, unsigned lost, uint64_t now_ns);
/* The way failed since packets were lost: both a packet and its repetition, at least. */
void mr_trust_failed(struct mr_trust *t, uint64_t now_ns);
/* The way has been in use for so long without a failure: the next one may be the first of a row. */
void mr_trust_steady(struct mr_trust *t, uint64_t used_ns);
/*
 * A connection over the way stood still for so long, since packets were lost, and moves again. True: most of the time
 * goes by so. Then the way holds up more than it carries, if others are well.
 */
bool mr_trust_stood(struct mr_trust *t, uint64_t stood_ns, uint64_t now_ns);
/* Up to MR_TRUST_FULL. */
uint32_t mr_trust_value(const struct mr_trust *t, uint64_t now_ns);
/* The estimated loss, in millionths. */
uint32_t mr_trust_loss(const struct mr_trust *t, uint64_t now_ns);

#endif
