/* SPDX-License-Identifier: BSD-3-Clause */
/* Guards: the peers with guards, their part in handshakes, the guard asked about a peer, and their complete release. */
#include "libmrmpi/conn/peer/guard.h"
#include "libmrmpi/conn/peer/probe.h"
#include "libmrmpi/verbs/verbs.h"
#include "tests/check.h"
#include "tests/libmrmpi/fake_peer.h"

#define RANKS 6 /* 0 here, 1 to 4 on another host, of which 1 and 2 guard it, 5 on a third */

struct mr_peers mr_peers;
struct mr_peers_own mr_peers_own;
struct mr_verbs mr_verbs;
const struct mr_qp_events mr_probe_events;

static struct mr_peer more[RANKS], *all[RANKS];
static struct mr_peer_own more_own[RANKS];
static const int node[RANKS] = {0, 1, 1, 1, 1, 2};
static struct mr_cm_msg local;
static unsigned made, live, connected, asked, brought_up, aborted;
static const struct mr_rail_addr *brought_up_to;
static bool again_error;
static uint32_t connected_to[MR_RAILS_MAX];
static uint16_t pkeys[MR_RAILS_MAX];
static int create_error;
static struct mr_probe *last;

int mr_qp_create(struct mr_rail *rail, enum mr_qp_type type, unsigned times, struct mr_qp *qp,
                 const struct mr_qp_events *events, void *owner)
{
    ck_assert_int_eq(type, MR_QP_RC);
    if (create_error)
        return create_error;
    live++;
    *qp = (struct mr_qp){.rail = rail, .owner = owner, .events = events, .qpn = 100 + made++, .state = MR_QP_ALIVE};
    return 0;
}

int mr_qp_connect(struct mr_qp *qp, const struct mr_rail_addr *to, uint32_t remote_qpn, uint32_t local_psn,
                  uint32_t remote_psn, uint8_t sl, uint8_t path)
{
    ck_assert_uint_eq(local_psn, 11);
    ck_assert_uint_eq(remote_psn, 22);
    ck_assert_uint_eq(sl, 3);
    connected_to[qp->rail->index] = remote_qpn;
    pkeys[qp->rail->index] = qp->pkey;
    connected++;
    return 0;
}

void mr_qp_destroy(struct mr_qp *qp)
{
    live--;
}

int mr_qp_psns(struct mr_qp *qp, uint32_t *send, uint32_t *receive)
{
    *send = 1;
    *receive = 1234;
    return 0;
}

void mr_probe_post(struct mr_probe *l, uint64_t now_ns)
{
    ck_assert(l->answers);
    last = l;
    asked++;
}

void mr_probe_again(struct mr_probe *l, const struct mr_rail_addr *to)
{
    ck_assert_int_eq(l->qp.state, MR_QP_DRAINED);
    if (again_error)
        return;
    l->qp.state = MR_QP_ALIVE;
    brought_up_to = to;
    brought_up++;
}

void mr_qp_abort(struct mr_qp *qp)
{
    aborted++;
    qp->state = MR_QP_MARKED;
}

/* All peers are alike; links to them may lose packets; nothing is connected. */
static void setup(void)
{
    make_peer();
    memset(&mr_peers_own, 0, sizeof mr_peers_own);
    memset(connected_to, 0, sizeof connected_to);
    memset(pkeys, 0, sizeof pkeys);
    made = live = connected = asked = brought_up = aborted = 0;
    create_error = again_error = 0;
    last = NULL;
    launch.size = RANKS;
    launch.num_nodes = 3;
    launch.node_of = node;
    mr_peers.our_kinds = address.kinds = 1u << MR_LINK_UD;
    mr_verbs.num_rails = SUBS;
    for (unsigned i = 0; i < SUBS; i++)
        mr_verbs.rail[i] = rails[i];
    local = (struct mr_cm_msg){.psn = 11};
    memset(more_own, 0, sizeof more_own);
    for (int r = 1; r < RANKS; r++) {
        more[r] = peer;
        more[r].rank = r;
        more[r].up = false;
        more[r].own = &more_own[r];
        more[r].cm.local = &local;
        all[r] = &more[r];
    }
    mr_peers.peer = all;
}

static void teardown(void)
{
    for (int r = 1; r < RANKS; r++)
        mr_guard_free(all[r]);
    ck_assert_uint_eq(live, 0);
}

/* The peer's message: queue pairs 200 and 201, or none. */
static struct mr_cm_msg says(bool offers)
{
    struct mr_cm_msg m = {.psn = 22};

    for (unsigned r = 0; r < SUBS && offers; r++)
        m.guard[r].qpn = 200 + r;
    m.sub[0].level[MR_LEVEL_SMALL].sl = 3;
    return m;
}

/* Rank r is connected, by our request. Returns our message. */
static struct mr_cm_msg connect_to(int r, bool answer)
{
    struct mr_cm_msg out = {0}, m = says(answer);

    mr_guard_make(all[r], NULL, &out);
    mr_guard_connect(all[r], &m, &m);
    all[r]->up = true;
    return out;
}

/* One for each rail, to the guard of the paired rail. */
START_TEST(one_for_each_rail)
{
    struct mr_cm_msg out = connect_to(1, true);

    ck_assert_uint_eq(out.guard[0].qpn, 100);
    ck_assert_uint_eq(out.guard[1].qpn, 101);
    ck_assert_uint_eq(out.guard[2].qpn, 0);
    ck_assert_uint_eq(connected_to[0], 200);
    ck_assert_uint_eq(connected_to[1], 201);
}
END_TEST

/* Crossed pairs, and a pair with a rail already taken: each rail counts once at either end. */
START_TEST(paired_rails)
{
    sub[0].remote_rail = 1;
    sub[1].remote_rail = _i ? 1 : 0;
    connect_to(1, true);
    ck_assert_uint_eq(connected_to[0], 201);
    ck_assert_uint_eq(connected_to[1], _i ? 0 : 200);
    ck_assert_uint_eq(live, _i ? 1 : 2);
}
END_TEST

/* The P_Key is that of the pair of rails, whichever of its subchannels has one; without any there is no guard. */
START_TEST(pkey_of_any_subchannel)
{
    for (unsigned i = 0; i < all[1]->num_subs; i++)
        sub[i].pkey = !_i && i >= SUBS ? 0x8005 : 0;
    ck_assert_uint_gt(all[1]->num_subs, SUBS);
    connect_to(1, true);
    ck_assert_uint_eq(connected, _i ? 0 : 2);
    ck_assert_uint_eq(pkeys[0], _i ? 0 : 0x8005);
    ck_assert_uint_eq(pkeys[1], _i ? 0 : 0x8005);
}
END_TEST

/* None where adapters answer for all links, where a port is down, or without room for queue pairs. */
START_TEST(none)
{
    struct mr_cm_msg out;

    if (_i == 0)
        mr_peers.our_kinds = address.kinds = 1u << MR_LINK_RC;
    if (_i == 1)
        mr_verbs.rail[0].down = mr_verbs.rail[1].down = true;
    if (_i == 2)
        create_error = -ENOMEM;
    if (_i == 3)
        all[1]->up = true; /* handshakes after the first */
    out = connect_to(1, true);
    ck_assert_uint_eq(out.guard[0].qpn | out.guard[1].qpn, 0);
    ck_assert_uint_eq(live | connected, 0);
}
END_TEST

/* With the ranks of our number on their host and the next, and the ranks for which we are these. Both ends agree. */
START_TEST(two_of_a_host)
{
    static const int nodes[2][RANKS] = {{0, 1, 1, 1, 1, 2}, {0, 0, 0, 1, 1, 1}};
    unsigned few = 0;

    launch.node_of = nodes[_i];
    for (int self = 0; self < RANKS; self++)
        for (int r = 1; r < RANKS; r++) {
            struct mr_cm_msg ours = {0}, theirs = {0};
            bool far = nodes[_i][self] != nodes[_i][r];

            if (self == 0 || !far)
                continue;
            launch.rank = self;
            mr_guard_make(all[r], NULL, &ours);
            mr_guard_free(all[r]);
            launch.rank = r;
            mr_guard_make(all[self], NULL, &theirs);
            mr_guard_free(all[self]);
            ck_assert_int_eq(!ours.guard[0].qpn, !theirs.guard[0].qpn);
            few += !ours.guard[0].qpn;
        }
    ck_assert_uint_eq(few != 0, _i == 1); /* not all have all; in the first case rank 5 is alone on its host */
}
END_TEST

/* Between hosts of the same number of ranks, even or odd, each rank has two guarded peers of each other host. */
#define HOSTS     3
#define HOST_MOST 9
START_TEST(two_for_each_host)
{
    struct mr_peer ranks[HOSTS * HOST_MOST], *list[HOSTS * HOST_MOST];
    struct mr_peer_own owns[HOSTS * HOST_MOST] = {0};
    int nodes[HOSTS * HOST_MOST];

    launch.size = HOSTS * _i;
    launch.node_of = nodes;
    mr_peers.peer = list;
    for (int r = 0; r < launch.size; r++) {
        ranks[r] = more[1];
        ranks[r].rank = r;
        ranks[r].own = &owns[r];
        list[r] = &ranks[r];
        nodes[r] = r / _i;
    }
    for (launch.rank = 0; launch.rank < launch.size; launch.rank++)
        for (int host = 0; host < HOSTS; host++) {
            int guarded = 0;

            for (int r = host * _i; r < (host + 1) * _i && host != nodes[launch.rank]; r++) {
                struct mr_cm_msg out = {0};

                mr_guard_make(list[r], NULL, &out);
                mr_guard_free(list[r]);
                guarded += out.guard[0].qpn != 0;
            }
            ck_assert_int_eq(guarded, host == nodes[launch.rank] ? 0 : _i < 2 ? _i : 2);
        }
    mr_peers.peer = all;
}
END_TEST

/* Whoever deals with a rank of a host connects to these two. */
START_TEST(missing)
{
    ck_assert_int_eq(mr_guard_missing(all[4]), -1);
    all[1] = all[2] = NULL;
    ck_assert_int_eq(mr_guard_missing(all[4]), 1);
    all[1] = &more[1];
    ck_assert_int_eq(mr_guard_missing(all[4]), 2);
    mr_peers.our_kinds = 1u << MR_LINK_RC;
    ck_assert_int_eq(mr_guard_missing(all[4]), -1);
    all[2] = &more[2];
}
END_TEST

/* None in an answer if none were offered, and none left after a handshake that gives way or fails. */
START_TEST(answered)
{
    struct mr_cm_msg out = {0}, req = says(_i == 0);

    mr_guard_make(all[1], NULL, &out);
    ck_assert_uint_eq(out.guard[0].qpn, 100);
    out = (struct mr_cm_msg){0};
    mr_guard_make(all[1], &req, &out); /* ours gives way */
    ck_assert_uint_eq(out.guard[0].qpn, _i == 0 ? 100 : 0);
    ck_assert_int_eq(more_own[1].guards != NULL, _i == 0);
    ck_assert_uint_eq(live, _i == 0 ? 2 : 0);
    if (_i)
        return;
    mr_guard_connect(all[1], &req, &req);
    out = (struct mr_cm_msg){0};
    mr_guard_make(all[1], &req, &out); /* failed: the peer begins another handshake */
    ck_assert_uint_eq(out.guard[0].qpn, 102);
    ck_assert_uint_eq(live, 2);
}
END_TEST

/* The peer's answer has none for one of the rails, or none at all. */
START_TEST(less_in_the_answer)
{
    struct mr_cm_msg out = {0}, rep = says(true);

    rep.guard[0].qpn = 0;
    rep.guard[1].qpn = _i ? 0 : 201;
    mr_guard_make(all[2], NULL, &out);
    mr_guard_connect(all[2], &rep, &rep);
    ck_assert_uint_eq(live, !_i);
    ck_assert_int_eq(more_own[2].guards != NULL, !_i);
}
END_TEST

static bool ask(int r, uint64_t since_ns, bool *found)
{
    bool heard;

    asked = 0;
    *found = mr_guard_ask(all[r], stub_clock_ns, since_ns, &heard);
    return heard;
}

/* A peer's own guards report about the peer; for a peer without guards, those of its whole host do. */
START_TEST(who_is_asked)
{
    struct mr_probe *of_one;
    bool found;

    connect_to(1, true);
    connect_to(2, true);
    connect_to(3, false);
    ck_assert(!ask(1, stub_clock_ns, &found) && found);
    of_one = last;
    ck_assert_uint_eq(asked, 2);
    stub_clock_ns += MS;
    of_one->answered(of_one);
    ck_assert(ask(1, stub_clock_ns, &found));
    ck_assert(!ask(1, stub_clock_ns + 1, &found));
    ck_assert(!ask(2, stub_clock_ns, &found) && found);
    ck_assert_uint_eq(asked, 2);
    ck_assert(ask(3, stub_clock_ns, &found) && found);
    ck_assert_uint_eq(asked, 4);
    more[1].up = false; /* lost: its guards still report about the others */
    more[1].error = more[2].error = -ENETDOWN;
    ck_assert(ask(3, stub_clock_ns, &found) && found);
    ck_assert(!ask(5, stub_clock_ns, &found) && !found);
    ck_assert_uint_eq(asked, 0);
}
END_TEST

static void drain(struct mr_probe *l)
{
    l->qp.state = MR_QP_DRAINED;
    l->drained(l);
}

/* Guards with a port down are not asked; a failed guard is up again at once, and takes the peer's next message. */
START_TEST(down_and_drained)
{
    bool found;

    connect_to(1, true);
    mr_verbs.rail[1].down = true;
    ask(1, 0, &found);
    ck_assert(found);
    ck_assert_uint_eq(asked, 1);
    drain(last);
    ck_assert_uint_eq(last->receive, 1234);
    ck_assert_uint_eq(last->psn, 11);
    ck_assert_uint_eq(brought_up, 1);
    ck_assert_ptr_eq(brought_up_to, &address.rail[0]);
}
END_TEST

/* After a failure, a retry comes with the next question. */
START_TEST(late_again)
{
    bool found;

    connect_to(1, true);
    mr_verbs.rail[1].down = true;
    ask(1, 0, &found);
    again_error = true;
    drain(last);
    ck_assert_uint_eq(brought_up, 0);
    again_error = false;
    ask(1, 0, &found);
    ck_assert_uint_eq(brought_up, 1);
    ck_assert_uint_eq(asked, 1);
}
END_TEST

/* A rail of the peer has another LID: the guard to it is brought up to the new LID, the other left alone. */
START_TEST(peer_moved)
{
    bool found;

    mr_guard_moved(all[1], 0); /* none yet */
    connect_to(1, true);
    mr_verbs.rail[0].down = true;
    ask(1, 0, &found);
    if (_i) {
        again_error = true;
        drain(last);
        again_error = false;
    }
    mr_guard_moved(all[1], 1);
    ck_assert_uint_eq(aborted, !_i);
    if (!_i)
        drain(last);
    ck_assert_uint_eq(brought_up, 1);
    ck_assert_ptr_eq(brought_up_to, &address.rail[1]);
}
END_TEST

/* Before a handshake is over none is brought up, whatever becomes of it. */
START_TEST(not_connected)
{
    struct mr_cm_msg out = {0};

    mr_guard_make(all[1], NULL, &out);
    mr_guard_moved(all[1], 0);
    ck_assert_uint_eq(brought_up | aborted, 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("guard");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, one_for_each_rail);
    tcase_add_loop_test(c, paired_rails, 0, 2);
    tcase_add_loop_test(c, pkey_of_any_subchannel, 0, 2);
    tcase_add_loop_test(c, none, 0, 4);
    tcase_add_loop_test(c, two_of_a_host, 0, 2);
    tcase_add_loop_test(c, two_for_each_host, 1, HOST_MOST + 1);
    tcase_add_test(c, missing);
    tcase_add_loop_test(c, answered, 0, 2);
    tcase_add_loop_test(c, less_in_the_answer, 0, 2);
    tcase_add_test(c, who_is_asked);
    tcase_add_test(c, down_and_drained);
    tcase_add_test(c, late_again);
    tcase_add_loop_test(c, peer_moved, 0, 2);
    tcase_add_test(c, not_connected);
    return check_run(c, NULL);
}
