/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches: the eager prefix and the bounce buffer of each message, by earlier messages. */

#include "libmrmpi/p2p/choice/alone.h"
#include "libmrmpi/p2p/choice/batch.h"
#include "tests/check.h"

#define KIB 1024u
#define HDR 25000u
#define DDR 2000u

static struct mr_model model;

struct totals {
    uint64_t prefix, bounce;
    unsigned prefixes, bounces;
    uint32_t last_bounce; /* of the last message */
};

/* A batch whose sends are all complete at its end. */
static struct totals batch(struct mr_batch *b, unsigned num, uint64_t len, unsigned rate)
{
    struct totals t = {0};

    for (unsigned i = 0; i < num; i++) {
        struct mr_batch_plan p = mr_batch_begin(b, &model, len, rate, 0, 0);

        ck_assert_uint_le(p.prefix + (uint64_t)p.bounce, len);
        ck_assert(!p.prefix || i == num - 1);
        ck_assert(p.bounce || !t.bounces || i == num - 1); /* the tail has no holes */
        t.prefix += p.prefix;
        t.bounce += p.bounce;
        t.prefixes += p.prefix != 0;
        t.bounces += p.bounce != 0;
        t.last_bounce = p.bounce;
    }
    for (unsigned i = 0; i < num; i++)
        mr_batch_end(b);
    return t;
}

static struct totals learnt(unsigned num, uint64_t len, unsigned rate)
{
    struct mr_batch b = {0};
    struct totals t;

    for (int i = 0; i < 3; i++) {
        t = batch(&b, num, len, rate);
        ck_assert_uint_eq(t.prefix + t.bounce, 0);
    }
    return batch(&b, num, len, rate);
}

START_TEST(as_long_as_the_gap)
{
    struct totals t = learnt(4, 1024 * KIB, HDR);

    ck_assert(t.prefixes == 1 && t.bounces == 1);
    ck_assert_uint_le(t.prefix, MR_BATCH_MOST);
    ck_assert_uint_ge(t.prefix, HDR * (model.gap_ns / 100) / 10 - MR_MODEL_PAGE);
    ck_assert_uint_eq(t.prefix, t.bounce);
    t = learnt(4, 1024 * KIB, DDR);
    ck_assert(t.prefix == model.prefix && t.bounce == model.prefix);
    t = learnt(4, 1024 * KIB, 8 * HDR);
    ck_assert(t.prefix <= MR_BATCH_MOST && t.bounce <= MR_BATCH_MOST);
}
END_TEST

/* A message that is all eager prefix leaves the bounce buffer to the message before. */
START_TEST(tail_before_the_head)
{
    struct totals t = learnt(16, 32 * KIB, HDR);

    ck_assert(t.prefix == 32 * KIB && t.last_bounce == 0);
    ck_assert(t.bounce >= 64 * KIB && t.bounce <= MR_BATCH_MOST && t.bounces == 3);
}
END_TEST

/* Copies take no longer than the transfer of earlier messages. */
START_TEST(copies_are_hidden)
{
    ck_assert_uint_eq(learnt(1, 1024 * KIB, HDR).bounce, 0);
    ck_assert_uint_eq(learnt(1, 1024 * KIB, HDR).prefix, 0);
    for (unsigned num = 2; num < 40; num++)
        for (unsigned rate = 500; rate < 200000; rate *= 3) {
            struct totals t = learnt(num, 40 * KIB, rate);
            uint64_t before_ns = (num - 1) * 40ull * KIB * 1000 / rate;

            ck_assert_uint_le((t.prefix + t.bounce) * 1000 / model.busy_copy_mbps, before_ns + 1);
        }
}
END_TEST

/* Sends that follow each other without a wait for all are no batches. */
START_TEST(sliding_window)
{
    struct mr_batch b = {0};

    for (int i = 0; i < 4; i++)
        mr_batch_begin(&b, &model, 1024 * KIB, HDR, 0, 0);
    for (int i = 0; i < 100; i++) {
        struct mr_batch_plan p;

        mr_batch_end(&b);
        p = mr_batch_begin(&b, &model, 1024 * KIB, HDR, 0, 0);
        ck_assert(!p.prefix && !p.bounce);
    }
}
END_TEST

/* Rails that share no short pieces: the plan has none. */
START_TEST(several_rails)
{
    for (unsigned num = 2; num < 40; num++) {
        struct mr_batch b = {0};

        for (int i = 0; i < 5; i++) {
            for (unsigned k = 0; k < num; k++) {
                struct mr_batch_plan p = mr_batch_begin(&b, &model, 512 * KIB, 2 * HDR, 64 * KIB, 0);

                ck_assert((!p.prefix || p.prefix >= 64 * KIB) && (!p.bounce || p.bounce >= 64 * KIB));
                ck_assert(k < num - 1 || !p.prefix == (i < 3 || num < 3));
            }
            for (unsigned k = 0; k < num; k++)
                mr_batch_end(&b);
        }
    }
}
END_TEST

START_TEST(other_batches)
{
    struct mr_batch b = {0};
    struct totals t;

    for (int i = 0; i < 20; i++) {
        t = batch(&b, i % 2 ? 4 : 5, 1024 * KIB, HDR);
        ck_assert_uint_eq(t.prefix + t.bounce, 0);
    }
    for (int i = 0; i < 4; i++)
        t = batch(&b, 4, 1024 * KIB, HDR);
    ck_assert_uint_ne(t.prefix, 0);
    t = batch(&b, 2, 2048 * KIB, HDR); /* as many bytes, but the end is elsewhere */
    ck_assert_uint_eq(t.prefix, 0);
    for (int i = 0; i < 4; i++)
        t = batch(&b, 4, 1024 * KIB, HDR);
    mr_batch_begin(&b, &model, 4096 * KIB, HDR, 0, 0);
    for (int i = 0; i < 8; i++) { /* beyond the foreseen end */
        struct mr_batch_plan p = mr_batch_begin(&b, &model, 1024 * KIB, HDR, 0, 0);

        ck_assert(!p.prefix && !p.bounce);
    }
    t = batch(&b, 4, 1024 * KIB, 0);
    ck_assert_uint_eq(t.prefix + t.bounce, 0);
}
END_TEST

/* Nothing is copied while messages come the other way, and all again once none do. */
START_TEST(both_ways)
{
    struct mr_batch b = {0};
    unsigned bounces = 0;

    for (unsigned i = 0; i < 20; i++) {
        bounces = 0;
        for (unsigned k = 0; k < 16; k++) {
            uint64_t received = i < 6 ? 0 : i < 12 ? i * 16 + k : 12 * 16;

            bounces += mr_batch_begin(&b, &model, 64 * KIB, HDR, 0, received).bounce != 0;
        }
        for (unsigned k = 0; k < 16; k++)
            mr_batch_end(&b);
        ck_assert_int_eq(bounces != 0, (i >= 3 && i < 6) || i > 12);
    }
}
END_TEST

/* ---- single messages (alone.h) ---- */

START_TEST(alone_is_who_was_so_before)
{
    struct mr_alone a = {0};

    ck_assert_uint_eq(mr_alone_weigh(&a, 300, 300, 0, 0, false), 300); /* the first of a window, perhaps */
    ck_assert_uint_eq(mr_alone_weigh(&a, 300, 300, 0, 0, false), 300 / MR_ALONE_TIMES);
    ck_assert_uint_eq(mr_alone_weigh(&a, 300, 300, 1, 0, false), 300);
    ck_assert_uint_eq(mr_alone_weigh(&a, 300, 300, 0, 0, false), 300);
    ck_assert_uint_eq(mr_alone_weigh(&a, 300, 300, 0, 0, false), 300 / MR_ALONE_TIMES);
}
END_TEST

START_TEST(fast_copies_weigh_less)
{
    struct mr_alone a = {0};

    ck_assert_uint_eq(mr_alone_weigh(&a, 300, 200, 1, 0, false), 200);
    ck_assert_uint_eq(mr_alone_weigh(&a, 300, 0, 1, 0, false), 300 / MR_ALONE_TIMES);
}
END_TEST

START_TEST(exchanges_are_not_alone)
{
    struct mr_alone a = {0};

    for (unsigned i = 1; i < 5; i++)
        ck_assert_uint_eq(mr_alone_weigh(&a, 300, 300, 0, i, false), 300);
    ck_assert_uint_eq(mr_alone_weigh(&a, 300, 300, 0, 5, true), 300 / MR_ALONE_TIMES); /* a round trip is no exchange */
    ck_assert_uint_eq(mr_alone_weigh(&a, 300, 300, 1, 6, true), 300);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("batch");

    if (!mr_model_parse(&model, "", NULL, 0))
        return 1;
    tcase_add_test(c, as_long_as_the_gap);
    tcase_add_test(c, tail_before_the_head);
    tcase_add_test(c, copies_are_hidden);
    tcase_add_test(c, sliding_window);
    tcase_add_test(c, several_rails);
    tcase_add_test(c, other_batches);
    tcase_add_test(c, both_ways);
    tcase_add_test(c, alone_is_who_was_so_before);
    tcase_add_test(c, exchanges_are_not_alone);
    tcase_add_test(c, fast_copies_weigh_less);
    return check_run(c, NULL);
}
