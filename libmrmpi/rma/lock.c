/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of this process's part of a window (rma/winlock/part.h). Processes of the node take the lock themselves.
 * This process takes the lock for peers that can only ask. Peers with the keys take the lock through the adapter.
 * No message tells when the lock is free, so this process polls the lock while peers wait.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "libmrmpi/rma/internal.h"

/* A peer that waits for the lock of this process's part. */
struct mr_lock_waiter {
    struct mr_lock_waiter *next;
    int rank;
    bool exclusive, delegate;
    uint32_t serial; /* if it is to be delegated */
};

static struct mr_win_state *waiting; /* windows with waiting peers */

static struct mr_lock_part *own_lock(const struct mr_win *w)
{
    return &w->in->target[w->comm->rank].mutex->lock;
}

/* The adapters' number of the peer as owner of our lock. */
static uint64_t owner_number(const struct mr_rma_peer *p)
{
    return (uint64_t)p->rank + 1;
}

/* ---- peers that have to ask -------------------------------------------------------------------------------------- */

static void give_lock(struct mr_rma_peer *p, const struct mr_lock_waiter *l)
{
    if (l->delegate) {
        p->delegated = l->serial;
        mr_lock_part_delegate(own_lock(p->win), p->slots - 1);
        mr_rma_tell(p, MR_RMA_LOCKED, (struct mr_hdr){.flags = MR_RMA_DELEGATE, .rreq = l->serial});
        return;
    }
    p->holds = l->exclusive ? MR_HOLD_EXCLUSIVE : MR_HOLD_SHARED;
    mr_rma_tell(p, MR_RMA_LOCKED, (struct mr_hdr){0});
}

/* A question for a delegation stays until it is withdrawn. */
static bool refuse_orphaned(const struct mr_win_state *s, const struct mr_lock_waiter *l)
{
    if (l->delegate || !mr_win_has_orphans(s->win))
        return false;
    mr_rma_tell(s->target[l->rank].peer, MR_RMA_LOCKED, (struct mr_hdr){.sreq = MR_ERR_PROC_FAILED});
    return true;
}

/*
 * Gives the lock to every waiter that can have it now. Returns their number. A shared request passes a waiting
 * exclusive one: with MPI_Win_lock_all a process holds some locks and waits for others, and two such processes would
 * wait for each other.
 */
static int serve_waiters(struct mr_win_state *s)
{
    struct mr_lock_waiter **at = &s->waiters, *l;
    int served = 0;

    while ((l = *at)) {
        bool free_now = mr_lock_part_try(own_lock(s->win), l->exclusive);

        if (!free_now && !refuse_orphaned(s, l)) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        if (free_now)
            give_lock(s->target[l->rank].peer, l);
        free(l);
        served++;
    }
    s->waiters_end = at;
    return served;
}

int mr_lock_serve_all(void)
{
    struct mr_win_state **at = &waiting;
    int served = 0;

    while (*at) {
        struct mr_win_state *s = *at;

        served += serve_waiters(s);
        if (s->waiters) {
            at = &s->next_waiting;
        } else {
            *at = s->next_waiting;
            s->listed = false;
        }
    }
    return served;
}

void mr_lock_init(void)
{
    waiting = NULL;
    mr_progress_register(MR_PROGRESS_ALWAYS, (void *const *)&waiting, mr_lock_serve_all);
}

static uint32_t num_waiters(const struct mr_win_state *s)
{
    uint32_t num = 0;

    for (const struct mr_lock_waiter *l = s->waiters; l; l = l->next)
        num++;
    return num;
}

static void enqueue_lock(struct mr_rma_peer *p, const struct mr_lock_waiter *asks)
{
    struct mr_win_state *s = p->win->in;
    struct mr_lock_waiter *l = malloc(sizeof(*l));

    if (!l && asks->delegate)
        return; /* withdrawn in the end */
    if (!l) {
        mr_log(MR_LOG_ERROR, "no memory to have rank %d wait for the lock of a window", p->rank);
        mr_rma_tell(p, MR_RMA_LOCKED, (struct mr_hdr){.sreq = MR_ERR_NO_MEM});
        return;
    }
    *l = *asks;
    if (asks->delegate)
        mr_rma_tell(p, MR_RMA_LOCK_QUEUED, (struct mr_hdr){.sreq = asks->serial, .rreq = num_waiters(s)});
    if (!s->listed) {
        s->listed = true;
        s->next_waiting = waiting;
        waiting = s;
    }
    *s->waiters_end = l;
    s->waiters_end = &l->next;
}

void mr_lock_ask(struct mr_rma_peer *p, const struct mr_hdr *asked)
{
    const struct mr_lock_waiter asks = {.rank = p->rank,
                                        .exclusive = asked->flags & MR_RMA_ALONE,
                                        .delegate = p->slots && asked->flags & MR_RMA_DELEGATE,
                                        .serial = (uint32_t)asked->sreq};

    if (p->holds)
        return; /* a second lock at once makes no sense, and is not asked for */
    if (!(asks.exclusive && p->win->in->waiters) && mr_lock_part_try(own_lock(p->win), asks.exclusive))
        give_lock(p, &asks);
    else
        enqueue_lock(p, &asks);
}

void mr_lock_release(struct mr_rma_peer *p)
{
    if (!p->holds)
        return;
    mr_lock_part_drop(own_lock(p->win), p->holds == MR_HOLD_EXCLUSIVE);
    p->holds = MR_HOLD_NONE;
    serve_waiters(p->win->in);
}

static size_t guard_bytes(const struct mr_win_state *s)
{
    return sizeof(struct mr_rma_mutex) + (size_t)s->win->comm->size;
}

void mr_lock_end(struct mr_win *w)
{
    struct mr_win_state **at = &waiting;

    if (w->in->lock_region)
        mr_vc_withdraw(w->in->lock_region);
    if (w->in->guard)
        munmap(w->in->guard, guard_bytes(w->in));

    while (*at && *at != w->in)
        at = &(*at)->next_waiting;
    if (*at)
        *at = w->in->next_waiting;
    while (w->in->waiters) {
        struct mr_lock_waiter *l = w->in->waiters;

        w->in->waiters = l->next;
        free(l);
    }
}

static void clear_lock(struct mr_rma_peer *p, uint32_t delegated)
{
    mr_lock_part_clear(own_lock(p->win), owner_number(p), p->slots - 1);
    if (p->delegated == delegated)
        mr_lock_part_take_back(own_lock(p->win), p->slots - 1);
}

/* It no longer waits. */
static void dequeue_lock(struct mr_rma_peer *p)
{
    struct mr_win_state *s = p->win->in;

    for (struct mr_lock_waiter **at = &s->waiters; *at;) {
        struct mr_lock_waiter *l = *at;

        if (l->rank != p->rank) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        free(l);
    }
    s->waiters_end = &s->waiters;
    while (*s->waiters_end)
        s->waiters_end = &(*s->waiters_end)->next;
}

void mr_lock_forget(struct mr_rma_peer *p)
{
    dequeue_lock(p);
    mr_lock_release(p);
    if (p->slots) /* its connections are gone, and so is all traffic over them */
        clear_lock(p, p->delegated);
}

/* ---- peers that use our adapter ---------------------------------------------------------------------------------- */

/* Memory of its own: pages changed by adapters hold nothing else. */
static bool make_slots(struct mr_win_state *s)
{
    struct mr_win_target *own = &s->target[s->win->comm->rank];

    if (own->mutex != &s->mutex)
        return true;
    s->guard = mmap(NULL, guard_bytes(s), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s->guard == MAP_FAILED) {
        s->guard = NULL;
        return false;
    }
    *s->guard = s->mutex;
    own->mutex = s->guard;
    return true;
}

static void open_to_adapters(struct mr_rma_peer *p)
{
    struct mr_win_state *s = p->win->in;

    s->lock_told = true;
    if (!make_slots(s) ||
        mr_vc_advertise(mr_rma_vc(p->win, p->rank), own_lock(p->win), mr_lock_part_bytes((size_t)p->win->comm->size),
                        MR_VC_ATOMIC, &s->lock_region, &s->lock_keys))
        s->lock_region = NULL;
}

void mr_lock_slot_asked(struct mr_rma_peer *p)
{
    struct mr_win_state *s = p->win->in;
    struct mr_hdr hdr = {
        .kind = MR_PKT_ABOVE, .tag = MR_RMA_SLOT_IS, .rank = p->win->comm->rank, .ctx = p->win->comm->context};

    if (!s->lock_told)
        open_to_adapters(p);
    if (s->lock_region) {
        if (!p->slots)
            p->slots = mr_lock_part_add_slot(own_lock(p->win)) + 1;
        hdr.sreq = p->slots - 1;
        hdr.rreq = own_lock(p->win)->slots;
        hdr.len = sizeof(s->lock_keys);
    }
    mr_vc_send(mr_rma_vc(p->win, p->rank), &hdr, &s->lock_keys, hdr.len);
}

void mr_lock_clear_asked(struct mr_rma_peer *p, uint32_t delegated)
{
    if (p->slots)
        clear_lock(p, delegated);
    mr_rma_tell(p, MR_RMA_CLEARED, (struct mr_hdr){0});
}

void mr_lock_withdraw(struct mr_rma_peer *p, uint32_t serial, bool delegated)
{
    dequeue_lock(p);
    if (delegated && p->slots && p->delegated == serial)
        mr_lock_part_take_back(own_lock(p->win), p->slots - 1);
    mr_rma_tell(p, MR_RMA_WITHDRAWN, (struct mr_hdr){0});
}
