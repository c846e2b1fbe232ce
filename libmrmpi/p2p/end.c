/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end: all ranks meet by messages, not by the launcher's fence, so that each serves the others until the last has
 * come. A rank's last packets (FINs, acknowledgements) must leave before its end. Late ranks are told that this program
 * sends and receives no more (PARTS): they may wait for this program, after an error.
 *
 * A program may have freed requests for operations still under way. When all have come, nothing new begins, but an
 * offer or its answer may still be on its way. Packets of a pair are in order, so a peer that answers has had
 * everything sent before, and this rank has everything that the peer had sent.
 */
#include <stdlib.h>

#include "libmrmpi/launch/launch.h"
#include "libmrmpi/p2p/internal.h"

#define LATE_NS 20000000ull /* others are late, and may wait for this process */

/* Nothing of ours is under way. Offers not accepted by a receive (an error of the program) are not waited for. */
static bool quiet(void *arg)
{
    if (!mr_vc_drained() || mr_pt2pt.holding)
        return false;
    for (uint32_t i = 0; mr_rndvs.pending && i < mr_rndvs.used; i++)
        if (mr_rndvs.table[i]->state == MR_RNDV_MOVING)
            return false;
    return true;
}

void mr_pt2pt_quiesce(void)
{
    mr_progress_until(quiet, NULL);
}

/* ---- while others are late --------------------------------------------------------------------------------------- */

/* To the ranks of the node, and those with packets in either direction. Once to each. */
static void say_that_we_part(void)
{
    const struct mr_launch *launch = mr_launch_info();

    for (int r = 0; r < launch->size; r++) {
        bool near = launch->node_of[r] == launch->node_of[launch->rank];
        struct mr_vc *vc = r == launch->rank ? NULL : near ? mr_vc_get_peer(r) : mr_vc_known_peer(r);
        struct mr_hdr hdr = {.kind = MR_PKT_PARTS};

        if (!vc || mr_vc_lost(vc) || mr_flow_of(vc)->told || !(near || mr_vc_is_used(vc)))
            continue;
        mr_flow_of(vc)->told = true;
        mr_vc_send(vc, &hdr, NULL, 0);
    }
}

struct late {
    const struct mr_request *req;
    const struct meeting *meeting;
    uint64_t until_ns;
};

static bool has_come(void *arg)
{
    const struct late *l = arg;

    return l->req->complete || mr_clock_ns() >= l->until_ns;
}

/*
 * A late rank may wait for a message of ours, or for a receive, although our program has ended: it is told that neither
 * comes. Peers met meanwhile are told, too.
 */
static void await_peer(struct mr_request *req)
{
    while (!req->complete) {
        mr_progress_until(has_come, &(struct late){.req = req, .until_ns = mr_clock_ns() + LATE_NS});
        if (!req->complete)
            say_that_we_part();
    }
}

struct meeting {
    bool met, any;
};

static void met(const struct mr_agreed *d, void *arg)
{
    struct meeting *m = arg;

    m->met = true;
    m->any = !d->flags;
}

static bool has_met(void *arg)
{
    const struct late *l = arg;

    return l->meeting->met || mr_clock_ns() >= l->until_ns;
}

/* If ranks may die: an agreement of the others is a meeting, too. A rank that has left counts as dead. */
static bool meet_the_living(bool any)
{
    struct meeting m = {0};

    if (mr_agree(mr_comm_world, MR_CTX_FINALIZE, (struct mr_vote){.flags = !any}, met, &m))
        return any;
    while (!m.met) {
        mr_progress_until(has_met, &(struct late){.meeting = &m, .until_ns = mr_clock_ns() + LATE_NS});
        if (!m.met)
            say_that_we_part();
    }
    return m.any;
}

/* Every rank hears, directly or not, of every other: no rank goes on before all have come. True if any said true. */
static bool meet_all_ranks(bool any)
{
    int size = mr_comm_world->size, rank = mr_comm_world->rank;

    if (mr_config.recover)
        return meet_the_living(any);
    for (int step = 1; step < size; step *= 2) {
        int to = (rank + step) % size, from = (rank - step + size) % size;
        uint8_t out = any, in = 0;
        struct mr_request *req;

        if (mr_irecv(&in, 1, mr_type_byte, from, step, mr_comm_world, MR_CTX_FINALIZE, &req))
            break;
        mr_send(&out, 1, mr_type_byte, to, step, mr_comm_world, MR_CTX_FINALIZE, MR_SEND_STANDARD);
        await_peer(req);
        mr_request_put(req);
        any |= in;
    }
    return any;
}

/* ---- freed operations -------------------------------------------------------------------------------------------- */

/* The ranks of the world with open offers, or with receives still waiting for a message. */
struct peers {
    bool *wanted; /* NULL: no memory */
    bool any;
};

static void want_peer(struct peers *p, int world_rank)
{
    if (world_rank < mr_comm_world->size && p->wanted && !mr_vc_lost(mr_vc_get_peer(world_rank)))
        p->any = p->wanted[world_rank] = true;
}

static void want_source(struct mr_match_entry *e, void *arg)
{
    const struct mr_request *r = e->owner;

    if (r->ctx == (r->comm->context | MR_CTX_GREETING) || r->given_up) /* no round, without waiters */
        return;
    for (int i = 0; i < r->comm->num_peers; i++)
        if (r->peer == MR_ANY_SOURCE || r->peer == i)
            want_peer(arg, mr_comm_world_rank(r->comm, i));
}

static struct peers peers_wanted(void)
{
    struct peers p = {.wanted = calloc((size_t)mr_comm_world->size, sizeof(*p.wanted))};

    for (uint32_t i = 0; mr_rndvs.pending && i < mr_rndvs.used; i++) {
        const struct mr_rndv *r = mr_rndvs.table[i];

        if (mr_rndv_is_unmet(r))
            want_peer(&p, mr_vc_world_rank(r->vc));
    }
    mr_match_each(&mr_pt2pt.posted, want_source, &p);
    return p;
}

static void flush_all(const struct peers *p)
{
    struct mr_request *list = NULL;

    for (int i = 0; p->any && i < mr_comm_world->size; i++) {
        struct mr_request *req = p->wanted[i] ? mr_flush_peer(i) : NULL;

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
    flush_all(p); /* messages to us, and our offers, are delivered */
    meet_all_ranks(false);
    mr_pt2pt_quiesce(); /* our messages are here, and their answers have left */
    meet_all_ranks(false);
    flush_all(p); /* the answers to our offers are here */
    meet_all_ranks(false);
}

void mr_pt2pt_end_together(void)
{
    mr_revoke_end();
    mr_pt2pt_quiesce();
    struct peers p = peers_wanted();
    if (meet_all_ranks(p.any))
        end_freed(&p);
    free(p.wanted);
    mr_guests_part();
    mr_pt2pt_quiesce();
}
