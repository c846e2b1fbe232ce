/* SPDX-License-Identifier: BSD-3-Clause */
/* Silent peers: the peers, times and links of questions; and questions to a process, with their answers. */
#include "libmrmpi/conn/peer/guard.h"
#include "libmrmpi/conn/questions.h"
#include "libmrmpi/conn/reliable/loss.h"
#include "libmrmpi/verbs/datagram.h"
#include "tests/check.h"
#include "tests/libmrmpi/fake_peer.h"

#define SECOND (1000 * MS)

struct mr_peers mr_peers;
struct mr_connect mr_connect;
static uint32_t received;
static struct mr_cm_msg sent;
static unsigned num_sent, answered, answered_link;
static int send_error;
static bool guarded, guards_answer, tcp_answers;
static unsigned asked_by_tcp;
static uint64_t answered_since;

bool mr_guard_ask(const struct mr_peer *p, uint64_t now_ns, uint64_t since_ns, bool *heard)
{
    answered_since = since_ns;
    *heard = guarded && guards_answer;
    return guarded;
}

const char *mr_cm_reason_text(unsigned reason)
{
    return "";
}

void mr_peer_give_up(struct mr_peer *p, const char *why)
{
    p->error = -ENETDOWN;
}

void mr_stream_ask(struct mr_vc *vc)
{
    asked_by_tcp++;
}

bool mr_stream_answers(const struct mr_vc *vc)
{
    return tcp_answers;
}

uint32_t mr_vc_received(const struct mr_vc *vc)
{
    return received;
}

int mr_ud_send(struct mr_rail *rail, const struct mr_ud_route *way, const void *data, size_t len)
{
    memcpy(&sent, data, len);
    num_sent += !send_error;
    return send_error;
}

struct mr_sub *mr_sub_find(struct mr_peer *p, unsigned rail, unsigned remote, unsigned path, unsigned kind)
{
    return rail < SUBS ? &sub[rail] : NULL;
}

void mr_window_answered(struct mr_window *w, unsigned link, uint64_t asked_ns)
{
    answered++;
    answered_link = link;
}

void mr_cm_make_question(struct mr_cm_msg *out, enum mr_cm_type type, uint32_t job, uint32_t self, uint32_t to,
                         uint32_t id, const struct mr_cm_sub *s)
{
    *out = (struct mr_cm_msg){.type = (uint8_t)type, .num_subs = 1, .id = id};
    out->sub[0] = *s;
}

/* Both subchannels of the present epoch are open, and the first second has passed. */
static void setup(void)
{
    make_peer();
    memset(&mr_connect, 0, sizeof mr_connect);
    received = num_sent = answered = answered_link = 0;
    send_error = 0;
    guarded = guards_answer = tcp_answers = false;
    asked_by_tcp = 0;
    answered_since = 0;
    set_open(&sub[0]);
    set_open(&sub[1]);
    mr_keepalive_silent(stub_clock_ns);
}

/* How many links are asked when so much time has passed. */
static unsigned wait_ns(uint64_t ns)
{
    unsigned before = keepalives;

    stub_clock_ns += ns;
    mr_keepalive_silent(stub_clock_ns);
    return keepalives - before;
}

/* Once a second, one link; not after a packet of the peer or a confirmation has come. */
START_TEST(silent)
{
    ck_assert_uint_eq(keepalives, 0);
    ck_assert_uint_eq(wait_ns(SECOND - 1), 0);
    ck_assert_uint_eq(wait_ns(1), 1);
    ck_assert_uint_eq(wait_ns(SECOND - 1), 0);
    received++;
    ck_assert_uint_eq(wait_ns(SECOND), 0);
    ck_assert_uint_eq(wait_ns(SECOND), 1);
    peer.out.base++;
    ck_assert_uint_eq(wait_ns(SECOND), 0);
}
END_TEST

/* All links in turn. */
START_TEST(in_turn)
{
    const struct mr_sub *last = NULL;

    for (unsigned i = 0; i < 6; i++) {
        unsigned at;

        ck_assert_uint_eq(wait_ns(SECOND), 1);
        at = (conn.keepalive_next - 1) % (peer.num_subs * MR_LEVELS);
        ck_assert_uint_lt(at / MR_LEVELS, SUBS);
        ck_assert_ptr_ne(&sub[at / MR_LEVELS], last);
        last = &sub[at / MR_LEVELS];
    }
}
END_TEST

/* Not asked: a peer lost or not connected, and links that cannot answer. */
START_TEST(not_asked)
{
    switch (_i) {
    case 0:
        peer.error = -EIO;
        break;
    case 1:
        peer.up = false;
        break;
    case 2:
        sub[0].closing = sub[1].closing = true;
        break;
    case 3:
        rails[0].down = rails[1].down = true;
        break;
    case 4:
        sub[0].state = sub[1].state = MR_SUB_BROKEN;
        break;
    case 5:
        links[0][0].state = links[1][0].state = MR_LINK_BROKEN;
        break;
    case 6:
        keepalive_error = -EAGAIN;
        break;
    }
    ck_assert_uint_eq(wait_ns(SECOND), 0);
}
END_TEST

START_TEST(all_and_unsignaled)
{
    mr_keepalive_all(&peer);
    ck_assert_uint_eq(keepalives, 2);
    mr_keepalive_unsignaled(&peer);
    ck_assert_uint_eq(keepalives, 2);
    links[1][0].qp.unsignaled_sends = 3;
    mr_keepalive_unsignaled(&peer);
    ck_assert_uint_eq(keepalives, 3);
}
END_TEST

/* Before the end: unconfirmed packets are asked about, over their links only, until all are confirmed. */
START_TEST(confirmed_before_the_end)
{
    static struct mr_window_link places[2 * SUBS];
    static struct mr_kept kept;

    peer.out.link = places;
    peer.out.num_links = 2 * SUBS;
    ck_assert(mr_keepalive_confirm(&peer));
    peer.out.num = 1;
    places[1].head = &kept;
    ck_assert(!mr_keepalive_confirm(&peer));
    ck_assert_uint_eq(flushes, 1);
    links[1][0].state = MR_LINK_BROKEN;
    ck_assert(!mr_keepalive_confirm(&peer));
    ck_assert_uint_eq(flushes, 1);
    peer.error = -ENETDOWN;
    ck_assert(mr_keepalive_confirm(&peer));
}
END_TEST

/* ---- questions --------------------------------------------------------------------------------------------------- */

static void receive(enum mr_cm_type type, uint32_t id, unsigned rail)
{
    struct mr_cm_msg m = {.type = (uint8_t)type, .num_subs = 1, .id = id, .sub[0] = {.remote = (uint8_t)rail}};

    mr_keepalive_datagram(&peer, &m);
}

/* A question has a number; only its own answer counts, once, and only for connections that may break unseen. */
START_TEST(question)
{
    unsigned kind = _i ? MR_LINK_RC : MR_LINK_UC;

    for (unsigned l = 0; l < sub[1].num_links; l++)
        sub[1].link[l].kind = (uint8_t)kind;
    mr_keepalive_ask(&sub[1], stub_clock_ns);
    ck_assert_uint_eq(sent.type, MR_CM_ASK);
    ck_assert_uint_eq(sent.sub[0].rail, 1);
    mr_keepalive_ask(&sub[1], stub_clock_ns + 1);
    ck_assert_uint_eq(sent.id, 2);
    receive(MR_CM_HERE, 1, 1); /* late */
    receive(MR_CM_HERE, 2, 0); /* of another rank */
    receive(MR_CM_HERE, 2, 7); /* of none */
    ck_assert_uint_eq(answered, 0);
    ck_assert_uint_eq(sub_conn[1].asked_ns, stub_clock_ns + 1);
    conn.round_pause_ns = 64 * MS;
    receive(MR_CM_HERE, 2, 1);
    ck_assert_uint_eq(conn.round_pause_ns, MS);
    receive(MR_CM_HERE, 2, 1);
    ck_assert_uint_eq(answered, kind == MR_LINK_UC);
    ck_assert_uint_eq(answered_link, kind == MR_LINK_UC);
    ck_assert_uint_eq(sub_conn[1].asked_ns, 0);
}
END_TEST

/* A slow way brings the answer to a question after others were asked: the way is not silent. */
START_TEST(late_answer)
{
    struct mr_questions silence[SUBS] = {{0}};
    uint64_t begin = stub_clock_ns;

    conn.questions = silence;
    for (unsigned i = 0; i < MR_QUESTIONS_KEPT + 1; i++) {
        mr_keepalive_ask(&sub[0], stub_clock_ns);
        stub_clock_ns += MS;
    }
    receive(MR_CM_HERE, 1, 0); /* too late */
    ck_assert(!silence[0].answered);
    receive(MR_CM_HERE, 2, 0);
    ck_assert(silence[0].answered);
    ck_assert_uint_eq(silence[0].trip.mean_ns, stub_clock_ns - begin - MS);
    ck_assert_uint_ne(sub_conn[0].asked_ns, 0);
}
END_TEST

/* A question names the ways in doubt, except those doubted by the peer only; the ways named by the peer are kept. */
START_TEST(ways_in_doubt)
{
    struct mr_questions silence[2 * SUBS] = {{0}};
    struct mr_cm_msg asking;

    conn.questions = silence;
    set_open(&sub[0]);
    set_open(&sub[1]);
    silence[0].missed = 4;
    mr_keepalive_ask(&sub[1], stub_clock_ns);
    ck_assert_uint_eq(sent.num_subs, 1);
    silence[0].own = MR_ROUNDS_DOUBT;
    mr_keepalive_ask(&sub[1], stub_clock_ns);
    ck_assert_uint_eq(sent.num_subs, 2);
    ck_assert_uint_eq(sent.sub[1].rail, 0);
    ck_assert_uint_eq(sent.sub[1].generation, 4);
    asking = sent;
    mr_keepalive_datagram(&peer, &asking);
    ck_assert_uint_eq(sub_conn[0].doubted, 4);
    ck_assert_uint_eq(sub_conn[1].doubted, 0);
    ck_assert_uint_eq(sent.type, MR_CM_HERE); /* an answer names none */
    ck_assert_uint_eq(sent.num_subs, 1);
}
END_TEST

/* A question that could not be sent does not count. */
START_TEST(question_that_was_not_sent)
{
    send_error = -EAGAIN;
    mr_keepalive_ask(&sub[0], stub_clock_ns);
    ck_assert_uint_eq(sub_conn[0].question, 0);
    ck_assert_uint_eq(sub_conn[0].asked_ns, 0);
}
END_TEST

/* The peer's is answered with its number, unless it is lost. */
START_TEST(question_of_the_peer)
{
    receive(MR_CM_ASK, 42, 1);
    ck_assert_uint_eq(num_sent, 1);
    ck_assert_uint_eq(sent.type, MR_CM_HERE);
    ck_assert_uint_eq(sent.id, 42);
    ck_assert_uint_eq(sent.sub[0].rail, 1);
    peer.error = -EIO;
    receive(MR_CM_ASK, 43, 1);
    ck_assert_uint_eq(num_sent, 2);
    ck_assert_uint_eq(sent.reason, MR_CM_GIVEN_UP);
}
END_TEST

/* The peer has given this rank up: so is the peer, at once. */
START_TEST(given_up_there)
{
    struct mr_cm_msg m = {.type = MR_CM_HERE, .num_subs = 1, .id = 1, .reason = MR_CM_GIVEN_UP};

    mr_keepalive_ask(&sub[0], stub_clock_ns);
    mr_keepalive_datagram(&peer, &m);
    ck_assert_int_eq(peer.error, -ECONNREFUSED);
}
END_TEST

/* ---- peers without answering adapters ---------------------------------------------------------------------------- */

/* Links that have no keepalive; guards tell. The patience is 10 s. */
static void no_adapter(void)
{
    keepalive_error = -EAGAIN;
    guarded = true;
    wait_ns(SECOND);
    ck_assert_uint_eq(num_sent, 0);
}

/* Nothing comes, and no guard answers: its process is asked, over each way in turn; then it is lost. */
START_TEST(lost_in_silence)
{
    unsigned rails_asked = 0;

    no_adapter();
    for (unsigned i = 1; i < 10; i++) {
        wait_ns(SECOND);
        ck_assert_uint_eq(answered_since, stub_clock_ns - SECOND);
        ck_assert_uint_eq(num_sent, i);
        rails_asked |= 1u << sent.sub[0].rail;
        ck_assert_int_eq(peer.error, 0);
    }
    ck_assert_uint_eq(rails_asked, 3);
    wait_ns(SECOND);
    ck_assert_int_eq(peer.error, -ENETDOWN);
}
END_TEST

/* Any sign of life begins the count anew; without guards there is none, and time without a look counts little. */
START_TEST(not_lost)
{
    no_adapter();
    for (unsigned i = 1; i < 10; i++)
        wait_ns(_i == 0 ? 1000 * SECOND : SECOND);
    guards_answer = _i == 1;
    guarded = _i != 2;
    if (_i == 3)
        receive(MR_CM_HERE, sub_conn[0].question, 0);
    if (_i == 4)
        received++;
    if (_i != 0)
        wait_ns(SECOND);
    guards_answer = false;
    guarded = true;
    for (unsigned i = 1; i < 9 && _i; i++)
        wait_ns(SECOND);
    ck_assert_int_eq(peer.error, 0);
    for (unsigned i = 0; i < 3; i++)
        wait_ns(SECOND);
    ck_assert_int_eq(peer.error, -ENETDOWN);
}
END_TEST

/* While no subchannel is open recovery.c counts. */
START_TEST(isolated_is_recovery)
{
    no_adapter();
    conn.isolated_ns = conn.counted_ns = stub_clock_ns;
    conn.waited_ns = 5 * SECOND;
    for (unsigned i = 0; i < 20; i++)
        wait_ns(SECOND);
    ck_assert_uint_eq(conn.waited_ns, 5 * SECOND);
    ck_assert_int_eq(peer.error, 0);
}
END_TEST

/* Without guards, but with TCP. The process of the guest is asked over all ways, and lost if TCP alone answers. */
static void silent_guest(void)
{
    keepalive_error = -EAGAIN;
    peer.guest_run = 1;
    tcp_answers = true; /* to an earlier question */
    wait_ns(SECOND);
    ck_assert_uint_eq(num_sent, 8);
    ck_assert_uint_eq(asked_by_tcp, 1);
}

START_TEST(guest_by_tcp_alone)
{
    silent_guest();
    wait_ns(SECOND);
    ck_assert_uint_eq(num_sent, 16);
    ck_assert_uint_eq(asked_by_tcp, 2);
    ck_assert_int_eq(peer.error, 0);
    wait_ns(SECOND);
    ck_assert_int_eq(peer.error, -ENETDOWN);
    ck_assert_uint_eq(num_sent, 16);
}
END_TEST

/* It computes, answers over one way, or sends; or this rank was away, or all its ways are closed. */
START_TEST(guest_not_lost)
{
    silent_guest();
    for (unsigned i = 0; i < 20; i++) {
        if (_i == 0)
            tcp_answers = i == 9;
        if (_i == 1)
            receive(MR_CM_HERE, sub_conn[1].question, 1);
        if (_i == 2)
            received += i % 2;
        if (_i == 3)
            conn.isolated_ns = stub_clock_ns;
        if (_i < 4)
            wait_ns(SECOND);
    }
    if (_i == 4)
        wait_ns(1000 * SECOND);
    ck_assert_int_eq(peer.error, 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("keepalive");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, silent);
    tcase_add_test(c, in_turn);
    tcase_add_loop_test(c, not_asked, 0, 7);
    tcase_add_test(c, all_and_unsignaled);
    tcase_add_test(c, confirmed_before_the_end);
    tcase_add_loop_test(c, question, 0, 2);
    tcase_add_test(c, late_answer);
    tcase_add_test(c, ways_in_doubt);
    tcase_add_test(c, question_that_was_not_sent);
    tcase_add_test(c, question_of_the_peer);
    tcase_add_test(c, given_up_there);
    tcase_add_test(c, lost_in_silence);
    tcase_add_loop_test(c, not_lost, 0, 5);
    tcase_add_test(c, isolated_is_recovery);
    tcase_add_test(c, guest_by_tcp_alone);
    tcase_add_loop_test(c, guest_not_lost, 0, 5);
    return check_run(c, NULL);
}
