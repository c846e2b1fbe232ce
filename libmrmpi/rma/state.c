/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows by their context, their regions and peers, packets without data, and waiting. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/launch/launch.h"
#include "libmrmpi/rma/internal.h"

/* ---- windows by context ------------------------------------------------------------------------------------------ */

enum { TABLE = 1024 };
static struct mr_win_state *table[TABLE];

static struct mr_win_state **chain_of(uint32_t context)
{
    return &table[context / 2 % TABLE]; /* contexts are even */
}

void mr_win_register(struct mr_win *w)
{
    struct mr_win_state **at = chain_of(w->comm->context);

    w->in->next = *at;
    *at = w->in;
}

void mr_win_unregister(struct mr_win *w)
{
    struct mr_win_state **at = chain_of(w->comm->context);

    while (*at && *at != w->in)
        at = &(*at)->next;
    if (*at)
        *at = w->in->next;
}

struct mr_win *mr_win_find(uint32_t context)
{
    struct mr_win_state *s = *chain_of(context);

    while (s && s->win->comm->context != context)
        s = s->next;
    return s ? s->win : NULL;
}

struct mr_win *mr_win_any(void)
{
    for (int i = 0; i < TABLE; i++)
        if (table[i])
            return table[i]->win;
    return NULL;
}

void mr_win_each(void (*f)(struct mr_win *w, void *arg), void *arg)
{
    for (int i = 0; i < TABLE; i++)
        for (struct mr_win_state *s = table[i], *next; s; s = next) {
            next = s->next;
            f(s->win, arg);
        }
}

/* ---- regions of dynamic windows ---------------------------------------------------------------------------------- */

size_t mr_win_region_at(const struct mr_win_state *s, uintptr_t addr)
{
    size_t lo = 0, hi = s->num_regions;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (s->region[mid].end <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* ---- peers ------------------------------------------------------------------------------------------------------- */

struct mr_vc *mr_rma_vc(const struct mr_win *w, int rank)
{
    return mr_vc_get_peer(mr_comm_world_rank(w->comm, rank));
}

struct mr_rma_peer *mr_rma_peer_get(struct mr_win *w, int rank)
{
    struct mr_win_target *t = &w->in->target[rank];

    if (t->peer)
        return t->peer;
    t->peer = calloc(1, sizeof(*t->peer));
    if (!t->peer) {
        mr_error_detail("no memory for the state of rank %d in a window", rank);
        return NULL;
    }
    *t->peer = (struct mr_rma_peer){.win = w, .rank = rank, .next = w->in->peers};
    w->in->peers = t->peer;
    if (mr_vc_lost(mr_rma_vc(w, rank)))
        t->peer->error = mr_rma_vc(w, rank)->error;
    return t->peer;
}

enum mr_err mr_rma_lost(const struct mr_rma_peer *p)
{
    return mr_fail(MR_ERR_PROC_FAILED, "rank %d of the window: %s", p->rank, strerror(-p->error));
}

bool mr_win_has_orphans(const struct mr_win *w)
{
    if (likely(!mr_comm_fault(w->comm)))
        return false;
    for (int i = 0; i < w->comm->size; i++)
        if (i != w->comm->rank && w->in->target[i].mutex && mr_vc_lost(mr_rma_vc(w, i)))
            return true;
    return false;
}

bool mr_win_shares_node(const struct mr_win *w, int rank, const struct mr_vc *vc)
{
    const struct mr_launch *l = mr_launch_info();
    int there = mr_vc_world_rank(vc), here = mr_comm_world_rank(w->comm, rank);

    return there < l->size && here < l->size && l->node_of[there] == l->node_of[here];
}

bool mr_win_part_may_be_orphaned(const struct mr_win *w, int rank)
{
    if (likely(!mr_comm_fault(w->comm)))
        return false;
    for (int i = 0; i < w->comm->size; i++)
        if (mr_vc_lost(mr_rma_vc(w, i)) && mr_win_shares_node(w, rank, mr_rma_vc(w, i)))
            return true;
    return false;
}

bool mr_win_lacks_member(const struct mr_win *w)
{
    return unlikely(mr_comm_fault(w->comm));
}

void mr_win_note(struct mr_win *w, enum mr_err err)
{
    w->in->failed |= err == MR_ERR_PROC_FAILED || err == MR_ERR_REVOKED;
}

enum mr_err mr_win_refusal(const struct mr_win *w)
{
    if (likely(!w->comm->source_revoked))
        return MR_SUCCESS;
    return mr_fail(MR_ERR_REVOKED, "the communicator that the window was made from has been revoked");
}

enum mr_err mr_rma_tell(struct mr_rma_peer *p, enum mr_rma_what what, struct mr_hdr hdr)
{
    int err;

    hdr.kind = MR_PKT_ABOVE;
    hdr.tag = (int)what;
    hdr.rank = p->win->comm->rank;
    hdr.ctx = p->win->comm->context;
    err = mr_vc_send(mr_rma_vc(p->win, p->rank), &hdr, NULL, 0);
    if (!err)
        return MR_SUCCESS;
    if (err == -ENOMEM)
        return mr_fail(MR_ERR_NO_MEM, "no memory for a packet to rank %d of the window", p->rank);
    p->error = err;
    return mr_rma_lost(p);
}

struct await {
    struct mr_rma_peer *p;
    bool (*done)(const struct mr_rma_peer *p, uint32_t goal);
    uint32_t goal;
};

static bool is_over(void *arg)
{
    struct await *a = arg;

    return a->p->error || a->done(a->p, a->goal);
}

enum mr_err mr_rma_await(struct mr_rma_peer *p, bool (*done)(const struct mr_rma_peer *p, uint32_t goal), uint32_t goal)
{
    if (!done(p, goal)) {
        mr_progress_until(is_over, &(struct await){p, done, goal});
        p->polled = mr_progress_polls;
    }
    return done(p, goal) ? MR_SUCCESS : mr_rma_lost(p);
}

#define VAIN_POLLS 16u /* before others run */

void mr_rma_poll_now(struct mr_win_state *s, bool waits)
{
    s->asked = false;
    if (waits && ++s->in_vain > VAIN_POLLS)
        mr_progress_some();
    else
        mr_progress();
}

/* ---- scratch ----------------------------------------------------------------------------------------------------- */

static struct {
    void *at;
    size_t bytes;
} scratch[MR_SCRATCH_KINDS];

void *mr_rma_scratch(enum mr_scratch what, size_t bytes)
{
    void *more;

    if (bytes <= scratch[what].bytes)
        return scratch[what].at;
    more = realloc(scratch[what].at, bytes);
    if (!more)
        return NULL;
    scratch[what].at = more;
    scratch[what].bytes = bytes;
    return more;
}

void mr_rma_scratch_free(void)
{
    for (int i = 0; i < MR_SCRATCH_KINDS; i++)
        free(scratch[i].at);
    memset(scratch, 0, sizeof(scratch));
}
