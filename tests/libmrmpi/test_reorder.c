/* SPDX-License-Identifier: BSD-3-Clause */
/* The out-of-order queue: any permutation with duplicates comes out once and in order, over the wrap of the numbers. */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/channel/reorder.h"
#include "tests/check.h"

#define N 200

static struct mr_reorder queue;
static uint32_t delivered[2 * N];
static unsigned num_delivered;

static void deliver(const struct mr_hdr *hdr, const void *payload, size_t len)
{
    uint32_t word = 0;

    ck_assert_uint_eq(len, hdr->seq % 5 ? 4 : 0);
    if (len) {
        memcpy(&word, payload, len);
        ck_assert_uint_eq(word, ~hdr->seq);
    }
    delivered[num_delivered++] = hdr->seq;
}

static void arrive(uint32_t seq)
{
    struct mr_hdr hdr = {.seq = seq};
    uint32_t word = ~seq;
    size_t len = seq % 5 ? 4 : 0;
    struct mr_held *h;

    switch (mr_reorder_classify(&queue, seq)) {
    case MR_ORDER_DUPLICATE:
        return;
    case MR_ORDER_REFUSED:
        ck_abort_msg("packet %u was refused", seq);
    case MR_ORDER_EARLY:
        ck_assert_int_ge(mr_reorder_hold(&queue, &hdr, &word, len), 0);
        return;
    case MR_ORDER_NEXT:
        mr_reorder_advance(&queue);
        deliver(&hdr, &word, len);
    }
    while ((h = mr_reorder_pop(&queue))) {
        mr_reorder_advance(&queue);
        deliver(&h->hdr, h->payload, h->len);
        mr_reorder_free(h);
    }
}

/* Loop index: the seed; odd ones start short of the wrap. */
START_TEST(permutations)
{
    uint32_t first = _i % 2 ? 0u - N / 2 : 0, order[2 * N];

    srand((unsigned)_i);
    memset(&queue, 0, sizeof queue);
    queue.expected = first;
    num_delivered = 0;
    for (unsigned i = 0; i < 2 * N; i++)
        order[i] = first + i % N; /* each twice */
    for (unsigned i = 2 * N - 1; i > 0; i--) {
        unsigned k = (unsigned)rand() % (i + 1);
        uint32_t t = order[i];

        order[i] = order[k];
        order[k] = t;
    }
    for (unsigned i = 0; i < 2 * N; i++)
        arrive(order[i]);
    ck_assert_uint_eq(num_delivered, N);
    for (unsigned i = 0; i < N; i++)
        ck_assert_uint_eq(delivered[i], first + i);
    ck_assert_uint_eq(queue.num_held, 0);
    ck_assert_ptr_null(queue.head);
    ck_assert_ptr_null(queue.tail);
}
END_TEST

START_TEST(reversed)
{
    memset(&queue, 0, sizeof queue);
    num_delivered = 0;
    for (uint32_t i = N; i-- > 1;)
        arrive(i);
    ck_assert_uint_eq(num_delivered, 0);
    ck_assert_uint_eq(queue.num_held, N - 1);
    arrive(0);
    ck_assert_uint_eq(num_delivered, N);
}
END_TEST

START_TEST(held_twice_is_kept_once)
{
    struct mr_hdr hdr = {.seq = 7};

    memset(&queue, 0, sizeof queue);
    ck_assert_int_eq(mr_reorder_hold(&queue, &hdr, "abcd", 4), 1);
    ck_assert_int_eq(mr_reorder_hold(&queue, &hdr, "abcd", 4), 0);
    hdr.seq = 9;
    ck_assert_int_eq(mr_reorder_hold(&queue, &hdr, "abcd", 4), 1);
    hdr.seq = 7;
    ck_assert_int_eq(mr_reorder_hold(&queue, &hdr, "abcd", 4), 0);
    ck_assert_uint_eq(queue.num_held, 2);
    ck_assert_ptr_null(mr_reorder_pop(&queue)); /* 0 is still missing */
    mr_reorder_clear(&queue);
    ck_assert_ptr_null(queue.head);
}
END_TEST

/* A payload kept in its receive buffer: given back when delivered, dropped as a duplicate, or cleared. */
static unsigned given_back;

static void retained_back(struct mr_retained *retained)
{
    given_back++;
}

static struct {
    struct mr_retained retained;
    unsigned char payload[MR_RETAINED_LEAST];
} buffer[3];

static struct mr_retained *find_buffer(const void *payload, enum mr_retained_term term)
{
    ck_assert_int_eq(term, MR_RETAINED_UNTIL_TURN);
    for (unsigned i = 0; i < 2; i++) /* the third is not retained */
        if (payload == buffer[i].payload)
            return &buffer[i].retained;
    return NULL;
}

START_TEST(lent_ones_are_not_copied)
{
    struct mr_held *h;

    memset(&queue, 0, sizeof queue);
    mr_retained_find = find_buffer;
    given_back = 0;
    for (unsigned i = 0; i < 3; i++) {
        struct mr_hdr hdr = {.seq = i + 1};

        buffer[i].retained = (struct mr_retained){.give_back = retained_back};
        ck_assert_int_eq(mr_reorder_hold(&queue, &hdr, buffer[i].payload, MR_RETAINED_LEAST), 1);
        ck_assert_int_eq(mr_reorder_hold(&queue, &hdr, buffer[i].payload, MR_RETAINED_LEAST), 0);
        ck_assert_uint_eq(buffer[i].retained.refs, i < 2);
    }
    mr_reorder_advance(&queue);
    h = mr_reorder_pop(&queue);
    ck_assert_ptr_eq(h->payload, buffer[0].payload);
    ck_assert_uint_eq(given_back, 0);
    mr_reorder_free(h);
    ck_assert_uint_eq(given_back, 1);
    mr_reorder_clear(&queue);
    ck_assert_uint_eq(given_back, 2);
    mr_retained_find = NULL;
}
END_TEST

START_TEST(old_ones_are_duplicates)
{
    struct mr_reorder r = {.expected = 5};

    ck_assert_int_eq(mr_reorder_classify(&r, 4), MR_ORDER_DUPLICATE);
    ck_assert_int_eq(mr_reorder_classify(&r, 0xffffffff), MR_ORDER_DUPLICATE);
    ck_assert_int_eq(mr_reorder_classify(&r, 5), MR_ORDER_NEXT);
    ck_assert_int_eq(mr_reorder_classify(&r, 6), MR_ORDER_EARLY);
    r.expected = 0xffffffff;
    ck_assert_int_eq(mr_reorder_classify(&r, 0), MR_ORDER_EARLY);
}
END_TEST

/* A peer that sends beyond its window costs no memory. */
START_TEST(far_ahead_is_refused)
{
    struct mr_reorder r = {.expected = 0xffffff00};

    ck_assert_int_eq(mr_reorder_classify(&r, r.expected + 32767), MR_ORDER_EARLY);
    ck_assert_int_eq(mr_reorder_classify(&r, r.expected + MR_REORDER_AHEAD_MAX), MR_ORDER_EARLY);
    ck_assert_int_eq(mr_reorder_classify(&r, r.expected + MR_REORDER_AHEAD_MAX + 1), MR_ORDER_REFUSED);
    ck_assert_int_eq(mr_reorder_classify(&r, r.expected + 0x7fffffff), MR_ORDER_REFUSED);
    ck_assert_int_eq(mr_reorder_classify(&r, r.expected + 0x80000000), MR_ORDER_DUPLICATE);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("reorder");

    tcase_add_loop_test(t, permutations, 0, 20);
    tcase_add_test(t, reversed);
    tcase_add_test(t, held_twice_is_kept_once);
    tcase_add_test(t, lent_ones_are_not_copied);
    tcase_add_test(t, old_ones_are_duplicates);
    tcase_add_test(t, far_ahead_is_refused);
    return check_run(t, NULL);
}
