/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of a process's part of a window: a word that processes of the node change themselves, and that the process
 * changes for those which have to ask it. Some wait for it; since nobody tells when the word has changed, it is looked
 * at meanwhile.
 */
#include <stdlib.h>

#include "libmrmpi/rma/internal.h"

/* Who waits for the lock of this process's part. */
struct mr_lock_waiter {
    struct mr_lock_waiter *next;
    int rank;
    bool exclusive;
};

static struct mr_win_state *waiting; /* windows whose lock somebody waits for */

bool mr_lock_try(struct mr_rma_mutex *g, bool exclusive)
{
    uint32_t word = __atomic_load_n(&g->lock, __ATOMIC_RELAXED);

    do {
        if (exclusive ? word : word == MR_LOCK_EXCLUSIVE)
            return false;
    } while (!__atomic_compare_exchange_n(&g->lock, &word, exclusive ? MR_LOCK_EXCLUSIVE : word + 1, false,
                                          __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
    return true;
}

void mr_lock_drop(struct mr_rma_mutex *g, bool exclusive)
{
    if (exclusive)
        __atomic_store_n(&g->lock, 0, __ATOMIC_RELEASE);
    else
        __atomic_fetch_sub(&g->lock, 1, __ATOMIC_RELEASE);
}

static struct mr_rma_mutex *own_mutex(const struct mr_win *w)
{
    return w->in->target[w->comm->rank].mutex;
}

/* ---- those that have to ask -------------------------------------------------------------------------------------- */

static void grant(struct mr_rma_peer *p, bool exclusive)
{
    p->holds = exclusive ? MR_HOLD_EXCLUSIVE : MR_HOLD_SHARED;
    mr_rma_tell(p, MR_RMA_LOCKED, (struct mr_hdr){0});
}

/*
 * Those whose turn it is. Returns how many. Who wants to share does not wait behind one who wants it alone: with
 * MPI_Win_lock_all a process has some locks and waits for others, and two of them would wait for each other.
 */
static int serve(struct mr_win_state *s)
{
    struct mr_lock_waiter **at = &s->waiters, *l;
    int served = 0;

    while ((l = *at)) {
        if (!mr_lock_try(own_mutex(s->win), l->exclusive)) {
            at = &l->next;
            continue;
        }
        *at = l->next;
        grant(s->target[l->rank].peer, l->exclusive);
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

        served += serve(s);
        if (s->waiters) {
            at = &s->next_waiting;
        } else {
            *at = s->next_waiting;
            s->looked_at = false;
        }
    }
    return served;
}

void mr_lock_init(void)
{
    waiting = NULL;
    mr_progress_register(MR_PROGRESS_ALWAYS, (void *const *)&waiting, mr_lock_serve_all);
}

static void enqueue(struct mr_rma_peer *p, bool exclusive)
{
    struct mr_win_state *s = p->win->in;
    struct mr_lock_waiter *l = malloc(sizeof(*l));

    if (!l) {
        mr_log(MR_LOG_ERROR, "no memory to have rank %d wait for the lock of a window", p->rank);
        mr_rma_tell(p, MR_RMA_LOCKED, (struct mr_hdr){.sreq = MR_ERR_NO_MEM});
        return;
    }
    *l = (struct mr_lock_waiter){.rank = p->rank, .exclusive = exclusive};
    if (!s->looked_at) {
        s->looked_at = true;
        s->next_waiting = waiting;
        waiting = s;
    }
    *s->waiters_end = l;
    s->waiters_end = &l->next;
}

void mr_lock_ask(struct mr_rma_peer *p, bool exclusive)
{
    if (p->holds)
        return; /* a second lock at once makes no sense, and is not asked for */
    if (!(exclusive && p->win->in->waiters) && mr_lock_try(own_mutex(p->win), exclusive))
        grant(p, exclusive);
    else
        enqueue(p, exclusive);
}

void mr_lock_release(struct mr_rma_peer *p)
{
    if (!p->holds)
        return;
    mr_lock_drop(own_mutex(p->win), p->holds == MR_HOLD_EXCLUSIVE);
    p->holds = MR_HOLD_NONE;
    serve(p->win->in);
}

void mr_lock_end(struct mr_win *w)
{
    struct mr_win_state **at = &waiting;

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

void mr_lock_forget(struct mr_rma_peer *p)
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
    mr_lock_release(p);
}
