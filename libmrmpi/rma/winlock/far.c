/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A taken lock is polled again as soon as the last poll is back, a few times, and then from time to time: polls of many
 * processes would delay the write that returns the lock.
 */
#include "libmrmpi/rma/winlock/far.h"

#include <errno.h>
#include <stdlib.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/p2p/p2p.h"

#define TRIES_AT_ONCE 64
#define PAUSE_NS      1000ull
#define PAUSE_MOST_NS 64000ull

/* A question is withdrawn after this time without an answer; a question behind others, when their locks take long. */
#define ANSWER_NS 20000ull
#define QUEUE_NS  200000ull
#define AHEAD_NS  20000ull

struct mr_far {
    struct mr_taker taker;
    struct mr_vc *vc;
    const struct mr_far_events *events;
    void *owner; /* NULL: closed */
    struct mr_remote part;
    struct mr_vc_atomic take, give;
    enum mr_taker_step taking; /* the present step of taker */
    uint64_t *result;          /* of take, */
    uint32_t room;             /* room in slots */
    uint64_t gave;             /* result of give */
    unsigned tried;            /* taker.tries at the last post */
    uint32_t serial;           /* of the last question, */
    uint32_t delegated, given; /* of the last delegation, and of the last one returned by the adapter */
    bool asking, withdrawing;  /* asked the process there to delegate the lock; the question is being withdrawn */
    bool answers;              /* soon, the last time */
    bool only_asks;            /* no atomics to take the lock */
    struct mr_far *next;       /* of those that pause, or ask */
    bool paused;
    uint64_t due_ns;
};

static struct mr_far *paused; /* takers that try again later */

static void advance_taker(struct mr_far *f, bool waited);

/* ---- pauses ------------------------------------------------------------------------------------------------------ */

static uint64_t pause_of(const struct mr_far *f)
{
    unsigned more = f->taker.tries > TRIES_AT_ONCE ? f->taker.tries - TRIES_AT_ONCE : 0;

    return more < 7 && PAUSE_NS << more < PAUSE_MOST_NS ? PAUSE_NS << more : PAUSE_MOST_NS;
}

static void pause_for(struct mr_far *f, uint64_t ns)
{
    f->due_ns = mr_clock_ns() + ns;
    if (f->paused)
        return;
    f->paused = true;
    f->next = paused;
    paused = f;
}

static void unpause(struct mr_far *f)
{
    struct mr_far **at = &paused;

    if (!f->paused)
        return;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    f->paused = false;
}

/* The process there computes: its adapter takes the lock. */
static void withdraw(struct mr_far *f)
{
    f->asking = f->answers = false;
    f->withdrawing = true;
    mr_taker_begin(&f->taker, true);
    f->tried = 0;
    f->events->withdraw(f->owner, f->serial);
}

static int try_again(void)
{
    uint64_t now_ns = mr_clock_ns();
    struct mr_far **at = &paused, *f, *due = NULL;
    int num = 0;

    while ((f = *at)) {
        if (f->due_ns > now_ns) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        f->next = due;
        due = f;
    }
    while ((f = due)) {
        due = f->next;
        f->paused = false;
        if (f->asking)
            withdraw(f);
        advance_taker(f, true);
        num++;
    }
    return num;
}

void mr_far_init(void)
{
    paused = NULL;
    mr_progress_register(MR_PROGRESS_ALWAYS, (void *const *)&paused, try_again);
}

/* ---- atomics ----------------------------------------------------------------------------------------------------- */

static void free_if_over(struct mr_far *f)
{
    if (f->owner || f->taker.taking || f->taker.giving)
        return;
    free(f->result);
    free(f);
}

static void atomic_done(struct mr_far *f, enum mr_taker_step step, int error)
{
    bool held = mr_far_holds(f);

    mr_taker_done(&f->taker, step, error, f->result);
    if (!f->owner) {
        free_if_over(f);
        return;
    }
    if (!held && mr_far_holds(f)) {
        mr_stat_add(MR_STAT_LOCKS, 1);
        f->events->held(f->owner);
    }
    advance_taker(f, false);
}

static void take_done(struct mr_vc_move *move, int error)
{
    struct mr_far *f = container_of(move, struct mr_far, take.move);

    atomic_done(f, f->taking, error);
}

static void give_done(struct mr_vc_move *move, int error)
{
    atomic_done(container_of(move, struct mr_far, give.move), MR_STEP_GIVE, error);
}

/* Slots behind the memory that we have keys for are none. */
static int room_for_slots(struct mr_far *f)
{
    uint64_t *more;

    if (f->room >= f->taker.slots)
        return 0;
    if (mr_lock_part_bytes(f->taker.slots) > f->part.len)
        return -EPROTO;
    more = realloc(f->result, sizeof(uint64_t) + mr_lock_part_bytes(f->taker.slots));
    if (!more)
        return -ENOMEM;
    f->result = more;
    f->room = f->taker.slots;
    return 0;
}

static int post_take(struct mr_far *f, enum mr_taker_step step)
{
    int err = room_for_slots(f);

    if (err)
        return err;
    f->taking = step;
    f->tried = f->taker.tries;
    f->take = (struct mr_vc_atomic){.atomic = mr_taker_atomic(&f->taker, step, f->result),
                                    .move.done = take_done,
                                    .connection = f->taker.giving ? f->give.connection : 0};
    return mr_net_atomic(f->vc, &f->part, &f->take);
}

static int post_give(struct mr_far *f)
{
    f->give =
        (struct mr_vc_atomic){.atomic = mr_taker_atomic(&f->taker, MR_STEP_GIVE, &f->gave), .move.done = give_done};
    return mr_net_atomic(f->vc, &f->part, &f->give);
}

/* A process whose lock is lost on the way asks for it by a packet, which comes behind the clearing. */
static void clear_far(struct mr_far *f)
{
    bool wants = f->taker.state == MR_TAKER_WANTS;

    mr_taker_posted(&f->taker, MR_STEP_CLEAR);
    if (wants)
        mr_taker_stop(&f->taker);
    mr_stat_add(MR_STAT_LOCKS_CLEARED, 1);
    f->events->clear(f->owner, f->given); /* may have been delegated again since: this delegation stays */
    if (wants)
        f->events->ask(f->owner);
}

/* No atomics any more. Returns on their way end first; nothing of ours stays there. */
static void go_without(struct mr_far *f, enum mr_taker_step step)
{
    if (step == MR_STEP_GIVE || f->taker.keeps) {
        mr_taker_lose(&f->taker);
        advance_taker(f, true);
    } else if (!f->taker.giving) {
        mr_taker_stop(&f->taker);
        f->events->ask(f->owner);
    }
}

/* waited: it has paused after the last attempt in vain. */
static void advance_taker(struct mr_far *f, bool waited)
{
    enum mr_taker_step step;
    int err = 0;

    while (!err && (step = mr_taker_next(&f->taker)) != MR_STEP_NONE) {
        if (step == MR_STEP_CLEAR) {
            clear_far(f);
            return;
        }
        if (f->only_asks && step != MR_STEP_GIVE && !f->taker.keeps) {
            go_without(f, step);
            return;
        }
        if (step != MR_STEP_GIVE && f->taker.tries > TRIES_AT_ONCE && f->taker.tries != f->tried && !waited) {
            pause_for(f, pause_of(f));
            return;
        }
        err = step == MR_STEP_GIVE ? post_give(f) : post_take(f, step);
        if (!err)
            mr_taker_posted(&f->taker, step);
    }
    if (err == -EAGAIN)
        pause_for(f, pause_of(f));
    else if (err)
        go_without(f, step);
}

/* ---- the owner --------------------------------------------------------------------------------------------------- */

struct mr_far *mr_far_open(struct mr_vc *vc, const struct mr_remote *part, const struct mr_taker *as,
                           const struct mr_far_events *events, void *owner)
{
    struct mr_far *f;

    if (as->slot >= as->slots || mr_lock_part_bytes(as->slots) > part->len) {
        mr_log(MR_LOG_ERROR, "rank %d gives us slot %u of %u of its lock, which has %llu bytes: it is asked by packets",
               vc->rank, as->slot, as->slots, (unsigned long long)part->len);
        return NULL;
    }
    f = calloc(1, sizeof(*f));
    if (f)
        *f = (struct mr_far){.taker = *as, .vc = vc, .events = events, .owner = owner, .part = *part, .answers = true};
    return f;
}

void mr_far_close(struct mr_far *f)
{
    unpause(f);
    f->owner = NULL;
    free_if_over(f);
}

bool mr_far_begin(struct mr_far *f, bool alone)
{
    if (f->only_asks || !mr_taker_is_sound(&f->taker))
        return false;
    if (alone && f->answers && !f->withdrawing && !f->paused) {
        f->asking = true;
        pause_for(f, ANSWER_NS);
        f->events->ask_delegation(f->owner, ++f->serial);
        return true;
    }
    mr_taker_begin(&f->taker, alone);
    f->tried = 0;
    if (!f->paused) /* a return waits for room */
        advance_taker(f, false);
    return true;
}

void mr_far_only_ask(struct mr_far *f)
{
    f->only_asks = true;
}

bool mr_far_holds(const struct mr_far *f)
{
    return f->taker.state == MR_TAKER_HOLDS;
}

void mr_far_give(struct mr_far *f)
{
    if (!mr_far_holds(f))
        return;
    if (f->taker.delegated && !mr_taker_is_sound(&f->taker)) { /* an earlier delegation is being cleared */
        mr_taker_return(&f->taker);
        f->withdrawing = true;
        f->events->give_back(f->owner, f->delegated);
        return;
    }
    f->given = f->delegated;
    mr_taker_give(&f->taker);
    advance_taker(f, false);
}

void mr_far_cleared(struct mr_far *f)
{
    mr_taker_cleared(&f->taker);
    advance_taker(f, false);
}

/* The question has been withdrawn meanwhile: no process is to wait until the process there polls. */
static void refuse_delegation(struct mr_far *f)
{
    f->given = f->serial;
    mr_taker_refuse(&f->taker);
    advance_taker(f, false);
}

void mr_far_delegated(struct mr_far *f, uint32_t serial)
{
    if (serial != f->serial)
        return;
    if (!f->asking) {
        if (f->withdrawing)
            refuse_delegation(f);
        return;
    }
    f->asking = false;
    f->delegated = serial;
    unpause(f);
    mr_taker_delegated(&f->taker);
    f->events->held(f->owner);
}

void mr_far_queued(struct mr_far *f, uint32_t serial, uint32_t ahead)
{
    if (f->asking && serial == f->serial)
        pause_for(f, QUEUE_NS + ahead * AHEAD_NS);
}

void mr_far_withdrawn(struct mr_far *f)
{
    f->withdrawing = false;
    f->answers = true;
}

bool mr_far_is_quiet(const struct mr_far *f)
{
    const struct mr_taker *t = &f->taker;

    return !t->taking && !t->giving && !t->give && !t->refuses && !t->lost && !f->withdrawing;
}
