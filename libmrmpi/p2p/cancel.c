/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cancelling. A receive without a message ends at once. A send asks the receiver for the message: the send is under way
 * until the answer comes, even if it was complete.
 */
#include "libmrmpi/p2p/internal.h"

/* ---- sender ------------------------------------------------------------------------------------------------------ */

bool mr_cancel_recall(struct mr_request *req)
{
    struct mr_vc *vc = mr_vc_get_peer(mr_comm_world_rank(req->comm, req->peer));
    struct mr_rndv *r = mr_vc_lost(vc) ? NULL : mr_rndv_new(req, vc, MR_RNDV_ACK);

    if (!r)
        return false;
    r->peer_id = req->eager_id;
    req->eager_id = 0;
    mr_rndv_ask_back(r);
    return true;
}

static void withdraw_send(struct mr_request *req)
{
    if (!req->complete && req->held_by) {
        mr_flow_withdraw(req);
    } else if (!req->complete && req->proto) {
        mr_rndv_ask_back(req->proto);
    } else if (req->zsends && req->eager_id) {
        req->recalled = true; /* once complete */
    } else if (req->complete && req->eager_id && mr_cancel_recall(req)) {
        req->complete = false; /* under way again */
        req->refs++;
    }
}

static void behind_is_complete(struct mr_request *behind, void *arg)
{
    struct mr_request *req = arg;

    req->status.cancelled = behind->status.cancelled;
    mr_request_complete(req);
}

/*
 * The program's request for a buffered send is complete at once; when the program asks for the message back, the
 * request waits for the message.
 */
static void cancel_send(struct mr_request *req)
{
    struct mr_request *behind = req->behind;

    if (!behind) {
        withdraw_send(req);
        return;
    }
    if (!req->complete) /* asked already */
        return;
    req->complete = false;
    req->refs++;
    withdraw_send(behind);
    if (behind->complete) {
        behind_is_complete(behind, req);
    } else {
        behind->on_complete = behind_is_complete;
        behind->on_complete_arg = req;
    }
}

void mr_cancel_done(struct mr_vc *vc, const struct mr_hdr *hdr)
{
    struct mr_rndv *r = mr_rndv_find(vc, hdr->sreq);

    if (!r || r->req->kind != MR_REQ_SEND || !r->offer.cancelling || !mr_rndv_is_unmet(r))
        return;
    r->req->status.cancelled = !r->offer.vain;
    if (r->offer.vain)
        mr_rndv_finish(r, r->req->comm->fault == MR_ERR_REVOKED ? MR_ERR_REVOKED : MR_ERR_PROC_FAILED);
    else
        mr_rndv_finish(r, MR_SUCCESS);
}

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

struct wanted {
    struct mr_vc *vc;
    uint64_t id;
    bool eager;
    struct mr_message *found;
};

static void match_wanted(struct mr_match_entry *e, void *arg)
{
    struct wanted *w = arg;
    struct mr_message *m = e->owner;
    bool waits = m->hdr.kind == MR_PKT_RTS || m->hdr.flags & MR_FLAG_ACK;

    if (m->hdr.flags & MR_FLAG_POISON) /* no id in there */
        return;
    if (waits != w->eager && m->vc == w->vc && (w->eager ? mr_eager_id(m->hdr.seq) : m->hdr.sreq) == w->id)
        w->found = m;
}

/*
 * Takes out an unexpected message (its context, rank and tag are in hdr) known to its sender by this id: a message that
 * its sender waits for, or (eager) one without a wait. False: no longer there.
 */
static bool surrender_unexpected(struct mr_vc *vc, const struct mr_hdr *hdr, uint64_t id, bool eager)
{
    struct wanted w = {.vc = vc, .id = id, .eager = eager};

    mr_match_each_at(&mr_pt2pt.unexpected, hdr->ctx, hdr->rank, hdr->tag, match_wanted, &w);
    if (!w.found)
        return false;
    if (w.found->hdr.kind == MR_PKT_EAGER)
        mr_flow_consume(vc, w.found->hdr.len);
    else if (w.found->hdr.rreq)
        mr_prefix_forget(vc, &w.found->hdr);
    mr_match_remove_quad(&mr_pt2pt.unexpected, &w.found->match);
    mr_message_free(w.found);
    return true;
}

void mr_cancel_asked(struct mr_vc *vc, const struct mr_hdr *hdr)
{
    bool eager = hdr->rreq != 0;
    bool back = surrender_unexpected(vc, hdr, eager ? hdr->rreq : hdr->sreq, eager);
    struct mr_hdr answer = {.kind = back ? MR_PKT_CANCELLED : MR_PKT_ACK, .sreq = hdr->sreq};

    if (back || eager)
        mr_vc_send(vc, &answer, NULL, 0);
}

enum mr_err mr_cancel(struct mr_request *req)
{
    if (req->kind == MR_REQ_SEND)
        cancel_send(req);
    if (req->complete || req->kind != MR_REQ_RECV || !req->match.queue)
        return MR_SUCCESS;
    mr_match_remove(&mr_pt2pt.posted, &req->match);
    req->status.cancelled = true;
    mr_request_complete(req);
    return MR_SUCCESS;
}
