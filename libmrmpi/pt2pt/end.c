/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end: all ranks meet with their messages, not with the launcher's fence, so that each goes on serving the others
 * until the last has come. What a rank sends last (FINs, acknowledgements) must leave before it parts.
 *
 * A program may have freed requests for what is still under way. When all have come, nothing new begins, but an offer
 * or its answer may be on its way still. Packets of a pair are in order, so a peer that answers has had all that was
 * sent to it before, and we all that it had sent.
 */
#include <stdlib.h>

#include "libmrmpi/launch/launch.h"
#include "libmrmpi/pt2pt/internal.h"

/* The context of the last messages of a job; communicators count up from 0. */
#define CTX_FINALIZE 0xfffffffeu
/* Barriers use small tags. */
#define TAG_FLUSH 0x1000000

static bool started(const struct mr_rndv *r)
{
    return r->state == MR_RNDV_PUTTING || r->state == MR_RNDV_PUSHING || r->state == MR_RNDV_GETTING ||
           r->state == MR_RNDV_READING || r->state == MR_RNDV_PUSHED || r->state == MR_RNDV_TAIL ||
           r->state == MR_RNDV_SHARING || r->state == MR_RNDV_HALVING || r->state == MR_RNDV_WRITING ||
           r->state == MR_RNDV_DRAINING || r->state == MR_RNDV_LANDING || r->state == MR_RNDV_QUEUED;
}

/* Nothing of ours is under way. Offers that nobody has accepted (an error of the program) are not waited for. */
static bool quiet(void *arg)
{
    if (!mr_vc_drained() || mr_pt2pt.holding)
        return false;
    for (uint32_t i = 0; mr_transfers.pending && i < mr_transfers.used; i++)
        if (started(mr_transfers.table[i]))
            return false;
    return true;
}

void mr_pt2pt_quiesce(void)
{
    mr_progress_until(quiet, NULL);
}

/* Every rank hears, directly or not, of every other: nobody goes on before all have come. True if any said true. */
static bool meet(bool any)
{
    int size = mr_comm_world->size, rank = mr_comm_world->rank;

    for (int step = 1; step < size; step *= 2) {
        int to = (rank + step) % size, from = (rank - step + size) % size;
        uint8_t out = any, in = 0;
        struct mr_request *req;

        if (mr_irecv(&in, 1, mr_type_byte, from, step, mr_comm_world, CTX_FINALIZE, &req))
            break;
        mr_send(&out, 1, mr_type_byte, to, step, mr_comm_world, CTX_FINALIZE, MR_SEND_STANDARD);
        mr_wait(req);
        mr_request_put(req);
        any |= in;
    }
    return any;
}

/* ---- what was freed ---------------------------------------------------------------------------------------------- */

/* The ranks of the world to which offers are open, or from which receives still wait for a message. */
struct peers {
    bool *wanted; /* NULL: no memory */
    bool any;
};

static void want(struct peers *p, int world_rank)
{
    if (p->wanted && !mr_vc_lost(mr_vc_get_peer(world_rank)))
        p->any = p->wanted[world_rank] = true;
}

static void want_source(struct mr_match_entry *e, void *arg)
{
    const struct mr_request *r = e->owner;

    if (r->ctx == (r->comm->context | MR_CTX_GREETING)) /* no round waits for it */
        return;
    for (int i = 0; i < r->comm->num_peers; i++)
        if (r->peer == MR_ANY_SOURCE || r->peer == i)
            want(arg, mr_comm_world_rank(r->comm, i));
}

static struct peers peers_wanted(void)
{
    struct peers p = {.wanted = calloc((size_t)mr_comm_world->size, sizeof(*p.wanted))};

    for (uint32_t i = 0; mr_transfers.pending && i < mr_transfers.used; i++) {
        const struct mr_rndv *r = mr_transfers.table[i];

        if (r->state == MR_RNDV_OFFERED || r->state == MR_RNDV_ACK)
            want(&p, mr_vc_world_rank(r->vc));
    }
    mr_match_each(&mr_pt2pt.posted, want_source, &p);
    return p;
}

/* A message that is taken back at once: the peer answers though it does not ask for it. */
static struct mr_request *flush(int world_rank)
{
    struct mr_request *req;

    if (mr_isend(NULL, 0, mr_type_byte, world_rank, TAG_FLUSH, mr_comm_world, CTX_FINALIZE, MR_SEND_SYNCHRONOUS, &req))
        return NULL;
    mr_cancel(req);
    return req;
}

static void flush_all(const struct peers *p)
{
    struct mr_request *list = NULL;

    for (int i = 0; p->any && i < mr_comm_world->size; i++) {
        struct mr_request *req = p->wanted[i] ? flush(i) : NULL;

        if (req) {
            req->next = list;
            list = req;
        }
    }
    while (list) {
        struct mr_request *req = list;

        list = req->next;
        mr_wait(req);
        mr_request_put(req);
    }
}

static void end_freed(const struct peers *p)
{
    flush_all(p); /* what was sent to us, and our offers, are where they belong */
    meet(false);
    mr_pt2pt_quiesce(); /* what we receive is here, and its answers have left */
    meet(false);
    flush_all(p); /* the answers to our offers are here */
    meet(false);
}

void mr_pt2pt_end_together(void)
{
    mr_pt2pt_quiesce();
    struct peers p = peers_wanted();
    if (meet(p.any))
        end_freed(&p);
    free(p.wanted);
    mr_pt2pt_quiesce();
}
