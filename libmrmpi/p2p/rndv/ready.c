/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives announced before their message is offered. A collective's receive knows the sender, the length and the
 * buffer; its program waits for it, and so does the sender's. So the receive is announced (RTR) when posted, if its
 * memory is registered. The sender writes as soon as it has both RTR and the send, in either order. Compared with a
 * message offered and read, this saves the time of the offer if RTR comes first, and always FIN at the end, which the
 * receiver sends after the last byte, while a write needs only the adapter's confirmation.
 *
 * While RTR is under way the wire would be idle. So a message offered before RTR has come has a prefix (prefix.c), and
 * only the rest is written. The prefixes of several messages leave in their order, and the rests of all of them find
 * their turn behind them: otherwise receivers with a late RTR would get their first packets a round of the adapter
 * later than others, and their last ones, too.
 *
 * There is an offer for each message nevertheless, since receives are matched in order by offers. It says whether RTR
 * will be heeded (MR_FLAG_RTR), and both sides judge this alike: a receive is over when its message has been written
 * and the offer is there. Any other offer, and an eager message, ends the announcement: then RTR_CANCEL tells the
 * sender to drop it, if still there. As packets are in order, RTR_CANCEL comes before anything that could use the same
 * key again.
 *
 * The key is the context, the tag, which is unique to each run of a collective, and the number of the message among
 * those of this operation between the two.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/p2p/rndv/protocols.h"
#include "libmrmpi/p2p/rndv/stream.h"

#define REST 64u /* announcements left out after one in vain, at most: one more each time */

static bool is_for(const struct mr_hdr *ready, const struct mr_request *send)
{
    return ready->ctx == send->ctx && ready->tag == send->tag && ready->sreq == send->nth;
}

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

static struct mr_hdr header_of(const struct mr_rndv *r, enum mr_packet kind)
{
    return (struct mr_hdr){.kind = kind,
                           .ctx = r->req->ctx,
                           .tag = r->req->tag,
                           .len = r->total,
                           .sreq = r->req->nth,
                           .rreq = mr_rndv_id(r)};
}

/* Eager messages are announced as well if their peer heeds that, or may by now. */
static bool may_heed(struct mr_vc *vc)
{
    struct mr_stream *s = mr_stream_of(vc);

    if (s && s->rest)
        s->rest--;
    return s && !s->rest;
}

void mr_rtr_heeded(struct mr_vc *vc, size_t len)
{
    struct mr_stream *s = mr_flow_of(vc)->stream;

    if (s && len <= mr_vc_eager_most(vc))
        s->vain = s->rest = 0;
}

/* The message can be written by its sender, and is longer than eager messages, or better not copied. */
static bool is_writable(const struct mr_request *req, struct mr_vc *vc, size_t len, size_t all)
{
    unsigned caps = MR_VC_PUT | MR_VC_WRITE_BACK;

    return mr_rndvs.reads_if == MR_VC_READ_FIRST && req->type->contiguous && (mr_vc_caps(vc, len) & caps) == caps &&
           !mr_vc_lost(vc) &&
           (len > mr_vc_eager_most(vc) ||
            (all && may_heed(vc) && mr_burst_delays(&mr_pt2pt.burst, mr_data_at(req->recv_buf, req->type), len, all)));
}

void mr_rtr_announce(struct mr_request *req, size_t all)
{
    struct mr_vc *vc = mr_vc_known_peer(mr_comm_world_rank(req->comm, req->peer));
    size_t len = req->count * req->type->size;
    struct mr_rndv *r;
    struct mr_hdr hdr;

    if (req->complete || req->proto || !vc || !is_writable(req, vc, len, all))
        return;
    r = mr_rndv_new(req, vc, MR_RNDV_MOVING);
    if (!r)
        return;
    r->total = len;
    mr_rndv_begin(r, &mr_ready_protocol);
    if (mr_vc_advertise(vc, mr_data_at(req->recv_buf, req->type), len, MR_VC_WRITE_BACK, &r->region, &r->remote)) {
        mr_rndv_drop(r);
        return;
    }
    mr_vc_expect(r->region, mr_rndv_id(r));
    r->landing.announced = true;
    hdr = header_of(r, MR_PKT_RTR);
    if (mr_vc_send(vc, &hdr, &r->remote, sizeof(r->remote)))
        mr_rndv_drop(r); /* the channel has failed, and its upcall ends the receive */
}

void mr_rtr_recall(struct mr_request *req)
{
    struct mr_hdr hdr = header_of(req->proto, MR_PKT_RTR_CANCEL);

    mr_vc_send(req->proto->vc, &hdr, NULL, 0); /* if this fails the sender has, too */
}

void mr_rtr_void(struct mr_request *req)
{
    struct mr_rndv *r = req->proto;
    struct mr_stream *s = mr_stream_of(r->vc);

    if (s && r->total <= mr_vc_eager_most(r->vc))
        s->rest = s->vain < REST ? ++s->vain : REST;
    mr_rtr_recall(req);
    mr_rndv_drop(r);
}

/* The offer, the bytes that are written, and those of the eager prefix, which are not. */
static void ready_prefix(struct mr_rndv *r)
{
    if (!r->landing.announced && r->landing.landed && !r->prefix.left)
        mr_rndv_finish(r, MR_SUCCESS);
}

bool mr_rtr_meet(struct mr_request *req, const struct mr_hdr *hdr, const void *prefix)
{
    struct mr_rndv *r = req->proto;
    size_t come;

    if (!(hdr->flags & MR_FLAG_RTR)) {
        mr_rtr_void(req);
        return false;
    }
    mr_rndvs.large_received++;
    r->landing.announced = false;
    r->peer_id = hdr->sreq;
    come = hdr->rreq ? mr_prefix_meet(r, hdr) : 0;
    if (come)
        mr_prefix_copy(r, 0, prefix, come);
    else
        ready_prefix(r);
    return true;
}

static void ready_landed(struct mr_rndv *r, int error)
{
    r->landing.landed = true;
    if (error)
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    else
        ready_prefix(r);
}

static void ready_ended(struct mr_rndv *r)
{
    if (r->landing.announced) /* not matched */
        mr_match_remove(&mr_pt2pt.posted, &r->req->match);
}

/* ---- sender ------------------------------------------------------------------------------------------------------ */

static struct mr_rtr **find_kept(struct mr_stream *s, const struct mr_hdr *hdr)
{
    struct mr_rtr **at = &s->ready;

    while (*at && !((*at)->hdr.ctx == hdr->ctx && (*at)->hdr.tag == hdr->tag && (*at)->hdr.sreq == hdr->sreq))
        at = &(*at)->next;
    return at;
}

/* The peer is ready for this message: where it goes to. RTR is forgotten; false: there is none of this length. */
static bool take_announcement(struct mr_request *send, struct mr_vc *vc, uint64_t *rreq, struct mr_remote *remote)
{
    struct mr_hdr key = {.ctx = send->ctx, .tag = send->tag, .sreq = send->nth};
    struct mr_stream *s = mr_flow_of(vc)->stream;
    struct mr_rtr **at, *ready;
    bool fits;

    if (!s || !*(at = find_kept(s, &key)))
        return false;
    ready = *at;
    *at = ready->next;
    *rreq = ready->hdr.rreq;
    *remote = ready->remote;
    fits = ready->hdr.len == send->count * send->type->size;
    free(ready);
    return fits;
}

bool mr_rtr_comes(struct mr_vc *vc)
{
    const struct mr_stream *s = mr_flow_of(vc)->stream;

    return s && s->announces;
}

/* Only a message that can be written, all of it, from the program's memory. */
static void ready_offer(struct mr_rndv *r, struct mr_rndv_means *m)
{
    struct mr_stream *s = m->caps & MR_VC_PUT && r->req->nth && !r->offer.bounce ? mr_stream_of(r->vc) : NULL;

    if (!s)
        return;
    m->hdr->flags |= MR_FLAG_RTR;
    r->behind = s->offers;
    s->offers = r;
    r->offer.awaits = true;
}

bool mr_ready_offer(struct mr_rndv *r, struct mr_hdr *hdr, unsigned caps, int *err)
{
    uint64_t rreq;

    if (!r->req->nth || !take_announcement(r->req, r->vc, &rreq, &r->remote) || !(caps & MR_VC_PUT))
        return false;
    hdr->flags |= MR_FLAG_RTR | MR_FLAG_PUT;
    mr_stat_add(MR_STAT_READY_SENT, 1);
    *err = mr_vc_send(r->vc, hdr, NULL, 0);
    if (!*err)
        mr_write_begin(r, rreq, 0, r->total);
    return true;
}

static bool ready_send(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    mr_stat_add(MR_STAT_READY_SENT, 1);
    if (mr_write_allowed(r, hdr, payload, len)) /* a tracked message comes as a whole */
        mr_write_begin(r, hdr->rreq, r->remote.serial ? 0 : r->prefix.len, hdr->len);
    return true;
}

struct mr_rndv *mr_rtr_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_stream *s = mr_stream_of(vc);
    struct mr_rndv *r = s ? s->offers : NULL;
    struct mr_rtr *ready;

    while (r && !(r->state == MR_RNDV_OFFERED && is_for(hdr, r->req)))
        r = r->behind;
    if (len != sizeof(ready->remote))
        return NULL;
    if (s && hdr->len <= mr_vc_eager_most(vc))
        s->announces = true;
    if (r)
        return r->total == hdr->len ? r : NULL;
    ready = s ? malloc(sizeof(*ready)) : NULL;
    if (!ready) {
        struct mr_hdr fail = {.kind = MR_PKT_FAIL, .rreq = hdr->rreq};

        mr_vc_send(vc, &fail, NULL, 0);
        return NULL;
    }
    ready->hdr = *hdr;
    memcpy(&ready->remote, payload, len);
    ready->next = s->ready;
    s->ready = ready;
    return NULL;
}

void mr_rtr_forget(struct mr_vc *vc, const struct mr_hdr *hdr)
{
    struct mr_stream *s = mr_flow_of(vc)->stream;
    struct mr_rtr **at, *ready;

    if (!s || !*(at = find_kept(s, hdr)))
        return;
    ready = *at;
    *at = ready->next;
    free(ready);
}

const struct mr_protocol mr_ready_protocol = {
    .name = "ready to receive",
    .stat = MR_STAT_BY_READY,
    .offer = ready_offer,
    .answer = MR_PKT_RTR,
    .start_send = ready_send,
    .packet = mr_write_packet,
    .prefix = ready_prefix,
    .landed = ready_landed,
    .ended = ready_ended,
};
