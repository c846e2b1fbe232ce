/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows: made and ended together, memory attached; upcalls of lower subsystems for them. */
#include "libmrmpi/rma/access.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libmrmpi/coll/coll.h"
#include "libmrmpi/launch/launch.h"

/* ---- from below -------------------------------------------------------------------------------------------------- */

/* A target's message to the origin. False: of another kind. */
static bool take_origin_answer(struct mr_rma_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    bool known_error = hdr->rreq <= MR_ERR_LAST;

    switch (hdr->tag) {
    case MR_RMA_RESULT:
    case MR_RMA_REFUSED:
        mr_result_arrived(p, hdr, payload, len);
        return true;
    case MR_RMA_FLUSHED:
        p->flushed = (uint32_t)hdr->sreq;
        if (hdr->rreq)
            p->refused = known_error ? (enum mr_err)hdr->rreq : MR_ERR_OTHER;
        return true;
    case MR_RMA_LOCKED:
        if (hdr->flags & MR_RMA_DELEGATE) {
            if (p->far)
                mr_far_delegated(p->far, (uint32_t)hdr->rreq);
            return true;
        }
        p->locking = false;
        if (hdr->sreq)
            p->refused = hdr->sreq <= MR_ERR_LAST ? (enum mr_err)hdr->sreq : MR_ERR_OTHER;
        else
            p->held = true;
        return true;
    case MR_RMA_KEYS_ARE:
        mr_direct_keys_are(p, hdr, payload, len);
        return true;
    case MR_RMA_KEYS_GONE:
        mr_attached_gone(p, hdr);
        return true;
    case MR_RMA_SLOT_IS:
        mr_lock_slot_is(p, hdr, payload, len);
        return true;
    case MR_RMA_LOCK_QUEUED:
        if (p->far)
            mr_far_queued(p->far, (uint32_t)hdr->sreq, (uint32_t)hdr->rreq);
        return true;
    case MR_RMA_WITHDRAWN:
        if (p->far)
            mr_far_withdrawn(p->far);
        return true;
    case MR_RMA_CLEARED:
        if (p->far)
            mr_far_cleared(p->far);
        return true;
    case MR_RMA_POST:
        p->posts++;
        return true;
    default:
        return false;
    }
}

static void packet(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_win *w = mr_win_find(hdr->ctx);
    struct mr_rma_peer *p;

    if (!w || (unsigned)hdr->rank >= (unsigned)w->comm->size ||
        mr_comm_world_rank(w->comm, hdr->rank) != mr_vc_world_rank(vc)) {
        mr_log(MR_LOG_DEBUG, "a packet of rank %d of the world for a window that is not there", mr_vc_world_rank(vc));
        return;
    }
    p = mr_rma_peer_get(w, hdr->rank);
    if (!p)
        mr_log(MR_LOG_ERROR, "a packet of rank %d of a window is lost: no memory", hdr->rank);
    else if (!take_origin_answer(p, hdr, payload, len))
        mr_target_packet(p, hdr, payload, len);
}

/* A lock in the memory of the lost process's node may stay taken for ever, which a process there tells (lock.c). */
static void lose_peer(struct mr_win *w, void *arg)
{
    const struct mr_vc *vc = arg;

    for (struct mr_rma_peer *p = w->in->peers; p; p = p->next)
        if (mr_comm_world_rank(w->comm, p->rank) == mr_vc_world_rank(vc)) {
            p->error = vc->error ? vc->error : -1;
            mr_results_fail(p, MR_ERR_PROC_FAILED);
            mr_lock_forget(p);
        } else if (p->far && mr_win_shares_node(w, p->rank, vc)) {
            mr_far_only_ask(p->far);
        }
}

static void peer_lost(struct mr_vc *vc, int error)
{
    mr_win_each(lose_peer, vc);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* The common knowledge of a part; err: its process cannot go on. */
struct part_told {
    uint64_t size;
    int64_t disp_unit;
    int32_t err, has_neighbours; /* shares: there is another rank on its node */
};

static enum mr_err tell_parts(const struct mr_win *w, const struct part_told *mine, struct part_told *all)
{
    struct mr_schedule *s = NULL;
    enum mr_err err =
        mr_coll_allgather(mine, sizeof(*mine), mr_type_byte, all, sizeof(*all), mr_type_byte, w->comm, &s);

    return mr_coll_run(err, s);
}

static void free_peers(struct mr_win_state *s)
{
    while (s->peers) {
        struct mr_rma_peer *p = s->peers;

        s->peers = p->next;
        mr_direct_drop(p);
        if (p->far)
            mr_far_close(p->far);
        free(p);
    }
}

void mr_win_put(struct mr_win *w)
{
    struct mr_win_state *s = w->in;

    if (s) {
        mr_win_unregister(w);
        mr_lock_end(w);
        for (size_t i = 0; i < s->num_regions; i++)
            mr_attached_withdraw(&s->region[i], false);
        free_peers(s);
        mr_winmem_drop(s->memory);
        if (s->own)
            munmap(s->own, w->size);
        if (s->access)
            mr_group_put(s->access);
        if (s->exposure)
            mr_group_put(s->exposure);
        free(s->region);
        free(s->target);
        free(s);
    }
    mr_errhandler_put(w->errhandler);
    mr_comm_put(w->comm);
    free(w);
}

/* Neither room for the state of the others, nor a window. The communicator is w's, in any case. */
static struct mr_win *new_window(struct mr_comm *c, enum mr_win_flavor flavor, const struct mr_win_part *part)
{
    struct mr_win *w = calloc(1, sizeof(*w));
    struct mr_win_state *s = calloc(1, sizeof(*s));

    if (s)
        s->target = calloc((size_t)c->size, sizeof(*s->target));
    if (!w || !s || !s->target) {
        free(w);
        if (s)
            free(s->target);
        free(s);
        mr_comm_put(c);
        return NULL;
    }
    *w = (struct mr_win){.comm = c,
                         .errhandler = mr_errhandler_get(&mr_errhandler_fatal),
                         .flavor = flavor,
                         .hints = part->hints,
                         .base = part->base,
                         .size = part->size,
                         .disp_unit = part->disp_unit,
                         .in = s};
    s->win = w;
    s->waiters_end = &s->waiters;
    return w;
}

static bool has_neighbour(const struct mr_comm *c)
{
    for (int i = 0; i < c->size; i++)
        if (i != c->rank && mr_comm_node_of(c, i) == mr_comm_node_of(c, c->rank))
            return true;
    return false;
}

static bool all_on_one_node(const struct mr_comm *c)
{
    for (int i = 1; i < c->size; i++)
        if (mr_comm_node_of(c, i) != mr_comm_node_of(c, 0))
            return false;
    return true;
}

static enum mr_err own_memory(struct mr_win *w)
{
    void *at;

    if (!w->size)
        return MR_SUCCESS;
    at = mmap(NULL, w->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return mr_fail(MR_ERR_NO_MEM, "no memory for a window of %zu bytes", w->size);
    w->base = w->in->own = at;
    return MR_SUCCESS;
}

/* This process reaches its own part, unless it is a dynamic window's. */
static void reach_own(struct mr_win *w)
{
    struct mr_win_target *t = &w->in->target[w->comm->rank];

    if (t->mutex)
        return;
    t->mutex = &w->in->mutex;
    if (w->flavor != MR_WIN_DYNAMIC)
        t->local = w->base;
}

static bool can_map_winmem(const struct mr_win *w, const struct part_told *all)
{
    if (w->flavor == MR_WIN_ALLOCATE)
        for (int i = 0; i < w->comm->size; i++)
            if (all[i].has_neighbours)
                return true;
    return w->flavor == MR_WIN_SHARED && w->comm->size > 1;
}

/* Before each part is its mutex, with a slot of its lock for each rank of the window. */
static enum mr_err map_winmem(struct mr_win *w)
{
    struct mr_winmem_part *part = calloc((size_t)w->comm->size, sizeof(*part));
    enum mr_err err = MR_ERR_NO_MEM;

    for (int i = 0; part && i < w->comm->size; i++)
        part[i].size = w->in->target[i].size;
    if (part)
        err = mr_winmem_make(w->comm, sizeof(struct mr_rma_mutex) + (size_t)w->comm->size,
                             w->flavor == MR_WIN_ALLOCATE || w->hints.noncontiguous, part, &w->in->memory);
    for (int i = 0; !err && i < w->comm->size; i++)
        if (part[i].at) {
            w->in->target[i].mutex = part[i].header;
            w->in->target[i].local = part[i].at;
        }
    free(part);
    if (!err)
        w->base = w->in->target[w->comm->rank].local;
    return err;
}

/* Memory allocated by MPI. If a node's ranks cannot share it, the window is made nevertheless, unless for sharing. */
static enum mr_err allocate_memory(struct mr_win *w, const struct part_told *all)
{
    enum mr_err err = MR_SUCCESS;

    if (w->flavor != MR_WIN_ALLOCATE && w->flavor != MR_WIN_SHARED)
        return MR_SUCCESS;
    if (can_map_winmem(w, all)) {
        err = map_winmem(w);
        if (err != MR_ERR_RMA_SHARED || w->flavor == MR_WIN_SHARED)
            return err;
    }
    return own_memory(w);
}

static enum mr_err learn_parts(struct mr_win *w, const struct part_told *all)
{
    for (int i = 0; i < w->comm->size; i++) {
        if (all[i].err)
            return mr_fail(MR_ERR_NO_MEM, "rank %d has no memory for the window", i);
        w->in->target[i].size = all[i].size;
        w->in->target[i].disp_unit = all[i].disp_unit;
    }
    return MR_SUCCESS;
}

/* All have it, or none. */
static enum mr_err agree_on_parts(struct mr_win *w, struct part_told *mine, struct part_told *all, enum mr_err err)
{
    enum mr_err told;

    mine->err = (int32_t)err;
    told = tell_parts(w, mine, all);
    for (int i = 0; i < w->comm->size && !err && !told; i++)
        if (all[i].err)
            err = mr_fail((enum mr_err)all[i].err, "rank %d could not make the window", i);
    return err ? err : told;
}

static enum mr_err fill_window(struct mr_win *w)
{
    struct part_told *all = calloc((size_t)w->comm->size, sizeof(*all));
    struct part_told mine = {.size = w->size, .disp_unit = w->disp_unit, .has_neighbours = has_neighbour(w->comm)};
    enum mr_err err = all ? tell_parts(w, &mine, all) : MR_ERR_NO_MEM;

    if (!err)
        err = learn_parts(w, all);
    if (!err) {
        err = allocate_memory(w, all);
        reach_own(w);
        mr_win_register(w);
        err = agree_on_parts(w, &mine, all, err);
    }
    free(all);
    return err;
}

enum mr_err mr_win_make(struct mr_comm *c, enum mr_win_flavor flavor, const struct mr_win_part *part, enum mr_err wrong,
                        struct mr_win **out)
{
    struct mr_comm *own;
    struct mr_win *w;
    enum mr_err err;

    *out = NULL;
    if (flavor == MR_WIN_SHARED && !all_on_one_node(c))
        return mr_fail(MR_ERR_RMA_SHARED, "the ranks of the communicator are on several nodes");
    err = mr_comm_dup(c, wrong, &own);
    if (err)
        return err;
    own->of_window = true;
    mr_comm_set_source(own, c);
    w = new_window(own, flavor, part);
    if (!w)
        return mr_fail(MR_ERR_NO_MEM, "no memory for a window");
    err = fill_window(w);
    if (!err)
        *out = w;
    else if (mr_win_find(own->context) == w)
        mr_win_abandon(w, err);
    else /* before the last step: nobody has the window */
        mr_win_put(w);
    return err;
}

/* ---- end --------------------------------------------------------------------------------------------------------- */

static bool is_quiet(void *arg)
{
    const struct mr_win *w = arg;

    for (const struct mr_rma_peer *p = w->in->peers; p; p = p->next)
        if (mr_rma_is_busy(p))
            return false; /* of a lost peer: traffic under way comes back */
    return !w->in->answering;
}

enum mr_err mr_win_may_close(const struct mr_win *w)
{
    if (mr_epoch_is_over(w) || mr_win_lacks_member(w) || w->in->failed)
        return MR_SUCCESS;
    return mr_fail(MR_ERR_RMA_SYNC, "MPI_Win_free while an epoch is open");
}

struct meeting {
    bool met;
    enum mr_err err;
};

static void living_have_met(const struct mr_agreed *d, void *arg)
{
    *(struct meeting *)arg = (struct meeting){.met = true, .err = d->error};
}

static bool has_met_the_living(void *arg)
{
    return ((const struct meeting *)arg)->met;
}

/* With a dead member a barrier ends at once, but others may still need an answer of this process. */
static enum mr_err meet_living_members(struct mr_win *w)
{
    struct meeting m = {0};
    enum mr_err err = mr_agree(w->comm, w->comm->context, (struct mr_vote){0}, living_have_met, &m);

    if (err)
        return err;
    mr_progress_until(has_met_the_living, &m);
    return m.err ? mr_fail(m.err, "a process of the window has failed") : MR_SUCCESS;
}

static enum mr_err meet_all(struct mr_win *w)
{
    struct mr_schedule *s = NULL;
    enum mr_err err;

    if (mr_config.recover || mr_comm_is_mixed(w->comm)) /* the other job may go on without dead ranks */
        return meet_living_members(w);
    err = mr_coll_barrier(w->comm, &s);
    return mr_coll_run(err, s);
}

enum mr_err mr_win_close(struct mr_win *w)
{
    enum mr_err err, met;

    if (!mr_epoch_is_over(w))
        mr_epoch_abandon(w);
    err = mr_rma_flush_peers(w);
    mr_lock_settle(w);
    met = meet_all(w);
    mr_progress_until(is_quiet, w);
    mr_win_put(w);
    return err ? err : met;
}

static void find_window(struct mr_win *w, void *arg)
{
    struct mr_win **wanted = arg;

    if (w == wanted[0])
        wanted[1] = w;
}

/* The window may be gone, by the end of the library. */
static void drop_abandoned(const struct mr_agreed *d, void *arg)
{
    struct mr_win *wanted[2] = {arg, NULL};

    mr_win_each(find_window, wanted);
    if (wanted[1] && is_quiet(wanted[1]))
        mr_win_put(wanted[1]);
}

void mr_win_abandon(struct mr_win *w, enum mr_err err)
{
    mr_win_note(w, err);
    if (!mr_win_lacks_member(w) && !w->in->failed) {
        mr_win_put(w);
        return;
    }
    if (!mr_epoch_is_over(w))
        mr_epoch_abandon(w);
    w->in->abandoned = true;
    if (w->flavor == MR_WIN_CREATE) { /* the program may free the memory */
        for (struct mr_rma_peer *p = w->in->peers; p; p = p->next)
            mr_direct_drop(p);
        w->size = 0;
    }
    if (mr_agree(w->comm, w->comm->context, (struct mr_vote){0}, drop_abandoned, w))
        mr_win_put(w);
}

/* ---- dynamic windows --------------------------------------------------------------------------------------------- */

static enum mr_err dynamic_only(const struct mr_win *w)
{
    return w->flavor == MR_WIN_DYNAMIC ? MR_SUCCESS
                                       : mr_fail(MR_ERR_RMA_FLAVOR, "the window is not one of MPI_Win_create_dynamic");
}

static bool room_for_regions(struct mr_win_state *s)
{
    size_t room = s->room ? 2 * s->room : 16;
    struct mr_win_region *more;

    if (s->num_regions < s->room)
        return true;
    more = realloc(s->region, room * sizeof(*more));
    if (!more)
        return false;
    s->region = more;
    s->room = room;
    return true;
}

enum mr_err mr_win_attach(struct mr_win *w, void *base, size_t size)
{
    uintptr_t start = (uintptr_t)base, end = start + size;
    struct mr_win_state *s = w->in;
    enum mr_err err = dynamic_only(w);
    size_t i;

    if (err)
        return err;
    if (end < start)
        return mr_fail(MR_ERR_SIZE, "%zu bytes from %p are more than there are addresses", size, base);
    if (!size)
        return MR_SUCCESS;
    i = mr_win_region_at(s, start);
    if (i < s->num_regions && s->region[i].start < end)
        return mr_fail(MR_ERR_RMA_ATTACH, "some of the %zu bytes from %p are attached already", size, base);
    if (!room_for_regions(s))
        return mr_fail(MR_ERR_NO_MEM, "no memory to attach memory with");
    memmove(&s->region[i + 1], &s->region[i], (s->num_regions - i) * sizeof(s->region[0]));
    s->region[i] = (struct mr_win_region){.start = start, .end = end};
    s->num_regions++;
    return MR_SUCCESS;
}

enum mr_err mr_win_detach(struct mr_win *w, const void *base)
{
    struct mr_win_state *s = w->in;
    enum mr_err err = dynamic_only(w);
    size_t i;

    if (err)
        return err;
    i = mr_win_region_at(s, (uintptr_t)base);
    if (i == s->num_regions || s->region[i].start != (uintptr_t)base)
        return mr_fail(MR_ERR_RMA_ATTACH, "no memory at %p is attached", base);
    mr_attached_withdraw(&s->region[i], true);
    s->num_regions--;
    memmove(&s->region[i], &s->region[i + 1], (s->num_regions - i) * sizeof(s->region[0]));
    return MR_SUCCESS;
}

enum mr_err mr_win_shared(struct mr_win *w, int rank, struct mr_win_part *out)
{
    const struct mr_win_target *t;

    if (w->flavor == MR_WIN_DYNAMIC)
        return mr_fail(MR_ERR_RMA_FLAVOR,
                       "the window is one of MPI_Win_create_dynamic, which has no memory of its own");
    for (int i = 0; rank == MR_PROC_NULL && i < w->comm->size; i++)
        if (w->in->target[i].size && w->in->target[i].local)
            rank = i;
    t = &w->in->target[rank == MR_PROC_NULL ? w->comm->rank : rank];
    *out = (struct mr_win_part){.disp_unit = t->disp_unit};
    if (t->size && t->local) {
        out->base = t->local;
        out->size = t->size;
    }
    return MR_SUCCESS;
}

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

void mr_rma_init(void)
{
    mr_p2p_up.packet = packet;
    mr_p2p_up.peer_lost = peer_lost;
    mr_direct_init(mr_access_again);
    mr_lock_init();
    mr_far_init();
}

void mr_rma_finalize(void)
{
    for (struct mr_win *w; (w = mr_win_any());)
        mr_win_put(w);
    mr_results_finalize();
    mr_direct_finalize();
    mr_rma_scratch_free();
}
