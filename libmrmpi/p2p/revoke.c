/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Revoked communicators. Operations that have not met their counterparts end with MR_ERR_REVOKED, collective operations
 * as after a failure (give_up.c). Later sends cost nothing to refuse: all peers of a revoked communicator are a peer
 * that has always been lost (mr_vc_nowhere). Messages that have met their receives move to their ends.
 *
 * REVOKE may come before the communicator is made here; then the communicator is revoked when made.
 */
#include <stdlib.h>

#include "libmrmpi/launch/launch.h"
#include "libmrmpi/p2p/fault/fault.h"
#include "libmrmpi/p2p/internal.h"

struct early {
    struct early *next;
    uint32_t ctx;
    uint64_t group_name;
};

static struct early *earlies;

/* ---- here -------------------------------------------------------------------------------------------------------- */

static void refuse_receive(struct mr_match_entry *e, void *arg)
{
    struct mr_comm *c = arg;
    struct mr_request *r = e->owner;

    if (r->comm == c && r->ctx != (c->context | 1) && !r->given_up)
        mr_recv_end(r, MR_ERR_REVOKED);
}

static void refuse_send(struct mr_request *r)
{
    if (r->kind != MR_REQ_SEND || r->ctx == (r->comm->context | 1))
        return;
    if (r->held_by)
        mr_flow_refuse(r, MR_ERR_REVOKED);
    else if (r->proto)
        mr_rndv_in_vain(r->proto);
}

static bool replace_peers(struct mr_comm *c)
{
    int *nowhere = malloc((size_t)c->num_peers * sizeof(*nowhere));
    struct mr_group *g = NULL;

    for (int i = 0; nowhere && i < c->num_peers; i++)
        nowhere[i] = mr_vc_nowhere(mr_launch_info()->size);
    if (nowhere)
        g = mr_group_new(c->num_peers, nowhere);
    free(nowhere);
    if (!g)
        return false;
    c->peers_before = c->peers;
    c->peers = g;
    return true;
}

static void revoke_source(struct mr_comm *own)
{
    own->source_revoked = mr_config.recover || mr_comm_is_mixed(own);
}

/* Windows and files, and the windows that files have (io/shared.c). */
static void revoke_objects_of(const struct mr_comm *c)
{
    for (struct mr_comm *d = mr_comms; d; d = d->next_live)
        if (d->made_from == c->born) {
            revoke_source(d);
            revoke_objects_of(d);
        }
}

void mr_comm_set_source(struct mr_comm *own, const struct mr_comm *c)
{
    own->made_from = c->born;
    if (c->fault == MR_ERR_REVOKED || c->source_revoked) /* just now */
        revoke_source(own);
}

static void revoke_here(struct mr_comm *c)
{
    if (!replace_peers(c))
        mr_launch_abort(1, "out of memory for the end of a communicator");
    c->fault = MR_ERR_REVOKED;
    if (c->local)
        revoke_here(c->local);
    revoke_objects_of(c);
    mr_pt2pt.ended = mr_vc_get_peer(mr_vc_nowhere(mr_launch_info()->size)); /* receives ask */
    mr_match_each(&mr_pt2pt.posted, refuse_receive, c);
    mr_request_each(c, refuse_send);
    if (mr_p2p_up.process_lost)
        mr_p2p_up.process_lost();
    if (mr_threaded)
        mr_shm_wake();
}

void mr_comm_revoke(struct mr_comm *c)
{
    if (c->fault == MR_ERR_REVOKED)
        return;
    revoke_here(c);
    mr_flood(c);
}

/* ---- news -------------------------------------------------------------------------------------------------------- */

static bool is_called(const struct mr_comm *c, uint32_t ctx, uint64_t group_name)
{
    struct mr_group *all;
    bool same;

    if (c->context != ctx || c->passing || c->part)
        return false;
    all = mr_comm_everybody(c);
    same = all && mr_group_name(all) == group_name;
    if (all)
        mr_group_put(all);
    return same;
}

static bool known_early(uint32_t ctx, uint64_t group_name)
{
    for (const struct early *e = earlies; e; e = e->next)
        if (e->ctx == ctx && e->group_name == group_name)
            return true;
    return false;
}

void mr_revoke_packet(const struct mr_hdr *hdr)
{
    struct early *e;

    for (struct mr_comm *c = mr_comms; c; c = c->next_live)
        if (is_called(c, hdr->ctx, hdr->sreq)) {
            mr_comm_revoke(c);
            return;
        }
    if (known_early(hdr->ctx, hdr->sreq) || !(e = malloc(sizeof(*e))))
        return;
    *e = (struct early){earlies, hdr->ctx, hdr->sreq};
    earlies = e;
}

/* A duplicate in the background gets its context later. */
void mr_revoke_made(struct mr_comm *c)
{
    for (struct early **at = &earlies, *e; (e = *at); at = &e->next)
        if (is_called(c, e->ctx, e->group_name)) {
            *at = e->next;
            free(e);
            mr_comm_revoke(c);
            return;
        }
}

void mr_revoke_lost(int world_rank)
{
    for (struct mr_comm *c = mr_comms; c; c = c->next_live)
        if (c->peers_before && (mr_group_find(c->group, world_rank) != MR_UNDEFINED ||
                                mr_group_find(c->peers_before, world_rank) != MR_UNDEFINED))
            mr_flood(c);
}

static void restore_peers(struct mr_comm *c)
{
    mr_group_put(c->peers);
    c->peers = c->peers_before;
    c->peers_before = NULL;
}

void mr_revoke_end(void)
{
    if (mr_comm_world->peers_before)
        restore_peers(mr_comm_world);
}

void mr_revoke_free(void)
{
    while (earlies) {
        struct early *e = earlies;

        earlies = e->next;
        free(e);
    }
}
