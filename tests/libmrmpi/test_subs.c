/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Subchannels and their lanes, at both ends: for either opening end, and for any scarcity of links while two sides were
 * open. Two ranks in one process; a round of connecting is a call of the test.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/conn/internal.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/conn/peer/internal.h"
#include "libmrmpi/conn/route/pair.h"
#include "libmrmpi/verbs/post.h"
#include "libmrmpi/verbs/verbs.h"
#include "tests/check.h"

#define LANES     6
#define FIRST     10 /* service level of the first lane of large messages, */
#define SMALL     8  /* of small ones, */
#define OTHER     5  /* and the level of another class, with one lane */
#define PAUSE_NS  10000000ull
#define ALL_KINDS (1u << MR_LINK_RC | 1u << MR_LINK_UC | 1u << MR_LINK_UD)

struct mr_peers mr_peers;
struct mr_peers_own mr_peers_own;
struct mr_connect mr_connect;
struct mr_verbs mr_verbs;

static struct end {
    struct mr_launch launch;
    struct mr_fabric_qos qos;
    struct mr_peer *peer; /* the other end */
    uint64_t now_ns;
    unsigned rounds; /* that it wanted to begin, for the other side */
} ends[2];
static struct end *here;
static unsigned num_rails[2], num_lanes; /* num_lanes: in the class of their meeting */
static uint8_t lmc, wish;                /* of all ports; paths that both ends want */

/* ---- the files beside -------------------------------------------------------------------------------------------- */

static const struct mr_link_events events;

int mr_vc_send_control(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len)
{
    ck_assert_uint_eq(hdr->kind, MR_CONTROL_IDLE);
    return 0;
}

void mr_sub_close(struct mr_sub *s)
{
    for (unsigned l = 0; l < s->num_links; l++)
        s->link[l].state = MR_LINK_CLOSED;
    mr_sub_forget_links(s);
    s->state = MR_SUB_CLOSED;
    s->generation++;
}

static bool begin(struct mr_peer *p, struct mr_sub *s)
{
    ck_assert_ptr_null(s);
    here->rounds++;
    return true;
}

/* As connect/ does. */
int mr_peer_tell_made(struct mr_peer *p)
{
    p->connect->subs = calloc(p->num_subs, sizeof *p->connect->subs);
    ck_assert_ptr_nonnull(p->connect->subs);
    for (unsigned i = 0; i < p->num_subs; i++)
        p->sub[i].connect = &p->connect->subs[i];
    return 0;
}

static int open_link(struct mr_link *l, struct mr_rail *rail)
{
    l->state = MR_LINK_OPENING;
    return 0;
}

static int connect_link(struct mr_link *l, const struct mr_link_end *to)
{
    l->state = MR_LINK_OPEN;
    l->sl = to->sl;
    return 0;
}

static int write_link(struct mr_link *l, const struct mr_link_part *part, struct mr_tx *tx)
{
    return 0;
}

static void close_link(struct mr_link *l)
{
    l->state = MR_LINK_CLOSED;
}

static const struct mr_link_ops rdma = {
    .open = open_link, .connect = connect_link, .write = write_link, .close = close_link};
static const struct mr_link_ops packets = {.open = open_link, .connect = connect_link, .close = close_link};
const struct mr_link_ops *const mr_link_ops[MR_LINK_KINDS] = {&rdma, &rdma, &packets, &rdma};

/* ---- two ends ---------------------------------------------------------------------------------------------------- */

static void at(unsigned end)
{
    here = &ends[end];
    mr_peers.launch = &here->launch;
    mr_peers.qos = here->qos;
    mr_verbs.num_rails = num_rails[end];
}

/* Large messages on this number of lanes from sl on; small messages have a level of their own, or, if equal, these. */
static struct mr_fabric_qos class_of(uint8_t sl, unsigned lanes, uint8_t small)
{
    struct mr_fabric_qos q = {.verified = true};

    for (unsigned l = 0; l < MR_LEVELS; l++) {
        bool apart = l < MR_LEVEL_PACKETS && small != sl;

        q.level[l].num_lanes = (uint8_t)(apart ? 1 : lanes);
        for (unsigned i = 0; i < q.level[l].num_lanes; i++)
            q.level[l].sl[i] = (uint8_t)(apart ? small : sl + i);
    }
    return q;
}

static void hear(unsigned end, struct mr_fabric_qos q)
{
    ends[end].qos = q;
    ends[end].peer->connect->change = true;
}

static struct mr_address *make_card(unsigned end, uint8_t kinds)
{
    struct mr_address *c = calloc(1, sizeof *c);

    c->num_rails = (uint16_t)num_rails[end];
    c->paths = wish;
    c->all_pairs = 1;
    for (unsigned i = 0; i < num_rails[end]; i++)
        c->rail[i].lmc = lmc;
    c->kinds = kinds;
    return c;
}

/* Two ranks with so many rails, each connected to each, meet in the class of six lanes. */
static void meet(unsigned rails_0, unsigned rails_1, uint8_t kinds)
{
    static const int node_of[2] = {0, 1};

    num_rails[0] = rails_0;
    num_rails[1] = rails_1;
    mr_config.paths = wish;
    for (unsigned i = 0; i < MR_RAILS_MAX; i++) {
        mr_verbs.rail[i].index = i;
        mr_verbs.rail[i].addr.lmc = lmc;
    }
    mr_peers.our_kinds = kinds;
    mr_peers.kinds.num = (unsigned)__builtin_popcount(kinds);
    for (unsigned k = 0; k < mr_peers.kinds.num; k++)
        mr_peers.kinds.kind[k] = (uint8_t)(MR_LINK_RC + k);
    for (unsigned e = 0; e < 2; e++) {
        struct mr_peer *p = calloc(1, sizeof *p + sizeof *p->own + sizeof *p->connect);

        ends[e] = (struct end){.launch = {.rank = (int)e, .size = 2, .node_of = node_of}, .peer = p, .now_ns = 1};
        ends[e].qos = class_of(FIRST, num_lanes, SMALL);
        at(e);
        p->own = (struct mr_peer_own *)(p + 1);
        p->connect = (struct mr_connect_peer *)(p->own + 1);
        p->rank = !e;
        p->address = make_card(!e, kinds);
        mr_window_init(&p->out, 64);
        ck_assert_int_eq(mr_subs_make(p), 0);
        p->connect->wanted = ALL_KINDS;
    }
}

static void setup(void)
{
    memset(&mr_peers, 0, sizeof mr_peers);
    memset(&mr_peers_own, 0, sizeof mr_peers_own);
    memset(&mr_verbs, 0, sizeof mr_verbs);
    num_lanes = LANES;
    mr_config.log_level = -1;
    lmc = 0;
    wish = 1;
    mr_config.pairs = "all";
    for (unsigned c = 0; c < MR_POLICY_CLASSES; c++)
        ck_assert(mr_policy_parse(mr_policy_standard(c), c, &mr_peers.policy[c], (char[64]){0}, 64));
}

static void teardown(void)
{
    for (unsigned e = 0; e < 2; e++) {
        struct mr_peer *p = ends[e].peer;

        for (unsigned i = 0; i < p->num_subs; i++)
            free(p->sub[i].link);
        free(p->connect->subs);
        free(p->sub);
        free(p->own->loads[0]);
        free(p->small);
        free(p->address);
        mr_window_free(&p->out);
        free(p);
    }
}

/* Of the other end, the same subchannel. */
static struct mr_sub *other_end(unsigned end, const struct mr_sub *s)
{
    return mr_sub_find(ends[!end].peer, s->remote_rail, s->rail->index, s->path, mr_sub_kind(s));
}

/* A round begun by this end, about one subchannel. */
static void open_by(unsigned end, struct mr_sub *ours)
{
    struct mr_sub *its = other_end(end, ours);
    struct mr_cm_sub a, b;

    at(end);
    ck_assert_int_eq(mr_sub_open(ours, &events), 0);
    a = mr_sub_describe(ours);
    at(!end);
    ck_assert_int_eq(mr_sub_open(its, &events), 0);
    b = mr_sub_describe(its);
    ck_assert_int_eq(mr_sub_connect(its, &its->peer->address->rail[its->remote_rail], &a, &a, 1, 2), 0);
    its->state = MR_SUB_OPEN;
    at(end);
    ck_assert_int_eq(mr_sub_connect(ours, &ours->peer->address->rail[ours->remote_rail], &b, &a, 2, 1), 0);
    ours->state = MR_SUB_OPEN;
}

/* A round about all of the first side, or, when that is in use, of the other side, which counts then. */
static void open_side(unsigned end, unsigned side)
{
    struct mr_peer *p = ends[end].peer;

    for (unsigned i = 0; i < p->num_subs; i++)
        if (p->sub[i].parity == side)
            open_by(end, &p->sub[i]);
    for (unsigned e = 0; e < 2; e++) {
        at(e);
        mr_epoch_opened(ends[e].peer, ends[e].peer->sub[side * p->num_now].epoch);
    }
}

/* Nothing is under way on the old side, as both ends have reported. Closes this number of its subchannels. */
static void close_old(unsigned most)
{
    for (unsigned i = 0; i < ends[0].peer->num_subs; i++) {
        struct mr_sub *s = &ends[0].peer->sub[i];

        if (mr_sub_is_current(s) || s->state != MR_SUB_OPEN || !most)
            continue;
        other_end(0, s)->connect->heard = s->connect->heard = true;
        most--;
    }
}

/* How many rounds for the other side it begins now, and whether there is more to do. */
static unsigned polled(unsigned end, bool more)
{
    unsigned before = ends[end].rounds;

    at(end);
    here->now_ns += PAUSE_NS;
    ck_assert(mr_epoch_poll(here->peer, here->now_ns, begin) == more);
    return here->rounds - before;
}

/* ---- subchannels with the fast path ------------------------------------------------------------------------------ */

static void set_up(struct mr_peer *p, unsigned place, bool up)
{
    p->load[place].up = up;
    mr_sub_prefer(p);
}

START_TEST(one_subchannel_is_straight)
{
    struct mr_peer *p;

    num_lanes = 1;
    meet(1, 1, 1u << MR_LINK_RC);
    open_side(0, 0);
    p = ends[0].peer;
    at(0);
    ck_assert_uint_eq(p->num_now, 1);
    set_up(p, 0, true);
    ck_assert(!p->fast && !p->fast_link); /* not up yet */
    p->up = true;
    mr_sub_renew_fast(p);
    ck_assert(p->fast);
    ck_assert_ptr_eq(p->fast_link, p->now[0].level[MR_LEVEL_SMALL]);
    set_up(p, 0, false);
    ck_assert(p->fast && !p->fast_link);
    set_up(p, 0, true);
    ck_assert_ptr_nonnull(p->fast_link);
    p->has_lossy_link = true;
    mr_sub_renew_fast(p);
    ck_assert(!p->fast && !p->fast_link);
    p->has_lossy_link = false;
    p->steer = (uint32_t[1]){0}; /* rules */
    mr_sub_renew_fast(p);
    ck_assert(!p->fast && !p->fast_link);
    p->steer = NULL;
    mr_sub_renew_fast(p);
    ck_assert(p->fast && p->fast_link);
}
END_TEST

START_TEST(several_have_turns)
{
    struct mr_peer *p;

    num_lanes = 1;
    meet(2, 1, 1u << MR_LINK_RC);
    open_side(0, 0);
    p = ends[0].peer;
    at(0);
    ck_assert_uint_eq(p->num_now, 2);
    p->up = true;
    set_up(p, 0, true);
    set_up(p, 1, true);
    ck_assert(p->fast && !p->fast_link);
    set_up(p, 1, false); /* it comes back without more ado: then there are turns again */
    ck_assert(p->fast && !p->fast_link);
}
END_TEST

/* ---- further LID paths ------------------------------------------------------------------------------------------- */

/* All that are no further paths are open on both ends, and up. */
static struct mr_peer *open_first(void)
{
    struct mr_peer *p = ends[0].peer;

    for (unsigned i = 0; i < p->num_now; i++)
        if (!mr_sub_is_path(&p->sub[i]))
            open_by(0, &p->sub[i]);
    at(0);
    p->up = true;
    for (unsigned i = 0; i < p->num_now; i++)
        set_up(p, i, true);
    return p;
}

/* A chosen path carries large messages, with one queue pair, and packets while no other subchannel leads there. */
START_TEST(chosen_path)
{
    struct mr_peer *p;
    struct mr_sub *path;

    lmc = 1;
    wish = 0;
    num_lanes = 1;
    meet(1, 1, 1u << MR_LINK_RC);
    ends[0].qos = ends[1].qos = class_of(FIRST, 1, FIRST);
    p = open_first();
    ck_assert(p->num_now == 1 && p->num_subs == 4 && p->num_paths == 1 && p->until_paths == MR_PATHS_AFTER);
    path = &p->sub[1];
    ck_assert(mr_sub_is_path(path) && path->path == 1 && !path->chosen && !mr_sub_is_wanted(path));
    ck_assert(!mr_subs_use_paths(p, 0, 0, 1)); /* path 0 only, as before */
    ck_assert_uint_eq(p->num_now, 1);
    ck_assert(mr_subs_use_paths(p, 0, 0, 3));
    ck_assert(path->chosen && p->sub[3].chosen && mr_sub_is_wanted(path) && p->num_now == 2 && !p->num_spare);
    ck_assert(!p->load[1].up && p->rdma == 3 && p->load[0].weight == MR_WEIGHT_MAX);
    open_by(0, path);
    ck_assert_uint_eq(path->num_links, 1);
    ck_assert_uint_eq(p->sub[0].num_links, 2); /* packets, large ones */
    set_up(p, 1, true);
    ck_assert(p->load[1].up && p->load[1].weight == MR_WEIGHT_MAX && p->excluded == 2);
    ck_assert_ptr_eq(p->fast_link, p->now[0].level[MR_LEVEL_SMALL]);
    set_up(p, 0, false);
    ck_assert(p->load[1].up && !p->excluded && !p->fast_link);
    set_up(p, 0, true);
    ck_assert(p->excluded == 2 && p->fast_link);
    ck_assert(mr_subs_use_paths(p, 0, 0, 1)); /* the class may use a path only now */
    ck_assert(!p->load[1].up && !mr_sub_is_wanted(path) && p->num_now == 2);
}
END_TEST

/* Not chosen: like a pair of rails left out. */
START_TEST(spare_path)
{
    struct mr_peer *p;

    lmc = 1;
    wish = 0;
    num_lanes = 1;
    meet(1, 1, 1u << MR_LINK_RC);
    p = open_first();
    open_by(0, &p->sub[1]);
    mr_subs_use_spares(p);
    set_up(p, 0, false);
    ck_assert(p->num_now == 2 && p->load[1].up && !p->excluded);
    set_up(p, 0, true);
    ck_assert(!p->load[1].up && p->fast_link);
    ck_assert(mr_subs_use_paths(p, 0, 0, 3)); /* fabricd answers late */
    ck_assert(p->num_now == 2 && p->load[1].up && p->excluded == 2);
}
END_TEST

/* Pairs that are left out, too, carry large messages if the others have no link of their kind, but no packets then. */
START_TEST(spare_bulk)
{
    struct mr_peer *p;

    num_lanes = 1;
    mr_config.pairs = "";
    meet(2, 2, 1u << MR_LINK_RC | 1u << MR_LINK_UC);
    p = open_first();
    ck_assert(p->num_now == 4 && p->num_spare == 4 && p->rdma == 3);
    for (unsigned i = 4; i < 8; i++)
        open_by(0, &p->sub[i]);
    at(0);
    mr_subs_use_spares(p);
    set_up(p, 0, true);
    ck_assert(p->num_now == 8 && p->rdma == 0x33);
    for (unsigned i = 4; i < 8; i++)
        ck_assert(!p->load[i].up);
    set_up(p, 0, false); /* the other one is left */
    ck_assert(!p->load[4].up && !p->load[5].up);
    set_up(p, 1, false);
    ck_assert(p->load[2].up && p->load[3].up && p->load[4].up && p->load[5].up);
    ck_assert(!p->load[6].up && !p->load[7].up && (p->excluded & 0xfc) == 0x30);
    set_up(p, 2, false);
    set_up(p, 3, false); /* now they carry all */
    ck_assert(p->load[4].up && p->load[6].up && !(p->excluded & 0x30));
    set_up(p, 0, true);
    for (unsigned i = 4; i < 8; i++)
        ck_assert(!p->load[i].up);
}
END_TEST

/* The paths of a rail share its weight with those of other rails. */
START_TEST(paths_share_weight)
{
    struct mr_peer *p;

    lmc = 2;
    wish = 0;
    num_lanes = 1;
    mr_config.pairs = "";
    meet(2, 2, 1u << MR_LINK_RC);
    p = open_first();
    ck_assert(p->num_now == 2 && p->num_paths == 6 && p->num_spare == 8); /* two pairs besides */
    for (unsigned i = 0; i < 6; i++)
        ck_assert(mr_sub_is_path(&p->sub[2 + i]) && p->sub[2 + i].path == 1 + i / 2);
    ck_assert(mr_subs_use_paths(p, 1, 1, 1 | 1 << 3));
    ck_assert(p->num_now == 8 && p->num_spare == 2);
    ck_assert(p->load[0].weight == MR_WEIGHT_MAX && p->load[1].weight == MR_WEIGHT_MAX / 2);
    ck_assert(p->sub[7].path == 3 && p->sub[7].chosen && p->load[7].weight == MR_WEIGHT_MAX / 2);
    ck_assert(!p->sub[6].chosen && !p->sub[5].chosen);
}
END_TEST

/* The existing paths: only if both ends leave the choice to fabricd, for kinds with RDMA, and within the room. */
static const struct {
    uint8_t lmc, wish, kinds, rails, lanes;
    unsigned paths, all;
} listed[] = {
    {1, 0, 1u << MR_LINK_RC, 1, 1, 1, 2},   {3, 0, 1u << MR_LINK_RC, 1, 1, 7, 8},
    {7, 0, 1u << MR_LINK_RC, 1, 1, 7, 8},   {1, 2, 1u << MR_LINK_RC, 1, 1, 0, 2},
    {1, 1, 1u << MR_LINK_RC, 1, 1, 0, 1},   {0, 0, 1u << MR_LINK_RC, 1, 1, 0, 1},
    {1, 0, 1u << MR_LINK_UD, 1, 1, 0, 1},   {1, 0, ALL_KINDS, 1, 1, 1, 4},
    {3, 0, 1u << MR_LINK_RC, 5, 1, 7, 32},  {1, 0, 1u << MR_LINK_RC, 1, 6, 6, 12},
    {3, 0, 1u << MR_LINK_RC, 1, 6, 24, 30},
};

START_TEST(which_paths)
{
    unsigned most = 0;

    lmc = listed[_i].lmc;
    wish = listed[_i].wish;
    num_lanes = listed[_i].lanes;
    meet(listed[_i].rails, listed[_i].rails, listed[_i].kinds);
    for (unsigned e = 0; e < 2; e++) {
        const struct mr_peer *p = ends[e].peer;

        ck_assert_uint_eq(p->num_paths, listed[_i].paths);
        ck_assert_uint_eq(p->num_now + p->num_spare, listed[_i].all);
        ck_assert_uint_eq(p->until_paths, listed[_i].paths ? MR_PATHS_AFTER : 0);
        for (unsigned i = 0; i < p->num_subs; i++) {
            most = p->sub[i].path > most ? p->sub[i].path : most;
            ck_assert_ptr_nonnull(other_end(e, &p->sub[i]));
        }
        ck_assert_uint_lt(most, 1u << lmc);
    }
}
END_TEST

/* ---- traffic of subchannels -------------------------------------------------------------------------------------- */

/* Service levels of large messages by RDMA: set. */
static uint32_t bulk_levels(unsigned end)
{
    const struct mr_peer *p = ends[end].peer;
    uint32_t set = 0;

    for (unsigned i = 0; i < p->num_now; i++)
        if (p->rdma >> i & 1 && p->now[i].state == MR_SUB_OPEN)
            set |= 1u << p->now[i].level[MR_LEVEL_BULK]->sl;
    return set;
}

/* Subchannels with a separate link for small messages, on this service level. */
static unsigned count_apart(unsigned end, uint8_t sl)
{
    const struct mr_peer *p = ends[end].peer;
    unsigned n = 0;

    for (unsigned i = 0; i < p->num_now; i++) {
        const struct mr_link *small = p->now[i].level[MR_LEVEL_SMALL];

        n += small != p->now[i].level[MR_LEVEL_BULK] && small->sl == sl;
    }
    return n;
}

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

/* Whoever has more rails. All lanes are on each rail of either end. */
START_TEST(both_ends_count_alike)
{
    static const unsigned rails[][2] = {{2, 2}, {1, 2}, {2, 1}, {3, 2}, {2, 3}, {4, 1}, {1, 1}};

    meet(rails[_i][0], rails[_i][1], 1u << MR_LINK_RC);
    for (unsigned e = 0; e < 2; e++) {
        const struct mr_peer *p = ends[e].peer;
        uint32_t on_rail[MR_RAILS_MAX] = {0};

        for (unsigned i = 0; i < p->num_subs; i++) {
            ck_assert_uint_eq(p->sub[i].own->lane, other_end(e, &p->sub[i])->own->lane);
            on_rail[p->sub[i].rail->index] |= 1u << p->sub[i].own->lane % LANES;
        }
        for (unsigned r = 0; r < num_rails[e]; r++)
            ck_assert_uint_eq(on_rail[r], (1u << LANES) - 1);
    }
}
END_TEST

/* A subchannel has the levels of the opening end: one end opens some, the other the rest. */
START_TEST(opened_by_either)
{
    meet(2, 2, ALL_KINDS);
    ck_assert_uint_eq(ends[0].peer->num_now, 24);
    for (unsigned i = 0; i < ends[0].peer->num_now; i++) {
        struct mr_sub *s = &ends[0].peer->now[i];

        if (0x9e3779b1u * (unsigned)_i >> i & 1)
            open_by(1, other_end(0, s));
        else
            open_by(0, s);
    }
    for (unsigned e = 0; e < 2; e++)
        ck_assert_uint_eq(bulk_levels(e), ((1u << LANES) - 1) << FIRST);
}
END_TEST

/* ---- room -------------------------------------------------------------------------------------------------------- */

/*
 * 24 subchannels, for which there are 64 links: 40 while the other 24 have one each, and 24 while 40 are in use, until
 * the old side has been closed.
 */
START_TEST(room_comes_back)
{
    meet(2, 2, ALL_KINDS);
    open_side(0, 0);
    for (unsigned e = 0; e < 2; e++) {
        ck_assert_uint_eq(count_apart(e, SMALL), 16);
        ck_assert_uint_eq(polled(e, false), 0); /* all there ever are */
        hear(e, class_of(OTHER + 1, 1, OTHER));
    }
    ck_assert_uint_eq(polled(0, true), 1);
    open_side(0, 1); /* no room but for the first link of each */
    for (unsigned e = 0; e < 2; e++) {
        ck_assert_uint_eq(count_apart(e, OTHER), 0);
        ck_assert_uint_eq(polled(e, true), 0); /* the old side is in use */
    }
    close_old(23);
    for (unsigned e = 0; e < 2; e++)
        ck_assert_uint_eq(polled(e, true), 0);
    close_old(1);
    for (unsigned e = 0; e < 2; e++)
        ck_assert_uint_eq(polled(e, true), 1);
    open_side(1, 0);
    for (unsigned e = 0; e < 2; e++)
        ck_assert_uint_eq(count_apart(e, OTHER), 16);
    close_old(24);
    for (unsigned e = 0; e < 2; e++) {
        ck_assert_uint_eq(bulk_levels(e), 1u << (OTHER + 1));
        ck_assert_uint_eq(polled(e, true), 0); /* and not on and on */
        ck_assert_uint_eq(polled(e, false), 0);
    }
}
END_TEST

/* The second change comes before the old side has drained, and again: in the end all lanes are there. */
START_TEST(changes_in_a_row)
{
    unsigned end = 0, side = 0, rounds = 0;

    meet(2, 2, ALL_KINDS);
    open_side(0, 0);
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned e = 0; e < 2; e++)
            hear(e, i % 2 ? class_of(FIRST, LANES, SMALL) : class_of(OTHER + 1, 1, OTHER));
        if (polled(end, true)) /* else the other side is in use yet */
            open_side(end, side = !side);
        close_old(9);
        end = !end;
    }
    while (rounds < 10) { /* quiet */
        close_old(24);
        at(end);
        mr_epoch_poll(here->peer, here->now_ns, begin); /* closed, at both ends */
        at(!end);
        mr_epoch_poll(here->peer, here->now_ns, begin);
        at(end);
        here->now_ns += PAUSE_NS;
        here->rounds = 0;
        if (!mr_epoch_poll(here->peer, here->now_ns, begin))
            break;
        ck_assert_uint_eq(here->rounds, 1);
        open_side(end, side = !side);
        end = !end;
        rounds++;
    }
    ck_assert_uint_le(rounds, 3);
    for (unsigned e = 0; e < 2; e++) {
        ck_assert_uint_eq(bulk_levels(e), ((1u << LANES) - 1) << FIRST);
        ck_assert_uint_eq(count_apart(e, SMALL), 16);
        ck_assert_uint_eq(polled(e, false), 0);
    }
}
END_TEST

/* A missing level at the other end is no lack of room. */
START_TEST(ends_that_hear_different_things)
{
    meet(2, 2, ALL_KINDS);
    open_side(0, 0);
    hear(0, class_of(FIRST, LANES, SMALL - 1));
    hear(1, class_of(FIRST, LANES, FIRST));
    ends[1].peer->connect->change = false; /* so that the other one begins */
    ck_assert_uint_eq(polled(0, true), 1);
    open_side(0, 1);
    close_old(24);
    ck_assert_uint_eq(polled(1, true), 1); /* packets beside RDMA */
    ck_assert_uint_eq(polled(0, true), 1);
    open_side(0, 0);
    close_old(24);
    for (unsigned e = 0; e < 2; e++) {
        ck_assert_uint_eq(polled(e, true), 0);
        ck_assert_uint_eq(polled(e, false), 0);
        ck_assert_uint_eq(count_apart(e, SMALL - 1), 0);
        ck_assert_uint_eq(bulk_levels(e), ((1u << LANES) - 1) << FIRST);
    }
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("subs");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, one_subchannel_is_straight);
    tcase_add_test(c, several_have_turns);
    tcase_add_test(c, chosen_path);
    tcase_add_test(c, spare_path);
    tcase_add_test(c, spare_bulk);
    tcase_add_test(c, paths_share_weight);
    tcase_add_loop_test(c, which_paths, 0, sizeof listed / sizeof *listed);
    tcase_add_loop_test(c, both_ends_count_alike, 0, 7);
    tcase_add_loop_test(c, opened_by_either, 0, 32);
    tcase_add_test(c, room_comes_back);
    tcase_add_test(c, changes_in_a_row);
    tcase_add_test(c, ends_that_hear_different_things);
    return check_run(c, NULL);
}
