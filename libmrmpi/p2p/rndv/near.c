/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages inside this node: the receiver's queue for each sender, and the choice of the copy mode. See get.h.
 *
 *   receiver  offered --> queued behind others of the sender --> starts: single copy, shared copy or split copy
 */
#include <string.h>

#include "libmrmpi/launch/launch.h"
#include "libmrmpi/p2p/rndv/get.h"
#include "libmrmpi/p2p/rndv/stream.h"

_Static_assert(MR_COPY_SIZES <= sizeof(((struct mr_claims *)0)->mode), "one for each size");

/* ---- choice of the mode ------------------------------------------------------------------------------------------ */

/* With a core for each rank, and another rank to share with. */
static bool one_copy_pays(struct mr_vc *vc)
{
    return !mr_shm_oversubscribed() && mr_vc_world_rank(vc) != mr_launch_info()->rank;
}

static enum mr_copy_load load_now(void)
{
    if (mr_rndvs.near.sends)
        return MR_LOAD_BOTH;
    if (mr_rndvs.near.receives > 1 || mr_copy_mode_follows(&mr_rndvs.near.modes, mr_clock_ns()))
        return MR_LOAD_STREAM;
    return MR_LOAD_ONE;
}

/*
 * If both ranks receive, one that tries a mode alone finds it slow as long as the other keeps its core busy with
 * another mode. So of two the lower rank tries, and notes the mode in its memory, and the other follows.
 */
static enum mr_copy_mode follow_copy_mode(struct mr_rndv *r)
{
    const struct mr_claims *theirs = mr_near_claims(r->vc, false);
    uint8_t noted = theirs ? __atomic_load_n(&theirs->mode[mr_copy_mode_size(r->total)], __ATOMIC_RELAXED) : 0;

    return noted && noted <= MR_COPY_MODES ? (enum mr_copy_mode)(noted - 1) : MR_COPY_READ;
}

static enum mr_copy_mode choose_copy_mode(struct mr_rndv *r, enum mr_copy_load load)
{
    enum mr_copy_mode mode =
        mr_copy_mode_choose(&mr_rndvs.near.modes, &r->near.choice, r->total, load, mr_shm_pool_ns());
    struct mr_claims *ours = mr_near_claims(r->vc, true);

    r->near.timed = true;
    if (load == MR_LOAD_BOTH && ours)
        __atomic_store_n(&ours->mode[mr_copy_mode_size(r->total)], (uint8_t)(mode + 1), __ATOMIC_RELAXED);
    return mode;
}

static enum mr_copy_mode copy_mode_of(struct mr_rndv *r)
{
    enum mr_copy_load load = load_now();

    if (mr_near_is_guest(r->vc))
        return MR_COPY_READ;
    if (mr_rndvs.near.forced)
        return mr_rndvs.near.forced - 1;
    if (!r->total || !one_copy_pays(r->vc))
        return MR_COPY_READ;
    if (!r->req->type->contiguous)
        return MR_COPY_PUSH;
    if (load == MR_LOAD_BOTH && mr_vc_world_rank(r->vc) < mr_launch_info()->rank)
        return follow_copy_mode(r);
    return choose_copy_mode(r, load);
}

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

/*
 * Some at a time, so that the next one comes while this one is copied. They use the same mode: a message with work for
 * us only would overtake the others, and the times of neither would prove anything.
 */
static bool may_start(struct mr_rndv *r, const struct mr_stream *s)
{
    if (s->started >= MR_COPY_FEW)
        return false;
    if (!r->near.chosen)
        r->near.choice.mode = copy_mode_of(r);
    r->near.chosen = true;
    return !s->started || r->near.choice.mode == s->mode;
}

static void start_copy(struct mr_rndv *r, struct mr_stream *s)
{
    s->mode = r->near.choice.mode;
    s->started++;
    r->near.started = true;
    if (r->near.timed)
        r->near.choice.begin_ns = mr_clock_ns();
    if (mr_near_refuses(r->vc)) { /* meanwhile */
        mr_packets_ask(r);
        return;
    }
    mr_rndv_activate(r);
    if (s->mode == MR_COPY_PUSH)
        mr_share_begin(r);
    else if (s->mode != MR_COPY_SPLIT || !r->req->type->contiguous || !mr_split_begin(r))
        mr_get_begin(r);
}

/*
 * Progress starts the copy, not the call that meets the message: behind a receive, programs and collectives often send,
 * and the peer copies that message at the same time.
 */
static bool near_recv(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_stream *s = mr_stream_of(r->vc);

    if (len != sizeof(r->remote) || mr_near_refuses(r->vc) || !s)
        return false;
    memcpy(&r->remote, payload, len);
    mr_rndv_begin(r, &mr_near_protocol);
    r->near.counted = true;
    mr_rndvs.near.receives++;
    mr_rndv_queue(s, r);
    return true;
}

static int near_progress(struct mr_rndv *r)
{
    struct mr_stream *s = mr_flow_of(r->vc)->stream;

    if (!may_start(r, s))
        return 0;
    mr_rndv_unqueue(s);
    start_copy(r, s);
    return 1;
}

void mr_near_report(void)
{
    static const char *const loads[MR_LOADS] = {"alone", "in a row", "both ways"};
    char line[200];

    for (int l = 0; l < MR_LOADS; l++)
        for (int s = 0; s < MR_COPY_SIZES; s++)
            if (mr_copy_mode_describe(&mr_rndvs.near.modes.cell[l][s], line, sizeof(line)))
                mr_log_print(MR_LOG_INFO, "inside the host, %d KiB %s: %s", 32 << s, loads[l], line);
}

/* ---- sender ------------------------------------------------------------------------------------------------------ */

static void near_offer(struct mr_rndv *r, struct mr_rndv_means *m)
{
    if (!(m->caps & MR_VC_GET) || mr_vc_advertise(r->vc, mr_data_at(r->req->send_buf, r->req->type), r->total,
                                                  MR_VC_GET, &r->region, &m->remote[0]))
        return;
    m->hdr->flags |= MR_FLAG_GET;
    m->num = 1;
    r->near.counted = true;
    mr_rndvs.near.sends++;
}

const struct mr_protocol mr_near_protocol = {.name = "inside a node",
                                             .offer = near_offer,
                                             .needs = MR_FLAG_GET,
                                             .start_recv = near_recv,
                                             .progress = near_progress};
