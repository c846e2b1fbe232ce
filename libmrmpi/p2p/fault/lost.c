/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of failed processes, in the order in which this process has learnt of them: from the launcher, whose news
 * come while the other ways still look whole, or from the channels. Members of communicators are counted when asked
 * for. Failures that the program has acknowledged are the first so many of a communicator's members in the list.
 */
#include "libmrmpi/p2p/fault/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/launch/launch.h"
#include "libmrmpi/net/net.h"
#include "libmrmpi/p2p/request/state.h"

static int *lost; /* [mr_pt2pt.num_lost] world ranks, or numbers of guests */
static unsigned room;
static int told; /* the rank whose end is being taken from the launcher's news, + 1 */

/* ---- the list ---------------------------------------------------------------------------------------------------- */

/*
 * All must take the same processes for failed. Of two processes that live and cannot reach each other the launcher ends
 * one, perhaps this one; meanwhile it keeps this process waiting.
 */
static void tell_launcher(int world_rank)
{
    char key[32];

    snprintf(key, sizeof(key), "mrmpi.lost.%d", world_rank);
    if (mr_launch_put(key, "", 1))
        mr_log(MR_LOG_WARN, "the launcher does not hear that rank %d cannot be reached", world_rank);
}

bool mr_lost_note(int world_rank)
{
    if (mr_config.recover && told != world_rank + 1 && world_rank < mr_launch_info()->size)
        tell_launcher(world_rank);
    if (mr_pt2pt.num_lost == room) {
        unsigned more = room ? 2 * room : (unsigned)mr_launch_info()->size;
        int *longer = realloc(lost, more * sizeof(*lost));

        if (!longer)
            return false;
        lost = longer;
        room = more;
    }
    lost[mr_pt2pt.num_lost++] = world_rank;
    return true;
}

/* Communicators have counted their members among the first so many. */
void mr_lost_forget(int number)
{
    unsigned i = 0;

    while (i < mr_pt2pt.num_lost && lost[i] != number)
        i++;
    if (i == mr_pt2pt.num_lost)
        return;
    mr_pt2pt.num_lost--;
    memmove(&lost[i], &lost[i + 1], (mr_pt2pt.num_lost - i) * sizeof(*lost));
    for (struct mr_comm *c = mr_comms; c; c = c->next_live)
        c->losses -= c->losses > i;
}

void mr_end_read(int world_rank)
{
    if (mr_vc_lost(mr_vc_get_peer(world_rank)))
        return;
    mr_stat_add(MR_STAT_ENDS_READ, 1);
    mr_launch_note_end(world_rank);
}

static int take_ends(void)
{
    int n = 0;

    for (int rank; (rank = mr_launch_next_end()) >= 0; n++) {
        struct mr_vc *vc = mr_vc_get_peer(rank);

        if (mr_vc_lost(vc))
            continue;
        told = rank + 1;
        if (mr_shm_reaches(vc))
            mr_shm_lose(vc);
        else if (mr_net_reaches(vc))
            mr_net_lose(vc);
        told = 0;
    }
    return n;
}

void mr_lost_init(void)
{
    if (mr_config.recover)
        mr_progress_register(MR_PROGRESS_IN_MPI, mr_launch_ends(), take_ends);
}

void mr_lost_free(void)
{
    free(lost);
    lost = NULL;
    room = 0;
}

/* ---- members ----------------------------------------------------------------------------------------------------- */

static bool has_member(const struct mr_comm *c, int world_rank)
{
    return mr_group_find(c->group, world_rank) != MR_UNDEFINED ||
           (mr_comm_is_inter(c) && mr_group_find(mr_comm_peers(c), world_rank) != MR_UNDEFINED);
}

static __attribute__((noinline)) void count_failed(struct mr_comm *c)
{
    for (; c->losses < mr_pt2pt.num_lost; c->losses++)
        c->num_failed += has_member(c, lost[c->losses]);
    if (c->num_failed && !c->fault)
        c->fault = MR_ERR_PROC_FAILED;
}

enum mr_err mr_comm_fault(const struct mr_comm *comm)
{
    struct mr_comm *c = (struct mr_comm *)(comm->whole ? comm->whole : comm); /* looks up the communicator's record */

    if (unlikely(c->losses != mr_pt2pt.num_lost))
        count_failed(c);
    return unlikely(c->source_revoked) ? MR_ERR_REVOKED : c->fault;
}

bool mr_comm_unacked(const struct mr_comm *c)
{
    return mr_comm_fault(c) && c->num_failed > c->num_acked;
}

unsigned mr_comm_failed(const struct mr_comm *c, int *world, unsigned most)
{
    unsigned n = 0;

    mr_comm_fault(c);
    for (unsigned i = 0; i < mr_pt2pt.num_lost && n < most; i++)
        if (has_member(c, lost[i]))
            world[n++] = lost[i];
    return n;
}

void mr_comm_ack(struct mr_comm *c, unsigned num)
{
    mr_comm_fault(c);
    if (num > c->num_failed)
        num = c->num_failed;
    if (num > c->num_acked)
        c->num_acked = num;
}

bool mr_recv_is_pending(const struct mr_request *r)
{
    return mr_config.recover && mr_pt2pt.num_lost && r->kind == MR_REQ_RECV && !r->complete && r->match.queue &&
           r->peer == MR_ANY_SOURCE && r->comm && mr_comm_unacked(r->comm);
}

/* The same in all processes. */
static int by_process(const void *a, const void *b)
{
    return mr_guest_compare(*(const int *)a, *(const int *)b);
}

struct mr_group *mr_comm_everybody(const struct mr_comm *c)
{
    struct mr_group *peers = mr_comm_peers(c), *all;
    int *world;

    if (!mr_comm_is_inter(c))
        return mr_group_get(c->group);
    world = malloc((size_t)(c->group->size + peers->size) * sizeof(*world));
    if (!world)
        return NULL;
    for (int i = 0; i < c->group->size; i++)
        world[i] = c->group->world[i];
    for (int i = 0; i < peers->size; i++)
        world[c->group->size + i] = peers->world[i];
    qsort(world, (size_t)(c->group->size + peers->size), sizeof(*world), by_process);
    all = mr_group_new(c->group->size + peers->size, world);
    free(world);
    return all;
}

uint64_t mr_group_name(const struct mr_group *g)
{
    uint64_t name = 0xcbf29ce484222325u + (uint64_t)g->size;

    for (int i = 0; i < g->size; i++)
        name = (name ^ (g->mixed ? mr_guest_name(g->world[i]) : (uint32_t)g->world[i])) * 0x100000001b3u;
    return name;
}
