/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections within a budget: which peers get connections, which lose them, and which are never refused. */
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/conn/internal.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/contexts.h"
#include "tests/check.h"
#include "tests/stubs/stub.h"

#define PEERS 4u
#define RC    (1u << MR_LINK_RC)
#define UD    (1u << MR_LINK_UD)
#define TICK  20000000ull

struct mr_peers mr_peers;
struct mr_connect mr_connect;

static int nodes[PEERS + 1] = {0, 1, 2, 3, 4};
static struct mr_launch launch;
static struct mr_peer peer[PEERS], *peers[PEERS + 1];
static struct mr_connect_peer conn[PEERS];
static struct mr_sub sub[PEERS];
static struct mr_address address[PEERS];
static struct mr_load load[PEERS];
static struct mr_peer *parked; /* the last peer refused */
static unsigned contexts;      /* of the adapters here */

/* ---- the files beside -------------------------------------------------------------------------------------------- */

unsigned mr_verbs_contexts(void)
{
    return contexts;
}

int mr_vc_send_control(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len)
{
    ck_assert_uint_eq(hdr->kind, MR_CONTROL_PARKED);
    parked = &peer[hdr->tag];
    return 0;
}

void mr_sub_set_up(struct mr_sub *s, bool up)
{
    s->peer->load->up = up;
}

int32_t mr_sub_tag(const struct mr_sub *s, uint8_t generation)
{
    return (int32_t)(s - sub);
}

/* ---- stubs ------------------------------------------------------------------------------------------------------- */

static void begin(int rc_peers)
{
    mr_config.rc_peers = rc_peers;
    mr_budget_init();
}

/* Rank 0 of five, each on a host of its own; all have both kinds. */
static void setup(void)
{
    memset(&mr_peers, 0, sizeof mr_peers);
    memset(&mr_connect, 0, sizeof mr_connect);
    memset(peer, 0, sizeof peer);
    memset(conn, 0, sizeof conn);
    memset(sub, 0, sizeof sub);
    memset(load, 0, sizeof load);
    launch = (struct mr_launch){.size = PEERS + 1, .num_nodes = PEERS + 1, .node_of = nodes};
    stub_clock_ns = 1000 * TICK;
    parked = NULL;
    mr_config.log_level = -1;
    mr_config.rc_after = 0;
    mr_peers.launch = &launch;
    mr_peers.peer = peers;
    mr_peers.kinds = (struct mr_kinds){.num = 2, .kind = {MR_LINK_RC, MR_LINK_UD}};
    mr_peers.our_kinds = RC | UD;
    for (unsigned i = 0; i < PEERS; i++) {
        peer[i] = (struct mr_peer){
            .rank = (int)i + 1, .up = true, .sub = &sub[i], .now = &sub[i], .num_subs = 1, .num_now = 1};
        peer[i].connect = &conn[i];
        peer[i].load = &load[i];
        address[i].kinds = RC | UD;
        peer[i].address = &address[i];
        sub[i] = (struct mr_sub){.peer = &peer[i], .kind = MR_LINK_RC};
        peers[i + 1] = &peer[i];
    }
}

static bool has(unsigned i)
{
    return peer[i].connect->wanted & RC;
}

static void hear_parked(struct mr_peer *p)
{
    ck_assert(mr_budget_control(p, &(struct mr_hdr){.kind = MR_CONTROL_PARKED}));
}

/* Peers meet in order, and all wanted connections open. */
static void meet(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        mr_budget_first(&peer[i], RC | UD);
        sub[i].state = has(i) ? MR_SUB_OPEN : MR_SUB_CLOSED;
    }
}

/* Sends this number of packets to the peer until the next tick. */
static void sends(unsigned i, uint32_t packets)
{
    peer[i].out.next += packets;
}

static void tick(void)
{
    stub_clock_ns += TICK;
    mr_budget_tick(stub_clock_ns);
}

static void is_closed(unsigned i)
{
    sub[i].state = MR_SUB_CLOSED;
    mr_ration_recount(&peer[i]);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* Only kinds beside another kind that leads everywhere are rationed. */
START_TEST(what_is_rationed)
{
    begin(2);
    ck_assert_uint_eq(mr_peers.rationed, RC);
    mr_peers.kinds = (struct mr_kinds){.num = 2, .kind = {MR_LINK_RC, MR_LINK_UC}};
    begin(2);
    ck_assert_uint_eq(mr_peers.rationed, 0);
}
END_TEST

/* No rank refuses any if the rank with the most ranks on other hosts has room for them all. */
START_TEST(what_suffices)
{
    static const int unequal[] = {0, 0, 1, 1, 1};

    begin(4);
    ck_assert(mr_connect.suffices);
    begin(3);
    ck_assert(!mr_connect.suffices);
    launch.num_nodes = 2;
    launch.node_of = unequal;
    begin(3); /* the peers of node 0 have three */
    ck_assert(mr_connect.suffices);
    begin(2);
    ck_assert(!mr_connect.suffices);
}
END_TEST

START_TEST(the_first_come)
{
    begin(2);
    meet(3);
    ck_assert(has(0) && has(1) && !has(2));
    ck_assert_uint_eq(peer[2].connect->wanted, UD);
    mr_budget_first(&peer[3], RC); /* nothing else leads there */
    ck_assert(has(3));
    ck_assert_uint_eq(mr_connect.num_held, 3);
}
END_TEST

START_TEST(after_so_many_messages)
{
    mr_config.rc_after = 50;
    begin(2);
    meet(2);
    ck_assert(!has(0) && !has(1));
    sends(0, 49);
    sends(1, 50);
    tick();
    ck_assert(!has(0) && has(1));
    sends(0, 1);
    tick();
    ck_assert(has(0));
}
END_TEST

/* The least used connection closes; the other peer gets its place when closed, not before. */
START_TEST(one_goes_for_another)
{
    begin(2);
    meet(3);
    sends(0, 1000);
    sends(1, 10);
    sends(2, 15);
    tick();
    ck_assert_ptr_null(parked); /* not worth twice as much */
    sends(0, 1000);
    sends(2, 100);
    tick();
    ck_assert_ptr_eq(parked, &peer[1]);
    ck_assert(sub[1].closing);
    ck_assert(!has(1) && !has(2));
    tick();
    ck_assert(!has(2));
    is_closed(1);
    mr_budget_tick(++stub_clock_ns); /* at once */
    ck_assert(has(2) && has(0));
    ck_assert_uint_eq(mr_connect.num_held, 2);
}
END_TEST

/* A connection with a large message under way stays. */
START_TEST(who_cannot_go)
{
    begin(2);
    meet(3);
    peer[0].num_large = 1;
    peer[1].num_large = 2;
    sends(2, 1000);
    tick();
    ck_assert_ptr_null(parked);
    peer[1].num_large = 0;
    sends(2, 1000);
    tick();
    ck_assert_ptr_eq(parked, &peer[1]);
}
END_TEST

START_TEST(who_is_refused)
{
    begin(1);
    meet(2);
    sends(0, 100);
    tick();
    ck_assert(!mr_budget_allows(&peer[1], false));
    ck_assert(mr_budget_allows(&peer[0], false)); /* has a connection */
    ck_assert(mr_budget_allows(&peer[1], true));  /* a promised connection goes */
    address[1].kinds = RC;
    ck_assert(mr_budget_allows(&peer[1], false)); /* nothing else leads there */
}
END_TEST

/* A refused peer asks again after a pause, unless a large message cannot wait. */
START_TEST(after_a_refusal)
{
    begin(4);
    meet(1);
    mr_budget_refused(&peer[0]);
    ck_assert(!has(0));
    is_closed(0);
    ck_assert_uint_eq(mr_connect.num_held, 0);
    sends(0, 1000);
    tick();
    ck_assert(!has(0));
    stub_clock_ns = peer[0].connect->ask_ns;
    sends(0, 1000);
    tick();
    ck_assert(has(0));
    peer[0].needed = true;
    mr_budget_refused(&peer[0]);
    ck_assert(has(0));
    ck_assert_uint_eq(peer[0].connect->refusals, 2);
}
END_TEST

/* Beyond the budget another connection closes, now or as soon as possible. */
START_TEST(one_too_many)
{
    begin(1);
    meet(3);
    sends(0, 1000);
    tick();
    peer[0].num_large = 1;
    peer[1].num_large = peer[2].num_large = 1;
    mr_budget_need(&peer[1]);
    ck_assert(has(0) && has(1));
    ck_assert_ptr_null(parked);
    peer[1].num_large = 0;
    mr_budget_need(&peer[2]);
    ck_assert_ptr_eq(parked, &peer[1]);
    ck_assert(has(0) && !has(1) && has(2));
    peer[0].num_large = 0;
    tick();
    ck_assert_ptr_eq(parked, &peer[0]);
    ck_assert(!has(0) && has(2));
}
END_TEST

/* The peer gives up its connections, and ours with them; but not the only way there is. */
START_TEST(what_the_peer_gives_up)
{
    begin(2);
    meet(2);
    peer[0].load->up = true;
    hear_parked(&peer[0]);
    ck_assert(!has(0));
    ck_assert(sub[0].closing);
    ck_assert(!peer[0].load->up);
    ck_assert_uint_eq(mr_connect.num_held, 2); /* until closed */
    is_closed(0);
    ck_assert_uint_eq(mr_connect.num_held, 1);
    address[1].kinds = RC;
    hear_parked(&peer[1]);
    ck_assert(has(1));
}
END_TEST

/* Two hosts, one of them with three ranks. */
static bool exceeded(unsigned adapters_have, int setting)
{
    static int node_of[] = {0, 1, 1, 0, 1};

    launch.num_nodes = 2;
    launch.node_of = node_of;
    contexts = adapters_have;
    mr_config.rc_peers = setting;
    return mr_budget_exceeded(&launch);
}

START_TEST(follows_from_adapters)
{
    ck_assert(!exceeded(9, 0)); /* three for each: as many as there are on the other host at most */
    ck_assert_int_eq(mr_config.rc_peers, 3);
    ck_assert(exceeded(8, 0));
    ck_assert_int_eq(mr_config.rc_peers, 2);
    ck_assert(exceeded(1, 0));
    ck_assert_int_eq(mr_config.rc_peers, 1);
    ck_assert(!exceeded(1, 3)); /* the setting holds */
    ck_assert(exceeded(1000, 2));
    ck_assert_int_eq(mr_config.rc_peers, 2);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("budget");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, follows_from_adapters);
    tcase_add_test(c, what_is_rationed);
    tcase_add_test(c, what_suffices);
    tcase_add_test(c, the_first_come);
    tcase_add_test(c, after_so_many_messages);
    tcase_add_test(c, one_goes_for_another);
    tcase_add_test(c, who_cannot_go);
    tcase_add_test(c, who_is_refused);
    tcase_add_test(c, after_a_refusal);
    tcase_add_test(c, one_too_many);
    tcase_add_test(c, what_the_peer_gives_up);
    return check_run(c, NULL);
}
