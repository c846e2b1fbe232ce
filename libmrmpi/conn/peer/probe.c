/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes: find out whether a peer's adapter still answers while no subchannel is open. A computing peer does not answer
 * requests to connect, and datagrams are not acknowledged. But the peer's end of a link that broke here still exists if
 * nothing was under way from there: its adapter acknowledges arrivals. So the queue pair of a drained link is kept
 * while its subchannel is closed, and, if nothing else tells about the peer, brought up once more against the same
 * queue pair at the peer, for writes of no bytes.
 *
 * The other end expects one packet number, unknown here: packets under way when the link broke may have arrived or not.
 * Arrived packets are acknowledged again, with the number of the last; packets ahead are refused. So a run of writes
 * begins well before the next expected number, and ends behind it.
 */
#include "libmrmpi/conn/peer/probe.h"

#include <errno.h>
#include <stdlib.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/conn/peer/internal.h"

#define RUN_MAX 64 /* writes; half of them before the next number */

/* ---- completions ------------------------------------------------------------------------------------------------- */

static void probe_run_done(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct mr_probe *l = container_of(wr, struct mr_probe, tx.wr);

    mr_tx_done(&l->tx, wc);
    if (wc->error)
        return;
    l->asking = false;
    l->psn = l->then;
    l->answered(l);
}

/* A refusal is an answer, too. */
static void run_failed(struct mr_qp *qp, const struct mr_wc *wc)
{
    struct mr_probe *l = qp->owner;

    if (wc->error != -EHOSTUNREACH)
        l->answered(l);
    mr_qp_abort(qp);
}

static void ignore_confirmed(struct mr_qp *qp, unsigned sends)
{
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* Once a second; sooner where the patience is short. */
static uint64_t probe_interval_ns(void)
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

void mr_probe_again(struct mr_probe *l, const struct mr_rail_addr *to)
{
    unsigned run = l->qp.depth < RUN_MAX ? l->qp.depth : RUN_MAX;

    if (!mr_qp_again(&l->qp, to, l->psn - run / 2, l->receive, l->answers))
        l->run = run;
}

static void post_probe(struct mr_probe *l, uint64_t now_ns)
{
    unsigned n = 1;

    l->repeats = false;
    l->asked_ns = now_ns;
    if (l->qp.state == MR_QP_DRAINED)
        mr_probe_again(l, NULL);
    if (l->qp.state == MR_QP_DRAINED || l->qp.rail->cq_room < l->run)
        return;
    if (l->run) {
        l->then = l->psn - l->run / 2 + l->run;
        n = l->run;
        l->run = 0;
    } else {
        l->then = l->psn + 1;
    }
    l->tx.wr.done = probe_run_done;
    l->asking = true;
    if (post_run(l, n))
        mr_qp_abort(&l->qp);
}

void mr_probe_post(struct mr_probe *l, uint64_t now_ns)
{
    if (now_ns - l->asked_ns < probe_interval_ns())
        return;
    if (!l->asking) {
        post_probe(l, now_ns);
    } else if (l->qp.untimed && !l->repeats) {
        l->repeats = true;
        mr_qp_abort(&l->qp);
    }
}

static void probe_drained(struct mr_qp *qp)
{
    struct mr_probe *l = qp->owner;
    bool repeats = l->repeats;

    l->asking = false;
    l->drained(l); /* may be gone then, if it does not repeat */
    if (repeats && l->qp.state == MR_QP_ALIVE)
        post_probe(l, mr_clock_ns());
}

const struct mr_qp_events mr_probe_events = {
    .confirmed = ignore_confirmed, .failed = run_failed, .drained = probe_drained};

/* ---- queue pairs kept of subchannels ----------------------------------------------------------------------------- */

struct mr_kept_probe {
    struct mr_probe probe;
    struct mr_sub *sub;
    bool unwanted; /* freed after draining */
};

static void free_kept_probe(struct mr_kept_probe *k)
{
    k->sub->own->probe = NULL;
    mr_qp_destroy(&k->probe.qp);
    free(k);
}

static void kept_answered(struct mr_probe *l)
{
    mr_peer_tell_answered(container_of(l, struct mr_kept_probe, probe)->sub->peer);
}

static void kept_drained(struct mr_probe *l)
{
    struct mr_kept_probe *k = container_of(l, struct mr_kept_probe, probe);

    if (k->unwanted)
        free_kept_probe(k);
}

bool mr_probe_keep(struct mr_sub *sub, struct mr_qp *qp)
{
    bool peer_gone = mr_is_later(sub->peer_from, sub->generation);
    struct mr_kept_probe *k;

    if (sub->own->probe || mr_sub_retires(sub) || sub->peer->error || peer_gone || qp->rail->dev->fatal)
        return false;
    k = calloc(1, sizeof *k);
    if (!k || mr_qp_psns(qp, &k->probe.psn, &k->probe.receive)) {
        free(k);
        return false;
    }
    k->sub = sub;
    k->probe.answered = kept_answered;
    k->probe.drained = kept_drained;
    k->probe.asked_ns = mr_clock_ns();
    mr_qp_keep(qp, &k->probe.qp, &mr_probe_events, &k->probe);
    sub->own->probe = k;
    return true;
}

void mr_probe_ask(struct mr_sub *sub, uint64_t now_ns)
{
    if (sub->own->probe && !sub->own->probe->unwanted)
        mr_probe_post(&sub->own->probe->probe, now_ns);
}

void mr_probe_drop(struct mr_sub *sub)
{
    struct mr_kept_probe *k = sub->own->probe;

    if (!k)
        return;
    k->unwanted = true;
    if (k->probe.qp.state == MR_QP_DRAINED)
        free_kept_probe(k);
    else
        mr_qp_abort(&k->probe.qp);
}

void mr_probe_free(struct mr_sub *sub)
{
    if (sub->own->probe)
        free_kept_probe(sub->own->probe);
}
