/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Silent ways: the times of questions to adapter and process, the subchannels that break, after which time, and those
 * that never do.
 */
#include "libmrmpi/conn/questions.h"
#include "libmrmpi/conn/reliable/loss.h"
#include "libmrmpi/verbs/datagram.h"
#include "libmrmpi/verbs/post.h"
#include "tests/check.h"
#include "tests/libmrmpi/fake_peer.h"

#include <stdlib.h>

struct mr_peers mr_peers;
struct mr_connect mr_connect;
static unsigned broken, doubted, asked[SUBS];
static uint8_t asked_sl[SUBS]; /* the last question's */
static uint8_t deaf_sl;        /* questions on this level are not answered */
static uint64_t queued;        /* bytes of large messages on the first subchannel */
static struct mr_window_link window_links[2 * SUBS];
static struct mr_kept kept; /* a packet waiting for its ACK */
static struct mr_peer mate; /* another rank on the peer's host, with the same two rails: rank 2 */

void mr_sub_break(struct mr_sub *s)
{
    s->state = MR_SUB_BROKEN;
    broken |= 1u << (s - sub);
}

void mr_recovery_loses(struct mr_sub *s)
{
    mr_trust_failed(mr_way_trust(s), stub_clock_ns);
}

void mr_peer_take_health(struct mr_peer *p)
{
    ck_assert(p == &peer || p == &mate);
}

void mr_peer_tell_doubted(struct mr_peer *p)
{
    doubted++;
}

uint64_t mr_peer_ask_queued(const struct mr_sub *s)
{
    return s == sub ? queued : 0;
}

void mr_keepalive_ask_on(struct mr_sub *s, uint8_t sl, uint64_t now_ns)
{
    asked[s->rail->index]++;
    asked_sl[s->rail->index] = sl;
}

/* Both rails are in use; a packet is under way on the first, unconfirmed so far. */
static void setup(void)
{
    make_peer();
    memset(&mr_connect, 0, sizeof mr_connect);
    memset(asked, 0, sizeof asked);
    queued = 0;
    deaf_sl = UINT8_MAX;
    memset(window_links, 0, sizeof window_links);
    peer.out.link = window_links;
    peer.out.num_links = 2 * SUBS;
    broken = doubted = 0;
    for (unsigned i = 0; i < 2 * SUBS; i++)
        links[i][0].qp.depth = links[i][0].qp.room = 10;
    for (unsigned i = 0; i < SUBS; i++)
        rails[i].rate_mbps = address.rail[i].rate_mbps = 100000;
    for (unsigned i = 0; i < 2 * SUBS; i++)
        links[i][0].sl = 3;
    set_open(&sub[0]);
    set_open(&sub[1]);
    links[0][0].qp.room = 9;
    links[0][0].qp.unsignaled_sends = 1;
    links[0][0].qp.finished = window_links[0].passed = 5; /* moved before the first poll */
    mr_silence_check(stub_clock_ns);
}

static void teardown(void)
{
    free(conn.questions);
}

/* A number of polls, one per millisecond; questions over these rails (set) are answered before the next poll. */
static void look(unsigned times, unsigned answers)
{
    while (times--) {
        stub_clock_ns += MS;
        mr_silence_check(stub_clock_ns);
        for (unsigned i = 0; i < SUBS && conn.questions; i++)
            conn.questions[i].answered |= conn.questions[i].asked && answers >> i & 1 && asked_sl[i] != deaf_sl;
    }
}

#define QUESTIONS 4 /* over each way, in a round */

static unsigned questions(void)
{
    return asked[0] + asked[1];
}

/* Adapter and process are asked at once; after six rounds answered by the other rail, the subchannel breaks. */
START_TEST(silent_way)
{
    look(1, 2);
    ck_assert_uint_eq(keepalives, 1);
    ck_assert_uint_eq(asked[0], 0); /* a healthy link has confirmed as little */
    look(1, 2);
    ck_assert_uint_eq(asked[0], QUESTIONS);
    ck_assert_uint_eq(asked[1], QUESTIONS);
    ck_assert(mr_peers.doubtful);
    look(6, 2);
    ck_assert_uint_eq(broken, 0);
    look(1, 2);
    ck_assert_uint_eq(broken, 1);
    ck_assert(!sub[0].lossy);
    look(10, 2);
    ck_assert_uint_eq(broken, 1);
    ck_assert(!mr_peers.doubtful);
}
END_TEST

/*
 * A confirmation is late: the process is asked after two polls, and after one the next time; but (1) not if the bytes
 * under way may take as long. (2) The way has lost packets before.
 */
START_TEST(late_confirmation)
{
    links[0][0].qp.unsignaled_sends = 0;
    queued = _i == 1 ? 4u << 20 : 2u << 20; /* 100 Gbit/s carry 12.5 MB in a look */
    if (_i == 2)
        mr_trust_tried(mr_way_trust(&sub[0]), 10, 1, stub_clock_ns);
    look(1, 3);
    ck_assert_uint_eq(asked[0], _i == 2 ? QUESTIONS : 0);
    links[0][0].qp.finished++;
    memset(asked, 0, sizeof asked);
    look(1, 3);
    ck_assert_uint_eq(asked[0], 0);
    look(1, 3);
    ck_assert_uint_eq(asked[0], _i == 1 ? 0 : QUESTIONS);
    look(1, 3);
    ck_assert_uint_ge(asked[0], QUESTIONS);
}
END_TEST

/*
 * A link stands still for a look again and again, and moves after a nudge: packets were lost. Small messages leave the
 * link the second time, all messages when the link stands still most of the time. (1) the link moves for long then;
 * (2) nobody answers meanwhile: the peer may compute; (3) the other way is no better; (4) peers read or write memory
 * here meanwhile, whose bytes may take as long.
 */
START_TEST(stands_still)
{
    unsigned stalls = 0;

    links[0][0].qp.unsignaled_sends = 0;
    if (_i == 3)
        mr_trust_stood(mr_way_trust(&sub[1]), 100 * MS, stub_clock_ns);
    mr_peers.offered = _i == 4 ? 64u << 20 : 0;
    for (; stalls < 20 && !broken; stalls++) {
        look(1, _i == 2 ? 0 : 3);
        for (unsigned n = 0; n < (_i == 1 ? 10 : 1); n++) {
            links[0][0].qp.finished++;
            look(1, 3);
        }
        if (_i < 2 && stalls == 1) {
            ck_assert_uint_gt(doubted, 0);
            ck_assert(sub[0].doubt && sub[0].doubt < MR_WEIGHT_MAX);
            ck_assert_uint_eq(sub[1].doubt, 0);
        }
    }
    ck_assert_uint_eq(broken, _i == 0);
    ck_assert_int_eq(sub[0].doubt == MR_WEIGHT_MAX, _i == 0);
    if (!_i) {
        ck_assert_uint_ge(stalls, 4);
        ck_assert_uint_le(stalls, 10);
        ck_assert(sub[0].lossy);
        doubted = 0;
        look(2000, 0); /* forgotten */
        ck_assert_uint_eq(sub[0].doubt, 0);
        ck_assert_uint_gt(doubted, 1);
    }
    if (_i == 2 || _i == 4)
        ck_assert_uint_eq(doubted, 0);
    mr_peers.offered = 0;
}
END_TEST

/* Another subchannel of the way breaks with it, idle or not. */
START_TEST(all_of_the_way)
{
    set_open(&sub[SUBS]);
    look(20, 2);
    ck_assert_uint_eq(broken, 1 | 1u << SUBS);
}
END_TEST

/*
 * Never: a way that moves or is idle; a silent peer; the only way to a peer; a way that answers, if packets under
 * way may take so long, or if its level does not answer.
 */
START_TEST(not_silent)
{
    unsigned answers = 2;

    switch (_i) {
    case 0:
        break;
    case 1:
        links[0][0].qp.room = 10;
        break;
    case 2:
        answers = 3;
        queued = 1u << 30;
        break;
    case 3:
        answers = 0;
        break;
    case 4:
        rails[1].down = true;
        break;
    case 5:
        answers = 3;
        deaf_sl = links[0][0].sl;
        break;
    }
    for (unsigned i = 0; i < 2000; i++) {
        links[0][0].qp.finished += _i == 0;
        look(1, answers);
    }
    ck_assert_uint_eq(broken, 0);
    ck_assert_int_eq(questions() == 0, _i == 0 || _i == 1);
    if (_i == 3) /* computing: asked less and less often */
        ck_assert_uint_lt(asked[0], 40 + QUESTIONS);
}
END_TEST

/*
 * The first request had to be repeated: ways are asked at once, idle or not, until each has answered. (1) all do. (2)
 * the peer computes for a while first, (3) for so long that it is asked no more.
 */
START_TEST(silent_from_the_beginning)
{
    links[0][0].qp.room = 10;
    conn.unproven = true;
    look(_i == 2 ? 40 : _i == 3 ? 200 : 0, 0);
    ck_assert_uint_eq(broken, 0);
    ck_assert_uint_le(asked[0], 8 + QUESTIONS);
    look(_i == 2 ? 80 : 7, _i == 1 ? 3 : 2);
    ck_assert_uint_eq(broken, _i == 0 || _i == 2);
    ck_assert(!conn.unproven);
    memset(asked, 0, sizeof asked);
    look(10, 3);
    ck_assert_uint_eq(questions(), 0);
    ck_assert(!mr_peers.doubtful);
}
END_TEST

/* The way moves again and again, because arrivals over it are confirmed. It has not answered, though. */
START_TEST(proof_is_an_answer)
{
    conn.unproven = true;
    for (unsigned i = 0; i < 8; i++) {
        links[0][0].qp.finished++;
        look(1, 2);
    }
    ck_assert_uint_eq(broken, 1);
}
END_TEST

/* A lossy way: it answers, on the level of the stuck link too, or (1) two times in three. */
START_TEST(stuck_though_it_answers)
{
    unsigned looks = 0;

    look(2, 3);
    ck_assert_uint_eq(asked_sl[0], links[0][0].sl);
    ck_assert_uint_eq(asked_sl[1], 0);
    for (; !broken && looks < 50; looks++)
        look(1, !_i || looks % 3 ? 3 : 2);
    ck_assert_uint_eq(broken, 1);
    ck_assert(sub[0].lossy);
    ck_assert(!sub[1].lossy);
    ck_assert_uint_le(looks, _i ? 30 : 4);
}
END_TEST

/* The only way: its answers prove as much. */
START_TEST(stuck_though_the_only_one_answers)
{
    rails[1].down = true;
    look(8, 1);
    ck_assert_uint_eq(broken, 1);
    ck_assert(sub[0].lossy);
}
END_TEST

/* Another link of the subchannel moves meanwhile. */
START_TEST(stuck_beside_one_that_moves)
{
    sub[0].num_links = 2;
    links[0][1] = links[0][0];
    links[0][1].index = 2 * SUBS;
    for (unsigned i = 0; i < 8; i++) {
        links[0][1].qp.finished++;
        look(1, 3);
    }
    ck_assert_uint_gt(keepalives, 0);
    ck_assert_uint_eq(broken, 1);
}
END_TEST

/* 1 MiB at a 128th of 100 Gbit/s takes 10.7 ms. */
START_TEST(stuck_for_as_long_as_it_may)
{
    queued = 1u << 20;
    look(11, 3);
    ck_assert_uint_eq(broken, 0);
    look(2, 3);
    ck_assert_uint_eq(broken, 1);
}
END_TEST

/* A movement just before the last round restarts the count. */
START_TEST(moves_in_time)
{
    for (unsigned i = 0; i < 50; i++) {
        look(7, 2);
        links[0][0].qp.finished++;
    }
    ck_assert_uint_eq(broken, 0);
    look(9, 2);
    ck_assert_uint_eq(broken, 1);
}
END_TEST

/*
 * If an answer over any way was 10 ms later than the mean lately, a way has four times that. (2) The mean of the
 * way itself counts, (3) not that of another, with large messages.
 */
START_TEST(slow_way)
{
    look(2, 2);
    if (_i < 2)
        conn.questions[_i].trip.excess_ns = 10 * MS;
    else
        conn.questions[_i - 2].trip.mean_ns = 40 * MS;
    look(_i == 3 ? 6 : 40, 2);
    ck_assert_uint_eq(broken, 0);
    look(2, 2);
    ck_assert_uint_eq(broken, 1);
}
END_TEST

/* A way that missed a round is asked on, also with nothing under way there any more, and breaks. (1) it answers. */
START_TEST(idle_way_in_doubt)
{
    look(4, 2);
    ck_assert_uint_eq(conn.questions[0].missed, 1);
    links[0][0].qp.room = 10;
    look(_i ? 3 : 4, 2);
    ck_assert_uint_eq(broken, 0);
    look(2, _i ? 3 : 2);
    ck_assert_uint_eq(broken, _i ? 0 : 1);
    memset(asked, 0, sizeof asked);
    look(20, 3);
    ck_assert_uint_eq(questions(), 0);
    ck_assert(!mr_peers.doubtful);
}
END_TEST

/*
 * The peer's questions have not been answered over a way that is idle here: the way is asked, too. These rounds
 * count, but at least one round is asked from here. (1) the way answers, (2) and is doubted again and again.
 */
START_TEST(doubted_by_the_peer)
{
    links[0][0].qp.room = 10;
    look(1, 3);
    ck_assert_uint_eq(questions(), 0);
    sub_conn[0].doubted = 100;
    look(1, _i ? 3 : 2);
    ck_assert_uint_eq(asked[0], QUESTIONS);
    ck_assert_uint_eq(broken, 0);
    for (unsigned i = 0; i < 20; i++) {
        sub_conn[0].doubted = _i == 2 ? 100 : 0;
        look(1, _i ? 3 : 2);
    }
    ck_assert_uint_eq(broken, _i ? 0 : 1);
    if (_i)
        ck_assert_int_eq(asked[0] > 2 * QUESTIONS, _i == 2);
    ck_assert_int_eq(conn.questions[0].own >= MR_ROUNDS_DOUBT, 0); /* no doubt of the peer's is passed on */
}
END_TEST

static struct mr_connect_peer mate_conn;
static struct mr_connect_sub mate_sub_conn[2 * SUBS];
static struct mr_sub mate_sub[2 * SUBS];
static struct mr_link mate_links[2 * SUBS][MR_LEVELS];

static void make_mate(void)
{
    static struct mr_peer *both[3] = {NULL, &peer, &mate};
    static const int nodes[3] = {0, 1, 1};

    mate = peer;
    mate.rank = 2;
    mate.connect = &mate_conn;
    mate.sub = mate.now = mate_sub;
    memset(&mate_conn, 0, sizeof mate_conn);
    memset(mate_sub_conn, 0, sizeof mate_sub_conn);
    for (unsigned i = 0; i < 2 * SUBS; i++) {
        mate_sub[i] = sub[i];
        mate_sub[i].peer = &mate;
        mate_sub[i].connect = &mate_sub_conn[i];
        mate_sub[i].link = mate_links[i];
        mate_links[i][0] = links[i][0];
        mate_links[i][0].owner = &mate_sub[i];
        mate_links[i][0].qp.room = mate_links[i][0].qp.depth;
    }
    launch.size = 3;
    launch.node_of = nodes;
    mr_peers.peer = both;
}

/* Nothing is under way to the other rank. Its way is asked after two rounds, and breaks a round or two later. */
START_TEST(same_way_to_another)
{
    make_mate();
    for (unsigned i = 0; i < SUBS; i++)
        address.rail[i].lid = (uint16_t)(10 + i);
    for (unsigned looks = 0; looks < 10 && mate_sub[0].state == MR_SUB_OPEN; looks++) {
        look(1, 2);
        if (looks == 2)
            ck_assert_ptr_null(mate_conn.questions);
        if (mate_conn.questions)
            mate_conn.questions[1].answered = mate_conn.questions[1].asked;
    }
    ck_assert_int_eq(mate_sub[0].state, MR_SUB_BROKEN);
    ck_assert_int_eq(mate_sub[1].state, MR_SUB_OPEN);
    ck_assert_int_eq(sub[0].state, MR_SUB_BROKEN);
    free(mate_conn.questions);
}
END_TEST

/* A way breaks since packets are lost: that is known of the same way to the other rank, and of no other way. */
START_TEST(loss_of_another)
{
    make_mate();
    for (unsigned i = 0; i < SUBS; i++)
        address.rail[i].lid = (uint16_t)(10 + i);
    look(8, 3);
    ck_assert_uint_eq(broken, 1);
    ck_assert(sub[0].lossy);
    ck_assert_int_eq(mate_sub[0].state, MR_SUB_OPEN);
    ck_assert_uint_gt(mr_trust_loss(mr_way_trust(&mate_sub[0]), stub_clock_ns), 50000);
    ck_assert_uint_eq(mr_way_trust(&mate_sub[0])->failures, 0); /* has not failed */
    ck_assert_uint_eq(mr_trust_loss(mr_way_trust(&mate_sub[1]), stub_clock_ns), 0);
    free(mate_conn.questions);
}
END_TEST

/* The peer's word that a way breaks for this reason counts as much, once. */
START_TEST(loss_told)
{
    make_mate();
    for (unsigned i = 0; i < SUBS; i++)
        address.rail[i].lid = (uint16_t)(10 + i);
    mr_way_told(&sub[0]);
    ck_assert(sub[0].lossy);
    ck_assert_uint_gt(mr_trust_loss(mr_way_trust(&sub[0]), stub_clock_ns), 50000);
    ck_assert_uint_gt(mr_trust_loss(mr_way_trust(&mate_sub[0]), stub_clock_ns), 50000);
    ck_assert_uint_eq(mr_trust_loss(mr_way_trust(&mate_sub[1]), stub_clock_ns), 0);
    *mr_way_trust(&mate_sub[0]) = (struct mr_trust){0};
    mr_way_told(&sub[0]);
    ck_assert_uint_eq(mr_trust_loss(mr_way_trust(&mate_sub[0]), stub_clock_ns), 0);
}
END_TEST

/* After a second of computing without a poll, only one poll's worth is learnt. */
START_TEST(computes_itself)
{
    look(7, 2);
    stub_clock_ns += 1000 * MS;
    links[0][0].qp.finished++;
    look(1, 2);
    ck_assert_uint_eq(broken, 0);
    for (unsigned i = 0; i < 3; i++) {
        stub_clock_ns += 1000 * MS;
        look(1, 3);
    }
    ck_assert_uint_eq(broken, 0);
}
END_TEST

/* Lossy links: unacknowledged packets count, and large messages, without other information. */
START_TEST(lossy)
{
    for (unsigned i = 0; i < 2 * SUBS; i++) {
        sub[i].kind = MR_LINK_UC;
        links[i][0].kind = MR_LINK_UC;
        links[i][0].native = _i == 1;
    }
    links[0][0].qp.room = 10;
    window_links[0].head = _i == 0 ? &kept : NULL;
    peer.num_large = _i == 1;
    look(9, 2);
    ck_assert_uint_eq(broken, _i < 2 ? 1 : 0);
    ck_assert_uint_eq(keepalives, 0);
}
END_TEST

/*
 * The same number of questions for each way, with any kinds of links; in a large job one, since all ranks may ask the
 * same rank.
 */
START_TEST(questions_of_a_way)
{
    set_open(&sub[SUBS]);
    launch.size = 2;
    look(2, 2);
    ck_assert_uint_eq(asked[0], QUESTIONS);
}
END_TEST

/*
 * One subchannel is open, and goes silent: the other pair of rails is asked without a subchannel. (1) nothing answers.
 */
START_TEST(unused_way)
{
    if (!_i)
        sub[1].state = MR_SUB_CLOSED;
    look(_i ? 11 : 8, _i ? 0 : 2);
    ck_assert_uint_eq(broken, 0);
    ck_assert_uint_eq(asked[1] > 0, 1);
    look(1, _i ? 0 : 2);
    ck_assert_uint_eq(broken, !_i);
}
END_TEST

/*
 * All moves, but the only open way loses packets: others are asked, and one that answers is taken. Not (1) without
 * losses, (2) if another open way loses none, (3) if nothing is under way, (4) if there is no other.
 */
START_TEST(seeks_a_better_way)
{
    if (_i != 2)
        sub[1].state = MR_SUB_CLOSED;
    if (_i != 1)
        mr_trust_tried(mr_way_trust(&sub[0]), 40, 20, stub_clock_ns);
    peer.out.num = _i != 3;
    rails[1].down = _i == 4;
    for (unsigned i = 0; i < 5; i++) {
        links[0][0].qp.finished++;
        look(1, 3);
    }
    ck_assert_uint_eq(asked[1] > 0, _i == 0);
    ck_assert_uint_eq(broken, _i == 0);
    ck_assert(!mr_peers.doubtful);
    peer.out.num = 0;
    rails[1].down = false;
}
END_TEST

/* Silent for long, with long pauses -> another way opens, or answers -> six rounds later it breaks. */
START_TEST(another_way_comes)
{
    sub[1].state = MR_SUB_CLOSED;
    look(70, 0);
    set_open(&sub[1]);
    mr_questions_soon(&conn);
    look(6, 2);
    ck_assert_uint_eq(broken, 0);
    look(2, 2);
    ck_assert_uint_eq(broken, 1);
}
END_TEST

/* Nothing is open: all possible ways are asked at once, and again soon; answering ways are known. */
START_TEST(nothing_is_open)
{
    sub[0].state = sub[1].state = MR_SUB_CLOSED;
    conn.isolated_ns = stub_clock_ns;
    mr_silence_ask(&peer, stub_clock_ns);
    ck_assert_uint_eq(asked[0], QUESTIONS);
    ck_assert_uint_eq(asked[1], QUESTIONS);
    ck_assert(!mr_silence_heard(&peer, stub_clock_ns));
    conn.questions[1].answered = true;
    ck_assert(!mr_silence_answered(&sub[0]));
    ck_assert(mr_silence_answered(&sub[1]));
    conn.questions[1].trip.mean_ns = 5000;
    ck_assert(!mr_silence_heard(&peer, stub_clock_ns)); /* the other one may be a little later */
    ck_assert(mr_silence_heard(&peer, stub_clock_ns + 20000));
    conn.questions[0].answered = true;
    ck_assert(mr_silence_heard(&peer, stub_clock_ns));
    look(200, 0);
    ck_assert_uint_ge(asked[0], 200 / 8);
    ck_assert_uint_le(asked[0], 200 / 8 + 8 + QUESTIONS);
    rails[1].down = true;
    memset(asked, 0, sizeof asked);
    look(20, 0);
    ck_assert_uint_eq(asked[1], 0);
    ck_assert_uint_gt(asked[0], 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("silence");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, silent_way);
    tcase_add_loop_test(c, late_confirmation, 0, 3);
    tcase_add_loop_test(c, stands_still, 0, 5);
    tcase_add_test(c, all_of_the_way);
    tcase_add_loop_test(c, silent_from_the_beginning, 0, 4);
    tcase_add_test(c, proof_is_an_answer);
    tcase_add_loop_test(c, not_silent, 0, 6);
    tcase_add_loop_test(c, stuck_though_it_answers, 0, 2);
    tcase_add_test(c, stuck_though_the_only_one_answers);
    tcase_add_test(c, stuck_beside_one_that_moves);
    tcase_add_test(c, stuck_for_as_long_as_it_may);
    tcase_add_test(c, moves_in_time);
    tcase_add_loop_test(c, slow_way, 0, 4);
    tcase_add_loop_test(c, idle_way_in_doubt, 0, 2);
    tcase_add_loop_test(c, doubted_by_the_peer, 0, 3);
    tcase_add_test(c, same_way_to_another);
    tcase_add_test(c, loss_of_another);
    tcase_add_test(c, loss_told);
    tcase_add_test(c, computes_itself);
    tcase_add_loop_test(c, lossy, 0, 3);
    tcase_add_test(c, questions_of_a_way);
    tcase_add_loop_test(c, unused_way, 0, 2);
    tcase_add_loop_test(c, seeks_a_better_way, 0, 5);
    tcase_add_test(c, another_way_comes);
    tcase_add_test(c, nothing_is_open);
    return check_run(c, NULL);
}
