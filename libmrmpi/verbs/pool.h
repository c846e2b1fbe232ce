/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages as datagrams. Each rail has a pool of queue pairs for them, made on demand (MRMPI_UD_POOL,
 * MRMPI_UD_POOL_DEPTH). The user of a queue pair posts receives, each for one place of its own memory, and sends the
 * sender number and key of the queue pair. Datagrams fill the places in the order of arrival.
 */
#ifndef MRMPI_VERBS_POOL_H
#define MRMPI_VERBS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/verbs/rail.h"

struct mr_ud_pool_qp;

struct mr_ud_pool_events {
    /* A datagram of len bytes lies in this place, counted from 0 in the order of posting. */
    void (*arrived)(struct mr_ud_pool_qp *q, unsigned place, uint32_t imm, uint32_t len);
    /*
     * After mr_ud_pool_stop(), or an error: nothing arrives through the queue pair any more, and its memory is the
     * owner's again.
     */
    void (*stopped)(struct mr_ud_pool_qp *q);
};

struct mr_ud_pool_qp {
    struct mr_rail *rail;
    uint32_t qpn, qkey;
    uint16_t pkey; /* of the rail's: its partition */
    uint16_t turn; /* number of times that it was cleared for a sender; wraps. Its owner's */
    const struct mr_ud_pool_events *events;
    void *owner;
    unsigned posted, back; /* receives that count */
};

/* Makes queue pairs until n are free, if possible. Returns the number of free ones. */
unsigned mr_ud_pool_prepare(struct mr_rail *rail, unsigned n);
unsigned mr_ud_pool_num(const struct mr_rail *rail);   /* existing ones */
unsigned mr_ud_pool_depth(const struct mr_rail *rail); /* receives of each: MRMPI_UD_POOL_DEPTH, if the device can */
/* A free queue pair for datagrams in this partition. NULL: there is none. */
struct mr_ud_pool_qp *mr_ud_pool_take(struct mr_rail *rail, uint16_t pkey, const struct mr_ud_pool_events *events,
                                      void *owner);
/*
 * Posts receives for [at, at + len), one for each size bytes; the last place may be shorter than its datagram, whose
 * end is lost then. No more than mr_ud_pool_depth() at the same time. 0 or negative errno: some may be posted all the
 * same.
 */
int mr_ud_pool_post(struct mr_ud_pool_qp *q, void *at, size_t len, uint32_t size, uint32_t lkey);
/* Gives up the posted receives. stopped() comes out of mr_verbs_poll(). */
void mr_ud_pool_stop(struct mr_ud_pool_qp *q);
/*
 * None of its receives is posted any more: places are counted from 0 again. Unless clean, which means that nothing can
 * be under way to the queue pair, it gets a new key, and the adapter drops datagrams with the old key. 0 or negative
 * errno: the queue pair is gone.
 */
int mr_ud_pool_again(struct mr_ud_pool_qp *q, bool clean);
/* The same, then gives the queue pair back. */
void mr_ud_pool_give(struct mr_ud_pool_qp *q, bool clean);

#endif
