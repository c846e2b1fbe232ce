/* SPDX-License-Identifier: BSD-3-Clause */
/* The send window, step by step; each test runs from sequence number 0 and over the wrap (loop index 1). */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/conn/reliable/loss.h"
#include "tests/check.h"

#define N   2000
#define LEN 100

static struct mr_window w;
static struct mr_kept kept[N];
static uint32_t first;

static void begin(int i, unsigned limit)
{
    mr_window_init(&w, limit);
    first = i ? 0u - 5 : 0;
    mr_window_start(&w, first);
    memset(kept, 0, sizeof kept);
}

static void push(unsigned from, unsigned to)
{
    ck_assert_int_eq(mr_window_reserve(&w, 2), 0);
    for (unsigned i = from; i < to; i++) {
        kept[i].len = LEN;
        ck_assert_int_eq(mr_window_push(&w, &kept[i]), 0);
        ck_assert_uint_eq(kept[i].seq, first + i);
        ck_assert_int_eq(kept[i].state, MR_KEPT_WAITING);
    }
}

/* The next ready packet is packet i; it goes over the link. */
static void sent(unsigned i, unsigned link, bool native, uint64_t now)
{
    ck_assert_ptr_eq(mr_window_ready(&w), &kept[i]);
    ck_assert_int_eq(mr_window_reserve(&w, link + 1), 0); /* beside links in use */
    mr_window_sent(&w, &kept[i], link, native, now);
    ck_assert_int_eq(kept[i].state, MR_KEPT_SENT);
    ck_assert_uint_eq(kept[i].link, link);
}

/* The chain is these packets, in this order, as indices that -1 ends. */
static void is_given(struct mr_kept *k, const int *index)
{
    for (; *index >= 0; index++, k = k->next) {
        ck_assert_ptr_eq(k, &kept[*index]);
        ck_assert_int_eq(k->state, MR_KEPT_DONE);
    }
    ck_assert_ptr_null(k);
}
#define GIVEN(chain, ...) is_given(chain, (const int[]){__VA_ARGS__ __VA_OPT__(, ) - 1})

static void is_empty(void)
{
    ck_assert_uint_eq(w.num, 0);
    ck_assert_uint_eq(w.bytes, 0);
    ck_assert_uint_eq(w.base, w.next);
    ck_assert_uint_eq(mr_window_waiting(&w), 0);
    ck_assert_uint_eq(mr_window_deadline(&w), UINT64_MAX);
    ck_assert_ptr_null(mr_window_ready(&w));
    ck_assert_ptr_null(mr_window_free(&w));
}

START_TEST(idle_costs_nothing)
{
    begin(_i, 8);
    ck_assert_ptr_null(w.slot);
    ck_assert_ptr_null(w.link);
    ck_assert_ptr_null(mr_window_ready(&w));
    ck_assert_ptr_null(mr_window_confirmed(&w, 3, 1));
    ck_assert_ptr_null(mr_window_acked(&w, first, 0, 1, true));
    ck_assert_ptr_null(mr_window_acked(&w, first + 1, 1, 1, true));
    ck_assert_uint_eq(mr_window_link_lost(&w, 3), 0);
    ck_assert_uint_eq(mr_window_expired(&w, UINT64_MAX - 1), 0);
    ck_assert_ptr_null(w.slot);
    is_empty();
}
END_TEST

START_TEST(native_in_order)
{
    begin(_i, N);
    push(0, N);
    ck_assert_uint_eq(mr_window_waiting(&w), N);
    ck_assert_uint_eq(w.bytes, (uint64_t)N * LEN);
    for (unsigned i = 0; i < N; i++)
        sent(i, 0, true, 0);
    ck_assert_uint_eq(mr_window_waiting(&w), 0);
    ck_assert_uint_eq(mr_window_deadline(&w), UINT64_MAX);
    for (int i = 0; i < N; i++) {
        ck_assert_uint_eq(w.num, (unsigned)(N - i));
        GIVEN(mr_window_confirmed(&w, 0, 1), i);
        ck_assert_uint_eq(w.base, first + (unsigned)i + 1);
    }
    ck_assert_ptr_null(w.slot); /* a large ring is not kept */
    ck_assert_uint_eq(w.num_most, N);
    ck_assert_uint_eq(w.bytes_most, (uint64_t)N * LEN);
    push(0, 0);
    is_empty();
}
END_TEST

/* A packet posted while the window is clear is like a packet pushed and then sent. */
START_TEST(posted_at_once)
{
    begin(_i, 6);
    ck_assert(!mr_window_is_clear(&w)); /* no ring yet */
    push(0, 1);
    ck_assert(!mr_window_is_clear(&w)); /* one waits */
    sent(0, 1, true, 0);
    for (unsigned i = 1; i < 6; i++) {
        ck_assert(mr_window_is_clear(&w));
        kept[i].len = LEN;
        kept[i].state = MR_KEPT_DONE;
        kept[i].tries = 9;
        kept[i].blind = true;
        kept[i].sent_ns = 7;
        if (i & 1) {
            mr_window_post(&w, &kept[i], i % 3 ? 1 : 0);
        } else {
            push(i, i + 1);
            sent(i, i % 3 ? 1 : 0, true, 0);
        }
        ck_assert_uint_eq(kept[i].seq, first + i);
        ck_assert_int_eq(kept[i].state, MR_KEPT_SENT);
        ck_assert_uint_eq(kept[i].tries, 1);
        ck_assert(!kept[i].blind && !kept[i].sent_ns && !kept[i].next);
        ck_assert_uint_eq(w.num, i + 1);
        ck_assert_uint_eq(w.bytes, (uint64_t)(i + 1) * LEN);
        ck_assert_uint_eq(mr_window_waiting(&w), 0);
    }
    ck_assert(!mr_window_is_clear(&w)); /* the limit */
    GIVEN(mr_window_confirmed(&w, 1, 3), 0, 1, 2);
    ck_assert(mr_window_is_clear(&w));
    mr_window_set_limit(&w, 3);
    ck_assert(!mr_window_is_clear(&w));
    GIVEN(mr_window_confirmed(&w, 0, 1), 3);
    ck_assert(mr_window_is_clear(&w));
    ck_assert_uint_eq(mr_window_link_lost(&w, 1), 2);
    ck_assert(!mr_window_is_clear(&w)); /* some are to be sent again */
    ck_assert_ptr_eq(mr_window_ready(&w), &kept[4]);
    sent(4, 0, true, 0);
    sent(5, 0, true, 0);
    GIVEN(mr_window_confirmed(&w, 0, 2), 4, 5);
    is_empty();
}
END_TEST

/* A ring that is full is not clear, whatever the limit. */
START_TEST(full_ring_is_not_clear)
{
    unsigned n = 0;

    begin(_i, N);
    push(0, 1);
    sent(n++, 0, true, 0);
    while (mr_window_is_clear(&w)) {
        ck_assert_uint_lt(n, 100);
        kept[n].len = LEN;
        mr_window_post(&w, &kept[n++], 0);
    }
    ck_assert_uint_eq(n, w.mask);
    push(n, n + 1); /* grows */
    sent(n++, 0, true, 0);
    ck_assert(mr_window_is_clear(&w));
    for (unsigned i = 0; i < n; i++)
        GIVEN(mr_window_confirmed(&w, 0, 1), (int)i);
    is_empty();
}
END_TEST

START_TEST(limit_holds)
{
    begin(_i, 4);
    push(0, 10);
    for (unsigned i = 0; i < 4; i++)
        sent(i, i % 2, true, 0);
    ck_assert_ptr_null(mr_window_ready(&w));
    ck_assert_uint_eq(mr_window_waiting(&w), 6);
    GIVEN(mr_window_confirmed(&w, 1, 1), 1); /* not the oldest: the window does not move */
    ck_assert_ptr_null(mr_window_ready(&w));
    GIVEN(mr_window_confirmed(&w, 0, 1), 0);
    sent(4, 0, true, 0);
    sent(5, 0, true, 0);
    ck_assert_ptr_null(mr_window_ready(&w));
    mr_window_set_limit(&w, 5);
    sent(6, 0, true, 0);
    ck_assert_ptr_null(mr_window_ready(&w));
    mr_window_set_limit(&w, 0); /* counts as 1 */
    ck_assert_uint_eq(mr_window_link_lost(&w, 0), 4);
    ck_assert_uint_eq(mr_window_link_lost(&w, 1), 1);
    sent(2, 0, true, 0);
    ck_assert_ptr_null(mr_window_ready(&w)); /* packets to be sent again obey the limit, too */
    mr_window_set_limit(&w, 1u << 20);
    ck_assert_uint_eq(w.limit, MR_WINDOW_LIMIT_MAX);
    for (unsigned i = 3; i < 10; i++)
        sent(i, 0, true, 0);
    GIVEN(mr_window_confirmed(&w, 0, 100), 2, 3, 4, 5, 6, 7, 8, 9); /* more than there are */
    is_empty();
}
END_TEST

START_TEST(full_memory_changes_nothing)
{
    struct mr_window before;

    begin(_i, 4);
    push(0, 2);
    before = w;
    before.mask = w.mask = (1u << 30) - 1;
    before.next = w.next = w.base + w.mask;
    kept[2].seq = 77;
    ck_assert_int_eq(mr_window_push(&w, &kept[2]), -ENOMEM);
    ck_assert_mem_eq(&w, &before, sizeof w);
    ck_assert_uint_eq(kept[2].seq, 77);
    w.mask = 15;
    w.next = w.base + 2;
    sent(0, 0, true, 0);
    ck_assert_ptr_eq(mr_window_free(&w), &kept[0]);
    ck_assert_ptr_eq(kept[0].next, &kept[1]);
    ck_assert_ptr_null(kept[1].next);
    is_empty();
}
END_TEST

START_TEST(room_that_is_made)
{
    begin(_i, 4);
    for (unsigned have = 0; have < 100; have += 10) {
        struct mr_kept **slot;

        ck_assert_int_eq(mr_window_make_room(&w, 10), 0);
        slot = w.slot;
        push(have, have + 10);
        ck_assert_ptr_eq(w.slot, slot); /* did not grow */
    }
    w.mask = (1u << 30) - 1;
    w.next = w.base + w.mask - 10;
    ck_assert_int_eq(mr_window_make_room(&w, 10), 0);
    ck_assert_int_eq(mr_window_make_room(&w, 11), -ENOMEM);
    w.mask = 127;
    w.next = w.base + 100;
    ck_assert_ptr_eq(mr_window_free(&w), &kept[0]);
    is_empty();
}
END_TEST

START_TEST(slow_link_holds_only_its_own)
{
    begin(_i, N);
    push(0, N);
    sent(0, 7, true, 0);
    for (unsigned i = 1; i < N; i++)
        sent(i, 8, true, 0);
    for (int i = 1; i < N; i++)
        GIVEN(mr_window_confirmed(&w, 8, 1), i);
    ck_assert_uint_eq(w.num, 1);
    ck_assert_uint_eq(w.base, first);
    GIVEN(mr_window_confirmed(&w, 7, 1), 0);
    is_empty();
}
END_TEST

/* A packet acknowledged before the link confirms counts among the confirmed. */
START_TEST(acked_before_native_confirms)
{
    begin(_i, N);
    push(0, 8);
    for (unsigned i = 0; i < 8; i++)
        sent(i, 2, true, 0);
    GIVEN(mr_window_acked(&w, first + 2, 1u << 1, 0, false), 0, 1, 4);
    ck_assert_ptr_null(mr_window_confirmed(&w, 2, 2)); /* 0 and 1 */
    GIVEN(mr_window_confirmed(&w, 2, 1), 2);
    GIVEN(mr_window_confirmed(&w, 2, 2), 3); /* 4 counts, but has gone */
    GIVEN(mr_window_acked(&w, first + 8, 0, 0, false), 5, 6, 7);
    push(8, 10);
    sent(8, 2, true, 0);
    ck_assert_ptr_null(mr_window_confirmed(&w, 2, 3)); /* 5, 6, 7 */
    sent(9, 2, true, 0);
    GIVEN(mr_window_confirmed(&w, 2, 1), 8);
    GIVEN(mr_window_confirmed(&w, 2, 1), 9);
    is_empty();
}
END_TEST

START_TEST(words_that_cannot_be)
{
    begin(_i, N);
    push(0, 100);
    for (unsigned i = 0; i < 90; i++)
        sent(i, 0, false, 1000);
    ck_assert_ptr_null(mr_window_acked(&w, first + 91, 0, 2000, true)); /* 90 was not sent */
    ck_assert_ptr_null(mr_window_acked(&w, first + 80, 1u << 9, 2000, true));
    ck_assert_ptr_null(mr_window_acked(&w, first + 90, 1, 2000, true));
    ck_assert_ptr_null(mr_window_acked(&w, first + 0x80000000u, ~0ull, 2000, true));
    ck_assert_ptr_null(mr_window_acked(&w, first - 65, ~0ull, 2000, true));
    ck_assert_ptr_null(mr_window_acked(&w, first - 1, 0, 2000, true));
    ck_assert_uint_eq(w.num, 100);
    ck_assert_uint_eq(w.rtt.srtt_ns, 0);
    GIVEN(mr_window_acked(&w, first + 2, 0, 2000, true), 0, 1);
    ck_assert_uint_eq(w.rtt.srtt_ns, 1000);
    ck_assert_ptr_null(mr_window_acked(&w, first + 1, 0, 2000, true)); /* older than the known state */
    ck_assert_ptr_null(mr_window_acked(&w, first + 2, 0, 2000, true));
    /* an older word may still name packets in the window: bit 2 is packet 3 */
    GIVEN(mr_window_acked(&w, first, 1u << 2, 2000, true), 3);
    GIVEN(mr_window_acked(&w, first + 25, 1ull << 63, 2000, true), 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
          18, 19, 20, 21, 22, 23, 24, 89);
    ck_assert_uint_eq(w.num, 74);
    ck_assert_ptr_nonnull(mr_window_free(&w));
    is_empty();
}
END_TEST

START_TEST(lost_link_waits_again_in_order)
{
    begin(_i, N);
    push(0, 12);
    for (unsigned i = 0; i < 10; i++)
        sent(i, i % 2, i % 2, 1000);
    GIVEN(mr_window_confirmed(&w, 1, 2), 1, 3);
    ck_assert_uint_eq(mr_window_link_lost(&w, 0), 5); /* 0 2 4 6 8 */
    ck_assert_uint_eq(mr_window_deadline(&w), UINT64_MAX);
    sent(0, 1, true, 2000);
    sent(2, 1, true, 2000);
    ck_assert_uint_eq(mr_window_link_lost(&w, 1), 5); /* 5 7 9 0 2 */
    ck_assert_uint_eq(mr_window_waiting(&w), 10);
    ck_assert_uint_eq(mr_window_link_lost(&w, 1), 0);
    GIVEN(mr_window_acked(&w, first + 1, 1u << 3, 3000, true), 0, 5); /* some had arrived */
    /* the links have come back, with their kinds exchanged */
    sent(2, 1, false, 4000);
    sent(4, 0, true, 4000);
    sent(6, 0, true, 4000);
    sent(7, 1, false, 4000);
    sent(8, 0, true, 4000);
    sent(9, 0, true, 4000);
    sent(10, 0, true, 4000);
    sent(11, 0, true, 4000);
    ck_assert_uint_eq(kept[2].tries, 3);
    ck_assert_uint_eq(w.resent, 8);
    GIVEN(mr_window_confirmed(&w, 0, 6), 4, 6, 8, 9, 10, 11);
    ck_assert_ptr_null(mr_window_confirmed(&w, 1, 2)); /* a lossy link confirms nothing */
    GIVEN(mr_window_acked(&w, first + 8, 0, 5000, true), 2, 7);
    is_empty();
}
END_TEST

/* Three packets that overtook it on its own link prove a loss; any number on other links do not. */
START_TEST(overtaken_packets_wait_again)
{
    begin(_i, N);
    push(0, 20);
    sent(0, 0, false, 1000);
    sent(1, 1, false, 1000);
    for (unsigned i = 2; i < 8; i++)
        sent(i, 0, false, 1000);
    GIVEN(mr_window_acked(&w, first, 3u << 1, 2000, true), 2, 3);
    ck_assert_ptr_null(w.again);
    GIVEN(mr_window_acked(&w, first, 1u << 3, 2000, true), 4);
    ck_assert_uint_eq(w.gaps, 1);
    ck_assert_uint_eq(mr_window_waiting(&w), 13);
    sent(0, 0, false, 3000);
    for (unsigned i = 8; i < 20; i++)
        sent(i, 0, false, 3000);
    /* 0 was sent twice and does not overtake 5, 6, 7 by its second turn: the first may have come */
    GIVEN(mr_window_acked(&w, first + 1, 0, 4000, true), 0);
    ck_assert_ptr_null(w.again);
    GIVEN(mr_window_acked(&w, first + 1, 1u << 8, 4000, true), 10);
    ck_assert_uint_eq(w.gaps, 4); /* 5, 6, 7; 8 and 9 are too near */
    sent(5, 1, false, 5000);
    sent(6, 1, false, 5000);
    sent(7, 1, false, 5000);
    ck_assert_ptr_null(w.again);
    GIVEN(mr_window_acked(&w, first + 20, 0, 6000, true), 1, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19);
    is_empty();
}
END_TEST

/* Sent again, and lost again: detected by later packets, if acknowledged late enough to be the second. */
START_TEST(a_second_loss_is_found_too)
{
    begin(_i, N);
    push(0, 12);
    for (unsigned i = 0; i < 5; i++)
        sent(i, 0, false, 1000);
    GIVEN(mr_window_acked(&w, first, 7u << 1, 2000, true), 2, 3, 4);
    ck_assert_uint_eq(w.gaps, 2); /* 0, 1 */
    sent(0, 0, false, 3000);
    sent(1, 0, false, 3000);
    for (unsigned i = 5; i < 9; i++)
        sent(i, 0, false, 3000);
    GIVEN(mr_window_acked(&w, first, 15u << 4, 4000, true), 5, 6, 7, 8);
    ck_assert_ptr_nonnull(w.again);
    ck_assert_uint_eq(w.again->seq, first); /* once more */
    ck_assert_uint_eq(w.gaps, 4);
    sent(0, 0, false, 5000);
    sent(1, 0, false, 5000);
    /* 1 has come, but perhaps by its second posting, which proves nothing about the third of 0 */
    GIVEN(mr_window_acked(&w, first, 1, 5100, true), 1);
    ck_assert_ptr_null(w.again);
    for (unsigned i = 9; i < 12; i++)
        sent(i, 1, false, 6000);
    GIVEN(mr_window_acked(&w, first + 12, 0, 60000, true), 0, 9, 10, 11);
    is_empty();
}
END_TEST

/* Sent since the clock was read last: they count from the next reading. */
START_TEST(times_may_come_later)
{
    begin(_i, N);
    mr_rtt_init(&w.rtt, 1000, 1u << 20);
    push(0, 8);
    sent(0, 0, false, 0);
    GIVEN(mr_window_acked(&w, first + 1, 0, 50000, true), 0);
    ck_assert_uint_eq(w.rtt.srtt_ns, 0); /* no sample */
    sent(1, 0, false, 60000);
    GIVEN(mr_window_acked(&w, first + 2, 0, 60400, true), 1);
    ck_assert_uint_eq(w.rtt.srtt_ns, 400);
    for (unsigned i = 2; i < 5; i++)
        sent(i, 0, false, 0);
    mr_window_check(&w, 100000);
    ck_assert_uint_eq(mr_window_deadline(&w), 100000 + mr_rtt_timeout(&w.rtt));
    for (unsigned i = 5; i < 8; i++)
        sent(i, 0, false, 0);
    mr_window_check(&w, 101000);
    ck_assert_uint_eq(kept[4].sent_ns, 100000);
    ck_assert_uint_eq(kept[5].sent_ns, 101000);
    GIVEN(mr_window_acked(&w, first + 2, 1u << 4, 102000, true), 7);
    ck_assert_uint_eq(w.gaps, 3);
    /* 2 is sent again, and its first posting acknowledged before the next look: no other is overtaken by the second */
    sent(2, 0, false, 0);
    GIVEN(mr_window_acked(&w, first + 3, 0, 200000, true), 2);
    ck_assert_uint_eq(w.gaps, 3);
    GIVEN(mr_window_acked(&w, first + 8, 0, 300000, true), 3, 4, 5, 6);
    is_empty();
}
END_TEST

START_TEST(silent_links_are_known)
{
    uint64_t t = 1000;

    begin(_i, N);
    mr_rtt_init(&w.rtt, 1000, 1u << 20);
    push(0, 40);
    for (unsigned n = 0; n < MR_WINDOW_SILENT + 2; n++) {
        ck_assert(!mr_window_link_silent(&w, 0));
        mr_window_sent(&w, mr_window_ready(&w), 0, false, t);
        t += 1u << 20;
        ck_assert_uint_eq(mr_window_expired(&w, t), 1);
    }
    ck_assert(!mr_window_link_silent(&w, 0));          /* the peer computes, perhaps */
    for (unsigned n = 0; n < MR_WINDOW_ANSWERS; n++) { /* not so: link 1 has brought later packets */
        mr_window_sent(&w, mr_window_ready(&w), 0, false, t);
        sent(1 + n, 1, false, t + 1);
        ck_assert_ptr_nonnull(mr_window_acked(&w, first, (2u << n) - 1, t + 100, true));
        ck_assert(!mr_window_link_silent(&w, 0)); /* but may just have come back */
        t += 1u << 20;
        ck_assert_uint_eq(mr_window_expired(&w, t), 1);
    }
    mr_window_sent(&w, mr_window_ready(&w), 0, false, t);
    ck_assert(mr_window_link_silent(&w, 0));
    ck_assert(!mr_window_link_silent(&w, 1));
    ck_assert_uint_eq(mr_window_link_lost(&w, 0), 1);
    ck_assert(!mr_window_link_silent(&w, 0));
    ck_assert_ptr_nonnull(mr_window_free(&w));
}
END_TEST

/* The peer was away, since before or after arrivals over another link. It polls one link before the other. */
START_TEST(links_of_a_peer_that_comes_back_are_not_silent)
{
    uint64_t t = 1000;

    begin(_i, N);
    mr_rtt_init(&w.rtt, 1000, 1u << 20);
    push(0, 40);
    sent(0, 0, false, t);
    sent(1, 1, false, t + 1);
    ck_assert_ptr_nonnull(mr_window_acked(&w, first, 1, t + 100, true));
    for (unsigned n = 0; n < 3 * MR_WINDOW_SILENT; n++) {
        t += 1u << 20;
        ck_assert_uint_eq(mr_window_expired(&w, t), 1);
        ck_assert(!mr_window_link_silent(&w, 0));
        sent(0, 0, false, t);
    }
    sent(2, 1, false, t + 1);
    ck_assert_ptr_nonnull(mr_window_acked(&w, first, 2, t + 100, true));
    ck_assert(!mr_window_link_silent(&w, 0));
    ck_assert_ptr_nonnull(mr_window_acked(&w, first + 1, 0, t + 100, true));
    ck_assert(!mr_window_link_silent(&w, 0));
    ck_assert_ptr_nonnull(mr_window_free(&w));
}
END_TEST

/* The only link. The peer answers questions by other means, and so does not compute. */
START_TEST(answers_show_that_a_link_is_silent)
{
    uint64_t t = 1000;

    begin(_i, N);
    mr_rtt_init(&w.rtt, 1000, 1u << 20);
    push(0, 40);
    sent(0, 0, false, t);
    mr_window_answered(&w, 0, t + 1); /* nothing was overdue */
    for (unsigned n = 1; n <= MR_WINDOW_SILENT + 3; n++) {
        ck_assert(!mr_window_link_silent(&w, 0));
        t += 1u << 20;
        ck_assert_uint_eq(mr_window_expired(&w, t), 1);
        ck_assert(mr_window_link_doubtful(&w, 0) == (n >= MR_WINDOW_DOUBTFUL));
        ck_assert(!mr_window_link_doubtful(&w, 1));
        sent(0, 0, false, t);
    }
    mr_window_answered(&w, 0, 999); /* asked before */
    mr_window_answered(&w, 0, t);
    ck_assert(!mr_window_link_silent(&w, 0)); /* the peer may just have come back */
    mr_window_answered(&w, 1, t + 5);
    ck_assert(!mr_window_link_silent(&w, 0));
    mr_window_answered(&w, 0, t + 5);
    ck_assert(!mr_window_link_silent(&w, 0)); /* both questions have waited for the link */
    t += 1u << 20;
    ck_assert_uint_eq(mr_window_expired(&w, t), 1);
    sent(0, 0, false, t);
    ck_assert(!mr_window_link_silent(&w, 0));
    mr_window_answered(&w, 0, t + 5);
    ck_assert(mr_window_link_silent(&w, 0));
    /* its acknowledgement comes after all: the next doubt begins anew */
    GIVEN(mr_window_acked(&w, first + 1, 0, t + 100, true), 0);
    ck_assert(!mr_window_link_silent(&w, 0));
    sent(1, 0, false, t + 200);
    for (unsigned n = 0; n < MR_WINDOW_SILENT + 2; n++) {
        t += 1u << 20;
        mr_window_expired(&w, t);
        sent(1, 0, false, t);
    }
    ck_assert(mr_window_link_doubtful(&w, 0));
    ck_assert(!mr_window_link_silent(&w, 0));
    ck_assert_ptr_nonnull(mr_window_free(&w));
    ck_assert(!mr_window_link_doubtful(&w, 0));
    mr_window_answered(&w, 0, t);
}
END_TEST

/* The time-outs of a replaced link do not delay the next link; those of other links do. */
START_TEST(time_outs_go_with_their_link)
{
    uint64_t t = 1000;

    begin(_i, N);
    mr_rtt_init(&w.rtt, 1000, 1u << 20);
    push(0, 40);
    sent(0, 0, false, t);
    for (unsigned n = 0; n < 6; n++) {
        t += 1u << 20;
        ck_assert_uint_eq(mr_window_expired(&w, t), 1);
        sent(0, n < 4 ? 0 : 1, false, t);
    }
    ck_assert_uint_eq(w.rtt.backoff, 6);
    ck_assert_uint_eq(mr_window_link_lost(&w, 0), 0);
    ck_assert_uint_eq(w.rtt.backoff, 1);
    ck_assert_uint_eq(mr_window_link_lost(&w, 1), 1);
    ck_assert_uint_eq(w.rtt.backoff, 0);
    ck_assert_ptr_nonnull(mr_window_free(&w));
}
END_TEST

/* Packets without numbers are confirmed like the others by a native link. */
/* Two packets have been sent over link 0, and the second has arrived. */
static void begin_with_a_loss(int i, uint64_t t)
{
    begin(i, N);
    mr_rtt_init(&w.rtt, 1000, 1u << 20);
    push(0, 40);
    sent(0, 0, false, t);
    sent(1, 0, false, t + 10);
    ck_assert_ptr_nonnull(mr_window_acked(&w, first, 1, t + 100, true));
}

/* One packet is lost again and again. Later packets on its own link have come, so the link works. */
START_TEST(unlucky_links_are_not_silent)
{
    uint64_t t = 1000;

    begin_with_a_loss(_i, t);
    for (unsigned n = 0; n < MR_WINDOW_SILENT + 2; n++) {
        t += 1u << 20;
        ck_assert_uint_eq(mr_window_expired(&w, t), 1);
        ck_assert(!mr_window_link_silent(&w, 0)); /* no other link would show that the peer is there */
        sent(0, 0, false, t);
    }
    ck_assert_ptr_nonnull(mr_window_free(&w));
}
END_TEST

/* A packet that was lost before the link's last success does not count. */
START_TEST(links_are_silent_since_their_last_success)
{
    uint64_t t = 1000;

    begin_with_a_loss(_i, t);
    for (unsigned n = 0; n < MR_WINDOW_SILENT; n++) {
        t += 1u << 20;
        ck_assert_uint_eq(mr_window_expired(&w, t), 1);
        sent(0, 0, false, t);
    }
    for (unsigned n = 0; n < MR_WINDOW_ANSWERS; n++) {
        sent(2 + n, 1, false, t + 1);
        ck_assert_ptr_nonnull(mr_window_acked(&w, first, (4u << n) - 2, t + 100, true));
        ck_assert(!mr_window_link_silent(&w, 0)); /* of the five times the first was before packet 1 */
        t += 1u << 20;
        ck_assert_uint_eq(mr_window_expired(&w, t), 1);
        sent(0, 0, false, t);
    }
    ck_assert(mr_window_link_silent(&w, 0));
    ck_assert(!mr_window_link_silent(&w, 1));
    ck_assert_ptr_nonnull(mr_window_free(&w));
}
END_TEST

/* Where every packet is lost at first nothing gives a sample: the time-out does not stay long for that. */
START_TEST(words_without_samples_end_the_doubling)
{
    uint64_t t = 1000;

    begin(_i, N);
    mr_rtt_init(&w.rtt, 1000, 1u << 20);
    push(0, 10);
    for (unsigned n = 0; n < 5; n++) {
        sent(0, 0, false, t);
        t += 1u << 20;
        ck_assert_uint_eq(mr_window_expired(&w, t), 1);
    }
    ck_assert_uint_eq(w.rtt.backoff, 5);
    sent(0, 0, false, t);
    ck_assert_ptr_null(mr_window_acked(&w, first, 0, t, true)); /* which proves nothing */
    ck_assert_uint_eq(w.rtt.backoff, 5);
    GIVEN(mr_window_acked(&w, first + 1, 0, t + 100, true), 0);
    ck_assert_uint_eq(w.rtt.backoff, 4);
    for (unsigned i = 1; i < 10; i++) {
        sent(i, 0, false, t);
        ck_assert_uint_eq(mr_window_link_lost(&w, 0), 1);
        sent(i, 0, false, t);
        GIVEN(mr_window_acked(&w, first + i + 1, 0, t + 100, true), (int)i);
    }
    ck_assert_uint_eq(w.rtt.backoff, 0);
    ck_assert_uint_eq(w.rtt.srtt_ns, 0);
    is_empty();
}
END_TEST

START_TEST(unnumbered_packets_are_counted)
{
    begin(_i, N);
    ck_assert_int_eq(mr_window_reserve(&w, 4), 0);
    mr_window_unnumbered(&w, 3);
    push(0, 3);
    sent(0, 3, true, 0);
    mr_window_unnumbered(&w, 3);
    sent(1, 3, true, 0);
    sent(2, 3, true, 0);
    ck_assert_ptr_null(mr_window_confirmed(&w, 3, 1));
    GIVEN(mr_window_confirmed(&w, 3, 1), 0);
    ck_assert_ptr_null(mr_window_confirmed(&w, 3, 1));
    GIVEN(mr_window_confirmed(&w, 3, 2), 1, 2);
    is_empty();
}
END_TEST

START_TEST(timeouts_probe_and_back_off)
{
    uint64_t t = 1000, rto;

    begin(_i, N);
    mr_rtt_init(&w.rtt, 1000, 1u << 20);
    push(0, 40);
    for (unsigned i = 0; i < 20; i++)
        sent(i, i % 2, false, t);
    for (unsigned i = 20; i < 40; i++)
        sent(i, 2, true, 0); /* these have no time-outs */
    rto = mr_rtt_timeout(&w.rtt);
    ck_assert_uint_eq(rto, 4000);
    ck_assert_uint_eq(mr_window_deadline(&w), t + rto);
    ck_assert_uint_eq(mr_window_expired(&w, t + rto - 1), 0);
    t += rto;
    ck_assert_uint_eq(mr_window_expired(&w, t), MR_WINDOW_BURST);
    ck_assert_uint_eq(mr_window_expired(&w, t), 0);
    for (int k = 0; k < MR_WINDOW_BURST; k++)
        mr_window_sent(&w, mr_window_ready(&w), 0, false, t);
    ck_assert_ptr_null(mr_window_ready(&w));
    for (unsigned round = 1; round < 12; round++) { /* silence */
        uint64_t wait = rto << round < 1u << 20 ? rto << round : 1u << 20;

        ck_assert_uint_eq(mr_window_deadline(&w), t + wait);
        t += wait;
        ck_assert_uint_eq(mr_window_expired(&w, t - 1), 0);
        ck_assert_uint_eq(mr_window_expired(&w, t), 1);
        ck_assert_uint_eq(mr_window_expired(&w, t), 0);
        mr_window_sent(&w, mr_window_ready(&w), 1, false, t);
    }
    ck_assert_uint_eq(w.resent, MR_WINDOW_BURST + 11);
    ck_assert_uint_eq(w.timeouts, 12);
    /* the peer is back: the next time-out repeats several, but still waits long (nothing was sampled) */
    ck_assert_ptr_null(mr_window_acked(&w, first, 0, t, true));
    ck_assert(!w.probing);
    ck_assert_uint_eq(mr_rtt_timeout(&w.rtt), 1u << 20);
    ck_assert_uint_eq(mr_window_expired(&w, t + (1u << 20)), MR_WINDOW_BURST);
    ck_assert_uint_eq(mr_window_link_lost(&w, 2), 20);
    ck_assert_ptr_nonnull(mr_window_acked(&w, first + 40, 0, 0, false));
    is_empty();
}
END_TEST

/* Karn's rule: a packet sent twice gives no sample; a packet sent once does, even while waiting again. */
START_TEST(samples)
{
    begin(_i, N);
    mr_rtt_init(&w.rtt, 1000, 1u << 20);
    push(0, 6);
    sent(0, 0, false, 1000);
    sent(1, 0, false, 1500);
    ck_assert_uint_eq(mr_window_expired(&w, 5000), 1);
    sent(0, 0, false, 5000);
    GIVEN(mr_window_acked(&w, first + 1, 0, 6000, true), 0);
    ck_assert_uint_eq(w.rtt.srtt_ns, 0);
    ck_assert_uint_eq(w.rtt.backoff, 0); /* but acknowledged */
    ck_assert_uint_eq(mr_window_expired(&w, 9600), 1);
    GIVEN(mr_window_acked(&w, first + 2, 0, 9500, true), 1);
    ck_assert_uint_eq(w.rtt.srtt_ns, 8000);
    ck_assert_uint_eq(w.rtt.backoff, 0);
    sent(2, 0, false, 10000);
    sent(3, 1, true, 17000);
    sent(4, 1, true, 0);
    GIVEN(mr_window_acked(&w, first + 5, 0, 18000, true), 2, 3, 4); /* the newest packet with a time counts */
    ck_assert_uint_eq(w.rtt.srtt_ns, 8000 - 7000 / 8);
    sent(5, 0, false, 20000);
    GIVEN(mr_window_acked(&w, first + 6, 0, 0, false), 5); /* no time, no sample */
    ck_assert_uint_eq(w.rtt.srtt_ns, 8000 - 7000 / 8);
    is_empty();
}
END_TEST

/* An ACK names 64 packets after the gap: packets beyond cannot be known to be late. */
START_TEST(only_what_a_word_can_name_expires)
{
    begin(_i, N);
    mr_rtt_init(&w.rtt, 1000, 1u << 20);
    push(0, 200);
    for (unsigned i = 0; i < 66; i++)
        sent(i, 1, true, 0);
    for (unsigned i = 66; i < 200; i++)
        sent(i, 0, false, 1000);
    ck_assert_uint_eq(mr_window_deadline(&w), 5000);
    ck_assert_uint_eq(mr_window_expired(&w, 5000), 0);
    ck_assert_uint_eq(w.timeouts, 0);
    ck_assert_uint_eq(mr_window_deadline(&w), 9000); /* no question at each poll */
    GIVEN(mr_window_confirmed(&w, 1, 3), 0, 1, 2);
    ck_assert_uint_eq(mr_window_expired(&w, 9000), 2); /* 66 and 67 */
    ck_assert_ptr_eq(mr_window_ready(&w), &kept[66]);
    ck_assert_uint_eq(mr_window_waiting(&w), 2);
    ck_assert_ptr_nonnull(mr_window_free(&w));
}
END_TEST

/* An ACK caused by a packet sent again proves nothing about packets sent before. */
START_TEST(a_closed_gap_gives_no_sample)
{
    begin(_i, N);
    mr_rtt_init(&w.rtt, 1000, 1u << 20);
    push(0, 6);
    for (unsigned i = 0; i < 3; i++)
        sent(i, i, false, 1000);
    GIVEN(mr_window_acked(&w, first, 1, 2000, true), 1);
    ck_assert_uint_eq(w.rtt.srtt_ns, 1000);
    ck_assert_uint_eq(mr_window_link_lost(&w, 0), 1);
    sent(0, 0, false, 90000);
    GIVEN(mr_window_acked(&w, first + 3, 0, 91000, true), 0, 2);
    ck_assert_uint_eq(w.rtt.srtt_ns, 1000);
    sent(3, 0, false, 92000);
    mr_window_link_lost(&w, 0);
    sent(3, 0, false, 93000);
    sent(4, 0, false, 94000);
    GIVEN(mr_window_acked(&w, first + 5, 0, 95800, true), 3, 4); /* 4 was sent after 3 */
    ck_assert_uint_eq(w.rtt.srtt_ns, 1100);
    ck_assert_ptr_eq(mr_window_free(&w), &kept[5]);
}
END_TEST

/*
 * The peer was away, and acknowledges first postings long after they were sent again. This proves nothing about packets
 * posted between the two, nor a loss by the link; nor does it before any round trip was measured.
 */
START_TEST(late_words_for_first_postings)
{
    uint64_t t = 2000;

    begin(_i, N);
    mr_rtt_init(&w.rtt, 1000, 1u << 20);
    push(0, 8);
    sent(0, 0, false, 1000);
    GIVEN(mr_window_acked(&w, first + 1, 0, 1500, true), 0);
    for (unsigned i = 1; i < 8; i++)
        sent(i, 0, false, t);
    t += mr_rtt_timeout(&w.rtt);
    ck_assert_uint_eq(mr_window_expired(&w, t), MR_WINDOW_BURST);
    for (unsigned i = 1; i < 5; i++)
        sent(i, 0, false, t);
    GIVEN(mr_window_acked(&w, first + 2, 0, t + 50000, true), 1);
    ck_assert_uint_eq(w.gaps, 0);
    ck_assert_ptr_null(w.again);
    GIVEN(mr_window_acked(&w, first + 8, 0, t + 51000, true), 2, 3, 4, 5, 6, 7);
    is_empty();

    begin(_i, N);
    push(0, 8);
    for (unsigned i = 0; i < 8; i++)
        sent(i, 0, false, 1000);
    GIVEN(mr_window_acked(&w, first, 7u << 1, 2000, false), 2, 3, 4);
    ck_assert_uint_eq(w.gaps, 2); /* 0, 1 */
    sent(0, 0, false, 3000);
    sent(1, 0, false, 3000);
    GIVEN(mr_window_acked(&w, first + 1, 0, 50000, false), 0);
    ck_assert_uint_eq(w.gaps, 2);
    GIVEN(mr_window_acked(&w, first + 8, 0, 51000, false), 1, 5, 6, 7);
    is_empty();
}
END_TEST

/* A late ACK clears the counts against the link by which the first posting has come. */
START_TEST(late_words_excuse_a_link)
{
    uint64_t t = 1000;

    begin(_i, N);
    mr_rtt_init(&w.rtt, 1000, 1u << 20);
    push(0, 2);
    sent(0, 0, false, t);
    for (unsigned n = 0; n < MR_WINDOW_SILENT; n++) {
        t = mr_window_deadline(&w);
        ck_assert_uint_eq(mr_window_expired(&w, t), 1);
        sent(0, 0, false, t);
    }
    sent(1, 1, false, t);
    GIVEN(mr_window_acked(&w, first + 2, 0, t + 1000, true), 0, 1);
    ck_assert(!mr_window_link_silent(&w, 0));
    is_empty();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("window");

    tcase_add_loop_test(t, idle_costs_nothing, 0, 2);
    tcase_add_loop_test(t, native_in_order, 0, 2);
    tcase_add_loop_test(t, posted_at_once, 0, 2);
    tcase_add_loop_test(t, full_ring_is_not_clear, 0, 2);
    tcase_add_loop_test(t, limit_holds, 0, 2);
    tcase_add_loop_test(t, full_memory_changes_nothing, 0, 2);
    tcase_add_loop_test(t, room_that_is_made, 0, 2);
    tcase_add_loop_test(t, slow_link_holds_only_its_own, 0, 2);
    tcase_add_loop_test(t, acked_before_native_confirms, 0, 2);
    tcase_add_loop_test(t, words_that_cannot_be, 0, 2);
    tcase_add_loop_test(t, lost_link_waits_again_in_order, 0, 2);
    tcase_add_loop_test(t, overtaken_packets_wait_again, 0, 2);
    tcase_add_loop_test(t, a_second_loss_is_found_too, 0, 2);
    tcase_add_loop_test(t, times_may_come_later, 0, 2);
    tcase_add_loop_test(t, silent_links_are_known, 0, 2);
    tcase_add_loop_test(t, links_of_a_peer_that_comes_back_are_not_silent, 0, 2);
    tcase_add_loop_test(t, answers_show_that_a_link_is_silent, 0, 2);
    tcase_add_loop_test(t, time_outs_go_with_their_link, 0, 2);
    tcase_add_loop_test(t, unlucky_links_are_not_silent, 0, 2);
    tcase_add_loop_test(t, links_are_silent_since_their_last_success, 0, 2);
    tcase_add_loop_test(t, words_without_samples_end_the_doubling, 0, 2);
    tcase_add_loop_test(t, unnumbered_packets_are_counted, 0, 2);
    tcase_add_loop_test(t, timeouts_probe_and_back_off, 0, 2);
    tcase_add_loop_test(t, samples, 0, 2);
    tcase_add_loop_test(t, only_what_a_word_can_name_expires, 0, 2);
    tcase_add_loop_test(t, a_closed_gap_gives_no_sample, 0, 2);
    tcase_add_loop_test(t, late_words_for_first_postings, 0, 2);
    tcase_add_loop_test(t, late_words_excuse_a_link, 0, 2);
    return check_run(t, NULL);
}
