/* SPDX-License-Identifier: BSD-3-Clause */
/* Matching against a naive reference: one list, searched from its oldest entry. */
#include <stdlib.h>

#include "libmrmpi/core/core.h"
#include "libmrmpi/p2p/match/match.h"
#include "tests/check.h"

#define MANY 2000

struct item {
    uint32_t ctx;
    int src, tag;
    bool there;
    struct mr_match_entry entry;
    struct mr_match_quad quad;
};

static struct item items[MANY];

static bool takes(const struct item *r, uint32_t ctx, int src, int tag)
{
    return r->ctx == ctx && (r->src == MR_ANY_SOURCE || r->src == src) && (r->tag == MR_ANY_TAG || r->tag == tag);
}

static struct item random_item(bool wildcards)
{
    return (struct item){.ctx = 2 * (rand() % 3),
                         .src = wildcards && rand() % 4 == 0 ? MR_ANY_SOURCE : rand() % 5,
                         .tag = wildcards && rand() % 4 == 0 ? MR_ANY_TAG : rand() % 6,
                         .there = true};
}

START_TEST(posted_like_reference)
{
    struct mr_match_table t;
    int used = 0;

    srand(_i + 1);
    ck_assert_int_eq(mr_match_init(&t), 0);
    for (int step = 0; step < 20000; step++) {
        if (rand() % 2 && used < MANY) {
            items[used] = random_item(true);
            items[used].entry.owner = &items[used];
            ck_assert_int_eq(mr_match_insert(&t, &items[used].entry, items[used].ctx, items[used].src, items[used].tag),
                             0);
            used++;
        } else {
            struct item m = random_item(false), *expected = NULL;
            struct mr_match_entry *e = mr_match_take(&t, m.ctx, m.src, m.tag);

            for (int i = 0; i < used && !expected; i++)
                if (items[i].there && takes(&items[i], m.ctx, m.src, m.tag))
                    expected = &items[i];
            ck_assert_ptr_eq(e ? e->owner : NULL, expected);
            if (e)
                expected->there = false;
        }
    }
    mr_match_finalize(&t);
}
END_TEST

START_TEST(unexpected_like_reference)
{
    struct mr_match_table t;
    int used = 0;

    srand(_i + 100);
    ck_assert_int_eq(mr_match_init(&t), 0);
    for (int step = 0; step < 20000; step++) {
        if (rand() % 2 && used < MANY) {
            items[used] = random_item(false);
            ck_assert_int_eq(mr_match_insert_quad(&t, &items[used].quad, items[used].ctx, items[used].src,
                                                  items[used].tag, &items[used]),
                             0);
            used++;
        } else {
            struct item r = random_item(true), *expected = NULL;
            struct mr_match_entry *e = mr_match_find(&t, r.ctx, r.src, r.tag);

            for (int i = 0; i < used && !expected; i++)
                if (items[i].there && takes(&r, items[i].ctx, items[i].src, items[i].tag))
                    expected = &items[i];
            ck_assert_ptr_eq(e ? e->owner : NULL, expected);
            if (e) {
                mr_match_remove_quad(&t, &expected->quad);
                expected->there = false;
            }
        }
    }
    mr_match_finalize(&t);
}
END_TEST

START_TEST(wildcards_in_order)
{
    struct mr_match_table t;
    struct mr_match_entry any = {0}, exact = {0};

    ck_assert_int_eq(mr_match_init(&t), 0);
    mr_match_insert(&t, &any, 0, MR_ANY_SOURCE, MR_ANY_TAG);
    mr_match_insert(&t, &exact, 0, 1, 7);
    ck_assert_ptr_null(mr_match_take(&t, 2, 1, 7));
    ck_assert_ptr_eq(mr_match_take(&t, 0, 1, 7), &any);
    mr_match_insert(&t, &any, 0, MR_ANY_SOURCE, MR_ANY_TAG);
    ck_assert_ptr_eq(mr_match_take(&t, 0, 1, 7), &exact);
    mr_match_insert(&t, &exact, 0, 1, 7);
    ck_assert_ptr_eq(mr_match_take(&t, 0, 2, 7), &any);
    ck_assert_ptr_null(mr_match_take(&t, 0, 2, 7));
    ck_assert_ptr_eq(mr_match_take(&t, 0, 1, 7), &exact);
    ck_assert_ptr_null(mr_match_take(&t, 0, 1, 7));
    ck_assert(mr_match_empty(&t));
    mr_match_insert(&t, &exact, 0, 1, 7);
    mr_match_remove(&t, &exact);
    mr_match_remove(&t, &exact); /* not there any more: nothing happens */
    mr_match_finalize(&t);
}
END_TEST

/* A hundred thousand of different tags, taken from the last to the first: quick only if no list is searched. */
START_TEST(many_keys)
{
    enum { N = 100000 };
    struct mr_match_entry *e = calloc(N, sizeof(*e));
    struct mr_match_table t;

    ck_assert_ptr_nonnull(e);
    ck_assert_int_eq(mr_match_init(&t), 0);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(mr_match_insert(&t, &e[i], 0, 3, i), 0);
    for (int i = N - 1; i >= 0; i--) {
        ck_assert_ptr_eq(mr_match_find(&t, 0, 3, i), &e[i]);
        ck_assert_ptr_eq(mr_match_take(&t, 0, 3, i), &e[i]);
    }
    ck_assert(mr_match_empty(&t));
    mr_match_finalize(&t);
    free(e);
}
END_TEST

static struct mr_match_table *table;

/* Entry i has the tag i % 2, and the order of its arrival in owner. */
static void even_and_out(struct mr_match_entry *e, void *arg)
{
    int *expected = arg;

    ck_assert_int_eq((int)(intptr_t)e->owner, *expected);
    *expected += 2;
    if (*expected % 4)
        mr_match_remove(table, e);
}

START_TEST(each_under_a_key)
{
    struct mr_match_entry e[20];
    struct mr_match_table t;
    int next = 0, left[5], n = 0;

    ck_assert_int_eq(mr_match_init(&t), 0);
    table = &t;
    for (int i = 0; i < 20; i++) {
        e[i].owner = (void *)(intptr_t)i;
        ck_assert_int_eq(mr_match_insert(&t, &e[i], 4, 3, i % 2), 0);
    }
    mr_match_each_at(&t, 4, 2, 0, even_and_out, &next);
    mr_match_each_at(&t, 2, 3, 0, even_and_out, &next);
    ck_assert_int_eq(next, 0);
    mr_match_each_at(&t, 4, 3, 0, even_and_out, &next); /* takes out 0, 4, 8, 12, 16 */
    ck_assert_int_eq(next, 20);
    for (struct mr_match_entry *at; (at = mr_match_find(&t, 4, 3, 0)); n++) {
        ck_assert_int_lt(n, 5);
        left[n] = (int)(intptr_t)at->owner;
        mr_match_remove(&t, at);
    }
    ck_assert_int_eq(n, 5);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(left[i], 4 * i + 2);
    mr_match_finalize(&t);
}
END_TEST

/* Takes out the given entry, the last of most keys. */
static void take_out(struct mr_match_entry *e, void *arg)
{
    mr_match_remove(table, e);
    ++*(int *)arg;
}

/* A key whose queue has just become empty is found again, and only one such queue is kept. */
START_TEST(emptied_queues)
{
    struct mr_match_entry e[60];
    struct mr_match_table t;

    ck_assert_int_eq(mr_match_init(&t), 0);
    table = &t;
    for (int round = 0; round < 3; round++) {
        int taken = 0;

        for (int i = 0; i < 60; i++)
            ck_assert_int_eq(mr_match_insert(&t, &e[i], 4, 3, i % 50), 0);
        ck_assert_uint_eq(t.num_queues, 50);
        mr_match_each(&t, take_out, &taken);
        ck_assert_int_eq(taken, 60);
        ck_assert(mr_match_empty(&t));
        ck_assert_uint_le(t.num_queues, 1);
        ck_assert_ptr_null(mr_match_find(&t, 4, 3, 7));
    }
    for (int i = 0; i < 10; i++) { /* one after the other under one key, and another key in between */
        ck_assert_int_eq(mr_match_insert(&t, &e[0], 4, 3, 7), 0);
        ck_assert_ptr_null(mr_match_take(&t, 4, 3, 8));
        ck_assert_ptr_eq(mr_match_take(&t, 4, 3, 7), &e[0]);
        ck_assert_ptr_null(mr_match_take(&t, 4, 3, 7));
        if (i % 3)
            continue;
        ck_assert_int_eq(mr_match_insert(&t, &e[1], 4, 3, 8), 0);
        ck_assert_ptr_eq(mr_match_take(&t, 4, 3, 8), &e[1]);
    }
    mr_match_finalize(&t);
}
END_TEST

/* The queue of the last insertion is looked at first, but not when it has gone and serves another key. */
START_TEST(queue_of_the_last_insertion_goes)
{
    struct mr_match_entry e[4];
    struct mr_match_table t;

    ck_assert_int_eq(mr_match_init(&t), 0);
    ck_assert_int_eq(mr_match_insert(&t, &e[0], 4, 3, 7), 0);
    ck_assert_int_eq(mr_match_insert(&t, &e[1], 4, 3, 8), 0);
    mr_match_remove(&t, &e[1]);
    mr_match_remove(&t, &e[0]); /* now the queue of 8 goes: that of 7 is the empty one */
    ck_assert_int_eq(mr_match_insert(&t, &e[2], 4, 3, 8), 0);
    ck_assert_int_eq(mr_match_insert(&t, &e[3], 4, 3, 9), 0);
    ck_assert_ptr_eq(mr_match_take(&t, 4, 3, 8), &e[2]);
    ck_assert_ptr_eq(mr_match_take(&t, 4, 3, 9), &e[3]);
    mr_match_finalize(&t);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("match");

    tcase_set_timeout(c, 30);
    tcase_add_loop_test(c, posted_like_reference, 0, 8);
    tcase_add_loop_test(c, unexpected_like_reference, 0, 8);
    tcase_add_test(c, wildcards_in_order);
    tcase_add_test(c, many_keys);
    tcase_add_test(c, each_under_a_key);
    tcase_add_test(c, emptied_queues);
    tcase_add_test(c, queue_of_the_last_insertion_goes);
    return check_run(c, NULL);
}
