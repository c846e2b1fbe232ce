/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes: does the adapter of a peer still answer when no subchannel to it is open? A peer that computes does not
 * answer requests to connect, and datagrams are not acknowledged. But its end of a link that broke here is still there
 * if nothing was under way from it: its adapter acknowledges what comes. So the queue pair of a link that has drained
 * is kept while its subchannel is closed, and, when there is no other way to learn of the peer, brought up once more
 * against the same queue pair over there, for writes of no bytes.
 *
 * The other end expects one number of a packet. It is not known here: packets on the way when the link broke may have
 * arrived or not. Those that have arrived are acknowledged again, with the number of the last; those that are ahead are
 * refused. So a run of writes begins well before the number of what would have come next, and ends behind it.
 */
#include "libmrmpi/peer/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/post.h"

#define RUN_MAX 64 /* writes; half of them before the next number */

struct mr_probe {
    struct mr_sub *sub;
    struct mr_qp qp;
    struct mr_tx tx;
    uint32_t psn;     /* the peer expects this one, or one a little before or behind */
    uint32_t then;    /* it does after the run that is under way */
    uint32_t receive; /* what the peer would send next */
    bool asking;
    bool unwanted; /* goes when it has drained */
    uint64_t asked_ns;
};

static void free_probe(struct mr_probe *l)
{
    l->sub->own->probe = NULL;
    mr_qp_destroy(&l->qp);
    free(l);
}

/* ---- what comes back --------------------------------------------------------------------------------------------- */

static void run_done(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct mr_probe *l = container_of(wr, struct mr_probe, tx.wr);

    mr_tx_done(&l->tx, wc);
    if (wc->error)
        return;
    l->asking = false;
    l->psn = l->then;
    l->sub->peer->own->waited_ns = 0;
}

/* A refusal is an answer, too. */
static void run_failed(struct mr_qp *qp, const struct mr_wc *wc)
{
    struct mr_probe *l = qp->owner;

    if (wc->error != -EHOSTUNREACH)
        l->sub->peer->own->waited_ns = 0;
    mr_qp_abort(qp);
}

static void ignore_confirmed(struct mr_qp *qp, unsigned sends)
{
}

static void probe_drained(struct mr_qp *qp)
{
    struct mr_probe *l = qp->owner;

    l->asking = false;
    if (l->unwanted)
        free_probe(l);
}

static const struct mr_qp_events events = {
    .confirmed = ignore_confirmed, .failed = run_failed, .drained = probe_drained};

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* Once a second; sooner where the patience is short. */
static uint64_t interval_ns(void)
{
    return mr_config.patience < 4 ? (uint64_t)mr_config.patience * 250000000 : 1000000000;
}

static int post_run(struct mr_probe *l, unsigned n)
{
    int err = 0;

    for (unsigned i = 1; i <= n && !err; i++)
        err = mr_qp_write(&l->qp, NULL, 0, 0, 0, 0, NULL, i == n ? &l->tx : NULL);
    return err;
}

void mr_probe_ask(struct mr_sub *sub, uint64_t now_ns)
{
    struct mr_probe *l = sub->own->probe;
    unsigned n = 1, run;

    if (!l || l->unwanted || l->asking || now_ns - l->asked_ns < interval_ns())
        return;
    l->asked_ns = now_ns;
    if (l->qp.state == MR_QP_DRAINED) {
        run = l->qp.depth < RUN_MAX ? l->qp.depth : RUN_MAX;
        if (l->qp.rail->cq_room < run || mr_qp_again(&l->qp, l->psn - run / 2, l->receive))
            return;
        l->then = l->psn - run / 2 + run;
        n = run;
    } else {
        l->then = l->psn + 1;
    }
    l->tx.wr.done = run_done;
    l->asking = true;
    if (post_run(l, n))
        mr_qp_abort(&l->qp);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

bool mr_probe_keep(struct mr_sub *sub, struct mr_qp *qp)
{
    struct mr_probe *l;

    bool peer_gone = mr_is_later(sub->peer_from, sub->generation);

    if (sub->own->probe || mr_sub_retires(sub) || sub->peer->error || peer_gone || qp->rail->dev->fatal)
        return false;
    l = calloc(1, sizeof *l);
    if (!l || mr_qp_psns(qp, &l->psn, &l->receive)) {
        free(l);
        return false;
    }
    l->sub = sub;
    l->asked_ns = mr_clock_ns();
    mr_qp_keep(qp, &l->qp, &events, l);
    sub->own->probe = l;
    return true;
}

void mr_probe_drop(struct mr_sub *sub)
{
    struct mr_probe *l = sub->own->probe;

    if (!l)
        return;
    l->unwanted = true;
    if (l->qp.state == MR_QP_DRAINED)
        free_probe(l);
    else
        mr_qp_abort(&l->qp);
}

void mr_probe_free(struct mr_sub *sub)
{
    if (sub->own->probe)
        free_probe(sub->own->probe);
}
