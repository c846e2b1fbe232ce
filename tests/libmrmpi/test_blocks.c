/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of large messages: sets of blocks, the written runs, and the contents of notifications. */
#include "libmrmpi/net/stripe/blocks.h"
#include "tests/check.h"

#include <stdlib.h>

START_TEST(blocks_are_as_short_as_their_number_allows)
{
    ck_assert_uint_eq(mr_block_shift(1), 12);
    ck_assert_uint_eq(mr_block_shift(4096ull * MR_BLOCKS_MAX), 12);
    ck_assert_uint_eq(mr_block_shift(4096ull * MR_BLOCKS_MAX + 1), 13);
    ck_assert_uint_eq(mr_block_shift(1ull << 40), 25);
}
END_TEST

START_TEST(notifications_tell_run_round_and_receive)
{
    for (uint32_t num = 1; num <= MR_BLOCKS_MAX; num *= 2)
        for (uint32_t first = 0; first<MR_BLOCKS_MAX; first += num> 512 ? num : 512) {
            uint32_t imm = mr_run_imm(1023, (struct mr_block_run){first, num}, 63);
            struct mr_block_run run = mr_run_of(imm);

            ck_assert(mr_imm_is_run(imm));
            ck_assert_uint_eq(mr_run_index(imm), 1023);
            ck_assert_uint_eq(mr_run_round(imm), 63 % MR_RUN_ROUNDS);
            ck_assert_uint_eq(run.first, first);
            ck_assert_uint_eq(run.num, num);
        }
    ck_assert_uint_eq(mr_run_of(MR_RUN_FLAG).num, 0);
}
END_TEST

START_TEST(a_block_counts_once)
{
    struct mr_blocks b;

    ck_assert_int_eq(mr_blocks_init(&b, 100, false), 0);
    ck_assert_uint_eq(mr_blocks_add(&b, (struct mr_block_run){60, 8}), 8); /* over the end of a word */
    ck_assert_uint_eq(mr_blocks_add(&b, (struct mr_block_run){64, 8}), 4);
    ck_assert_uint_eq(mr_blocks_add(&b, (struct mr_block_run){96, 32}), 4); /* over the end of the message */
    ck_assert_uint_eq(mr_blocks_add(&b, (struct mr_block_run){128, 128}), 0);
    ck_assert_uint_eq(mr_blocks_add(&b, (struct mr_block_run){100, UINT32_MAX}), 0);
    ck_assert_uint_eq(b.count, 16);
    ck_assert_uint_eq(mr_blocks_find(&b, 0, true), 60);
    ck_assert_uint_eq(mr_blocks_find(&b, 60, false), 72);
    ck_assert_uint_eq(mr_blocks_find(&b, 72, true), 96);
    ck_assert_uint_eq(mr_blocks_find(&b, 96, false), 100);
    ck_assert_uint_eq(mr_blocks_remove(&b, (struct mr_block_run){0, 61}), 1);
    ck_assert(!mr_blocks_has(&b, 60) && mr_blocks_has(&b, 61));
    ck_assert_uint_eq(b.count, 15);
    mr_blocks_free(&b);
}
END_TEST

/* Writes of a lossy link until all has landed: no run leaves the stripe, or is longer than asked for; at the end all is
 * there. */
START_TEST(runs_cover_what_is_left_and_nothing_else)
{
    uint32_t num = 1 + (uint32_t)rand() % 2000, from = (uint32_t)rand() % num,
             to = from + 1 + (uint32_t)rand() % (num - from);
    struct mr_blocks todo, have;

    ck_assert_int_eq(mr_blocks_init(&todo, num, true), 0);
    ck_assert_int_eq(mr_blocks_init(&have, num, false), 0);
    for (int round = 0; have.count < to - from; round++) {
        uint32_t most = 1u << rand() % 10, at;

        ck_assert_int_lt(round, 200);
        while ((at = mr_blocks_find(&todo, from, true)) < to) {
            struct mr_block_run run = mr_blocks_run(&todo, from, to, most);

            ck_assert_uint_eq(run.first, at);
            ck_assert(run.num >= 1 && run.num <= most && run.first + run.num <= to);
            ck_assert_uint_eq(run.first % run.num, 0);
            ck_assert_uint_eq(run.num & (run.num - 1), 0);
            ck_assert_uint_eq(mr_blocks_remove(&todo, run), run.num);
            if (rand() % 3)
                ck_assert_uint_eq(mr_blocks_add(&have, mr_run_of(mr_run_imm(5, run, (unsigned)round))), run.num);
        }
        for (uint32_t i = from; i < to; i++)
            if (!mr_blocks_has(&have, i))
                mr_blocks_add(&todo, (struct mr_block_run){i, 1});
    }
    ck_assert_uint_eq(mr_blocks_find(&have, from, false), to < num ? to : num);
    mr_blocks_free(&todo);
    mr_blocks_free(&have);
}
END_TEST

START_TEST(writes_get_shorter_with_loss_and_longer_without)
{
    ck_assert_uint_eq(mr_run_adapt(20, 0, 100, 20), 20);
    ck_assert_uint_eq(mr_run_adapt(16, 0, 100, 20), 17);
    ck_assert_uint_eq(mr_run_adapt(16, 8, 100, 20), 16);
    ck_assert_uint_eq(mr_run_adapt(16, 20, 100, 20), 15);
    ck_assert_uint_eq(mr_run_adapt(16, 60, 100, 20), 14);
    ck_assert_uint_eq(mr_run_adapt(13, 100, 100, 20), 12);
    ck_assert_uint_eq(mr_run_adapt(12, 100, 100, 20), 12);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("blocks");

    srand(1);
    setenv("CK_FORK", "no", 1); /* one sequence of random numbers over all loops */
    tcase_add_test(t, blocks_are_as_short_as_their_number_allows);
    tcase_add_test(t, notifications_tell_run_round_and_receive);
    tcase_add_test(t, a_block_counts_once);
    tcase_add_loop_test(t, runs_cover_what_is_left_and_nothing_else, 0, 300);
    tcase_add_test(t, writes_get_shorter_with_loss_and_longer_without);
    return check_run(t, NULL);
}
