/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of a part of a window: takers by an adapter that executes atomics one after the other, each in two steps, a
 * processor that takes the lock too, and connections that break with atomics under way, some of them executed. In any
 * order, the lock is exclusive, and no taker waits for ever.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/rma/winlock/taker.h"
#include "tests/check.h"

enum { TAKERS = 4, SLOTS = 8, DEEP = 4, MESSAGES = 8 };

static union {
    struct mr_lock_part part;
    unsigned char bytes[sizeof(struct mr_lock_part) + SLOTS];
} memory;

/* A word on its way: not executed, changed, looked at. */
struct flight {
    enum mr_taker_step step;
    struct mr_atomic atomic;
    unsigned done; /* steps */
    uint64_t result[1 + (sizeof(memory) + 7) / 8];
};

struct process {
    struct mr_taker t;
    struct flight flight[DEEP];
    unsigned num;
    bool broken; /* posted atomics are no longer executed */
    bool clear_asked;
    unsigned held; /* how often */
    /* as in far.c: questions, withdrawals, and messages of the process there, in order */
    uint32_t serial, delegated, given, delegated_there; /* lent_there: as known to that process */
    bool asking, withdrawing;
    struct message {
        enum { ASK, WITHDRAW, RETURN, CLEAR, DELEGATED, WITHDRAWN, CLEARED } what;
        uint32_t serial;
    } there[MESSAGES], back[MESSAGES];
    unsigned num_there, num_back;
    uint32_t waits; /* there, for its turn: the serial number; 0: it does not */
    unsigned delegations;
};

static struct process taker[TAKERS];
static bool near_holds, near_alone;
static unsigned near_held;

static unsigned seed;
static unsigned below(unsigned n)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % n;
}

static void setup(void)
{
    memset(&memory, 0, sizeof(memory));
    memset(taker, 0, sizeof(taker));
    near_holds = false;
    near_held = 0;
}

/* The process knows the slots that existed when it asked. */
static void join(unsigned i)
{
    uint32_t slot = mr_lock_part_add_slot(&memory.part);

    mr_taker_init(&taker[i].t, i + 1, slot, memory.part.slots);
}

/* ---- the adapter, and reports to the adapter's users ------------------------------------------------------------- */

static void execute(struct flight *f)
{
    const struct mr_atomic *w = &f->atomic;

    if (f->done == 2)
        return;
    if (f->done++ == 0) {
        uint64_t old;

        if (w->what == MR_ATOMIC_STORE)
            memcpy(memory.bytes + w->at, &w->value, w->bytes);
        if (w->what != MR_ATOMIC_SWAP)
            return;
        memcpy(&old, memory.bytes + w->at, 8);
        f->result[0] = old;
        if (old == w->compare)
            memcpy(memory.bytes + w->at, &w->value, 8);
        return;
    }
    memcpy(f->result + 1, &memory, w->peek);
}

static void pop(struct process *p)
{
    p->num--;
    memmove(&p->flight[0], &p->flight[1], p->num * sizeof(p->flight[0]));
}

/* Atomics of one process are executed in order. */
static void fly(struct process *p)
{
    struct flight f;
    bool held;

    if (!p->num)
        return;
    if (p->broken) {
        mr_taker_done(&p->t, p->flight[0].step, -EIO, NULL);
        pop(p);
        p->broken = p->num;
        return;
    }
    execute(&p->flight[0]);
    if (p->flight[0].done < 2)
        return;
    f = p->flight[0];
    held = p->t.state == MR_TAKER_HOLDS;
    pop(p);
    mr_taker_done(&p->t, f.step, 0, f.result);
    p->held += !held && p->t.state == MR_TAKER_HOLDS;
}

/*
 * Of the posted atomics the first have been executed, the last of these perhaps in part. Their ends are reported one by
 * one.
 */
static void break_connection(struct process *p)
{
    unsigned n = p->num ? below(p->num + 1) : 0;

    if (p->broken)
        return;
    p->broken = p->num;
    for (unsigned i = 0; i < n; i++)
        while (p->flight[i].done < 2 && (i + 1 < n || p->flight[i].done == 0 || below(2)))
            execute(&p->flight[i]);
}

static void say(struct message *to, unsigned *num, int what, uint32_t serial)
{
    if (*num == MESSAGES)
        ck_abort_msg("too many messages wait");
    to[*num].what = what;
    to[(*num)++].serial = serial;
}

static struct message hear(struct message *from, unsigned *num)
{
    struct message first = from[0];

    memmove(&from[0], &from[1], --*num * sizeof(from[0]));
    return first;
}

static void post(struct process *p)
{
    enum mr_taker_step step = mr_taker_next(&p->t);

    if (step == MR_STEP_NONE)
        return;
    if (step == MR_STEP_CLEAR) {
        if (p->num || p->clear_asked)
            ck_abort_msg("it is cleared while something is under way");
        p->clear_asked = true;
        if (p->t.state == MR_TAKER_WANTS)
            mr_taker_stop(&p->t);
        say(p->there, &p->num_there, CLEAR, p->given);
    } else {
        struct flight *f = &p->flight[p->num];

        if (++p->num > DEEP)
            ck_abort_msg("too much is under way");
        *f = (struct flight){.step = step};
        f->atomic = mr_taker_atomic(&p->t, step, f->result);
        if ((f->atomic.peek && !f->atomic.result) || f->atomic.peek > sizeof(memory) ||
            (f->atomic.what == MR_ATOMIC_SWAP && f->atomic.at % 8))
            ck_abort_msg("a word of the wrong size, or in the wrong place");
    }
    mr_taker_posted(&p->t, step);
}

/* The process there: the next message, or the lock for a waiting taker. */
static void serve(struct process *p)
{
    if (p->waits && below(2) && mr_lock_part_try(&memory.part, true)) {
        p->delegated_there = p->waits;
        p->waits = 0;
        mr_lock_part_delegate(&memory.part, p->t.slot);
        say(p->back, &p->num_back, DELEGATED, p->delegated_there);
    }
    if (p->num_there) {
        struct message m = hear(p->there, &p->num_there);

        if (m.what == ASK) {
            p->waits = m.serial;
            return;
        }
        if (m.what == CLEAR)
            mr_lock_part_clear(&memory.part, p->t.number, p->t.slot);
        else
            p->waits = 0;
        if (m.what != WITHDRAW && p->delegated_there == m.serial)
            mr_lock_part_take_back(&memory.part, p->t.slot);
        say(p->back, &p->num_back, m.what == CLEAR ? CLEARED : WITHDRAWN, 0);
    }
}

static void listen(struct process *p)
{
    struct message m;

    if (!p->num_back)
        return;
    m = hear(p->back, &p->num_back);
    if (m.what == CLEARED) {
        p->clear_asked = false;
        mr_taker_cleared(&p->t);
    } else if (m.what == WITHDRAWN) {
        p->withdrawing = false;
    } else if (p->asking && m.serial == p->serial) {
        p->asking = false;
        p->delegated = m.serial;
        p->delegations++;
        mr_taker_delegated(&p->t);
    } else {
        p->given = m.serial;
        mr_taker_refuse(&p->t);
    }
}

static void ask(struct process *p)
{
    p->asking = true;
    say(p->there, &p->num_there, ASK, ++p->serial);
}

static void withdraw(struct process *p, int what, uint32_t serial)
{
    p->asking = false;
    p->withdrawing = true;
    say(p->there, &p->num_there, what, serial);
}

static void give(struct process *p)
{
    if (p->t.delegated && !mr_taker_is_sound(&p->t)) {
        mr_taker_return(&p->t);
        withdraw(p, RETURN, p->delegated);
    } else {
        p->given = p->delegated;
        mr_taker_give(&p->t);
    }
}

static void check_holders(void)
{
    unsigned alone = near_holds && near_alone, shared = near_holds && !near_alone;

    for (unsigned i = 0; i < TAKERS; i++)
        if (taker[i].t.state == MR_TAKER_HOLDS) {
            alone += taker[i].t.alone;
            shared += !taker[i].t.alone;
        }
    if (alone > 1 || (alone && shared)) /* asserts take long */
        ck_abort_msg("%u are alone, %u share", alone, shared);
}

static void act(struct process *p, unsigned breaks)
{
    switch (below(8)) {
    case 0:
        if (p->asking && !below(12)) {
            withdraw(p, WITHDRAW, p->serial);
            mr_taker_begin(&p->t, true);
        } else if (p->t.state == MR_TAKER_IDLE && mr_taker_is_sound(&p->t) && !p->asking) {
            if (!p->withdrawing && below(2))
                ask(p);
            else
                mr_taker_begin(&p->t, below(2));
        } else if (p->t.state == MR_TAKER_HOLDS) {
            give(p);
        }
        break;
    case 1:
        serve(p);
        break;
    case 4:
        listen(p);
        break;
    case 2:
        if (breaks && !below(breaks))
            break_connection(p);
        break;
    case 3:
        post(p);
        break;
    default:
        fly(p);
    }
}

static void act_near(void)
{
    if (near_holds) {
        mr_lock_part_drop(&memory.part, near_alone);
        near_holds = false;
    } else {
        near_alone = below(2);
        near_holds = mr_lock_part_try(&memory.part, near_alone);
        near_held += near_holds;
    }
}

static void run(unsigned steps, unsigned breaks)
{
    unsigned joined = 0;

    for (unsigned k = 0; k < steps; k++) {
        unsigned i = below(TAKERS + 1);

        if (joined < TAKERS && !below(50))
            join(joined++);
        if (i < joined)
            act(&taker[i], breaks);
        else if (i == TAKERS && !below(4))
            act_near();
        check_holders();
    }
}

/* In each run every taker has held the lock more often than `held`, and so have the near ones. */
static void all_get_the_lock(unsigned runs, unsigned breaks, unsigned held)
{
    for (unsigned n = 1; n < runs; n++) {
        seed = n;
        setup();
        run(100000, breaks);
        for (unsigned i = 0; i < TAKERS; i++)
            ck_assert(taker[i].held > held && taker[i].delegations > 5);
        ck_assert_uint_gt(near_held, held);
    }
}

START_TEST(nobody_is_alone_who_is_not)
{
    all_get_the_lock(40, 0, 20);
}
END_TEST

START_TEST(nor_when_connections_break)
{
    all_get_the_lock(60, 3, 10);
}
END_TEST

/* All that is held is given back in the end, and nothing stays. */
START_TEST(nothing_stays)
{
    for (unsigned first = 100; first < 160; first++) {
        seed = first;
        setup();
        run(3000, 3);
        for (unsigned k = 0; k < 400; k++)
            for (unsigned i = 0; i < TAKERS; i++) {
                if (taker[i].t.state == MR_TAKER_HOLDS)
                    give(&taker[i]);
                serve(&taker[i]);
                listen(&taker[i]);
                post(&taker[i]);
                fly(&taker[i]);
                if (near_holds)
                    act_near();
            }
        for (unsigned i = 0; i < TAKERS; i++)
            ck_assert(taker[i].t.state == MR_TAKER_IDLE && !taker[i].t.lost && !taker[i].t.refuses && !taker[i].num &&
                      !taker[i].num_there);
        ck_assert_uint_eq(memory.part.owner, 0);
        ck_assert(memory.part.holders == 0 || memory.part.holders == MR_LOCK_PART_DELEGATED);
        for (unsigned i = sizeof(struct mr_lock_part); i < sizeof(memory); i++)
            ck_assert_uint_eq(memory.bytes[i], 0);
    }
}
END_TEST

/* The process there computes from now on, whatever it has just done: all others get the lock without it. */
START_TEST(nobody_waits_for_one_that_computes)
{
    for (unsigned first = 200; first < 600; first++) {
        unsigned held[TAKERS];

        seed = first;
        setup();
        run(2000 + first, 0);
        if (near_holds)
            act_near();
        for (unsigned i = 0; i < TAKERS; i++)
            held[i] = taker[i].held;
        for (unsigned k = 0; k < 4000; k++) {
            struct process *p = &taker[below(TAKERS)];

            if (p->t.state == MR_TAKER_HOLDS) {
                give(p);
            } else if (p->asking && !p->num_back) {
                withdraw(p, WITHDRAW, p->serial);
                mr_taker_begin(&p->t, true);
            } else if (p->t.state == MR_TAKER_IDLE && !p->asking) {
                mr_taker_begin(&p->t, below(2));
            }
            listen(p);
            post(p);
            fly(p);
            check_holders();
        }
        for (unsigned i = 0; i < TAKERS; i++)
            ck_assert_msg(taker[i].held > held[i] + 5, "seed %u: taker %u waits", first, i);
    }
}
END_TEST

/* An exclusive taker sees a slot given after its question about their number. */
START_TEST(a_new_slot_is_seen)
{
    setup();
    join(0);
    join(1);
    mr_taker_begin(&taker[1].t, false);
    post(&taker[1]);
    fly(&taker[1]);
    fly(&taker[1]);
    ck_assert_int_eq(taker[1].t.state, MR_TAKER_HOLDS);
    mr_taker_begin(&taker[0].t, true);
    post(&taker[0]);
    ck_assert_uint_eq(taker[0].flight[0].atomic.peek, sizeof(struct mr_lock_part) + 1);
    fly(&taker[0]);
    fly(&taker[0]);
    ck_assert_int_eq(taker[0].t.state, MR_TAKER_WANTS);
    ck_assert_uint_eq(taker[0].t.slots, 2);
    for (unsigned k = 0; k < 20; k++) {
        post(&taker[0]);
        fly(&taker[0]);
    }
    ck_assert_int_eq(taker[0].t.state, MR_TAKER_WANTS);
    ck_assert_int_eq(mr_lock_part_try(&memory.part, true), false);
    ck_assert_int_eq(mr_lock_part_try(&memory.part, false), true);
    mr_lock_part_drop(&memory.part, false);
    mr_taker_give(&taker[1].t);
    for (unsigned k = 0; k < 20; k++) {
        post(&taker[1]);
        fly(&taker[1]);
        post(&taker[0]);
        fly(&taker[0]);
    }
    ck_assert_int_eq(taker[0].t.state, MR_TAKER_HOLDS);
    ck_assert_int_eq(mr_lock_part_try(&memory.part, false), false);
}
END_TEST

/* Clearing another taker's value changes nothing. */
START_TEST(only_ones_own_is_cleared)
{
    setup();
    join(0);
    join(1);
    memory.part.owner = 1;
    memory.bytes[mr_lock_part_slot(0)] = 1;
    mr_lock_part_clear(&memory.part, 2, 1);
    ck_assert_uint_eq(memory.part.owner, 1);
    ck_assert_uint_eq(memory.bytes[mr_lock_part_slot(0)], 1);
    mr_lock_part_clear(&memory.part, 1, 0);
    ck_assert_uint_eq(memory.part.owner, 0);
    ck_assert_uint_eq(memory.bytes[mr_lock_part_slot(0)], 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("winlock");

    tcase_add_test(c, nobody_is_alone_who_is_not);
    tcase_add_test(c, nor_when_connections_break);
    tcase_add_test(c, nothing_stays);
    tcase_add_test(c, nobody_waits_for_one_that_computes);
    tcase_add_test(c, a_new_slot_is_seen);
    tcase_add_test(c, only_ones_own_is_cleared);
    return check_run(c, NULL);
}
