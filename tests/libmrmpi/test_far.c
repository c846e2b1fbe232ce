/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of a part on another host: the rank asked, the posted atomics, and the release. The process there, its
 * adapter and the clock are the test's own.
 */
#include <errno.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/p2p/p2p.h"
#include "libmrmpi/rma/winlock/far.h"
#include "tests/check.h"
#include "tests/stubs/stub.h"

enum { SLOTS = 4, WORDS = 8 };

static union {
    struct mr_lock_part part;
    unsigned char bytes[sizeof(struct mr_lock_part) + SLOTS];
} memory;

static int (*poll_paused)(void);
static void *const *paused;
static struct mr_vc_atomic *word[WORDS]; /* under way */
static unsigned num_words;
static unsigned held, asked, cleared, given_back;
static uint32_t delegations, withdrawn;

void mr_progress_register(enum mr_progress_when when, void *const *pending, int (*poll)(void))
{
    paused = pending;
    poll_paused = poll;
}

int mr_net_atomic(struct mr_vc *vc, const struct mr_remote *remote, struct mr_vc_atomic *w)
{
    ck_assert_uint_lt(num_words, WORDS);
    ck_assert_uint_le(w->atomic.peek, remote->len);
    ck_assert_uint_le(w->atomic.at + (w->atomic.what == MR_ATOMIC_STORE ? w->atomic.bytes : 8), remote->len);
    w->connection = 1;
    word[num_words++] = w;
    return 0;
}

static struct mr_vc vc;

/* Executes the first posted operation. */
static void execute(void)
{
    struct mr_vc_atomic *w = word[0];
    const struct mr_atomic *d = &w->atomic;
    uint64_t old;

    ck_assert_uint_gt(num_words, 0);
    memmove(&word[0], &word[1], --num_words * sizeof(word[0]));
    if (d->what == MR_ATOMIC_STORE)
        memcpy(memory.bytes + d->at, &d->value, d->bytes);
    if (d->what == MR_ATOMIC_SWAP) {
        memcpy(&old, memory.bytes + d->at, 8);
        d->result[0] = old;
        if (old == d->compare)
            memcpy(memory.bytes + d->at, &d->value, 8);
    }
    if (d->peek)
        memcpy(d->result + 1, &memory, d->peek);
    w->move.done(&w->move, 0);
}

static void on_held(void *owner)
{
    held++;
}

static void on_ask(void *owner)
{
    asked++;
}

static void on_clear(void *owner, uint32_t delegated)
{
    cleared++;
}

static void on_ask_delegation(void *owner, uint32_t serial)
{
    delegations = serial;
}

static void on_withdraw(void *owner, uint32_t serial)
{
    withdrawn = serial;
}

static void on_give_back(void *owner, uint32_t serial)
{
    given_back++;
}

static const struct mr_far_events events = {.held = on_held,
                                            .ask = on_ask,
                                            .clear = on_clear,
                                            .ask_delegation = on_ask_delegation,
                                            .withdraw = on_withdraw,
                                            .give_back = on_give_back};

static struct mr_far *open_far(uint32_t slot, uint32_t slots)
{
    const struct mr_remote part = {.len = mr_lock_part_bytes(SLOTS), .num_keys = 1};
    struct mr_taker as;

    mr_taker_init(&as, 7, slot, slots);
    return mr_far_open(&vc, &part, &as, &events, &vc);
}

static void setup(void)
{
    mr_config.log_level = -1;
    memset(&memory, 0, sizeof(memory));
    memory.part.slots = 2;
    stub_clock_ns = 1000;
    num_words = held = asked = cleared = given_back = delegations = withdrawn = 0;
    mr_far_init();
}

static void pass(uint64_t ns)
{
    stub_clock_ns += ns;
    if (*paused)
        poll_paused();
}

static void close_far(struct mr_far *f)
{
    ck_assert(mr_far_is_quiet(f));
    mr_far_close(f);
}

START_TEST(a_slot_that_is_not_there_is_none)
{
    struct mr_far *f = open_far(SLOTS - 1, SLOTS);

    ck_assert_ptr_nonnull(f);
    close_far(f);
    ck_assert_ptr_null(open_far(0, 0));
    ck_assert_ptr_null(open_far(2, 2));
    ck_assert_ptr_null(open_far(0, SLOTS + 1));
    ck_assert_ptr_null(open_far(SLOTS, SLOTS + 1));
    ck_assert_ptr_null(open_far(UINT32_MAX, UINT32_MAX));
}
END_TEST

/* Memory beyond the known keys is not read: the process there is asked. */
START_TEST(nor_one_that_is_read)
{
    struct mr_far *f = open_far(0, 1);

    memory.part.slots = 1u << 30;
    ck_assert(mr_far_begin(f, true));
    pass(1000000);
    ck_assert_uint_eq(withdrawn, 1);
    execute();
    while (num_words)
        execute();
    ck_assert_uint_eq(held, 0);
    ck_assert_uint_eq(asked + cleared, 2);
    mr_far_withdrawn(f);
    mr_far_cleared(f);
    ck_assert_uint_eq(num_words, 0);
    close_far(f);
}
END_TEST

START_TEST(lent_and_given_back)
{
    struct mr_far *f = open_far(1, 2);

    for (unsigned i = 1; i < 4; i++) {
        ck_assert(mr_far_begin(f, true));
        ck_assert_uint_eq(delegations, i);
        mr_lock_part_delegate(&memory.part, 1);
        mr_far_delegated(f, i);
        ck_assert_uint_eq(held, i);
        mr_far_give(f);
        execute();
        ck_assert(mr_lock_part_try(&memory.part, true));
        mr_lock_part_drop(&memory.part, true);
    }
    close_far(f);
}
END_TEST

/*
 * The process there has advertised its memory and computes: the lock waits neither for the process nor for its check of
 * the withdrawal.
 */
START_TEST(lent_too_late)
{
    struct mr_far *f = open_far(1, 2);

    ck_assert(mr_far_begin(f, true));
    mr_lock_part_delegate(&memory.part, 1);
    pass(1000000);
    ck_assert_uint_eq(withdrawn, 1);
    execute();
    ck_assert_uint_eq(held, 0);
    mr_far_delegated(f, 1);
    for (unsigned i = 0; i < 10 && !held; i++)
        execute();
    ck_assert_uint_eq(held, 1);
    ck_assert(!mr_lock_part_try(&memory.part, true));
    while (num_words)
        execute();
    mr_far_give(f);
    execute();
    ck_assert(mr_lock_part_try(&memory.part, true));
    mr_lock_part_drop(&memory.part, true);
    ck_assert(!mr_far_is_quiet(f)); /* its answer may still come */
    mr_far_withdrawn(f);
    ck_assert_uint_eq(given_back + cleared + asked, 0);
    close_far(f);
}
END_TEST

/* An unrequested message changes nothing. */
START_TEST(lent_unasked)
{
    struct mr_far *f = open_far(1, 2);

    mr_far_delegated(f, 0);
    mr_far_delegated(f, 5);
    ck_assert_uint_eq(held + num_words, 0);
    close_far(f);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("far");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, a_slot_that_is_not_there_is_none);
    tcase_add_test(t, nor_one_that_is_read);
    tcase_add_test(t, lent_and_given_back);
    tcase_add_test(t, lent_too_late);
    tcase_add_test(t, lent_unasked);
    return check_run(t, NULL);
}
