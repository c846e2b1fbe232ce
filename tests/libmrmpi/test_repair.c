/* SPDX-License-Identifier: BSD-3-Clause */
/* Moves of misplaced datagrams: every present datagram comes to its place, unchanged. */
#include "libmrmpi/net/zcopy/repair.h"
#include "tests/check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 300 };

/* Memory with datagrams according to lies; moves as planned, and checks each place. Returns the number of moves. */
static unsigned repair(const uint16_t *lies, unsigned n)
{
    uint16_t left[MOST], work[MOST], memory[MOST + 1];
    struct mr_move move[MOST + MOST / 2];
    unsigned moves;

    memcpy(left, lies, n * sizeof left[0]);
    memcpy(memory, lies, n * sizeof memory[0]);
    moves = mr_repair_plan(left, n, work, move);
    ck_assert_uint_le(moves, n + n / 2);
    for (unsigned i = 0; i < moves; i++) {
        unsigned from = move[i].from == MR_REPAIR_ASIDE ? n : move[i].from,
                 to = move[i].to == MR_REPAIR_ASIDE ? n : move[i].to;

        if (from > n || to > n || from == to)
            ck_abort_msg("move %u of %u: from %u to %u", i, moves, from, to);
        memory[to] = memory[from];
    }
    for (unsigned d = 0; d < n; d++) {
        bool came = false;

        for (unsigned i = 0; i < n; i++)
            came |= lies[i] == d;
        if (left[d] != (came ? d : MR_REPAIR_NONE) || (came && memory[d] != d))
            ck_abort_msg("datagram %u, which %s: %u is said to be there, %u is", d, came ? "came" : "did not", left[d],
                         memory[d]);
    }
    return moves;
}

START_TEST(what_lies_right_stays)
{
    uint16_t lies[5] = {0, 1, 2, 3, 4};

    ck_assert_uint_eq(repair(lies, 5), 0);
    ck_assert_uint_eq(repair(lies, 1), 0);
    ck_assert_uint_eq(repair((uint16_t[]){0, MR_REPAIR_NONE, 2}, 3), 0);
    ck_assert_uint_eq(repair((uint16_t[]){MR_REPAIR_NONE, MR_REPAIR_NONE}, 2), 0);
}
END_TEST

/* Behind a lost datagram, each is one place too far ahead. */
START_TEST(a_loss_shifts_all_later_ones)
{
    uint16_t lies[MOST];

    for (unsigned lost = 0; lost < MOST; lost++) {
        for (unsigned i = 0; i < MOST; i++)
            lies[i] = i + 1 == MOST ? MR_REPAIR_NONE : (uint16_t)(i < lost ? i : i + 1);
        ck_assert_uint_eq(repair(lies, MOST), MOST - 1 - lost);
    }
}
END_TEST

START_TEST(rings_take_one_move_more)
{
    ck_assert_uint_eq(repair((uint16_t[]){1, 0}, 2), 3);
    ck_assert_uint_eq(repair((uint16_t[]){2, 0, 1, 3}, 4), 4);
    ck_assert_uint_eq(repair((uint16_t[]){1, 0, 3, 2}, 4), 6); /* the maximum */
}
END_TEST

START_TEST(strangers_and_what_came_twice_count_for_nothing)
{
    ck_assert_uint_eq(repair((uint16_t[]){7, 1, 0}, 3), 1);    /* of another turn */
    ck_assert_uint_eq(repair((uint16_t[]){1, 1, 2}, 3), 0);    /* the datagram in its right place is kept */
    ck_assert_uint_eq(repair((uint16_t[]){2, 0, 2, 0}, 4), 1); /* the first one */
    ck_assert_uint_eq(repair((uint16_t[]){3, 3, 3, 0}, 4), 3);
}
END_TEST

/* Lost, overtaken, doubled and strange ones, in all kinds of mixture. */
START_TEST(any_disorder)
{
    for (unsigned round = 0; round < 20000; round++) {
        unsigned n = 1 + (unsigned)rand() % (round % 100 ? 12 : MOST), next = 0, bad = (unsigned)rand() % 50;
        uint16_t lies[MOST];

        for (unsigned i = 0; i < n; i++) {
            next += (unsigned)rand() % 100 < bad;
            lies[i] = next < n ? (uint16_t)next : MR_REPAIR_NONE;
            next++;
            if ((unsigned)rand() % 100 < bad / 4)
                lies[i] = (uint16_t)(rand() % (int)n); /* doubled, perhaps */
        }
        for (unsigned k = (unsigned)rand() % n; k; k--) {
            unsigned a = (unsigned)rand() % n, b = round & 1 ? (unsigned)rand() % n : (a + 1) % n;
            uint16_t other = lies[a];

            lies[a] = lies[b];
            lies[b] = other;
        }
        repair(lies, n);
    }
}
END_TEST

START_TEST(a_datagram_tells_turn_and_number)
{
    for (unsigned turn = 0; turn < 0x10000; turn += 257)
        for (unsigned number = 0; number < MR_REPAIR_MAX; number += 255) {
            uint32_t imm = mr_place_imm((uint16_t)turn, number);

            ck_assert_uint_eq(mr_place_turn(imm), turn);
            ck_assert_uint_eq(mr_place_number(imm), number);
        }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("plan");

    srand(1);
    setenv("CK_FORK", "no", 1); /* one sequence of random numbers over all rounds */
    tcase_add_test(t, what_lies_right_stays);
    tcase_add_test(t, a_loss_shifts_all_later_ones);
    tcase_add_test(t, rings_take_one_move_more);
    tcase_add_test(t, strangers_and_what_came_twice_count_for_nothing);
    tcase_add_test(t, any_disorder);
    tcase_add_test(t, a_datagram_tells_turn_and_number);
    return check_run(t, NULL);
}
