/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Subchannels that break and are opened anew: each event in each state, the messages to the peer, and the end of
 * patience.
 */
#include "libmrmpi/conn/peer/guard.h"
#include "tests/check.h"
#include "tests/libmrmpi/fake_peer.h"

#include "libmrmpi/verbs/datagram.h"
#include "libmrmpi/verbs/qp.h"
#include "libmrmpi/verbs/verbs.h"

#define PAUSE_NS (10 * MS)

struct mr_peers mr_peers;
struct mr_verbs mr_verbs;
unsigned mr_channel_waiting;

static unsigned broken, drained, opened, due, unopened, probed, recounted, begun, resumed, num_sent;
static bool can_send, can_begin;
static int lost_error;
static enum mr_record_kind noted[8];
static unsigned num_noted;
static struct {
    uint8_t kind, generation;
    struct mr_sub *sub;
} sent[8];

/* ---- the files beside -------------------------------------------------------------------------------------------- */

void mr_peer_tell_broken(struct mr_sub *s)
{
    broken++;
}

void mr_peer_tell_drained(struct mr_sub *s)
{
    drained++;
}

void mr_peer_tell_opened(struct mr_sub *s)
{
    opened++;
}

void mr_peer_due(struct mr_peer *p)
{
    due++;
}

void mr_peer_lost(struct mr_peer *p, int error)
{
    p->error = lost_error = error;
}

void mr_peer_give_up(struct mr_peer *p, const char *why)
{
    mr_peer_lost(p, -ENETDOWN);
}

static unsigned guards_moved;

void mr_guard_keys(const struct mr_peer *p, unsigned rail)
{
    guards_moved |= 1u << rail;
}

static bool guards_answer;

bool mr_guard_ask(const struct mr_peer *p, uint64_t now_ns, uint64_t since_ns, bool *heard)
{
    *heard = guards_answer;
    return true;
}

bool mr_sub_unopen(struct mr_sub *s)
{
    bool connected = s->link[0].state == MR_LINK_OPEN;

    s->state = MR_SUB_CLOSED;
    s->generation += connected;
    unopened++;
    return connected;
}

int32_t mr_sub_tag(const struct mr_sub *s, uint8_t generation)
{
    return (int32_t)((unsigned)(s - sub) | (unsigned)generation << 21);
}

struct mr_sub *mr_sub_tagged(struct mr_peer *p, uint32_t tag)
{
    return (tag & 0x1fffff) < 2 * SUBS ? &sub[tag & 0x1fffff] : NULL;
}

void mr_ration_recount(struct mr_peer *p)
{
    recounted++;
}

void mr_keepalive_all(struct mr_peer *p)
{
    keepalives++;
}

void mr_probe_ask(struct mr_sub *s, uint64_t now_ns)
{
    probed++;
}

static unsigned abandoned;

void mr_cm_abandon(struct mr_cm_conn *c)
{
    abandoned++;
}

void mr_cm_resume(struct mr_cm_conn *c, uint64_t now_ns)
{
    resumed++;
}

void mr_peer_tell_noted(struct mr_sub *s, enum mr_record_kind kind, uint64_t a)
{
    ck_assert_uint_lt(num_noted, 8);
    noted[num_noted++] = kind;
}

int mr_vc_send_control(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len)
{
    uint32_t tag = (uint32_t)hdr->tag;

    if (!can_send)
        return -ENOMEM;
    ck_assert_uint_lt(num_sent, 8);
    sent[num_sent].kind = hdr->kind;
    sent[num_sent].sub = mr_sub_tagged(&peer, tag);
    sent[num_sent++].generation = mr_tag_generation(tag);
    return 0;
}

static bool begin(struct mr_peer *p, struct mr_sub *s)
{
    begun += can_begin;
    if (can_begin)
        s->state = MR_SUB_OPENING;
    return can_begin;
}

/* ---- stubs ------------------------------------------------------------------------------------------------------- */

/* Both subchannels of the present epoch are open. */
static void setup(void)
{
    make_peer();
    mr_window_init(&peer.out, 16);
    ck_assert_int_eq(mr_window_reserve(&peer.out, 2 * SUBS), 0);
    num_noted = broken = drained = opened = due = unopened = probed = 0;
    recounted = begun = resumed = num_sent = abandoned = 0;
    can_send = can_begin = true;
    lost_error = 0;
    guards_answer = false;
    set_open(&sub[0]);
    set_open(&sub[1]);
}

static void teardown(void)
{
    mr_window_free(&peer.out);
}

static bool poll(void)
{
    return mr_recovery_poll(&peer, stub_clock_ns, begin);
}

/* All that was posted on its link has come back. */
static void drain(struct mr_sub *s)
{
    s->link[0].state = MR_LINK_CLOSED;
    mr_recovery_events.drained(&s->link[0]);
}

static void receive(uint8_t kind, const struct mr_sub *s, uint8_t generation)
{
    struct mr_hdr hdr = {.kind = kind, .tag = mr_sub_tag(s, generation)};

    mr_recovery_control(&peer, &hdr);
}

static void put_in(enum mr_sub_state state)
{
    static const enum mr_link_state link_state[] = {[MR_SUB_CLOSED] = MR_LINK_CLOSED,
                                                    [MR_SUB_OPENING] = MR_LINK_OPENING,
                                                    [MR_SUB_OPEN] = MR_LINK_OPEN,
                                                    [MR_SUB_BROKEN] = MR_LINK_BROKEN};

    sub[0].state = state;
    sub[0].link[0].state = link_state[state];
}

/* ---- events in each state ---------------------------------------------------------------------------------------- */

/* Only a subchannel open or being opened can break; the other subchannel is not touched. */
START_TEST(break_in_each_state)
{
    bool breaks = _i == MR_SUB_OPEN || _i == MR_SUB_OPENING;

    put_in((enum mr_sub_state)_i);
    mr_sub_break(&sub[0]);
    ck_assert_int_eq(sub[0].state, breaks ? MR_SUB_BROKEN : _i);
    ck_assert_uint_eq(broken, breaks);
    ck_assert_uint_eq(drains, breaks);
    ck_assert_int_eq(own.loads[0][0].up, !breaks);
    ck_assert_int_eq(sub_conn[0].news.broken, breaks);
    ck_assert_int_eq(sub[1].state, MR_SUB_OPEN);
    ck_assert_uint_eq(conn.isolated_ns, 0);
}
END_TEST

/* The peer's "broken" of this generation: an open end breaks, too; a closed end answers "gone". */
START_TEST(peer_breaks_in_each_state)
{
    static const enum mr_sub_state after[] = {[MR_SUB_CLOSED] = MR_SUB_CLOSED,
                                              [MR_SUB_OPENING] = MR_SUB_BROKEN,
                                              [MR_SUB_OPEN] = MR_SUB_BROKEN,
                                              [MR_SUB_BROKEN] = MR_SUB_BROKEN};

    put_in((enum mr_sub_state)_i);
    receive(MR_CONTROL_BROKEN, &sub[0], 5);
    ck_assert_int_eq(sub[0].state, after[_i]);
    ck_assert_int_eq(sub_conn[0].news.gone, _i == MR_SUB_CLOSED);
    ck_assert_uint_eq(sub[0].generation, _i == MR_SUB_CLOSED ? 6 : 5);
}
END_TEST

/* "Broken" of a past generation touches no open subchannel: only the answer is due. */
START_TEST(peer_breaks_an_earlier_generation)
{
    receive(MR_CONTROL_BROKEN, &sub[0], 4);
    ck_assert_int_eq(sub[0].state, MR_SUB_OPEN);
    ck_assert_uint_eq(sub[0].generation, 5);
    poll();
    ck_assert_uint_eq(num_sent, 1);
    ck_assert_uint_eq(sent[0].kind, MR_CONTROL_GONE);
    ck_assert_uint_eq(sent[0].generation, 4);
    ck_assert_ptr_eq(sent[0].sub, &sub[0]);
}
END_TEST

/* The peer's end has gone: an open end breaks. An end being opened waits for the answer, unless connected. */
START_TEST(peer_goes_in_each_state)
{
    static const enum mr_sub_state after[] = {[MR_SUB_CLOSED] = MR_SUB_CLOSED,
                                              [MR_SUB_OPENING] = MR_SUB_OPENING,
                                              [MR_SUB_OPEN] = MR_SUB_BROKEN,
                                              [MR_SUB_BROKEN] = MR_SUB_BROKEN};

    put_in((enum mr_sub_state)_i);
    receive(MR_CONTROL_GONE, &sub[0], 5);
    ck_assert_int_eq(sub[0].state, after[_i]);
    ck_assert_uint_eq(sub[0].peer_from, 6);
    ck_assert_uint_eq(unopened, 0);
    if (_i != MR_SUB_OPENING)
        return;
    sub[0].link[0].state = MR_LINK_OPEN;
    mr_sub_gone(&sub[0], 5); /* known already */
    ck_assert_uint_eq(unopened, 0);
    sub[0].generation = 6;
    mr_sub_gone(&sub[0], 6);
    ck_assert_uint_eq(unopened, 1);
    ck_assert(sub_conn[0].news.gone); /* connected: the peer may have sent */
    ck_assert_uint_eq(sub_conn[0].news.gone_generation, 6);
}
END_TEST

/* An end of an earlier generation has gone: the present subchannel stays open. Generations wrap. */
START_TEST(peer_went_before)
{
    sub[0].generation = 1;
    sub[0].peer_from = 254;
    receive(MR_CONTROL_GONE, &sub[0], 0);
    ck_assert_int_eq(sub[0].state, MR_SUB_OPEN);
    ck_assert_uint_eq(sub[0].peer_from, 1);
    receive(MR_CONTROL_GONE, &sub[0], 255); /* late */
    ck_assert_uint_eq(sub[0].peer_from, 1);
    receive(MR_CONTROL_GONE, &sub[0], 1);
    ck_assert_int_eq(sub[0].state, MR_SUB_BROKEN);
}
END_TEST

/* A retiring subchannel that the peer knows to be empty is closed without a control message. */
START_TEST(retired_one_goes)
{
    sub[0].closing = true;
    sub_conn[0].told = true;
    receive(MR_CONTROL_GONE, &sub[0], 5);
    ck_assert_int_eq(sub[0].state, MR_SUB_BROKEN);
    ck_assert(!sub_conn[0].news.broken);
    ck_assert_uint_eq(broken, 0);
    drain(&sub[0]);
    ck_assert_uint_eq(sub_conn[0].failures, 0);
    ck_assert_uint_eq(sub_conn[0].retry_ns, 0);
}
END_TEST

/* Control messages without a subchannel, or from a lost peer, are ignored. */
START_TEST(ignored_control)
{
    struct mr_hdr hdr = {.kind = MR_CONTROL_BROKEN, .tag = 77};

    mr_recovery_control(&peer, &hdr);
    peer.error = -EIO;
    receive(MR_CONTROL_BROKEN, &sub[0], 5);
    receive(MR_CONTROL_GONE, &sub[0], 5);
    ck_assert_int_eq(sub[0].state, MR_SUB_OPEN);
    ck_assert_uint_eq(sub[0].peer_from, 5);
}
END_TEST

/* ---- from broken to open ----------------------------------------------------------------------------------------- */

/*
 * "Broken" is sent at once, "gone" after draining; the subchannel is opened again after the pause, and its opening ends
 * the recovery.
 */
START_TEST(whole_life)
{
    mr_sub_break(&sub[0]);
    can_send = false;
    ck_assert(poll());
    can_send = true;
    ck_assert(poll());
    ck_assert(poll());
    ck_assert_uint_eq(num_sent, 1); /* once */
    ck_assert_uint_eq(sent[0].kind, MR_CONTROL_BROKEN);
    ck_assert_uint_eq(sent[0].generation, 5);
    ck_assert_uint_eq(begun, 0);
    drain(&sub[0]);
    ck_assert_int_eq(sub[0].state, MR_SUB_CLOSED);
    ck_assert_uint_eq(sub[0].generation, 6);
    ck_assert_uint_eq(drained, 1);
    ck_assert_uint_eq(recounted, 1);
    ck_assert(poll());
    ck_assert_uint_eq(num_sent, 2);
    ck_assert_uint_eq(sent[1].kind, MR_CONTROL_GONE);
    ck_assert_uint_eq(sent[1].generation, 5);
    stub_clock_ns += PAUSE_NS - 1;
    ck_assert(poll());
    ck_assert_uint_eq(begun, 0);
    stub_clock_ns++;
    ck_assert(!poll());
    ck_assert_uint_eq(begun, 1);
    sub[0].state = MR_SUB_OPEN;
    conn.round_pause_ns = 64 * MS;
    mr_recovery_opened(&sub[0]);
    ck_assert_uint_eq(opened, 1);
    ck_assert_uint_eq(conn.round_pause_ns, MS);
    ck_assert(!poll());
    ck_assert_uint_eq(num_noted, 3);
    ck_assert_int_eq(noted[0], MR_RECORD_BREAK);
    ck_assert_int_eq(noted[1], MR_RECORD_CLOSE);
    ck_assert_int_eq(noted[2], MR_RECORD_OPEN);
}
END_TEST

/* The subchannel is closed when the last of its links has drained. */
START_TEST(drains_link_by_link)
{
    sub[0].num_links = 2;
    links[0][1] = links[0][0];
    mr_sub_break(&sub[0]);
    ck_assert_uint_eq(drains, 2);
    drain(&sub[0]);
    ck_assert_int_eq(sub[0].state, MR_SUB_BROKEN);
    links[0][1].state = MR_LINK_CLOSED;
    mr_recovery_events.drained(&links[0][1]);
    ck_assert_int_eq(sub[0].state, MR_SUB_CLOSED);
}
END_TEST

/* The pause doubles up to 10 s while openings fail, and is short again after a long opening. */
START_TEST(pauses_double)
{
    uint64_t pause = PAUSE_NS;

    for (unsigned i = 0; i < 14; i++) {
        mr_recovery_later(&sub[0]);
        ck_assert_uint_eq(sub_conn[0].retry_ns - stub_clock_ns, pause);
        pause = 2 * pause < 10000 * MS ? 2 * pause : 10000 * MS;
    }
    sub_conn[0].opened_ns = stub_clock_ns;
    stub_clock_ns += 100001 * MS;
    mr_recovery_later(&sub[0]);
    ck_assert_uint_eq(sub_conn[0].retry_ns - stub_clock_ns, PAUSE_NS);
}
END_TEST

/* Not opened again: subchannels unwanted, missing at the peer, retiring, or with a port down. */
START_TEST(not_opened_again)
{
    put_in(MR_SUB_CLOSED);
    switch (_i) {
    case 0:
        conn.wanted = 0;
        break;
    case 1:
        sub_conn[0].absent = true;
        break;
    case 2:
        peer.epoch = 1; /* the peer has none of the next epoch */
        sub_conn[2].absent = sub_conn[3].absent = true;
        break;
    case 3:
        rails[0].down = true;
        break;
    case 4:
        device.fatal = true;
        break;
    }
    ck_assert(!poll());
    ck_assert_uint_eq(begun, 0);
}
END_TEST

/* ---- no way is left ---------------------------------------------------------------------------------------------- */

/* No subchannel begins alone (connect.c begins with all that answer), and the adapter is probed meanwhile. */
START_TEST(isolated)
{
    sub_conn[0].failures = 9;
    mr_sub_break(&sub[0]);
    ck_assert_uint_eq(mr_peers.num_isolated, 0);
    mr_sub_break(&sub[1]);
    ck_assert_uint_eq(mr_peers.num_isolated, 1);
    drain(&sub[0]);
    stub_clock_ns += PAUSE_NS;
    ck_assert(poll());
    ck_assert_uint_eq(begun, 0);
    ck_assert_uint_gt(probed, 0);
    ck_assert_uint_eq(abandoned, 1); /* a handshake about one of them keeps no other way from being tried */
    conn.rescue = true;
    poll();
    ck_assert_uint_eq(abandoned, 1);
    rails[0].down = false;
    conn.round_ns = stub_clock_ns;
    mr_recovery_rail_changed(&rails[0]); /* nor does a subchannel without knowledge of the returned port */
    ck_assert_uint_gt(abandoned, 1);
    ck_assert_uint_eq(conn.round_ns, 0); /* all are asked at once */
    mr_recovery_opened(&sub[0]);
    ck_assert_uint_eq(mr_peers.num_isolated, 0);
    ck_assert_uint_eq(conn.isolated_ns, 0);
}
END_TEST

/* Time without a look counts little; a sign of life begins the count anew. */
START_TEST(patience_ends)
{
    can_begin = false;
    mr_sub_break(&sub[0]);
    mr_sub_break(&sub[1]);
    for (unsigned i = 0; i < 9; i++) {
        stub_clock_ns += 100000 * MS; /* counts as a tenth of the patience */
        ck_assert(poll());
    }
    conn.waited_ns = 0; /* as probe.c does */
    for (unsigned i = 0; i < 9; i++) {
        stub_clock_ns += 1000 * MS;
        ck_assert(poll());
    }
    ck_assert_int_eq(lost_error, 0);
    stub_clock_ns += 1000 * MS;
    ck_assert(!poll());
    ck_assert_int_eq(lost_error, -ENETDOWN);
}
END_TEST

/* So does an answering guard, as long as it answers: the process computes. */
START_TEST(guards_tell)
{
    can_begin = false;
    mr_sub_break(&sub[0]);
    mr_sub_break(&sub[1]);
    guards_answer = true;
    for (unsigned i = 0; i < 100; i++) {
        stub_clock_ns += 1000 * MS;
        ck_assert(poll());
    }
    guards_answer = false;
    for (unsigned i = 0; i < 9; i++) {
        stub_clock_ns += 1000 * MS;
        ck_assert(poll());
    }
    stub_clock_ns += 1000 * MS;
    ck_assert(!poll());
    ck_assert_int_eq(lost_error, -ENETDOWN);
}
END_TEST

/* Subchannels broken before the end of the first handshake are isolated from then on. */
START_TEST(connected_with_none_open)
{
    peer.up = false;
    mr_sub_break(&sub[0]);
    mr_sub_break(&sub[1]);
    ck_assert_uint_eq(conn.isolated_ns, 0);
    peer.up = true;
    mr_recovery_connected(&peer);
    ck_assert_uint_eq(conn.isolated_ns, stub_clock_ns);
}
END_TEST

/* ---- links and ports --------------------------------------------------------------------------------------------- */

/* A failed request breaks the subchannel; some failures are the peer's or the program's, and end the peer. */
START_TEST(link_fails)
{
    static const struct {
        int error, lost;
        unsigned keepalives;
    } row[] = {
        {-EHOSTUNREACH, 0, 1}, {-ENOBUFS, 0, 0}, {-EFAULT, -EFAULT, 0}, {-EACCES, 0, 0}, {-EMSGSIZE, -EMSGSIZE, 0}};
    struct mr_wc wc = {.error = row[_i].error, .status = "failed"};

    mr_recovery_events.failed(&links[0][0], &wc);
    ck_assert_int_eq(sub[0].state, MR_SUB_BROKEN);
    ck_assert_int_eq(sub[0].refused, row[_i].error == -EACCES); /* the right to do so is unknown here */
    ck_assert_int_eq(lost_error, row[_i].lost);
    ck_assert_uint_eq(keepalives, row[_i].keepalives);
}
END_TEST

/* The links of a lost peer are drained, and nothing else. */
START_TEST(link_of_a_lost_peer)
{
    struct mr_wc wc = {.error = -EHOSTUNREACH, .status = "failed"};

    peer.error = -EIO;
    mr_recovery_events.failed(&links[0][0], &wc);
    ck_assert_int_eq(sub[0].state, MR_SUB_OPEN);
    ck_assert_uint_eq(drains, 1);
    ck_assert_uint_eq(broken, 0);
    drain(&sub[0]);
    ck_assert_uint_eq(drained, 0);
}
END_TEST

START_TEST(ports)
{
    rails[1].down = true;
    mr_recovery_rail_changed(&rails[1]);
    ck_assert_int_eq(sub[0].state, MR_SUB_OPEN);
    ck_assert_int_eq(sub[1].state, MR_SUB_BROKEN);
    rails[1].down = false;
    mr_recovery_rail_changed(&rails[1]);
    ck_assert_uint_eq(resumed, 2); /* one for each parity */
    mr_recovery_rail_moved(&rails[0]);
    ck_assert_int_eq(sub[0].state, MR_SUB_BROKEN);
}
END_TEST

/* Queue pairs in another partition than the one of their index are given up; others stay. */
START_TEST(keys_move)
{
    rails[0].num_partitions = 2;
    rails[0].partition[1] = (struct mr_rail_partition){.number = 0x11, .now = {.key = 0x8011}};
    guards_moved = 0;
    mr_recovery_rail_keys(&rails[0], 2);
    ck_assert_int_eq(sub[0].state, MR_SUB_OPEN);
    mr_recovery_rail_keys(&rails[0], 1);
    ck_assert_int_eq(sub[0].state, MR_SUB_BROKEN);
    ck_assert_int_eq(sub[1].state, MR_SUB_OPEN);
    ck_assert_uint_eq(guards_moved, 1);
}
END_TEST

/* 0: our key is gone, 1: both ends are limited members. Not opened before this is over, and then at once. */
START_TEST(keys_do_not_match)
{
    uint16_t before = rails[1].partition[0].now.key;

    if (_i)
        mr_address_partition(&address, 1, 0xffff)->key = 0x7fff;
    rails[1].partition[0].now.key = _i ? 0x7fff : 0;
    mr_recovery_rail_keys(&rails[1], 0);
    ck_assert_int_eq(sub[0].state, MR_SUB_OPEN);
    ck_assert_int_eq(sub[1].state, MR_SUB_BROKEN);
    ck_assert(rails[1].keyless_told);
    drain(&sub[1]);
    for (unsigned i = 0; i < 4; i++) {
        stub_clock_ns += 20000 * MS;
        mr_recovery_poll(&peer, stub_clock_ns, begin);
    }
    ck_assert_uint_eq(begun, 0);
    rails[1].partition[0].now.key = before;
    mr_recovery_rail_keys(&rails[1], 0);
    ck_assert_uint_eq(resumed, 2);
    mr_recovery_poll(&peer, stub_clock_ns, begin);
    ck_assert_uint_eq(begun, 1);
}
END_TEST

/* The queue pair of a subchannel that retires is not kept. */
START_TEST(left_queue_pairs)
{
    ck_assert(mr_recovery_events.left(&links[0][0], NULL));
    ck_assert(!mr_recovery_events.left(&links[SUBS][0], NULL));
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("recovery");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, break_in_each_state, 0, 4);
    tcase_add_loop_test(c, peer_breaks_in_each_state, 0, 4);
    tcase_add_test(c, peer_breaks_an_earlier_generation);
    tcase_add_loop_test(c, peer_goes_in_each_state, 0, 4);
    tcase_add_test(c, peer_went_before);
    tcase_add_test(c, retired_one_goes);
    tcase_add_test(c, ignored_control);
    tcase_add_test(c, whole_life);
    tcase_add_test(c, drains_link_by_link);
    tcase_add_test(c, pauses_double);
    tcase_add_loop_test(c, not_opened_again, 0, 5);
    tcase_add_test(c, isolated);
    tcase_add_test(c, patience_ends);
    tcase_add_test(c, guards_tell);
    tcase_add_test(c, connected_with_none_open);
    tcase_add_loop_test(c, link_fails, 0, 5);
    tcase_add_test(c, link_of_a_lost_peer);
    tcase_add_test(c, ports);
    tcase_add_test(c, keys_move);
    tcase_add_loop_test(c, keys_do_not_match, 0, 2);
    tcase_add_test(c, left_queue_pairs);
    return check_run(c, NULL);
}
