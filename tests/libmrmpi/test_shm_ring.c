/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared-memory ring: full, empty, wrapped, two threads at once, and a writer that has gone mad. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "libmrmpi/channel/shm_ring.h"
#include "libmrmpi/channel/shm_ring_writer.h"
#include "tests/check.h"

static const struct mr_ring_shape small = {.num_slots = 8, .data_bytes = 4096};
static void *memory;
static struct mr_ring_writer w;
static struct mr_ring_reader r;

static void setup(void)
{
    memory = aligned_alloc(4096, 16384);
    ck_assert_ptr_nonnull(memory);
    ck_assert_uint_le(mr_ring_bytes(small), 16384);
    memset(memory, 0, 16384);
    mr_ring_writer_init(&w, memory, small);
    mr_ring_reader_init(&r, memory, small, 5);
}

static void teardown(void)
{
    free(memory);
}

static uint8_t byte_of(uint64_t number, size_t i)
{
    return (uint8_t)(number * 31 + i * 7);
}

/* The contents of a packet's header. Odd numbers are in short form. */
static struct mr_hdr header_of(uint64_t number, size_t len)
{
    return (struct mr_hdr){.kind = MR_VC_KIND_EAGER,
                           .note = (uint8_t)(number * 5),
                           .seq = (uint32_t)number * 3,
                           .src = 5,
                           .rank = -(int32_t)number,
                           .tag = (int32_t)number,
                           .ctx = (uint32_t)number * 7,
                           .len = len};
}

static bool put(uint64_t number, size_t len)
{
    static _Thread_local uint8_t bytes[4096];
    struct mr_hdr hdr = header_of(number, len);

    for (size_t i = 0; i < len; i++)
        bytes[i] = byte_of(number, i);
    return number % 2 ? mr_ring_write_brief(&w, &hdr, bytes, len) : mr_ring_write(&w, &hdr, bytes, len);
}

static bool same(const struct mr_hdr *hdr, uint64_t number, size_t len)
{
    struct mr_hdr wanted = header_of(number, len);

    return !memcmp(hdr, &wanted, sizeof(wanted));
}

/* Takes one packet and compares every byte. 1: taken, 0: none, -1: wrong or broken. */
static int take(uint64_t number, size_t len)
{
    struct mr_hdr hdr;
    const void *payload;
    uint32_t far;
    size_t got;
    int n = mr_ring_peek(&r, &hdr, &payload, &got, &far);

    if (n <= 0) {
        mr_ring_tell(&r);
        return n;
    }
    if (got != len || !same(&hdr, number, len))
        return -1;
    for (size_t i = 0; i < len; i++)
        if (((const uint8_t *)payload)[i] != byte_of(number, i))
            return -1;
    mr_ring_release(&r);
    return 1;
}

START_TEST(empty_and_full)
{
    ck_assert_int_eq(take(0, 0), 0);
    for (int i = 0; i < 8; i++)
        ck_assert(put(i, i));
    ck_assert(!put(8, 8));
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(take(i, i), 1);
    ck_assert_int_eq(take(8, 8), 0);
    ck_assert(put(8, 8));
    ck_assert_int_eq(take(8, 8), 1);
}
END_TEST

/* Every length of short packets, at places that wander through slots and data area. */
START_TEST(every_short_length)
{
    for (size_t len = 0; len <= 2048; len++) {
        ck_assert(put(2 * len + 1, len));
        ck_assert_int_eq(take(2 * len + 1, len), 1);
        ck_assert_int_eq(take(0, 0), 0);
    }
}
END_TEST

/* Up to 448 bytes and some lie in the lines behind their header's, where a look at that brings them along. */
START_TEST(a_short_payload_follows_its_header)
{
    for (size_t len = 1; len <= 600; len++) {
        const struct mr_ring_slot *slot = &w.ring->slots[w.slot % small.num_slots];
        struct mr_hdr hdr;
        const void *payload;
        uint32_t far;
        size_t got;

        ck_assert(put(2 * len + 1, len));
        ck_assert_int_eq(mr_ring_peek(&r, &hdr, &payload, &got, &far), 1);
        ck_assert_uint_eq((uintptr_t)slot % 64, 0);
        if (len <= 448)
            ck_assert_int_eq((const char *)payload - (const char *)slot, 24);
        else if (len > sizeof(*slot))
            ck_assert((const uint8_t *)payload >= r.data);
        mr_ring_release(&r);
    }
}
END_TEST

/* 1: found, 0: empty, -1: another packet. */
static int look_for(int rank, int tag, uint32_t ctx, struct mr_hdr *hdr, const uint8_t **payload)
{
    const void *found = NULL;
    uint32_t far;
    int n = mr_ring_peek_wanted(&r, rank, tag, ctx, hdr, &found, &far);

    *payload = found;
    return n;
}

/* A wanted packet is found at the front only, and a look that finds another leaves everything unchanged. */
START_TEST(only_what_is_wanted)
{
    static const size_t lens[] = {0, 1, 40, MR_RING_BRIEF_INLINE + 1, 700};
    struct mr_hdr hdr;

    for (uint64_t n = 1; n < 200; n += 2) {
        size_t len = lens[n % 5];
        const uint8_t *payload;
        int tag = (int)n, rank = -(int)n;
        uint32_t ctx = (uint32_t)n * 7;

        ck_assert_int_eq(look_for(rank, tag, ctx, &hdr, &payload), 0);
        ck_assert(put(n, len));
        ck_assert(put(n + 2, len));
        ck_assert_int_eq(look_for(rank, tag + 2, ctx, &hdr, &payload), -1);
        ck_assert_int_eq(look_for(rank - 2, tag, ctx, &hdr, &payload), -1);
        ck_assert_int_eq(look_for(rank, -1, ctx + 14, &hdr, &payload), -1);
        mr_ring_tell(&r);
        ck_assert_int_eq(look_for(rank, n % 3 ? tag : -1, ctx, &hdr, &payload), 1);
        ck_assert_ptr_nonnull(payload);
        ck_assert(same(&hdr, n, len));
        for (size_t i = 0; i < len; i++)
            ck_assert_uint_eq(payload[i], byte_of(n, i));
        mr_ring_release(&r);
        ck_assert_int_eq(take(n + 2, len), 1);
        ck_assert(put(n + 1, len)); /* not in short form */
        ck_assert_int_eq(look_for(rank - 1, tag + 1, ctx + 7, &hdr, &payload), -1);
        ck_assert_int_eq(take(n + 1, len), 1);
    }
}
END_TEST

/* Brief ones, too, may say that their payload lies elsewhere. */
START_TEST(brief_and_elsewhere)
{
    static const size_t lens[] = {MR_RING_BRIEF_INLINE + 1, 1024, 4095, MR_RING_BRIEF_MOST};

    for (uint32_t i = 0; i < 40; i++) {
        size_t len = lens[i % 4], got;
        struct mr_hdr hdr = header_of(i, len), seen;
        uint32_t far[2] = {0};
        const void *payload = memory;

        ck_assert(mr_ring_has_room(&w, 0, 0));
        mr_ring_commit_brief_far(&w, &hdr, 1000 + i, len);
        ck_assert_int_eq(mr_ring_peek_wanted(&r, hdr.rank, hdr.tag, hdr.ctx, &seen, &payload, &far[0]), 1);
        ck_assert_ptr_null(payload);
        ck_assert(same(&seen, i, len));
        payload = memory;
        ck_assert_int_eq(mr_ring_peek(&r, &seen, &payload, &got, &far[1]), 1);
        ck_assert_ptr_null(payload);
        ck_assert(same(&seen, i, len));
        ck_assert_uint_eq(got, len);
        ck_assert_uint_eq(far[0], 1000 + i);
        ck_assert_uint_eq(far[1], 1000 + i);
        mr_ring_release_far(&r, len);
        ck_assert(put(i + 1, 600)); /* the data area is unchanged */
        ck_assert_int_eq(take(i + 1, 600), 1);
    }
}
END_TEST

/* Prefetched lines stay unchanged, in slots that hold packets as well. */
START_TEST(asking_changes_nothing)
{
    for (unsigned i = 0; i < 8; i++)
        ck_assert(put(i, i * 40));
    for (unsigned i = 0; i < 8; i++) {
        mr_ring_ask_ahead(&w, i * 60);
        ck_assert_int_eq(take(i, i * 40), 1);
    }
    mr_ring_ask_ahead(&w, MR_RING_BRIEF_INLINE);
    ck_assert_int_eq(take(8, 0), 0);
    ck_assert(put(8, 8));
    ck_assert_int_eq(take(8, 8), 1);
}
END_TEST

/* The largest payload fits whatever the position is, as soon as the ring is empty. */
START_TEST(largest_at_every_position)
{
    uint64_t n = 0;

    for (size_t skip = 73; skip < 2048; skip += 61) {
        ck_assert(put(n, skip));
        ck_assert_int_eq(take(n++, skip), 1);
        ck_assert_int_eq(take(n, 0), 0);
        ck_assert(put(n, mr_ring_max_payload(small)));
        ck_assert_int_eq(take(n++, mr_ring_max_payload(small)), 1);
        ck_assert_int_eq(take(n, 0), 0);
    }
}
END_TEST

START_TEST(random_sizes)
{
    uint64_t in = 0, out = 0;
    size_t len[64];

    srand(_i + 1);
    while (out < 20000) {
        size_t next = rand() % 3 ? rand() % 73 : rand() % 2049;

        if (rand() % 2 && in - out < 64 && put(in, next))
            len[in++ % 64] = next;
        else if (in != out) {
            ck_assert_int_eq(take(out, len[out % 64]), 1);
            out++;
        } else {
            ck_assert_int_eq(take(out, 0), 0);
        }
    }
}
END_TEST

#define PACKETS 200000

static size_t length_of(uint64_t number)
{
    return number % 5 ? number % 90 : number * 37 % 2049;
}

static void *writer(void *arg)
{
    for (uint64_t i = 0; i < PACKETS; i++) {
        while (!put(i, length_of(i)))
            sched_yield();
        if (length_of(i) <= MR_RING_BRIEF_INLINE)
            mr_ring_ask_ahead(&w, length_of(i));
    }
    return NULL;
}

START_TEST(two_threads)
{
    pthread_t thread;
    uint64_t i = 0;

    ck_assert_int_eq(pthread_create(&thread, NULL, writer, NULL), 0);
    while (i < PACKETS) {
        int n = take(i, length_of(i));

        ck_assert_int_ge(n, 0);
        i += n;
        if (!n)
            sched_yield();
    }
    pthread_join(thread, NULL);
}
END_TEST

START_TEST(mad_writer)
{
    struct mr_ring_slot *slots = ((struct mr_ring *)memory)->slots;

    unsigned number = _i / 3; /* odd: brief */

    ck_assert(put(number, 700)); /* in the data area */
    switch (_i % 3) {
    case 0:
        slots[0].len = number ? MR_RING_BRIEF | 2049 : 2049;
        break;
    case 1:
        slots[0].len = UINT32_MAX;
        break;
    case 2:
        *(number ? &slots[0].brief.position : &slots[0].position) = 4095;
        break;
    }
    if (number) { /* a look for this packet by name leaves the packet to the function that gives the ring up */
        struct mr_hdr hdr = header_of(number, 700);
        const uint8_t *payload;

        ck_assert_int_eq(look_for(hdr.rank, hdr.tag, hdr.ctx, &hdr, &payload), -1);
    }
    ck_assert_int_eq(take(number, 700), -1);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("shm_ring");

    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, empty_and_full);
    tcase_add_test(c, every_short_length);
    tcase_add_test(c, a_short_payload_follows_its_header);
    tcase_add_test(c, only_what_is_wanted);
    tcase_add_test(c, brief_and_elsewhere);
    tcase_add_test(c, asking_changes_nothing);
    tcase_add_test(c, largest_at_every_position);
    tcase_add_loop_test(c, random_sizes, 0, 4);
    tcase_add_test(c, two_threads);
    tcase_add_loop_test(c, mad_writer, 0, 6);
    return check_run(c, NULL);
}
