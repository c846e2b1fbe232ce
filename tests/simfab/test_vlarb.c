/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitration among virtual lanes: shares by weight, precedence and limit of the high table; and flow control. */
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/wire/credit.h"
#include "simfab/engine/wire/vlarb.h"
#include "tests/check.h"

static uint64_t sent[FABRIC_VLS];

/* Let every lane of ready always have packets of the given size, and send so many. */
static void run(const struct vlarb_config *c, uint32_t ready, uint32_t size, unsigned packets)
{
    struct vlarb_state s = {0};
    uint32_t bytes[FABRIC_VLS];

    for (unsigned vl = 0; vl < FABRIC_VLS; vl++) {
        bytes[vl] = size;
        sent[vl] = 0;
    }
    while (packets--) {
        int vl = vlarb_pick(&s, c, ready, bytes);

        ck_assert_int_ge(vl, 0);
        ck_assert(ready & 1u << vl);
        sent[vl] += size;
    }
}

static double share(unsigned vl)
{
    uint64_t all = 0;

    for (unsigned i = 0; i < FABRIC_VLS; i++)
        all += sent[i];
    return (double)sent[vl] / (double)all;
}

START_TEST(weights_are_shares)
{
    static const struct vlarb_entry low[] = {{0, 32}, {1, 64}, {2, 128}};
    struct vlarb_config c = {.low = vlarb_table_of(low, 3), .high_limit = 255};

    run(&c, 7, 2048, 70000);
    ck_assert_double_eq_tol(share(0), 1.0 / 7, 0.01);
    ck_assert_double_eq_tol(share(1), 2.0 / 7, 0.01);
    ck_assert_double_eq_tol(share(2), 4.0 / 7, 0.01);
}
END_TEST

START_TEST(a_weight_is_rounded_up_to_whole_packets)
{
    /* 64 bytes of weight still let a packet of 2048 pass: then both lanes are equal */
    static const struct vlarb_entry low[] = {{0, 1}, {1, 32}};
    struct vlarb_config c = {.low = vlarb_table_of(low, 2), .high_limit = 255};

    run(&c, 3, 2048, 10000);
    ck_assert_double_eq_tol(share(0), 0.5, 0.01);
}
END_TEST

/* As if the sizes were known: lane 0 has packets of 64 bytes, lane 1 of 2048, and all are first taken for 2048. */
START_TEST(what_was_booked_wrongly_is_put_right)
{
    static const struct vlarb_entry low[] = {{0, 64}, {1, 64}}, high[] = {{2, 1}};
    struct vlarb_config c = {.low = vlarb_table_of(low, 2), .high = vlarb_table_of(high, 1), .high_limit = 1};
    struct vlarb_state s = {0};
    uint32_t bytes[FABRIC_VLS], real[FABRIC_VLS] = {64, 2048, 64};

    for (unsigned vl = 0; vl < FABRIC_VLS; vl++) {
        bytes[vl] = 2048;
        sent[vl] = 0;
    }
    for (unsigned i = 0; i < 100000; i++) {
        int vl = vlarb_pick(&s, &c, i < 50000 ? 3 : 7, bytes);

        vlarb_rebook(&s, bytes[vl], real[vl]);
        sent[vl] += real[vl];
        if (i == 49999) {
            ck_assert_double_eq_tol(share(0), 0.5, 0.01);
            sent[0] = sent[1] = 0;
        }
    }
    ck_assert_uint_gt(sent[2], sent[0] + sent[1]); /* 64 of its packets for one of theirs, and not two */
    ck_assert_double_eq_tol((double)sent[0] / (double)sent[1], 1, 0.05);
    s = (struct vlarb_state){0};
    ck_assert_int_eq(vlarb_pick(&s, &c, 3, bytes), 0);
    vlarb_rebook(&s, bytes[0], 0); /* there was none */
    ck_assert_int_eq(s.low.left, 64);
}
END_TEST

START_TEST(an_idle_lane_leaves_its_share_to_the_others)
{
    static const struct vlarb_entry low[] = {{0, 10}, {1, 200}, {2, 10}};
    struct vlarb_config c = {.low = vlarb_table_of(low, 3), .high_limit = 255};

    run(&c, 5, 64, 10000);
    ck_assert_double_eq_tol(share(0), 0.5, 0.01);
    ck_assert_uint_eq(sent[1], 0);
}
END_TEST

START_TEST(a_lane_may_stand_in_a_table_more_than_once)
{
    static const struct vlarb_entry low[] = {{0, 16}, {1, 16}, {0, 16}, {2, 16}};
    struct vlarb_config c = {.low = vlarb_table_of(low, 4), .high_limit = 255};

    run(&c, 7, 1024, 40000);
    ck_assert_double_eq_tol(share(0), 0.5, 0.01);
    ck_assert_double_eq_tol(share(2), 0.25, 0.01);
}
END_TEST

START_TEST(high_without_limit_starves_low)
{
    static const struct vlarb_entry high[] = {{1, 4}}, low[] = {{0, 255}};
    struct vlarb_config c = {vlarb_table_of(high, 1), vlarb_table_of(low, 1), 255};

    run(&c, 3, 2048, 1000);
    ck_assert_uint_eq(sent[0], 0);
    run(&c, 1, 2048, 10); /* but low goes on when high has nothing */
    ck_assert_uint_eq(sent[0], 10 * 2048);
}
END_TEST

START_TEST(the_limit_gives_low_one_packet_per_limit)
{
    static const struct vlarb_entry high[] = {{1, 255}}, low[] = {{0, 255}};
    struct vlarb_config c = {vlarb_table_of(high, 1), vlarb_table_of(low, 1), 4}; /* 16384 bytes = 8 packets of 2048 */

    run(&c, 3, 2048, 9000);
    ck_assert_double_eq_tol(share(1), 8.0 / 9, 0.005);
}
END_TEST

START_TEST(limit_zero_alternates)
{
    static const struct vlarb_entry high[] = {{1, 255}}, low[] = {{0, 255}};
    struct vlarb_config c = {vlarb_table_of(high, 1), vlarb_table_of(low, 1), 0};

    run(&c, 3, 2048, 1000);
    ck_assert_double_eq_tol(share(1), 0.5, 0.01);
}
END_TEST

/* Number of consecutive packets chosen by pick while ready stays. */
static unsigned in_a_row(struct vlarb_state *s, const struct vlarb_config *c, uint32_t ready, int vl)
{
    uint32_t bytes[FABRIC_VLS];
    unsigned n = 0;

    for (unsigned i = 0; i < FABRIC_VLS; i++)
        bytes[i] = 2078; /* 33 blocks */
    for (struct vlarb_state next = *s; n < 1000 && vlarb_pick(&next, c, ready, bytes) == vl; *s = next)
        n++;
    return n;
}

START_TEST(what_waits_below_waits_no_longer_because_it_was_away)
{
    static const struct vlarb_entry high[] = {{1, 255}}, low[] = {{0, 255}};
    struct vlarb_config c = {vlarb_table_of(high, 1), vlarb_table_of(low, 1), 4}; /* 256 blocks: 8 packets */
    struct vlarb_state s = {0};
    uint32_t bytes[FABRIC_VLS] = {2078, 2078};

    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(vlarb_pick(&s, &c, 2, bytes), 1);
    ck_assert_uint_eq(in_a_row(&s, &c, 3, 1), 3); /* 5 of the 8 had gone before lane 0 was ready */
    ck_assert_uint_eq(in_a_row(&s, &c, 3, 0), 1);
    ck_assert_uint_eq(in_a_row(&s, &c, 3, 1), 8);
    ck_assert_int_eq(vlarb_pick(&s, &c, 1, bytes), 0); /* the high table has nothing: its counter starts anew */
    ck_assert_uint_eq(in_a_row(&s, &c, 3, 1), 8);
}
END_TEST

START_TEST(what_is_left_of_a_turn_is_lost)
{
    static const struct vlarb_entry low[] = {{0, 100}, {1, 66}};
    struct vlarb_config c = {.low = vlarb_table_of(low, 2)};
    struct vlarb_state s = {0};
    uint32_t bytes[FABRIC_VLS] = {2078, 2078};

    ck_assert_uint_eq(in_a_row(&s, &c, 3, 0),
                      4); /* 100 blocks: the fourth packet exceeds the weight by 32, which is forgiven */
    ck_assert_uint_eq(in_a_row(&s, &c, 3, 1), 2);
    ck_assert_int_eq(vlarb_pick(&s, &c, 3, bytes), 0);
    ck_assert_int_eq(vlarb_pick(&s, &c, 2, bytes), 1); /* lane 0 has nothing for a moment */
    ck_assert_uint_eq(in_a_row(&s, &c, 3, 1), 1);
    ck_assert_uint_eq(in_a_row(&s, &c, 3, 0), 4);
}
END_TEST

START_TEST(lanes_that_no_table_may_name_are_passed_over)
{
    static const struct vlarb_entry low[] = {{15, 255}, {0, 0}, {1, 33}, {0, 0}};
    struct vlarb_config c = {.low = vlarb_table_of(low, 4)};
    struct vlarb_state s = {0};
    uint32_t bytes[FABRIC_VLS] = {[1] = 2078, [15] = 2078};

    ck_assert_uint_eq(c.low.lanes, 2);
    ck_assert_uint_eq(c.low.entries, 3);
    ck_assert_uint_eq(in_a_row(&s, &c, 0x8003, 1), 1000);
    ck_assert_int_eq(vlarb_pick(&s, &c, 0x8001, bytes), -1);
}
END_TEST

START_TEST(weight_zero_never_sends)
{
    static const struct vlarb_entry low[] = {{0, 8}, {1, 0}};
    struct vlarb_config c = {.low = vlarb_table_of(low, 2), .high_limit = 255};
    struct vlarb_state s = {0};
    uint32_t bytes[FABRIC_VLS] = {64, 64};

    run(&c, 3, 64, 100);
    ck_assert_uint_eq(sent[1], 0);
    ck_assert_int_eq(vlarb_pick(&s, &c, 2, bytes), -1);
}
END_TEST

START_TEST(without_tables_lanes_take_turns)
{
    struct vlarb_config c = {.high_limit = 0};

    run(&c, 0x8005, 256, 3000);
    ck_assert_uint_eq(sent[0], sent[2]);
    ck_assert_uint_eq(sent[0], sent[15]);
    ck_assert_int_eq(vlarb_pick(&(struct vlarb_state){0}, &c, 0, (uint32_t[FABRIC_VLS]){0}), -1);
}
END_TEST

START_TEST(credits_stop_at_the_buffer_and_come_back)
{
    struct credit c;
    unsigned n = 0;

    credit_init(&c, 16384); /* 256 blocks: 7 packets of 2078 bytes = 33 blocks */
    while (credit_may_send(&c, 2078)) {
        credit_sent(&c, 2078);
        n++;
    }
    ck_assert_uint_eq(n, 7);
    credit_freed(&c, 2078);
    ck_assert(!credit_may_send(&c, 2078)); /* the sender has not been told */
    credit_update(&c, c.freed);
    ck_assert(credit_may_send(&c, 2078));
}
END_TEST

START_TEST(credits_wrap_around_for_ever)
{
    struct credit c;

    credit_init(&c, 1u << 30); /* clamped to the range of 12 bits */
    for (unsigned i = 0; i < 100000; i++) {
        uint32_t bytes = 64 + i % 4096;

        ck_assert(credit_may_send(&c, bytes));
        credit_sent(&c, bytes);
        credit_freed(&c, bytes);
        credit_update(&c, c.freed);
    }
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("vlarb");

    tcase_add_test(c, weights_are_shares);
    tcase_add_test(c, a_weight_is_rounded_up_to_whole_packets);
    tcase_add_test(c, what_was_booked_wrongly_is_put_right);
    tcase_add_test(c, an_idle_lane_leaves_its_share_to_the_others);
    tcase_add_test(c, a_lane_may_stand_in_a_table_more_than_once);
    tcase_add_test(c, high_without_limit_starves_low);
    tcase_add_test(c, the_limit_gives_low_one_packet_per_limit);
    tcase_add_test(c, limit_zero_alternates);
    tcase_add_test(c, what_waits_below_waits_no_longer_because_it_was_away);
    tcase_add_test(c, what_is_left_of_a_turn_is_lost);
    tcase_add_test(c, lanes_that_no_table_may_name_are_passed_over);
    tcase_add_test(c, weight_zero_never_sends);
    tcase_add_test(c, without_tables_lanes_take_turns);
    tcase_add_test(c, credits_stop_at_the_buffer_and_come_back);
    tcase_add_test(c, credits_wrap_around_for_ever);
    return check_run(c, NULL);
}
