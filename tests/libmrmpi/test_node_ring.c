/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings of pieces among ranks: layout, room, threads as ranks, and a broken writer. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/coll/node/ring.h"
#include "tests/check.h"

enum { RANKS = 3, LINES = 4, SLOT = 256, PIECES = 20000, SLOTS = 16, BRIEF = 128 };
static const struct mr_node_shape shape = {.ranks = RANKS, .lines = LINES, .slots = LINES, .slot_bytes = SLOT},
                                  wide = {.ranks = RANKS,
                                          .lines = LINES,
                                          .slots = SLOTS,
                                          .slot_bytes = SLOT,
                                          .brief_bytes = BRIEF};
static char *memory;
static struct mr_node_ring ring[RANKS];

static void make(struct mr_node_shape s)
{
    size_t bytes = (mr_node_ring_bytes(s) + 63) & ~(size_t)63;

    memory = aligned_alloc(64, bytes);
    ck_assert_ptr_nonnull(memory);
    memset(memory, 0, bytes);
    for (int i = 0; i < RANKS; i++)
        mr_node_ring_init(&ring[i], memory, s, i);
}

static void setup(void)
{
    make(shape);
}

static void setup_wide(void)
{
    make(wide);
}

static void teardown(void)
{
    free(memory);
}

START_TEST(slots_do_not_overlap)
{
    const struct mr_node_shape s = ring[0].shape;
    char *end = memory + mr_node_ring_bytes(s);

    for (int rank = 0; rank < RANKS; rank++)
        for (int piece = 0; piece < s.slots; piece++) {
            uint64_t n = (uint64_t)piece;
            char *slot = mr_node_slot(&ring[0], rank, n), *brief = mr_node_data(&ring[0], rank, n, BRIEF);

            ck_assert_uint_eq((uintptr_t)slot % 64, 0);
            ck_assert((char *)(ring[0].second + RANKS * LINES) <= slot);
            ck_assert(slot + SLOT <= end);
            ck_assert_int_eq(slot - ring[0].data, ((ptrdiff_t)rank * s.slots + piece) * SLOT);
            ck_assert_ptr_eq(slot, mr_node_slot(&ring[2], rank, n + 7 * (uint64_t)s.slots));
            ck_assert_ptr_eq(slot, mr_node_data(&ring[2], rank, n, BRIEF + 1));
            if (s.brief_bytes) {
                ck_assert((char *)(ring[0].second + RANKS * LINES) <= brief);
                ck_assert(brief + BRIEF <= ring[0].data);
                ck_assert_int_eq(brief - ring[0].brief, ((ptrdiff_t)rank * LINES + piece % LINES) * BRIEF);
            }
            ck_assert(mr_node_first(&ring[0], rank, n) < ring[0].second);
            ck_assert(mr_node_second(&ring[0], rank, n) >= ring[0].second);
        }
    ck_assert((void *)(ring[0].done + RANKS) <= (void *)ring[0].first);
}
END_TEST

/* A line is overwritten when all others have finished with its contents. */
START_TEST(room_when_all_are_done)
{
    ck_assert(mr_node_has_room(&ring[0], 1));
    ck_assert(mr_node_has_room(&ring[0], LINES));
    ck_assert(!mr_node_has_room(&ring[0], LINES + 1));
    mr_node_done(&ring[1], 2);
    ck_assert(!mr_node_has_room(&ring[0], LINES + 1));
    mr_node_done(&ring[2], 1);
    ck_assert(mr_node_has_room(&ring[0], LINES + 1));
    ck_assert(!mr_node_has_room(&ring[0], LINES + 2));
    mr_node_done(&ring[2], 5);
    ck_assert(mr_node_has_room(&ring[0], LINES + 2));
    ck_assert(!mr_node_has_room(&ring[0], LINES + 3));
}
END_TEST

/* With fewer slots than lines a piece may lie elsewhere, and takes its slot when all are done with the former one. */
START_TEST(few_slots)
{
    enum { FEW = LINES / 2 };
    struct mr_node_shape s = shape;

    s.slots = FEW;
    mr_node_ring_init(&ring[0], memory, s, 0);
    ck_assert(mr_node_has_room(&ring[0], LINES));
    ck_assert(mr_node_has_slot(&ring[0], FEW));
    ck_assert(!mr_node_has_slot(&ring[0], FEW + 1));
    mr_node_done(&ring[1], 1);
    ck_assert(!mr_node_has_slot(&ring[0], FEW + 1));
    mr_node_done(&ring[2], 1);
    ck_assert(mr_node_has_slot(&ring[0], FEW + 1));
    ck_assert(!mr_node_has_slot(&ring[0], FEW + 2));
    mr_node_done(&ring[1], MR_NODE_LEFT);
    ck_assert(!mr_node_has_slot(&ring[0], FEW + 2));
    mr_node_done(&ring[2], MR_NODE_LEFT);
    ck_assert(mr_node_has_slot(&ring[0], 1000000));
    mr_node_set_chunk(mr_node_first(&ring[0], 0, 3), 77);
    mr_node_set_chunk(mr_node_first(&ring[0], 0, 4), MR_NODE_IN_SLOT);
    ck_assert_uint_eq(mr_node_chunk(mr_node_first(&ring[1], 0, 3)), 77);
    ck_assert_uint_eq(mr_node_chunk(mr_node_first(&ring[1], 0, 4)), MR_NODE_IN_SLOT);
}
END_TEST

/* A slot's first use is told once. */
START_TEST(slots_are_new_once)
{
    for (uint64_t piece = 1; piece <= SLOTS; piece += 3)
        ck_assert(!mr_node_use(&ring[0], piece));
    for (uint64_t piece = SLOTS; piece <= 3 * SLOTS; piece++)
        ck_assert_int_eq(mr_node_use(&ring[0], piece), piece % SLOTS % 3 == 1 || piece == SLOTS || piece >= 2 * SLOTS);
    ck_assert(!mr_node_use(&ring[1], 1));
}
END_TEST

/* Pieces of any lengths, of a single writer as far ahead as possible: each stays until all have finished with it. */
START_TEST(brief_and_long_pieces_do_not_overlap)
{
    static size_t bytes[PIECES + 1];
    uint64_t written = 0, read = 0;
    char want[SLOT];

    for (unsigned state = 1; read < PIECES; state = state * 1103515245 + 12345) {
        uint64_t until = read + 1 + (state >> 20) % 3;

        for (uint64_t next = written + 1; next <= PIECES; written = next++) {
            unsigned kind = (unsigned)(next * 2654435761u >> 16) % 16;

            bytes[next] = next / 64 % 4 && kind ? kind * BRIEF / 15 : SLOT - kind;
            if (!mr_node_has_room(&ring[0], next))
                break;
            memset(mr_node_data(&ring[0], 0, next, bytes[next]), (int)(next % 251), bytes[next]);
            mr_node_publish(mr_node_first(&ring[0], 0, next), next, bytes[next]);
        }
        ck_assert_uint_eq(written, read + LINES < PIECES ? read + LINES : PIECES);
        for (; read < until && read < written; read++) {
            const struct mr_node_line *line = mr_node_first(&ring[1], 0, read + 1);

            ck_assert(mr_node_is_there(line, read + 1));
            ck_assert_uint_eq(mr_node_bytes(line), bytes[read + 1]);
            memset(want, (int)((read + 1) % 251), sizeof(want));
            ck_assert_mem_eq(mr_node_data(&ring[1], 0, read + 1, bytes[read + 1]), want, bytes[read + 1]);
        }
        mr_node_done(&ring[1], read);
        mr_node_done(&ring[2], read);
    }
}
END_TEST

START_TEST(a_piece_is_there_under_its_number_only)
{
    struct mr_node_line *line = mr_node_first(&ring[1], 1, 6);

    ck_assert(!mr_node_is_there(line, 6));
    mr_node_publish(line, 6, 77);
    ck_assert(mr_node_is_there(mr_node_first(&ring[0], 1, 6), 6));
    ck_assert_uint_eq(mr_node_bytes(mr_node_first(&ring[0], 1, 6)), 77);
    ck_assert(!mr_node_is_there(mr_node_first(&ring[0], 1, 6 + LINES), 6 + LINES));
    ck_assert(!mr_node_mad(line, 6));
    ck_assert(!mr_node_mad(line, 6 + LINES));
}
END_TEST

/* Whoever still needs a piece cannot find a later one in its place. */
START_TEST(an_impossible_number_is_noticed)
{
    struct mr_node_line *line = mr_node_first(&ring[1], 1, 2);

    line->number = 2 + LINES;
    ck_assert(mr_node_mad(mr_node_first(&ring[0], 1, 2), 2));
    line->number = UINT64_MAX;
    ck_assert(mr_node_mad(mr_node_first(&ring[0], 1, 2), 2));
    ck_assert(!mr_node_is_there(line, 2));
}
END_TEST

static uint64_t word_of(int rank, uint64_t piece, int i)
{
    return (uint64_t)rank << 60 ^ piece << 8 ^ (uint64_t)i;
}

/* Like an operation in which all read from all, and then the second halves, which are sums of the first. */
static void *play_rank(void *arg)
{
    struct mr_node_ring *r = arg;
    long wrong = 0;

    for (uint64_t piece = 1; piece <= PIECES; piece++) {
        uint64_t *mine = (uint64_t *)mr_node_slot(r, r->me, piece), sum = 0;

        while (!mr_node_has_room(r, piece))
            sched_yield();
        for (int i = 0; i < SLOT / 8; i++)
            mine[i] = word_of(r->me, piece, i);
        mr_node_publish(mr_node_first(r, r->me, piece), piece, piece * 3);
        for (int rank = 0; rank < RANKS; rank++) {
            const uint64_t *theirs = (const uint64_t *)mr_node_slot(r, rank, piece);

            while (!mr_node_is_there(mr_node_first(r, rank, piece), piece))
                sched_yield();
            wrong += mr_node_bytes(mr_node_first(r, rank, piece)) != piece * 3;
            for (int i = RANKS; i < SLOT / 8; i++)
                wrong += theirs[i] != word_of(rank, piece, i);
            sum += theirs[r->me];
        }
        mine[r->me] = sum;
        mr_node_publish(mr_node_second(r, r->me, piece), piece, 0);
        for (int rank = 0; rank < RANKS; rank++) {
            uint64_t want = 0;

            for (int i = 0; i < RANKS; i++)
                want += word_of(i, piece, rank);
            while (!mr_node_is_there(mr_node_second(r, rank, piece), piece))
                sched_yield();
            wrong += ((const uint64_t *)mr_node_slot(r, rank, piece))[rank] != want;
        }
        mr_node_done(r, piece);
    }
    return (void *)wrong;
}

START_TEST(threads_as_ranks)
{
    pthread_t thread[RANKS];

    for (int i = 0; i < RANKS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, play_rank, &ring[i]), 0);
    for (int i = 0; i < RANKS; i++) {
        void *wrong;

        pthread_join(thread[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("node ring"), *more = tcase_create("more slots than lines");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 120);
    tcase_set_timeout(more, 120);
    tcase_add_test(c, slots_do_not_overlap);
    tcase_add_test(c, room_when_all_are_done);
    tcase_add_test(c, few_slots);
    tcase_add_test(c, a_piece_is_there_under_its_number_only);
    tcase_add_test(c, an_impossible_number_is_noticed);
    tcase_add_test(c, threads_as_ranks);
    tcase_add_checked_fixture(more, setup_wide, teardown);
    tcase_add_test(more, slots_do_not_overlap);
    tcase_add_test(more, room_when_all_are_done);
    tcase_add_test(more, slots_are_new_once);
    tcase_add_test(more, brief_and_long_pieces_do_not_overlap);
    tcase_add_test(more, an_impossible_number_is_noticed);
    tcase_add_test(more, threads_as_ranks);
    return check_run(c, more, NULL);
}
