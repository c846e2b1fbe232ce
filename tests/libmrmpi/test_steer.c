/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules in use: reading, the tables of a peer, and their renewal. */
#include "tests/check.h"
#include "tests/libmrmpi/fake_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RC (1u << MR_LINK_RC)
#define UD (1u << MR_LINK_UD)

struct mr_peers mr_peers;
static unsigned lossy;

void mr_peer_tell_lossy(struct mr_peer *p)
{
    lossy++;
}

/* The first subchannel is RC, the second UD. */
static void setup(void)
{
    make_peer();
    lossy = 0;
    mr_config.links = "rc,ud";
    mr_peers.kinds = (struct mr_kinds){.num = 2, .kind = {MR_LINK_RC, MR_LINK_UD}};
    mr_peers.kinds.native[MR_LINK_RC] = true;
    mr_peers.our_kinds = address.kinds = RC | UD;
}

static void teardown(void)
{
    free(peer.steer);
}

static int with_rules(char *text)
{
    int err;

    mr_config.rules = text;
    err = mr_steer_init();
    return err ? err : mr_steer_peer(&peer);
}

/* Both kinds are open, or one of them. */
static void set_tables(uint32_t rc, uint32_t ud)
{
    const uint32_t of_kind[MR_LINK_KINDS] = {[MR_LINK_RC] = rc, [MR_LINK_UD] = ud};

    peer.excluded = 2; /* as without rules: the second */
    ck_assert_uint_eq(mr_steer_set(&peer, of_kind, rc | ud), UINT32_MAX);
}

START_TEST(no_rules_no_tables)
{
    ck_assert_int_eq(with_rules(""), 0);
    ck_assert_ptr_null(peer.steer);
    ck_assert(!mr_steer_is_stale(&peer));
}
END_TEST

START_TEST(rules_that_make_no_sense)
{
    ck_assert_int_eq(with_rules("bogus: rc"), -EINVAL);
    ck_assert_int_eq(with_rules("@/nowhere/at/all"), -EINVAL);
}
END_TEST

START_TEST(rules_of_a_file)
{
    char name[] = "@/tmp/test_steer.XXXXXX";
    int fd = mkstemp(name + 1);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, "any: ud", 7), 7);
    close(fd);
    ck_assert_int_eq(with_rules(name), 0);
    unlink(name + 1);
    ck_assert_uint_eq(mr_peers.rules.num, 1);
}
END_TEST

/* A packet's excluded set depends on its use and its size; packets without a rule go as if there were no rules. */
START_TEST(tables)
{
    ck_assert_int_eq(with_rules("eager size<=1K: ud; eager size<=8K: rc"), 0);
    set_tables(1, 2);
    ck_assert_uint_eq(mr_steer_excluded(&peer, MR_RULE_EAGER, 1024), 1);
    ck_assert_uint_eq(mr_steer_excluded(&peer, MR_RULE_EAGER, 1025), 2);
    ck_assert_uint_eq(mr_steer_excluded(&peer, MR_RULE_EAGER, 100000), 2);
    ck_assert_uint_eq(mr_steer_excluded(&peer, MR_RULE_CONTROL, 10), 2);
    ck_assert_uint_gt(lossy, 0);
}
END_TEST

/* A closed kind is passed over: the rule's next kind, or the choice without rules. */
START_TEST(kind_that_is_not_open)
{
    ck_assert_int_eq(with_rules("any: ud,rc"), 0);
    set_tables(1, 0);
    ck_assert_uint_eq(mr_steer_excluded(&peer, MR_RULE_EAGER, 8), 0);
    ck_assert_uint_eq(lossy, 0);
    set_tables(1, 2);
    ck_assert_uint_eq(mr_steer_excluded(&peer, MR_RULE_EAGER, 8), 1);
}
END_TEST

/* Tables are stale when a count passes a limit in a rule, and only for a connected peer. */
START_TEST(stale_tables)
{
    ck_assert_int_eq(with_rules("eager count>=16: rc; eager: ud"), 0);
    set_tables(1, 2);
    ck_assert_uint_eq(mr_steer_excluded(&peer, MR_RULE_EAGER, 8), 1);
    peer.counted = 15;
    ck_assert(!mr_steer_is_stale(&peer));
    peer.counted = 16;
    ck_assert(mr_steer_is_stale(&peer));
    peer.up = false;
    ck_assert(!mr_steer_is_stale(&peer));
    peer.up = true;
    set_tables(1, 2);
    ck_assert(!mr_steer_is_stale(&peer));
    ck_assert_uint_eq(mr_steer_excluded(&peer, MR_RULE_EAGER, 8), 2);
}
END_TEST

START_TEST(large_messages)
{
    ck_assert_int_eq(with_rules("rdma size<=64K: ud; rdma: rc"), 0);
    ck_assert(!mr_steer_by_rdma(&peer, 65536));
    ck_assert(mr_steer_by_rdma(&peer, 65537));
    address.kinds = RC; /* the peer has no datagrams */
    ck_assert(mr_steer_by_rdma(&peer, 65536));
}
END_TEST

/* Also before its subchannels are made: both ends' addresses decide the kind. */
START_TEST(kind_of_large_messages)
{
    mr_config.links = "ring,ud";
    mr_peers.kinds.kind[0] = MR_LINK_RING;
    mr_peers.our_kinds = address.kinds = 1u << MR_LINK_RING | UD;
    ck_assert_int_eq(with_rules("rdma: rc,ring; any: ud"), 0);
    ck_assert(mr_steer_by_rdma(&peer, 65536));
    mr_peers.our_kinds = address.kinds = UD; /* no RDMA at all */
    ck_assert(!mr_steer_by_rdma(&peer, 65536));
}
END_TEST

/* Would packets use these kinds if all were open? */
START_TEST(wanted_kinds)
{
    ck_assert_int_eq(with_rules("any: ud"), 0);
    ck_assert(mr_steer_wants(&peer, UD));
    ck_assert(!mr_steer_wants(&peer, RC));
    address.kinds = RC; /* no rule holds: the preferred kind */
    ck_assert(mr_steer_wants(&peer, RC));
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("steer");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, no_rules_no_tables);
    tcase_add_test(c, rules_that_make_no_sense);
    tcase_add_test(c, rules_of_a_file);
    tcase_add_test(c, tables);
    tcase_add_test(c, kind_that_is_not_open);
    tcase_add_test(c, stale_tables);
    tcase_add_test(c, large_messages);
    tcase_add_test(c, kind_of_large_messages);
    tcase_add_test(c, wanted_kinds);
    return check_run(c, NULL);
}
