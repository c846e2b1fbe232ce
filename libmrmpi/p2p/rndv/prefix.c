/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The eager prefix of a large message: its first bytes follow the offer unrequested, in packets, and fill the wire
 * until the read data arrives. They are eager bytes: they count as credit, and the receiver keeps them until the
 * message has met its receive.
 *
 * Both sides copy them. So a message has a prefix if nothing else is under way, which the prefix would only delay, and
 * the prefix is no longer than the bytes copied in the round trip that it hides (docs/design/protocols.md); or if it is
 * the last of a batch (batch.h).
 *
 * A message whose receive may be announced (ready.c) has one, too. It is sent zero-copy if possible, and no longer than
 * the receiver copies while the rest comes.
 *
 * The packets of a prefix follow each other and their offer: one prefix comes from each peer at a time.
 */
#include <string.h>

#include "libmrmpi/base/copy.h"
#include "libmrmpi/base/model.h"
#include "libmrmpi/p2p/rndv/protocols.h"
#include "libmrmpi/p2p/rndv/stream.h"

/* ---- sender ------------------------------------------------------------------------------------------------------ */

/*
 * A message waited for, with nothing else under way: messages offered behind a prefix would be delayed, since packets
 * are in order. The rest should be worth a stripe on each rail.
 */
static bool is_alone(const struct mr_rndv *r)
{
    return r->req->waited && r->total >= 2ull * mr_model.prefix && mr_rndvs.pending == 1; /* itself */
}

/* For the offer and its prefix: a partly missing prefix would delay all our packets to the peer. */
static bool has_memory(struct mr_vc *vc, size_t prefix)
{
    size_t most = mr_vc_part_max(vc);

    return !mr_net_reaches(vc) || !mr_net_reserve(vc, 1 + (unsigned)((prefix + most - 1) / most));
}

/* wanted: as many bytes as its batch would have, or 0. */
static size_t plan_prefix(const struct mr_rndv *r, size_t wanted)
{
    size_t prefix = wanted ? wanted : is_alone(r) ? mr_model.prefix : 0;

    if (!prefix || (mr_channel_waiting && mr_vc_waiting(r->vc)) || !mr_flow_allows(r->vc, prefix) ||
        !has_memory(r->vc, prefix))
        return 0;
    return prefix;
}

/*
 * While the rest is on its way the receiver copies this, and for one in eight a block of its own of the same size. With
 * the prefixes of a few other messages it fills the wire until RTR arrives.
 */
static size_t prefix_before_rtr(const struct mr_rndv *r, unsigned rate)
{
    uint64_t copied = r->total * mr_model.busy_copy_mbps / rate, own = r->total / 8,
             prefix = copied > own ? (copied - own) & ~(uint64_t)(MR_MODEL_PAGE - 1) : 0;

    return prefix < mr_model.rtr_prefix ? prefix : mr_model.rtr_prefix;
}

unsigned mr_prefix_divide(struct mr_rndv *r, const struct mr_remote *remote, struct mr_remote *bounce)
{
    struct mr_stream *s = mr_stream_of(r->vc);
    size_t whole = 0;
    unsigned rate = mr_net_reaches(r->vc) ? mr_net_rate(r->vc, r->total, remote->token, &whole) : 0;
    struct mr_batch_plan plan;

    if (!s || !rate)
        return 0;
    if (r->req->nth) {
        r->prefix.len = (uint32_t)plan_prefix(r, prefix_before_rtr(r, rate));
        return 0;
    }
    plan = mr_batch_begin(&s->batch, &mr_model, r->total, rate, whole, mr_rndvs.large_received);
    r->offer.counted = true;
    r->prefix.len = (uint32_t)plan_prefix(r, plan.prefix);
    return plan.bounce && mr_bounce_offer(r, plan.bounce, bounce);
}

int mr_prefix_send(struct mr_rndv *r)
{
    struct mr_payload payload = mr_rndv_payload(r);
    struct mr_hdr hdr = {.kind = MR_PKT_PREFIX, .flags = MR_VC_FLAGS_PREFIX, .sreq = mr_rndv_id(r)};
    size_t most = mr_vc_part_max(r->vc);

    payload.owner = r->vc->zsends ? r->req : NULL;
    mr_credit_spend(&mr_flow_of(r->vc)->credit, r->prefix.len);
    mr_stat_add(MR_STAT_PREFIXES_SENT, 1);
    for (size_t len; hdr.len < r->prefix.len; hdr.len += len) {
        int err;

        len = r->prefix.len - hdr.len < most ? r->prefix.len - hdr.len : most;
        err = mr_payload_send(&payload, &hdr, hdr.len, len);
        if (err)
            return err;
    }
    return 0;
}

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

static void none_comes(struct mr_stream *s)
{
    s->hdr = NULL;
    s->at = s->len;
}

bool mr_prefix_offered(struct mr_vc *vc, const struct mr_hdr *hdr)
{
    struct mr_stream *s = mr_stream_of(vc);

    if (!s || s->at < s->len || hdr->rreq > hdr->len || hdr->rreq > MR_SCRATCH || !(hdr->flags & MR_FLAG_READ) ||
        hdr->flags & (MR_FLAG_GET | MR_FLAG_PART))
        return false;
    s->sreq = hdr->sreq;
    s->at = 0;
    s->len = (uint32_t)hdr->rreq;
    s->hdr = hdr;
    s->into = NULL;
    s->to = 0;
    return true;
}

void mr_prefix_keep(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_stream *s = mr_flow_of(vc)->stream;
    struct mr_message *m = mr_message_new(vc, hdr, len + s->len);

    memcpy(m->own, payload, len);
    m->len = len;
    s->hdr = &m->hdr;
    s->into = m->own + len;
    mr_message_insert(m);
}

void mr_prefix_copy(struct mr_rndv *r, size_t at, const void *payload, size_t len)
{
    struct mr_request *req = r->req;
    size_t room = at < r->total ? r->total - at : 0, wanted = len < room ? len : room;

    r->prefix.left -= (uint32_t)len;
    if (!r->by->prefix)
        return;
    if (req->type->contiguous)
        mr_copy_in((char *)mr_data_at(req->recv_buf, req->type) + at, payload, wanted);
    else
        mr_type_unpack(req->recv_buf, req->count, req->type, at, payload, wanted);
    r->by->prefix(r);
}

void mr_prefix_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_stream *s = mr_flow_of(vc)->stream;
    struct mr_rndv *r;
    size_t at;

    if (!s || s->at == s->len || hdr->sreq != s->sreq || hdr->len != s->at || !len || len > s->len - s->at)
        return;
    at = s->at;
    s->at += (uint32_t)len;
    if (s->hdr)
        memcpy(s->into + at, payload, len);
    else if ((r = mr_rndv_find(vc, s->to)))
        mr_prefix_copy(r, at, payload, len);
    if (s->at == s->len)
        none_comes(s);
}

size_t mr_prefix_meet(struct mr_rndv *r, const struct mr_hdr *hdr)
{
    struct mr_stream *s = mr_flow_of(r->vc)->stream;

    r->prefix.len = r->prefix.left = (uint32_t)hdr->rreq;
    mr_flow_consume(r->vc, hdr->rreq);
    if (s->hdr != hdr)
        return hdr->rreq;
    s->hdr = NULL;
    s->to = mr_rndv_id(r);
    return s->at;
}

void mr_prefix_forget(struct mr_vc *vc, const struct mr_hdr *hdr)
{
    struct mr_stream *s = mr_flow_of(vc)->stream;

    if (s->hdr == hdr)
        none_comes(s);
    mr_flow_consume(vc, hdr->rreq);
}

void mr_prefix_fail_peer(struct mr_vc *vc)
{
    if (mr_flow_of(vc)->stream)
        none_comes(mr_flow_of(vc)->stream);
}
