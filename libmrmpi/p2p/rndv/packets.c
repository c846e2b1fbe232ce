/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The copy protocol: the receiver asks (GO), and the sender sends DATA, with at most PUSH_WINDOW packets beyond what
 * the receiver has acknowledged (CREDIT). It needs nothing of the channel or the buffers, so it is the last resort of
 * all others, and better than most of them for memory whose registration would take longer than copies.
 *
 *   sender    OFFERED -- GO --> pushes; CREDIT allows more --> all are out: over
 *   receiver  asks (GO) --> copies DATA, and the eager prefix if the offer had one --> all are here: over
 */
#include "libmrmpi/base/copy.h"
#include "libmrmpi/p2p/rndv/protocols.h"
#include "libmrmpi/p2p/rndv/stream.h"

#define PUSH_WINDOW 8  /* DATA packets under way */
#define PIECES      16 /* of a large message, at least, unless they would be shorter than eager messages */

/* ---- sender ------------------------------------------------------------------------------------------------------ */

static int push_piece(struct mr_rndv *r, size_t len)
{
    struct mr_payload payload = mr_rndv_payload(r);
    struct mr_hdr hdr = mr_rndv_header(r, MR_PKT_DATA, r->done);

    hdr.flags = MR_VC_FLAG_BULK;
    hdr.ctx = r->total < UINT32_MAX ? (uint32_t)r->total : UINT32_MAX;
    return mr_payload_send(&payload, &hdr, r->done, len);
}

/* Small pieces, so that both sides copy at the same time; larger pieces of a large message cost less. */
static size_t data_piece(const struct mr_rndv *r)
{
    size_t least = mr_vc_part_max(r->vc), most = mr_vc_packet_max(r->vc), piece = r->total / PIECES;

    if (least < mr_vc_eager_max(r->vc))
        most = least;
    piece = piece < least ? least : piece & ~(size_t)63;
    piece = piece > most ? most : piece;
    return piece < MR_SCRATCH ? piece : MR_SCRATCH;
}

bool mr_packets_push(struct mr_rndv *r, int *n)
{
    size_t piece = data_piece(r);

    *n = 0;
    while (r->done < r->total && r->done - r->packets.told < PUSH_WINDOW * piece &&
           !(mr_channel_waiting && mr_vc_waiting(r->vc))) {
        size_t len = r->total - r->done < piece ? r->total - r->done : piece;

        if (push_piece(r, len)) {
            mr_rndv_finish(r, MR_ERR_PROC_FAILED);
            *n = 1;
            return false;
        }
        r->done += len;
        ++*n;
    }
    return r->done == r->total;
}

bool mr_packets_asked(struct mr_rndv *r, const struct mr_hdr *go, const struct mr_protocol *by)
{
    if (go->len > r->total)
        return false;
    if (r->offer.awaits && r->req->crowded)
        mr_stream_of(r->vc)->announces = false; /* until the next RTR */
    r->peer_id = go->rreq;
    r->total = go->len;
    r->done = r->prefix.len;
    mr_rndv_begin(r, by);
    r->packets.told = r->done;
    if (r->region && r->req->in_burst)
        mr_burst_taken(&mr_pt2pt.burst, false);
    mr_rndv_activate(r);
    return true;
}

void mr_packets_credit(struct mr_rndv *r, const struct mr_hdr *credit)
{
    if (credit->len <= r->done && credit->len > r->packets.told)
        r->packets.told = credit->len;
}

static int packets_progress(struct mr_rndv *r)
{
    int n;

    if (mr_packets_push(r, &n))
        mr_rndv_finish(r, MR_SUCCESS);
    return n;
}

static bool packets_send(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (mr_packets_asked(r, hdr, &mr_packets_protocol))
        packets_progress(r);
    return true;
}

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

void mr_packets_ask(struct mr_rndv *r)
{
    mr_rndv_begin(r, &mr_packets_protocol);
    r->done = r->packets.told = r->prefix.len;
    r->packets.back_from = r->total;
    if (mr_rndv_tell(r, MR_PKT_GO, r->total, NULL, 0))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    else if (r->total <= r->done && !r->prefix.left)
        mr_rndv_finish(r, MR_SUCCESS);
}

static bool packets_recv(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    mr_packets_ask(r);
    return true;
}

/* Into memory not registered yet, and not worth it. */
static bool packets_recv_cheaper(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    bool cheap;

    if (hdr->len > mr_vc_eager_most(r->vc))
        cheap = mr_net_reaches(r->vc) && mr_net_copies(r->vc, mr_data_at(r->req->recv_buf, r->req->type), hdr->len);
    else /* could have come eagerly */
        cheap = hdr->flags & MR_FLAG_READ &&
                !(hdr->flags & MR_FLAG_RTR && mr_pt2pt.burst.is_registered(r->req->recv_buf, hdr->len)) &&
                !mr_burst_offered(&mr_pt2pt.burst, r->req->recv_buf, hdr->len);
    if (cheap)
        mr_packets_ask(r);
    return cheap;
}

bool mr_packets_take(struct mr_rndv *r, const struct mr_hdr *data, const void *payload, size_t len)
{
    struct mr_stream *s = mr_flow_of(r->vc)->stream;
    struct mr_request *req = r->req;
    size_t wanted;

    if (data->len != r->done || !len || r->done >= r->total || len > r->total - r->done)
        return false;
    wanted = len < r->packets.back_from - r->done ? len : r->packets.back_from - r->done;
    if (req->type->contiguous)
        mr_copy_in((char *)mr_data_at(req->recv_buf, req->type) + r->done, payload, wanted);
    else
        mr_type_unpack(req->recv_buf, req->count, req->type, r->done, payload, wanted);
    r->done += len;
    if (s)
        s->data_seen++;
    if (r->done >= r->packets.back_from)
        return true;
    if (r->done - r->packets.told >= 2 * len) {
        r->packets.told = r->done;
        if (mr_rndv_tell(r, MR_PKT_CREDIT, r->done, NULL, 0))
            mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    }
    return false;
}

static void packets_packet(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (hdr->kind == MR_PKT_CREDIT)
        mr_packets_credit(r, hdr);
    else if (hdr->kind == MR_PKT_DATA && mr_packets_take(r, hdr, payload, len))
        mr_rndv_received(r, false);
}

static void packets_prefix(struct mr_rndv *r)
{
    if (!r->prefix.left && r->total <= r->prefix.len)
        mr_rndv_finish(r, MR_SUCCESS);
}

const struct mr_protocol mr_packets_protocol = {
    .name = "packets",
    .stat = MR_STAT_BY_PACKETS,
    .start_recv = packets_recv,
    .answer = MR_PKT_GO,
    .start_send = packets_send,
    .packet = packets_packet,
    .progress = packets_progress,
    .prefix = packets_prefix,
};

const struct mr_protocol mr_cheap_protocol = {.name = "packets, cheaper", .start_recv = packets_recv_cheaper};
