/* SPDX-License-Identifier: BSD-3-Clause */
/* Service levels that change while a job runs: the levels of a subchannel, and the time to close the old side. */
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/conn/internal.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/conn/peer/internal.h"
#include "libmrmpi/verbs/verbs.h"
#include "tests/check.h"

#define SUBS 2u /* of a side */

struct mr_peers mr_peers;
struct mr_peers_own mr_peers_own;
struct mr_connect mr_connect;
struct mr_verbs mr_verbs;

static struct mr_peer peer;
static struct mr_peer_own own;
static struct mr_connect_peer conn;
static struct mr_sub sub[2 * SUBS];
static struct mr_sub_own sub_own[2 * SUBS];
static struct mr_connect_sub sub_conn[2 * SUBS];
static struct mr_address address;
static struct mr_rail rails[SUBS];
static struct mr_load load[2][SUBS];
static struct mr_link link_of[2 * SUBS][MR_LEVELS];
static struct mr_window_link links[MR_WINDOW_LINKS];
static bool in_use, can_tell;
static unsigned moved, mended, told, flushed, reopened;

/* ---- the files beside -------------------------------------------------------------------------------------------- */

bool mr_peer_ask_uses(const struct mr_sub *s)
{
    return in_use;
}

void mr_peer_tell_moved(struct mr_peer *p)
{
    moved++;
}

void mr_peer_due(struct mr_peer *p)
{
    mended++;
}

int mr_vc_send_control(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len)
{
    ck_assert_uint_eq(hdr->kind, MR_CONTROL_IDLE);
    told += can_tell;
    return can_tell ? 0 : -1;
}

void mr_sub_close(struct mr_sub *s)
{
    s->state = MR_SUB_CLOSED;
}

static bool begin(struct mr_peer *p, struct mr_sub *s)
{
    ck_assert_ptr_null(s);
    reopened++;
    return true;
}

static void hear_idle(struct mr_sub *s, unsigned generation)
{
    struct mr_hdr hdr = {.kind = MR_CONTROL_IDLE, .tag = mr_sub_tag(s, (uint8_t)generation)};

    ck_assert(mr_epoch_control(&peer, &hdr));
}

static int flush(struct mr_link *l)
{
    flushed++;
    return 0;
}

static const struct mr_link_ops ops = {.flush = flush};

/* ---- stubs ------------------------------------------------------------------------------------------------------- */

static void levels(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
    const uint8_t sl[MR_LEVELS] = {a, b, c, d, d}; /* packets sent with the bulk have its level */

    for (unsigned l = 0; l < MR_LEVELS; l++)
        mr_peers.qos.level[l] = (struct mr_fabric_level){.num_lanes = 1, .sl = {sl[l]}};
}

/* Connected by the first side; all open subchannels have the present levels. */
static void setup(void)
{
    memset(&mr_peers, 0, sizeof mr_peers);
    memset(&mr_peers_own, 0, sizeof mr_peers_own);
    memset(&peer, 0, sizeof peer);
    memset(&own, 0, sizeof own);
    memset(&conn, 0, sizeof conn);
    memset(sub, 0, sizeof sub);
    memset(sub_own, 0, sizeof sub_own);
    memset(sub_conn, 0, sizeof sub_conn);
    memset(load, 0, sizeof load);
    memset(links, 0, sizeof links);
    for (unsigned i = 0; i < SUBS; i++)
        rails[i].index = i;
    in_use = false;
    can_tell = true;
    moved = mended = told = flushed = reopened = 0;
    mr_config.log_level = -1;
    levels(1, 1, 1, 2);
    peer.own = &own;
    peer.connect = &conn;
    peer.address = &address;
    peer.num_now = SUBS;
    peer.num_subs = 2 * SUBS;
    peer.sub = peer.now = sub;
    for (unsigned side = 0; side < 2; side++)
        peer.own->loads[side] = load[side];
    peer.load = load[0];
    peer.out.link = links;
    peer.out.num_links = sizeof links / sizeof *links;
    for (unsigned i = 0; i < 2 * SUBS; i++) {
        sub[i].peer = &peer;
        sub[i].own = &sub_own[i];
        sub[i].connect = &sub_conn[i];
        sub[i].parity = i >= SUBS;
        sub[i].rail = &rails[i % SUBS];
        sub[i].remote_rail = (uint8_t)(i % SUBS);
        sub[i].own->lane = (uint8_t)(i % SUBS);
        sub[i].generation = (uint8_t)(7 + i);
        sub[i].link = link_of[i];
        sub[i].num_links = MR_LEVELS;
        for (unsigned l = 0; l < MR_LEVELS; l++)
            sub[i].link[l] = (struct mr_link){.ops = &ops, .owner = &sub[i], .index = (uint8_t)(MR_LEVELS * i + l)};
        if (i >= SUBS)
            continue;
        sub[i].state = MR_SUB_OPEN;
        sub[i].link[0].state = MR_LINK_OPEN;
        mr_levels_of(&sub[i], sub[i].own->sl);
        peer.load[i] = (struct mr_load){.up = true, .weight = 100 + i};
    }
}

static void change_sides(void)
{
    for (unsigned i = SUBS; i < 2 * SUBS; i++)
        sub[i].state = MR_SUB_OPEN;
    mr_epoch_opened(&peer, 1);
}

/* ---- levels ------------------------------------------------------------------------------------------------------ */

static void has_levels(unsigned subs, uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
    const uint8_t expected[MR_LEVELS] = {a, b, c, d, d};
    uint8_t sl[MR_LEVELS];

    peer.num_now = subs;
    mr_levels_of(&sub[0], sl);
    ck_assert_mem_eq(sl, expected, sizeof sl);
    peer.num_now = SUBS;
}

/*
 * The window has places for a limited number of links: with many subchannels, medium messages go with the large ones.
 * One link is kept for packets sent with the bulk.
 */
START_TEST(levels_of_few_links)
{
    levels(1, 2, 3, 4);
    has_levels(1, 1, 2, 3, 4);
    has_levels(6, 1, 2, 3, 4);
    has_levels(8, 1, 2, 4, 4);
    has_levels(10, 1, 4, 4, 4);
    has_levels(16, 1, 4, 4, 4);
    has_levels(32, 1, 4, 4, 4);
    levels(1, 1, 1, 4); /* the remaining link goes to the first level that differs from the next */
    has_levels(16, 1, 1, 1, 4);
    levels(5, 5, 5, 5);
    has_levels(16, 5, 5, 5, 5);
}
END_TEST

/* The k-th subchannel of either side takes the k-th lane, in turn. */
START_TEST(lanes_in_turn)
{
    levels(1, 1, 1, 0);
    mr_peers.qos.level[MR_LEVEL_BULK] = (struct mr_fabric_level){.num_lanes = 2, .sl = {4, 5}};
    for (unsigned i = 0; i < 2 * SUBS; i++) {
        uint8_t sl[MR_LEVELS];

        mr_levels_of(&sub[i], sl);
        ck_assert_uint_eq(sl[MR_LEVEL_SMALL], 1);
        ck_assert_uint_eq(sl[MR_LEVEL_BULK], i % 2 ? 5 : 4);
    }
}
END_TEST

/* Of a class that has more lanes than there are subchannels each peer has some, the same at both ends. */
START_TEST(lanes_spread_over_peers)
{
    enum { LANES = 6, PEERS = 200 };
    struct mr_launch us = {.rank = 0};
    unsigned count[LANES] = {0};

    mr_peers.launch = &us;
    levels(1, 1, 1, 0);
    mr_peers.qos.level[MR_LEVEL_BULK] = (struct mr_fabric_level){.num_lanes = LANES, .sl = {0, 1, 2, 3, 4, 5}};
    for (int p = 1; p <= PEERS; p++) {
        uint8_t here[SUBS][MR_LEVELS], there[MR_LEVELS];

        us.rank = 7;
        peer.rank = 1000 - 3 * p;
        for (unsigned i = 0; i < SUBS; i++) {
            mr_levels_of(&sub[i], here[i]);
            count[here[i][MR_LEVEL_BULK]]++;
        }
        ck_assert_uint_eq(here[1][MR_LEVEL_BULK], (here[0][MR_LEVEL_BULK] + 1u) % LANES);
        us.rank = 1000 - 3 * p;
        peer.rank = 7;
        mr_levels_of(&sub[0], there);
        ck_assert_mem_eq(here[0], there, sizeof there);
    }
    for (unsigned l = 0; l < LANES; l++) /* within a third of the mean */
        ck_assert(3 * LANES * count[l] > 2 * SUBS * PEERS && 3 * LANES * count[l] < 4 * SUBS * PEERS);
}
END_TEST

/* ---- sides ------------------------------------------------------------------------------------------------------- */

START_TEST(the_later_side_counts)
{
    change_sides();
    ck_assert_uint_eq(peer.epoch, 1);
    ck_assert_ptr_eq(peer.now, sub + SUBS);
    ck_assert_ptr_eq(peer.load, peer.own->loads[1]);
    for (unsigned i = 0; i < SUBS; i++) {
        ck_assert_uint_eq(peer.load[i].weight, 100 + i);
        ck_assert(!peer.own->loads[0][i].up);
    }
    ck_assert_uint_eq(moved, 1);
    peer.load[0].up = true;
    mr_epoch_opened(&peer, 1); /* known already */
    mr_epoch_opened(&peer, 0); /* of long ago */
    ck_assert_ptr_eq(peer.now, sub + SUBS);
    ck_assert(peer.load[0].up);
    ck_assert_uint_eq(moved, 1);
    peer.epoch = 255;
    mr_epoch_opened(&peer, 0); /* numbers wrap */
    ck_assert_uint_eq(peer.epoch, 0);
    ck_assert_ptr_eq(peer.now, sub);
    ck_assert_uint_eq(moved, 2);
}
END_TEST

/* The old side is closed when nothing of ours is under way there, the peer knows this, and has reported the same. */
START_TEST(the_old_side_is_closed_by_both)
{
    change_sides();
    in_use = true;
    ck_assert(mr_epoch_poll(&peer, 1, begin));
    ck_assert_uint_eq(told, 0);
    in_use = false;
    can_tell = false;
    ck_assert(mr_epoch_poll(&peer, 2, begin));
    can_tell = true;
    ck_assert(mr_epoch_poll(&peer, 3, begin));
    ck_assert(mr_epoch_poll(&peer, 4, begin));
    ck_assert_uint_eq(told, SUBS); /* once */
    hear_idle(&sub[0], sub[0].generation);
    hear_idle(&sub[1], (uint8_t)(sub[1].generation - 1)); /* of an earlier life */
    mr_epoch_poll(&peer, 5, begin);
    ck_assert_int_eq(sub[0].state, MR_SUB_CLOSED);
    ck_assert_int_eq(sub[1].state, MR_SUB_OPEN);
    hear_idle(&sub[1], sub[1].generation);
    mr_epoch_poll(&peer, 6, begin);
    ck_assert_int_eq(sub[1].state, MR_SUB_CLOSED);
    ck_assert(!mr_epoch_poll(&peer, 7, begin));
    for (unsigned i = SUBS; i < 2 * SUBS; i++)
        ck_assert_int_eq(sub[i].state, MR_SUB_OPEN);
}
END_TEST

/* Unconfirmed packets keep a subchannel open; an adapter without news is asked. */
START_TEST(packets_under_way)
{
    struct mr_kept kept = {0};

    change_sides();
    sub[0].connect->heard = sub[1].connect->heard = true;
    links[sub[0].link[0].index].head = &kept;
    ck_assert(mr_epoch_poll(&peer, 1, begin));
    ck_assert_int_eq(sub[0].state, MR_SUB_OPEN);
    ck_assert_int_eq(sub[1].state, MR_SUB_CLOSED);
    ck_assert_uint_eq(flushed, 1);
    links[sub[0].link[0].index].head = NULL;
    mr_epoch_poll(&peer, 2, begin);
    ck_assert_int_eq(sub[0].state, MR_SUB_CLOSED);
}
END_TEST

/* The other side is opened for different levels, when free, and not too often. */
START_TEST(what_begins_a_change)
{
    peer.connect->change = true;
    ck_assert(!mr_epoch_poll(&peer, 1, begin));
    ck_assert_uint_eq(reopened, 0); /* equal levels */
    ck_assert(!peer.connect->change);
    levels(1, 1, 1, 3);
    peer.connect->change = true;
    peer.connect->change_ns = 100;
    ck_assert(mr_epoch_poll(&peer, 99, begin));
    sub[SUBS].state = MR_SUB_BROKEN;
    ck_assert(mr_epoch_poll(&peer, 100, begin));
    ck_assert_uint_eq(reopened, 0);
    sub[SUBS].state = MR_SUB_CLOSED;
    ck_assert(mr_epoch_poll(&peer, 101, begin));
    ck_assert_uint_eq(reopened, 1);
    ck_assert(!peer.connect->change);
    mr_epoch_failed(&peer);
    ck_assert(mr_epoch_poll(&peer, 102, begin));
    ck_assert_uint_eq(reopened, 1); /* after a pause */
    ck_assert_uint_gt(peer.connect->change_ns, 102);
    ck_assert(mr_epoch_poll(&peer, peer.connect->change_ns, begin));
    ck_assert_uint_eq(reopened, 2);
}
END_TEST

START_TEST(who_changes)
{
    const struct mr_launch launch = {.size = 4};
    struct mr_peer met[3] = {{.cm.state = MR_CM_IDLE}, {.cm.state = MR_CM_IDLE + 1}, {.cm.state = MR_CM_IDLE + 1}};
    struct mr_connect_peer owns[3] = {{.change = false}};
    struct mr_peer *peers[4] = {&met[0], NULL, &met[1], &met[2]};

    for (unsigned i = 0; i < 3; i++)
        met[i].connect = &owns[i];
    met[2].error = -1;
    owns[1].change_ns = 1000;
    mr_peers.launch = &launch;
    mr_peers.peer = peers;
    mr_epoch_all();
    ck_assert(!owns[0].change);
    ck_assert(owns[1].change);
    ck_assert_uint_eq(owns[1].change_ns, 0); /* these are news: no pause */
    ck_assert(!owns[2].change);
    ck_assert_uint_eq(mended, 1);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("change");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, levels_of_few_links);
    tcase_add_test(c, lanes_in_turn);
    tcase_add_test(c, lanes_spread_over_peers);
    tcase_add_test(c, the_later_side_counts);
    tcase_add_test(c, the_old_side_is_closed_by_both);
    tcase_add_test(c, packets_under_way);
    tcase_add_test(c, what_begins_a_change);
    tcase_add_test(c, who_changes);
    return check_run(c, NULL);
}
