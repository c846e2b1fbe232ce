/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Giving up operations without a counterpart. A lost process takes part in nothing. A process that has seen an error of
 * one operation may never begin the next, while others wait there without end. So collective operations over a
 * communicator that lacks a member wait for no rank (coll/schedule/sched.c, coll/node/wait.c).
 *
 * A receive that is given up leaves a receive without a buffer in its place, for the message that may still come. If
 * the receive was announced, its peer may be writing into the buffer: RTR_CANCEL ends the announcement, and a message
 * that is taken back at once (mr_flush_peer) shows that the peer has read RTR_CANCEL, and that all its earlier writes
 * are done.
 */
#include "libmrmpi/p2p/internal.h"

/* Barriers at the end use small tags. */
#define TAG_FLUSH 0x1000000

struct mr_request *mr_flush_peer(int world_rank)
{
    struct mr_request *req;

    if (mr_isend(NULL, 0, mr_type_byte, world_rank, TAG_FLUSH, mr_comm_world, MR_CTX_FINALIZE, MR_SEND_SYNCHRONOUS,
                 &req))
        return NULL;
    mr_cancel(req);
    return req;
}

bool mr_peer_parts(int world_rank)
{
    struct mr_vc *vc = mr_pt2pt.ended ? mr_vc_known_peer(world_rank) : NULL;

    return vc && mr_flow_of(vc)->parts;
}

/* ---- giving up --------------------------------------------------------------------------------------------------- */

static void end_receive(struct mr_request *req)
{
    struct mr_request *rest;

    if (!mr_irecv(NULL, 0, mr_type_byte, req->peer, req->tag, req->comm, req->ctx, &rest)) {
        rest->given_up = true;
        mr_request_put(rest);
    }
    mr_recv_end(req, MR_ERR_PROC_FAILED);
}

/* The peer no longer writes, unless it has offered the message: then the offer has met its receive. */
static void flushed(struct mr_request *flush, void *arg)
{
    struct mr_request *req = arg;

    if (!req->complete && req->match.queue)
        end_receive(req);
    mr_request_put(req);
}

static void recall(struct mr_request *req)
{
    struct mr_request *flush;

    mr_rtr_recall(req);
    flush = mr_flush_peer(mr_vc_world_rank(req->proto->vc));
    if (!flush)
        return;
    mr_request_get(req);
    if (flush->complete) {
        flushed(flush, req);
    } else {
        flush->on_complete = flushed;
        flush->on_complete_arg = req;
    }
    mr_request_put(flush);
}

void mr_give_up(struct mr_request *req)
{
    if (req->complete || req->given_up || (req->kind == MR_REQ_SEND && req->mode == MR_SEND_POISON))
        return;
    req->given_up = true;
    if (req->kind == MR_REQ_SEND && (req->held_by || req->proto))
        mr_cancel(req);
    else if (req->kind != MR_REQ_RECV)
        return;
    else if (req->match.queue && req->proto)
        recall(req);
    else if (req->match.queue)
        end_receive(req);
}
