/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared copy inside a node: the sender pushes from the front, and whenever no DATA comes, the receiver reads from the
 * back. So a sender that computes costs the receiver nothing.
 *
 *   sender    OFFERED -- GO(GET) --> pushes --> all are out: waits for FIN
 *             pushes, but its program has freed the request: LEFT --> waits for FIN, or pushes on at the next GO
 *   receiver  asks (GO(GET)) --> copies DATA, and reads while the sender is silent --> all are here: FIN
 *             reads, and the kernel refuses --> copies DATA only; if the sender has left: GO
 */
#include <errno.h>

#include "libmrmpi/p2p/rndv/get.h"
#include "libmrmpi/p2p/rndv/stream.h"

/* ---- sender ------------------------------------------------------------------------------------------------------ */

/*
 * A program that has freed its request may learn of the message's end from the receiver's program, and free the memory,
 * before we do: the bytes that the receiver can read are left to the receiver then, which must not wait for DATA.
 */
static int leave_rest(struct mr_rndv *r)
{
    r->packets.left = true;
    mr_rndv_deactivate(r);
    if (mr_rndv_tell(r, MR_PKT_LEFT, 0, NULL, 0))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    return 1;
}

/* When all are out the receiver may be reading the buffer still. */
static int share_push(struct mr_rndv *r)
{
    int n;

    if (r->req->refs == 1)
        return leave_rest(r);
    if (mr_packets_push(r, &n))
        mr_rndv_deactivate(r);
    return n;
}

static bool share_send(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (!(hdr->flags & MR_FLAG_GET))
        return false;
    if (mr_packets_asked(r, hdr, &mr_share_protocol))
        share_push(r);
    return true;
}

/* The receiver cannot read the rest left to it: until it has the rest, it does not report the message as received. */
static void resume(struct mr_rndv *r)
{
    r->packets.left = false;
    r->by = &mr_packets_protocol;
    mr_rndv_activate(r);
}

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

void mr_share_begin(struct mr_rndv *r)
{
    struct mr_hdr go = mr_rndv_header(r, MR_PKT_GO, r->total);

    go.flags = MR_FLAG_GET;
    mr_rndv_begin(r, &mr_share_protocol);
    r->done = 0;
    r->packets.back_from = r->total;
    if (mr_vc_send(r->vc, &go, NULL, 0))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    else if (!r->total)
        mr_rndv_finish(r, MR_SUCCESS);
}

/*
 * The sender has left the rest to this receiver, which cannot read it. The back may be here: a sender that waits for
 * CREDIT to push it gets FIN.
 */
static void ask_for_rest(struct mr_rndv *r)
{
    if (mr_rndv_tell(r, MR_PKT_GO, r->total, NULL, 0))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
}

/*
 * True if DATA is not to be waited for. DATA of the sender's other messages counts: a sender with many under way has
 * yet to come to this one.
 */
static bool sender_is_silent(struct mr_rndv *r)
{
    const struct mr_stream *s = mr_flow_of(r->vc)->stream;
    uint64_t now;

    if (r->packets.left)
        return true;
    if (r->packets.data_seen != s->data_seen) {
        r->packets.data_seen = s->data_seen;
        r->packets.silent_ns = 0;
        return false;
    }
    now = mr_clock_ns();
    if (!r->packets.silent_ns)
        r->packets.silent_ns = now;
    return now - r->packets.silent_ns >= MR_MODEL_LATE_NS;
}

static int read_back(struct mr_rndv *r)
{
    size_t len = r->packets.back_from - r->done < MR_SCRATCH ? r->packets.back_from - r->done : MR_SCRATCH;
    int err;

    if (!sender_is_silent(r))
        return 0;
    err = mr_near_get(r, r->packets.back_from - len, len);
    if (err == -EPERM) {
        mr_near_note_refusal(r->vc);
        mr_rndv_deactivate(r);
        if (r->packets.left) /* otherwise the sender pushes anyway, or reports that it does not */
            ask_for_rest(r);
        return 1;
    }
    if (err) {
        mr_near_get_failed(r, err);
        return 1;
    }
    r->packets.back_from -= len;
    if (r->done >= r->packets.back_from)
        mr_rndv_received(r, true);
    return 1;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static void share_packet(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    switch (hdr->kind) {
    case MR_PKT_GO:
        if (r->packets.left && !(hdr->flags & MR_FLAG_GET))
            resume(r);
        break;
    case MR_PKT_CREDIT: /* counts also if the rest is asked for later */
        mr_packets_credit(r, hdr);
        break;
    case MR_PKT_DATA:
        if (mr_packets_take(r, hdr, payload, len))
            mr_rndv_received(r, true);
        break;
    case MR_PKT_LEFT:
        r->packets.left = true;
        if (!mr_rndv_is_active(r)) /* reads are refused */
            ask_for_rest(r);
        break;
    }
}

static int share_progress(struct mr_rndv *r)
{
    return mr_rndv_sends(r) ? share_push(r) : read_back(r);
}

const struct mr_protocol mr_share_protocol = {.name = "shared copy",
                                              .stat = MR_STAT_BY_SHARE,
                                              .answer = MR_PKT_GO,
                                              .start_send = share_send,
                                              .packet = share_packet,
                                              .progress = share_progress};
