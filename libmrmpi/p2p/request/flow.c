/* SPDX-License-Identifier: BSD-3-Clause */
/* Credits given back and taken; sends that wait until there is room for their packets. */
#include "libmrmpi/p2p/request/flow.h"

#include "libmrmpi/launch/launch.h"

void mr_flow_init(void)
{
    mr_pt2pt.window =
        mr_credit_window(mr_config.unexpected_max, mr_config.unexpected_total, mr_launch_info()->size - 1);
}

/* ---- credits ----------------------------------------------------------------------------------------------------- */

bool mr_flow_free_of_credit(struct mr_vc *vc)
{
    return mr_vc_world_rank(vc) == mr_launch_info()->rank;
}

void mr_flow_check(struct mr_vc *vc)
{
    struct mr_credit *c = &mr_flow_of(vc)->credit;
    struct mr_hdr credit = {.kind = MR_PKT_EAGER_CREDIT, .len = c->consumed};

    if (!mr_credit_check(c, mr_vc_packets(vc), mr_pt2pt.window, &vc->note))
        return;
    if (mr_vc_send(vc, &credit, NULL, 0))
        return; /* said at the next check, unless the peer is lost */
    mr_credit_told(c);
    mr_stat_add(MR_STAT_CREDITS_SENT, 1);
}

static void damaged(struct mr_vc *vc)
{
    mr_log(MR_LOG_ERROR, "rank %d says that it has received more than it was sent (its memory may be damaged)",
           mr_vc_world_rank(vc));
}

void mr_flow_new_note(struct mr_vc *vc, uint8_t note)
{
    if (!mr_credit_noted(&mr_flow_of(vc)->credit, note))
        damaged(vc);
}

void mr_flow_credited(struct mr_vc *vc, uint64_t consumed)
{
    if (!mr_credit_returned(&mr_flow_of(vc)->credit, consumed))
        damaged(vc);
}

/* ---- held sends -------------------------------------------------------------------------------------------------- */

bool mr_flow_crowded(struct mr_vc *vc)
{
    return mr_vc_waiting(vc) > (unsigned)mr_config.unsent_max;
}

bool mr_flow_must_hold(struct mr_vc *vc)
{
    return mr_flow_of(vc)->held || mr_flow_crowded(vc);
}

static void list_holding(struct mr_vc *vc, struct mr_flow *flow)
{
    if (flow->listed)
        return;
    flow->listed = true;
    flow->next = mr_pt2pt.holding;
    mr_pt2pt.holding = vc;
}

void mr_flow_hold(struct mr_vc *vc, struct mr_request *req)
{
    struct mr_flow *flow = mr_flow_of(vc);

    req->held_by = vc;
    req->held_next = NULL;
    req->held_prev = flow->held_last;
    if (flow->held_last)
        flow->held_last->held_next = req;
    else
        flow->held = req;
    flow->held_last = req;
    mr_channel_waiting++;
    mr_stat_add(MR_STAT_SENDS_HELD, 1);
    list_holding(vc, flow);
}

static void take_out(struct mr_request *req)
{
    struct mr_flow *flow = mr_flow_of(req->held_by);

    if (req->held_prev)
        req->held_prev->held_next = req->held_next;
    else
        flow->held = req->held_next;
    if (req->held_next)
        req->held_next->held_prev = req->held_prev;
    else
        flow->held_last = req->held_prev;
    req->held_by = NULL;
    req->held_next = req->held_prev = NULL;
    mr_channel_waiting--;
}

void mr_flow_withdraw(struct mr_request *req)
{
    take_out(req);
    req->status.cancelled = true;
    mr_request_complete(req);
}

void mr_flow_refuse(struct mr_request *req, enum mr_err why)
{
    take_out(req);
    req->status.error = why;
    mr_request_complete(req);
}

/*
 * As many as may wait, once nothing waits any more: by then the transfers that push data have had their turn, which
 * wait for the same.
 */
static int release_some(struct mr_vc *vc, void (*begin)(struct mr_request *req, struct mr_vc *vc))
{
    struct mr_flow *flow = mr_flow_of(vc);
    int n = 0;

    if (mr_vc_waiting(vc))
        return 0;
    for (; flow->held && !mr_flow_crowded(vc); n++) {
        struct mr_request *req = flow->held;

        take_out(req);
        begin(req, vc);
    }
    return n;
}

int mr_flow_release(void (*begin)(struct mr_request *req, struct mr_vc *vc))
{
    struct mr_vc *vc = mr_pt2pt.holding, *next;
    int n = 0;

    mr_pt2pt.holding = NULL; /* a complete send may lead to others, which list their channels anew */
    for (; vc; vc = next) {
        struct mr_flow *flow = mr_flow_of(vc);

        next = flow->next;
        flow->listed = false;
        n += release_some(vc, begin);
        if (flow->held)
            list_holding(vc, flow);
    }
    return n;
}
