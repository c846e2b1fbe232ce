/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions: taken in batches and handed to the posters of the work. The rails are polled in turn, and the first with
 * a completion ends the poll, because a completion should be handled before an idle queue is polled again. The next
 * poll begins there, MR_POLL_STREAK times: often all traffic goes over one rail. Then it is the others' turn. If none
 * of them had a completion the last time, only one of them is polled, another each time. If packets take the rails in
 * turn, a poll begins at the next rail: otherwise each packet would cost a poll of an empty queue.
 */
#include "libmrmpi/verbs/internal.h"

#include <errno.h>

#include "libmrmpi/base/base.h"

#define BATCH 16

static int status_errno(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_WR_FLUSH_ERR:
        return -ECANCELED;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
        return -EHOSTUNREACH;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return -ENOBUFS;
    case IBV_WC_REM_ACCESS_ERR:
        return -EACCES;
    case IBV_WC_LOC_PROT_ERR:
        return -EFAULT;
    case IBV_WC_LOC_LEN_ERR:
        return -EMSGSIZE;
    default:
        return -EIO;
    }
}

static __attribute__((noinline)) void completion_fail(struct mr_wc *wc)
{
    wc->error = status_errno(wc->raw->status);
    wc->flushed = wc->raw->status == IBV_WC_WR_FLUSH_ERR;
    wc->status = ibv_wc_status_str(wc->raw->status);
}

static inline void completion_dispatch(const struct ibv_wc *raw)
{
    struct mr_wr *wr = (struct mr_wr *)(uintptr_t)raw->wr_id;
    struct mr_wc wc = {.raw = raw};

    if (unlikely(raw->status != IBV_WC_SUCCESS))
        completion_fail(&wc);
    wr->done(wr, &wc);
}

static __attribute__((noinline)) void rail_lost(const struct mr_rail *rail)
{
    mr_log(MR_LOG_ERROR, "rail %u: %s does not answer any more", rail->index, rail->dev->name);
    mr_device_lost(rail->dev);
}

/* A finished entry may add others, or take them back: after each, the list is walked from its beginning. */
static int poll_later(void)
{
    struct mr_later *l = mr_verbs.later;
    int n = 0;

    while (l) {
        if (!l->done(l)) {
            l = l->next;
            continue;
        }
        n++;
        l = mr_verbs.later;
    }
    return n;
}

/* Entries waiting for their end, and receive buffers to be posted now. */
static __attribute__((noinline)) int poll_waiting(void)
{
    int done = poll_later();

    if (done || !mr_verbs.rx_due)
        return done;
    if (mr_verbs.answered)
        mr_rx_repost();
    else
        mr_rx_repost_streams();
    return 0;
}

/* Nothing has completed. */
static int poll_idle(void)
{
    mr_verbs.streak_left = MR_POLL_STREAK;
    if (mr_verbs.rx_due)
        mr_rx_repost();
    return 0;
}

/* Up to BATCH completions of a rail's queue. */
static inline int take_completions(struct mr_rail *rail, struct ibv_wc wc[])
{
    int n = ibv_poll_cq(rail->cq, BATCH, wc);

    rail->emptied += n < BATCH;
    return n;
}

/* n completions of a rail's queue, or a negative errno: the rail is gone. */
static inline int handle(struct mr_rail *rail, struct ibv_wc wc[], int n)
{
    if (unlikely(n < 0)) {
        rail_lost(rail);
        return poll_idle();
    }
    mr_verbs.streak_left--;
    for (int i = 0; i < n; i++)
        completion_dispatch(&wc[i]);
    return n;
}

/* A rail had a completion: the first polled, or another. */
static __attribute__((noinline)) void follow_turns(const struct mr_rail *rail, const struct mr_rail *first)
{
    bool at_once = rail == first, foreseen = mr_verbs.turns == MR_POLL_TURNS;

    if (!at_once)
        mr_verbs.alone = rail->next_polled == first;
    if (at_once != foreseen)
        mr_verbs.turns = 0;
    else if (!foreseen)
        mr_verbs.turns++;
    if (mr_verbs.turns < MR_POLL_TURNS)
        return;
    mr_verbs.polled = rail->next_polled;
    mr_verbs.streak_left = MR_POLL_STREAK;
}

/* Not the rail polled first, but of the others the one behind the last returned here. */
static struct mr_rail *next_beside(void)
{
    struct mr_rail *first = mr_verbs.polled, *last = mr_verbs.beside;

    if (!last || !last->next_polled || last->next_polled == first)
        last = first;
    return last->next_polled;
}

/* A streak is over. If the rail was alone, the poll begins with another rail, whose completions are taken. */
static __attribute__((noinline)) int end_streak(struct ibv_wc wc[])
{
    struct mr_rail *beside;
    int n;

    mr_verbs.streak_left = MR_POLL_STREAK;
    if (!mr_verbs.polled) /* a datagram was the occasion to learn that all devices are lost */
        return 0;
    if (!mr_verbs.alone) {
        mr_verbs.polled = mr_verbs.polled->next_polled;
        return 0;
    }
    beside = mr_verbs.beside = next_beside();
    if (beside == mr_verbs.polled || !(n = take_completions(beside, wc)))
        return 0;
    mr_verbs.alone = false;
    mr_verbs.polled = beside;
    return handle(beside, wc, n);
}

int mr_verbs_poll(void)
{
    struct mr_rail *first, *rail;
    struct ibv_wc wc[BATCH];
    int n;

    if (unlikely((uintptr_t)mr_verbs.later | (uintptr_t)mr_verbs.rx_due) && (n = poll_waiting()))
        return n;
    if (unlikely(!mr_verbs.streak_left) && (n = end_streak(wc)))
        return n;
    rail = first = mr_verbs.polled;
    if (unlikely(!rail))
        return poll_idle();
    while (!(n = take_completions(rail, wc))) {
        rail = mr_verbs.polled = rail->next_polled;
        mr_verbs.streak_left = MR_POLL_STREAK;
        if (rail == first)
            return poll_idle();
    }
    if (unlikely(rail != first || mr_verbs.turns))
        follow_turns(rail, first);
    return handle(rail, wc, n);
}

int mr_verbs_poll_between(int (*between)(void))
{
    struct mr_rail *first, *rail;
    struct ibv_wc wc[BATCH];
    int n;

    if ((mr_verbs.later || mr_verbs.rx_due) && (n = poll_waiting()))
        return n;
    if (!mr_verbs.streak_left && (n = end_streak(wc)))
        return n;
    rail = first = mr_verbs.polled;
    if (!rail)
        return poll_idle();
    while (!(n = take_completions(rail, wc))) {
        rail = mr_verbs.polled = rail->next_polled;
        mr_verbs.streak_left = MR_POLL_STREAK;
        if (rail == first)
            return poll_idle();
        n = between();
        if (n)
            return n;
    }
    return handle(rail, wc, n);
}
