/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Eager messages of more than one packet. A message a little longer than a packet arrives sooner in several eager
 * packets than by an offer, a request and an answer; over several rails its packets travel at the same time. To a peer
 * with a pace for us (conn/route/pace.h), shorter messages are cut, too, so that those of several senders mix.
 *
 * The packets are EAGER packets whose headers give more bytes than each has (MR_FLAG_PART). They follow each other
 * without other packets of this sender between them, so they need no name: one such message comes from each peer at a
 * time. With a posted receive at the first packet, all are copied to its buffer; otherwise the message is gathered, and
 * meets receives and probes when whole.
 */
#include "libmrmpi/base/parts.h"
#include "libmrmpi/p2p/internal.h"

/* ---- sender ------------------------------------------------------------------------------------------------------ */

int mr_parts_send(const struct mr_payload *p, struct mr_hdr *hdr)
{
    size_t total = hdr->len, part = mr_part_size(total, mr_vc_part_max(p->vc));
    int err = mr_net_reaches(p->vc) ? mr_net_reserve(p->vc, (unsigned)((total + part - 1) / part)) : p->vc->error;

    hdr->flags |= MR_FLAG_PART;
    for (size_t at = 0; at < total && !err; at += part) {
        if (at) {
            hdr->flags = MR_FLAG_PART;
            hdr->rreq = at;
        }
        err = mr_payload_send(p, hdr, at, total - at < part ? total - at : part);
    }
    hdr->rreq = 0;
    return err;
}

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

static void keep_part(struct mr_message *m, const void *payload, size_t len)
{
    if (!m->req) {
        mr_message_add(m, payload, len);
        return;
    }
    mr_recv_fill(m->req, m->len, payload, len);
    m->len += len;
}

static bool begin_parts(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_flow *f = mr_flow_of(vc);
    struct mr_match_entry *e;

    if (f->coming || hdr->flags & MR_FLAG_POISON || !len || len >= hdr->len || hdr->len > MR_SCRATCH)
        return false;
    e = mr_match_take(&mr_pt2pt.posted, hdr->ctx, hdr->rank, hdr->tag);
    f->coming = mr_message_new(vc, hdr, e ? 0 : hdr->len);
    if (e) {
        f->coming->req = e->owner;
        mr_recv_meet(e->owner, hdr);
    }
    keep_part(f->coming, payload, len);
    return true;
}

static void end_parts(struct mr_vc *vc, struct mr_message *m)
{
    mr_flow_of(vc)->coming = NULL;
    if (m->req) {
        mr_recv_taken(m->req, vc, &m->hdr);
        mr_message_free(m);
    } else {
        mr_recv_arrived(m);
    }
}

bool mr_parts_packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_message *m = mr_flow_of(vc)->coming;

    if (!(hdr->flags & MR_FLAG_PART) || hdr->kind != MR_PKT_EAGER)
        return false;
    if (!hdr->rreq)
        return begin_parts(vc, hdr, payload, len);
    if (!m || hdr->len != m->hdr.len || hdr->rreq != m->len || !len || len > m->hdr.len - m->len)
        return false;
    keep_part(m, payload, len);
    if (m->len == m->hdr.len)
        end_parts(vc, m);
    return true;
}

void mr_parts_fail_peer(struct mr_vc *vc)
{
    struct mr_message *m = mr_flow_of(vc)->coming;

    if (!m)
        return;
    mr_flow_of(vc)->coming = NULL;
    if (m->req) {
        m->req->status.error = MR_ERR_PROC_FAILED;
        mr_request_complete(m->req);
    }
    mr_message_free(m);
}
