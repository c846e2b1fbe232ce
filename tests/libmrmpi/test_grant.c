/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Grants: a receiver's budget is divided among its senders; the recipients and times of grants, and their effect at a
 * sender.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/net/internal.h"
#include "libmrmpi/verbs/verbs.h"
#include "tests/check.h"
#include "tests/stubs/stub.h"

#define PEERS  9u
#define TICK   (MR_GRANT_NS + PEERS * MR_GRANT_PEER_NS)
#define BUDGET 800000000u /* of one rail; there are two */

struct mr_peers mr_peers;
struct mr_net mr_net;
struct mr_verbs mr_verbs;

static struct mr_launch launch;
static struct mr_address address;
static struct mr_net_peer net_peer[PEERS];
static struct mr_peer *peers[PEERS + 1];
#define PEER(i) (net_peer[i].base.base)
static uint32_t received[PEERS], told[PEERS]; /* packets of each peer, grants sent to the peer */
static struct mr_hdr word[PEERS];             /* the last */
static struct mr_vc vcs[PEERS];
static bool full; /* words find no memory */

/* ---- the files beside -------------------------------------------------------------------------------------------- */

static struct mr_vc *vc_of(unsigned i)
{
    return &vcs[i];
}

uint32_t mr_vc_received(const struct mr_vc *vc)
{
    return received[vc - vcs];
}

int mr_vc_send_control(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len)
{
    size_t i = (size_t)(vc - vcs);

    if (full)
        return -1;
    ck_assert_uint_eq(len, 0);
    told[i]++;
    word[i] = *hdr;
    return 0;
}

void mr_net_renew_shorts(void)
{
    ck_assert(mr_peers.ahead_limited);
}

/* ---- stubs ------------------------------------------------------------------------------------------------------- */

static void set_budget(uint64_t rate)
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        for (unsigned l = 0; l < MR_LEVEL_PACKETS; l++)
            mr_ahead_set(&mr_peers.ahead[i][l], rate, stub_clock_ns);
}

static void setup(void)
{
    memset(&mr_peers, 0, sizeof mr_peers);
    memset(&mr_net, 0, sizeof mr_net);
    memset(received, 0, sizeof received);
    memset(told, 0, sizeof told);
    memset(word, 0, sizeof word);
    launch = (struct mr_launch){.size = PEERS + 1};
    stub_clock_ns = 1000 * TICK;
    full = false;
    mr_config.log_level = -1;
    mr_peers.launch = &launch;
    mr_peers.peer = peers;
    mr_verbs.num_rails = 2;
    for (unsigned i = 0; i < PEERS; i++) {
        PEER(i) = (struct mr_peer){.rank = (int)i + 1, .up = true, .vc = vc_of(i), .address = &address};
        peers[i + 1] = &PEER(i);
    }
    set_budget(BUDGET);
}

static void arrive(unsigned i)
{
    received[i]++;
    mr_peers.arrived++;
}

/* An interval with packets of the first n peers. */
static void interval(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        arrive(i);
    stub_clock_ns += TICK;
    mr_grant_tick(stub_clock_ns);
}

static unsigned all_told(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < PEERS; i++)
        n += told[i];
    return n;
}

#define PART(n) (2 * BUDGET / 1000 / (n))

/* ---- the receiver ------------------------------------------------------------------------------------------------ */

START_TEST(parts_of_a_budget)
{
    ck_assert_uint_eq(mr_grant_part(0, 8), 0);
    ck_assert_uint_eq(mr_grant_part(1600000000, 8), 200000);
    ck_assert_uint_eq(mr_grant_part(1600000000, 0), 1600000);
    ck_assert_uint_eq(mr_grant_part(5000, 4096), 1); /* 0 would be no limit */
    ck_assert_uint_eq(mr_grant_part(UINT64_MAX, 1), MR_GRANT_MOST_KB);
}
END_TEST

/* Up at once, to a power of two; down after a while, to the most of that time. */
START_TEST(sharers_are_counted)
{
    struct mr_grants g = {0};

    ck_assert_uint_eq(mr_grant_count(&g, 0), 1);
    ck_assert_uint_eq(mr_grant_count(&g, 1), 1);
    ck_assert_uint_eq(mr_grant_count(&g, 5), 8);
    ck_assert_uint_eq(mr_grant_count(&g, 9), 16);
    for (unsigned i = 1; i < MR_GRANT_CALM; i++)
        ck_assert_uint_eq(mr_grant_count(&g, i == 3 ? 4 : 1), 16);
    ck_assert_uint_eq(mr_grant_count(&g, 0), 4);
    for (unsigned i = 0; i < 10 * MR_GRANT_CALM; i++) /* needed now and then */
        ck_assert_uint_eq(mr_grant_count(&g, i % MR_GRANT_CALM ? 0 : 3), 4);
    ck_assert_uint_eq(mr_grant_count(&g, UINT32_MAX), 1u << 31);
}
END_TEST

/*
 * With a slow bus: for all packets, to present senders. Exact if they use the budget up, near otherwise; half beside
 * reads.
 */
START_TEST(senders_have_a_pace)
{
    set_budget(0);
    mr_peers.paced = true;
    mr_peers.pace[1].bucket.rate = 1200000000;
    interval(3);
    ck_assert_uint_eq(word[2].tag, 400000);
    ck_assert_uint_eq(word[2].ctx, 0);
    interval(4); /* by a quarter: too little to matter */
    ck_assert_uint_eq(word[0].tag, 400000);
    ck_assert_uint_eq(word[3].tag, 300000);
    ck_assert(!mr_peers.pace[1].held);
    for (unsigned i = 0; i < 2; i++) {
        mr_verbs.rail[1].count[MR_RAIL_BYTES_RECEIVED] += 700000000 / (1000000000 / TICK);
        interval(4);
        ck_assert(mr_peers.pace[1].held);
        ck_assert_uint_eq(word[0].tag, 300000);
    }
    mr_peers.paced_parts++;
    interval(4);
    ck_assert_uint_eq(word[0].tag, 150000);
    mr_peers.paced = false;
    interval(3);
    ck_assert_uint_eq(word[0].tag, 0);
    ck_assert_uint_eq(word[3].tag, 150000); /* a silent peer gets the grant when sending again */
    mr_verbs.rail[1].count[MR_RAIL_BYTES_RECEIVED] = 0;
}
END_TEST

START_TEST(senders_are_told_their_part)
{
    interval(1);
    ck_assert_uint_eq(word[0].ctx, PART(1));
    interval(1);
    ck_assert_uint_eq(all_told(), 1);
    interval(3);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(word[i].ctx, PART(4));
    ck_assert_uint_eq(all_told(), 4);
    interval(4); /* another sender, and still four */
    ck_assert_uint_eq(word[3].ctx, PART(4));
    ck_assert_uint_eq(all_told(), 5);
    for (unsigned i = 0; i < MR_GRANT_CALM; i++)
        interval(1);
    ck_assert_uint_eq(word[0].ctx, PART(1));
    ck_assert_uint_eq(word[1].ctx, PART(4)); /* a silent peer gets the grant when sending again */
    ck_assert_uint_eq(all_told(), 6);
    interval(2);
    ck_assert_uint_eq(word[0].ctx, PART(2));
    ck_assert_uint_eq(word[1].ctx, PART(2));
}
END_TEST

START_TEST(an_interval_has_its_time)
{
    arrive(0);
    stub_clock_ns += TICK;
    mr_grant_tick(stub_clock_ns);
    arrive(1);
    stub_clock_ns += MR_GRANT_NS / 2;
    mr_grant_tick(stub_clock_ns);
    ck_assert_uint_eq(all_told(), 1);
    stub_clock_ns += TICK;
    mr_grant_tick(stub_clock_ns);
    ck_assert_uint_eq(all_told(), 2);
}
END_TEST

/* Its budget changes, and ends. */
START_TEST(another_budget_is_told)
{
    interval(2);
    set_budget(BUDGET / 4);
    interval(2);
    ck_assert_uint_eq(word[0].ctx, PART(8));
    set_budget(0);
    interval(1);
    ck_assert_uint_eq(word[0].ctx, 0);
    ck_assert_uint_eq(word[1].ctx, PART(8));
    interval(2);
    ck_assert_uint_eq(word[1].ctx, 0);
    ck_assert_uint_eq(all_told(), 6);
    interval(9);
    ck_assert_uint_eq(all_told(), 6);
}
END_TEST

/* No grants without a budget, to peers lost or not yet connected, or at the end; a grant without room is sent later. */
START_TEST(who_is_not_told)
{
    set_budget(0);
    interval(3);
    ck_assert_uint_eq(all_told(), 0);
    ck_assert(!mr_net.grants.said);
    set_budget(BUDGET);
    PEER(0).error = -1;
    PEER(1).up = false;
    full = true;
    interval(3);
    full = false;
    interval(3);
    ck_assert_uint_eq(all_told(), 1);
    ck_assert_uint_eq(word[2].ctx, PART(4)); /* three were counted at first */
    mr_net.parting = true;
    PEER(1).up = true;
    interval(3);
    ck_assert_uint_eq(all_told(), 1);
}
END_TEST

/* ---- the sender -------------------------------------------------------------------------------------------------- */

static bool hear(unsigned i, uint32_t kb, size_t len)
{
    struct mr_hdr hdr = word[0];

    hdr.ctx = kb;
    arrive(i);
    return mr_grant_control(&PEER(i), &hdr, len);
}

START_TEST(a_word_is_a_limit)
{
    interval(1);
    ck_assert(hear(1, 5000, 0));
    for (unsigned l = 0; l < MR_LEVEL_PACKETS; l++)
        ck_assert_uint_eq(PEER(1).granted[l].bucket.rate, 5000000);
    ck_assert_ptr_null(PEER(2).granted);
    PEER(1).granted[0].bucket.left = 7;
    ck_assert(hear(1, 2500, 0));
    ck_assert_uint_eq(PEER(1).granted[0].bucket.rate, 2500000);
    ck_assert_int_eq(PEER(1).granted[0].bucket.left, 7);
    ck_assert(hear(1, 0, 0));
    ck_assert_uint_eq(PEER(1).granted[0].bucket.rate, 0);
    free(PEER(1).granted);
}
END_TEST

/* Or two that hardly send would be told, and tell, for ever. */
static bool hear_pace(unsigned i, uint32_t kb)
{
    struct mr_hdr hdr;

    interval(1);
    hdr = word[0];
    hdr.ctx = 0;
    hdr.tag = (int)kb;
    return mr_grant_control(&PEER(i), &hdr, 0);
}

/* Packets are short while they are sent at a pace. */
START_TEST(a_pace_is_a_limit)
{
    ck_assert(hear_pace(1, MR_FABRIC_PACE_ALONE));
    ck_assert_uint_eq(vcs[1].part, 0);
    ck_assert(hear_pace(1, 500000));
    ck_assert_uint_eq(net_peer[1].pace->bucket.rate, 500000000);
    ck_assert_int_le(net_peer[1].pace->bucket.depth, MR_PACE_PACKET / 2);
    ck_assert_int_lt(net_peer[1].pace->bucket.left, 0); /* packets under way count */
    ck_assert_uint_gt(vcs[1].part, 1024);
    ck_assert_uint_lt(vcs[1].part, MR_PACE_PACKET);
    ck_assert(hear_pace(1, 0));
    ck_assert_uint_eq(vcs[1].part, 0);
    ck_assert(!mr_pace_limits(net_peer[1].pace));
    free(net_peer[1].pace);
}
END_TEST

START_TEST(words_are_no_traffic)
{
    interval(1);
    ck_assert(hear(1, 5000, 0));
    interval(0);
    ck_assert_uint_eq(told[1], 0);
    free(PEER(1).granted);
}
END_TEST

START_TEST(nonsense_is_refused)
{
    struct mr_hdr other;

    interval(1);
    other = word[0];
    for (unsigned kind = 0; kind < 256; kind++) {
        other.kind = (uint8_t)kind;
        if (kind != word[0].kind)
            ck_assert(!mr_grant_control(&PEER(1), &other, 0));
    }
    ck_assert(hear(1, MR_GRANT_MOST_KB + 1, 0));
    ck_assert(hear(1, UINT32_MAX, 0));
    ck_assert(hear(1, 5000, 1));
    ck_assert(hear(1, 0, 0));
    ck_assert_ptr_null(PEER(1).granted);
    ck_assert(hear(1, MR_GRANT_MOST_KB, 0)); /* as much as may be said does not overflow */
    PEER(1).granted[0].bucket.left = 0;
    PEER(1).granted[0].empty = true;
    ck_assert(mr_ahead_fill(&PEER(1).granted[0], stub_clock_ns + 999999999));
    ck_assert_int_eq(PEER(1).granted[0].bucket.left, PEER(1).granted[0].bucket.depth);
    free(PEER(1).granted);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("grant");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, parts_of_a_budget);
    tcase_add_test(t, sharers_are_counted);
    tcase_add_test(t, senders_have_a_pace);
    tcase_add_test(t, senders_are_told_their_part);
    tcase_add_test(t, an_interval_has_its_time);
    tcase_add_test(t, another_budget_is_told);
    tcase_add_test(t, who_is_not_told);
    tcase_add_test(t, a_word_is_a_limit);
    tcase_add_test(t, a_pace_is_a_limit);
    tcase_add_test(t, words_are_no_traffic);
    tcase_add_test(t, nonsense_is_refused);
    return check_run(t, NULL);
}
