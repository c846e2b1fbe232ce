/* SPDX-License-Identifier: BSD-3-Clause */
/* Credits of eager messages: the outstanding bytes of a sender, updates by notes and grants, and agreement of both. */
#include <stdlib.h>

#include "libmrmpi/p2p/choice/credit.h"
#include "tests/check.h"

#define KIB 1024u
#define MIB (1024u * KIB)

START_TEST(a_window_is_spent_and_given_back)
{
    struct mr_credit c = {0};
    size_t window = 10 * (1000 + MR_CREDIT_EACH);

    for (int i = 0; i < 10; i++) {
        ck_assert(mr_credit_allows(&c, 1000, window));
        mr_credit_spend(&c, 1000);
    }
    ck_assert(!mr_credit_allows(&c, 0, window));
    ck_assert(mr_credit_returned(&c, 3 * (1000 + MR_CREDIT_EACH)));
    ck_assert(mr_credit_allows(&c, 3000 + 2 * MR_CREDIT_EACH, window));
    ck_assert(!mr_credit_allows(&c, 3001 + 2 * MR_CREDIT_EACH, window));
    ck_assert(!mr_credit_allows(&(struct mr_credit){0}, 0, 0));
}
END_TEST

/* A peer with a damaged memory, or an older count: neither gives credit. */
START_TEST(no_more_comes_back_than_was_spent)
{
    struct mr_credit c = {0};

    mr_credit_spend(&c, 20 * KIB);
    ck_assert(!mr_credit_returned(&c, 20 * KIB + MR_CREDIT_EACH + 1));
    ck_assert(!mr_credit_noted(&c, 2));
    ck_assert_uint_eq(c.used, 20 * KIB + MR_CREDIT_EACH);
    ck_assert(mr_credit_noted(&c, 1));
    ck_assert_uint_eq(c.used, 4 * KIB + MR_CREDIT_EACH);
    ck_assert(mr_credit_returned(&c, 100));
    ck_assert_uint_eq(c.used, 4 * KIB + MR_CREDIT_EACH);
    ck_assert(mr_credit_returned(&c, 20 * KIB + MR_CREDIT_EACH));
    ck_assert_uint_eq(c.used, 0);
    ck_assert(mr_credit_noted(&c, 1)); /* again, as every packet does */
    ck_assert_uint_eq(c.used, 0);
    ck_assert_uint_eq(c.acked, 20 * KIB + MR_CREDIT_EACH);
}
END_TEST

/*
 * Both ends of one direction. Every packet of the receiver takes the note along. Violations of the invariant are
 * counted, because an assertion of Check costs too much for each message.
 */
struct pair {
    struct mr_credit from, to;
    size_t window;
    uint32_t packets; /* from the receiver */
    uint8_t note;
    unsigned grants, looks, wrong;
};

static void say(struct pair *p)
{
    p->packets++;
    p->wrong += p->note != p->from.noted && !mr_credit_noted(&p->from, p->note);
}

static void consume(struct pair *p, size_t len)
{
    if (!mr_credit_consume(&p->to, len))
        return;
    p->looks++;
    if (!mr_credit_check(&p->to, p->packets, p->window, &p->note))
        return;
    say(p);
    p->wrong += !mr_credit_returned(&p->from, p->to.consumed);
    mr_credit_told(&p->to);
    p->grants++;
}

static const size_t windows[] = {8 * KIB, 64 * KIB, 100000, 4 * MIB, 256 * MIB};
#define WINDOWS (int)(sizeof windows / sizeof windows[0])

/* To a receiver that never answers: grants alone keep the sender going, and they are few. */
START_TEST(one_way)
{
    enum { N = 100000, LEN = 1500 };
    struct pair p = {.window = windows[_i]};
    size_t part = p.window / 2 < MR_CREDIT_MOST ? p.window / 2 : MR_CREDIT_MOST;

    for (int i = 0; i < N; i++) {
        p.wrong += !mr_credit_allows(&p.from, LEN, p.window);
        mr_credit_spend(&p.from, LEN);
        consume(&p, LEN);
        p.wrong += p.from.used + p.from.acked != p.to.consumed;
    }
    ck_assert_uint_eq(p.wrong, 0);
    ck_assert_uint_ge(p.grants, 1);
    ck_assert_uint_le(p.grants, (uint64_t)N * (LEN + MR_CREDIT_EACH) / part + 1);
}
END_TEST

/* Every message is answered: the notes say all, and the count is looked at rarely. */
START_TEST(answers_make_grants_superfluous)
{
    enum { N = 100000 };
    struct pair p = {.window = 4 * MIB};

    for (int i = 0; i < N; i++) {
        mr_credit_spend(&p.from, 8);
        consume(&p, 8);
        say(&p);
        p.wrong += p.from.used > p.window / 2;
    }
    ck_assert_uint_eq(p.wrong, 0);
    ck_assert_uint_eq(p.grants, 0);
    ck_assert_uint_le(p.looks, N * (8 + MR_CREDIT_EACH) / (p.window / 8) + 1);
}
END_TEST

/* Random messages, delays and answers: the sender never believes more than is true, and less by half a window at most.
 */
START_TEST(random_traffic)
{
    enum { N = 200000 };
    struct pair p = {.window = windows[_i]};
    size_t queue[4096], head = 0, tail = 0;

    srandom(1 + (unsigned)_i);
    for (int i = 0; i < N; i++) {
        size_t len = (size_t)random() % (random() % 4 ? 100 : 60000);

        if (tail - head < 4096 && mr_credit_allows(&p.from, len, p.window)) {
            mr_credit_spend(&p.from, len);
            queue[tail++ % 4096] = len;
        }
        for (long k = random() % 4; k > 0 && head < tail; k--)
            consume(&p, queue[head++ % 4096]);
        if (random() % 64 == 0)
            say(&p);
        p.wrong += p.from.acked > p.to.consumed;
    }
    while (head < tail)
        consume(&p, queue[head++ % 4096]);
    ck_assert_uint_eq(p.wrong, 0);
    ck_assert_uint_gt(p.to.consumed, p.window);
    ck_assert_uint_lt(p.from.used, p.window / 2 > MR_CREDIT_LEAST ? p.window / 2 : MR_CREDIT_LEAST);
}
END_TEST

/* A note is eight bits. A receiver that sends nothing for long must not let the note wrap. */
START_TEST(a_note_that_waits_long_stays_true)
{
    struct pair p = {.window = 256 * MIB};

    mr_credit_spend(&p.from, 200 * MIB);
    for (int i = 0; i < 100; i++) {
        bool due;

        mr_credit_consume(&p.to, MIB);
        due = mr_credit_check(&p.to, p.packets, p.window, &p.note); /* and the grant cannot be sent */
        ck_assert(due == (p.to.consumed >= MR_CREDIT_MOST));
    }
    say(&p);
    ck_assert_uint_eq(p.from.acked, (uint64_t)MR_CREDIT_AHEAD * MR_CREDIT_UNIT);
    while (p.from.acked + MR_CREDIT_UNIT <= p.to.consumed) {
        uint64_t before = p.from.acked;

        mr_credit_check(&p.to, p.packets, p.window, &p.note);
        say(&p);
        ck_assert_uint_gt(p.from.acked, before);
        ck_assert_uint_le(p.from.acked, p.to.consumed);
    }
    ck_assert_uint_eq(p.wrong, 0);
}
END_TEST

START_TEST(windows_of_many_peers)
{
    ck_assert_uint_eq(mr_credit_window(4 * MIB, 256 * MIB, 0), 4 * MIB);
    ck_assert_uint_eq(mr_credit_window(4 * MIB, 256 * MIB, 64), 4 * MIB);
    ck_assert_uint_eq(mr_credit_window(4 * MIB, 256 * MIB, 128), 2 * MIB);
    ck_assert_uint_eq(mr_credit_window(4 * MIB, 256 * MIB, 100000), MR_CREDIT_WINDOW);
    ck_assert_uint_eq(mr_credit_window(100, 256 * MIB, 100000), 100);
    ck_assert_uint_eq(mr_credit_window(0, 256 * MIB, 1), 0);
    ck_assert_uint_eq(mr_credit_window(4 * MIB, 0, 1), MR_CREDIT_WINDOW);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("credit");

    tcase_add_test(c, a_window_is_spent_and_given_back);
    tcase_add_test(c, no_more_comes_back_than_was_spent);
    tcase_add_loop_test(c, one_way, 0, WINDOWS);
    tcase_add_test(c, answers_make_grants_superfluous);
    tcase_add_loop_test(c, random_traffic, 0, WINDOWS);
    tcase_add_test(c, a_note_that_waits_long_stays_true);
    tcase_add_test(c, windows_of_many_peers);
    return check_run(c, NULL);
}
