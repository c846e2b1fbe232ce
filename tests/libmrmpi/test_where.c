/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changed LIDs of a peer: LIDs from the peer's messages and from fabricd, and the time and port of questions to
 * fabricd. A peer is quiet, waits for the first question, or is asked with growing pauses, until an answer.
 */
#include "libmrmpi/conn/peer/guard.h"
#include "libmrmpi/verbs/datagram.h"
#include "libmrmpi/verbs/verbs.h"
#include "tests/check.h"
#include "tests/libmrmpi/fake_peer.h"

#define FIRST (50 * MS)
#define MOST  (10000 * MS)
#define GUID  UINT64_C(0x0123456789abcdef) /* of the peer's first port; the others count on */

struct mr_peers mr_peers;
struct mr_verbs mr_verbs;
struct mr_peers_own mr_peers_own;
static unsigned num_asked, repeats, moved, num_moved, num_places, next_place;
static struct {
    const char *device;
    uint8_t port;
    uint64_t guid;
} asked[8];
static struct mr_fabric_place places[4];

int mr_fabric_ask_place(const char *name, uint8_t port, uint64_t guid)
{
    ck_assert_uint_lt(num_asked, 8);
    asked[num_asked].device = name;
    asked[num_asked].port = port;
    asked[num_asked++].guid = guid;
    return 0;
}

bool mr_fabric_place(struct mr_fabric_place *out)
{
    if (next_place == num_places)
        return false;
    *out = places[next_place++];
    return true;
}

void mr_cm_repeat(struct mr_cm_conn *c)
{
    ck_assert_ptr_eq(c, &peer.cm);
    repeats++;
}

void mr_guard_moved(const struct mr_peer *p, unsigned remote)
{
    ck_assert_ptr_eq(p, &peer);
    moved |= 1u << remote;
    num_moved++;
}

/* Each port of the peer has a GUID and a LID of its own. The peer has been met: its subchannels are listed. */
static void setup(void)
{
    make_peer();
    num_asked = repeats = moved = num_moved = num_places = next_place = 0;
    for (unsigned i = 0; i < SUBS; i++) {
        struct mr_rail_addr *to = &address.rail[i];

        rails[i].port = (uint8_t)(i + 1);
        to->lid = (uint16_t)(10 + i);
        to->lmc = 1;
        memset(to->gid, 0xfe, 8); /* the subnet's prefix is no part of the GUID */
        for (unsigned b = 0; b < 8; b++)
            to->gid[8 + b] = (uint8_t)((GUID + i) >> (56 - 8 * b));
    }
    memcpy(device.name, "mlx5_0", sizeof "mlx5_0");
}

/* The request to connect is not answered still. */
static void ask_at(uint64_t ns)
{
    num_asked = 0;
    mr_where_ask(&peer, ns);
}

static void answer(uint64_t guid, uint16_t lid, uint8_t lmc)
{
    places[num_places++] = (struct mr_fabric_place){.guid = guid, .lid = lid, .lmc = lmc};
}

/* ---- when fabricd is asked --------------------------------------------------------------------------------------- */

/* Quiet -> the first question comes after 50 ms without an answer, for each port of the peer. */
START_TEST(first_question)
{
    uint64_t t = stub_clock_ns;

    ask_at(t);
    ck_assert_uint_eq(num_asked, 0);
    ask_at(t + FIRST - 1);
    ck_assert_uint_eq(num_asked, 0);
    ask_at(t + FIRST);
    ck_assert_uint_eq(num_asked, SUBS);
    for (unsigned i = 0; i < SUBS; i++) {
        ck_assert_str_eq(asked[i].device, "mlx5_0");
        ck_assert_uint_eq(asked[i].port, i + 1);
        ck_assert_uint_eq(asked[i].guid, GUID + i);
    }
}
END_TEST

/* The pause after each question is twice the one before, 10 s at most. */
START_TEST(pauses)
{
    uint64_t t = stub_clock_ns, pause = FIRST;

    ask_at(t);
    ask_at(t += FIRST);
    for (unsigned i = 0; i < 12; i++) {
        pause = 2 * pause < MOST ? 2 * pause : MOST;
        ask_at(t + pause - 1);
        ck_assert_uint_eq(num_asked, 0);
        ask_at(t += pause);
        ck_assert_uint_eq(num_asked, SUBS);
    }
    ck_assert_uint_eq(pause, MOST);
}
END_TEST

/* The peer answers -> quiet: the next time it begins with the first pause again. */
START_TEST(answered)
{
    uint64_t t = stub_clock_ns;

    ask_at(t);
    ask_at(t += FIRST);
    ask_at(t += 2 * FIRST);
    ck_assert_uint_eq(num_asked, SUBS);
    mr_where_answered(&peer);
    ask_at(t += MOST);
    ck_assert_uint_eq(num_asked, 0);
    ask_at(t + FIRST - 1);
    ck_assert_uint_eq(num_asked, 0);
    ask_at(t + FIRST);
    ck_assert_uint_eq(num_asked, SUBS);
}
END_TEST

/* A peer not met yet has no subchannels to ask through. It is asked as soon as it has. */
START_TEST(not_met)
{
    uint64_t t = stub_clock_ns;

    peer.num_subs = 0;
    ask_at(t);
    ask_at(t += FIRST);
    ck_assert_uint_eq(num_asked, 0);
    peer.num_subs = 2 * SUBS;
    ask_at(t);
    ck_assert_uint_eq(num_asked, SUBS);
}
END_TEST

/* ---- the port for a question ------------------------------------------------------------------------------------- */

/* Both ports here lead to the peer's first port: they take turns. No port leads to its second. */
START_TEST(ports_take_turns)
{
    uint64_t t = stub_clock_ns;
    uint8_t before;

    sub[1].remote_rail = 0;
    ask_at(t);
    ask_at(t += FIRST);
    ck_assert_uint_eq(num_asked, 1);
    ck_assert_uint_eq(asked[0].guid, GUID);
    before = asked[0].port;
    ask_at(t += 2 * FIRST);
    ck_assert_uint_eq(num_asked, 1);
    ck_assert_uint_ne(asked[0].port, before);
    ask_at(t + 4 * FIRST);
    ck_assert_uint_eq(num_asked, 1);
    ck_assert_uint_eq(asked[0].port, before);
}
END_TEST

/* Not asked: a port that is down, or without adapter, and a port of the peer reached by GID. */
START_TEST(ports_left_out)
{
    static struct mr_device gone = {.fatal = true};

    ask_at(stub_clock_ns);
    if (_i == 0)
        rails[0].down = true;
    else if (_i == 1)
        rails[0].dev = &gone;
    else
        address.rail[0].global = true;
    ask_at(stub_clock_ns + FIRST);
    ck_assert_uint_eq(num_asked, 1);
    ck_assert_uint_eq(asked[0].port, 2);
    ck_assert_uint_eq(asked[0].guid, GUID + 1);
}
END_TEST

/* ---- answers of fabricd ------------------------------------------------------------------------------------------ */

/* The port with the GUID has moved, the others have not; the request that went astray is repeated. */
START_TEST(port_has_moved)
{
    answer(GUID + 1, 77, 2);
    mr_where_news();
    ck_assert_uint_eq(address.rail[1].lid, 77);
    ck_assert_uint_eq(address.rail[1].lmc, 2);
    ck_assert_uint_eq(address.rail[0].lid, 10);
    ck_assert_uint_eq(address.rail[0].lmc, 1);
    ck_assert_uint_eq(repeats, 1);
    ck_assert_uint_eq(moved, 2);
    ck_assert_uint_eq(num_moved, 1);
}
END_TEST

/* All answers are taken, each once. */
START_TEST(several_answers)
{
    answer(GUID, 20, 1);
    answer(GUID + 1, 21, 1);
    answer(GUID, 22, 1);
    mr_where_news();
    ck_assert_uint_eq(address.rail[0].lid, 22);
    ck_assert_uint_eq(address.rail[1].lid, 21);
    ck_assert_uint_eq(repeats, 3);
    mr_where_news();
    ck_assert_uint_eq(repeats, 3);
}
END_TEST

/* Nothing new, no LID, another peer's port, a port reached by GID, a lost peer: nothing changes. */
START_TEST(answers_without_news)
{
    uint16_t lid = (const uint16_t[]){10, 0, 99, 99, 99}[_i];

    address.rail[0].global = _i == 3;
    peer.error = _i == 4 ? -EIO : 0;
    answer(_i == 2 ? GUID + SUBS : GUID, lid, 1);
    mr_where_news();
    ck_assert_uint_eq(next_place, 1);
    ck_assert_uint_eq(address.rail[0].lid, 10);
    ck_assert_uint_eq(address.rail[0].lmc, 1);
    ck_assert_uint_eq(repeats | num_moved, 0);
}
END_TEST

/* ---- messages of the peer ---------------------------------------------------------------------------------------- */

/* Messages name the LIDs of all ports. Changed LIDs are taken, and a request is repeated once. */
START_TEST(message)
{
    struct mr_cm_msg m = {.port = {{.lid = 10, .lmc = 1}, {.lid = 11, .lmc = 1}}};

    mr_where_learn(&peer, &m);
    ck_assert_uint_eq(repeats, 0);
    m.port[0].lid = 30;
    m.port[1].lmc = 3;
    mr_where_learn(&peer, &m);
    ck_assert_uint_eq(address.rail[0].lid, 30);
    ck_assert_uint_eq(address.rail[0].lmc, 1);
    ck_assert_uint_eq(address.rail[1].lid, 11);
    ck_assert_uint_eq(address.rail[1].lmc, 3);
    ck_assert_uint_eq(repeats, 1);
    mr_where_learn(&peer, &m);
    ck_assert_uint_eq(repeats, 1);
}
END_TEST

/* Ports missing in the address are ignored. */
START_TEST(message_of_more_ports)
{
    struct mr_cm_msg m = {.port = {{.lid = 10, .lmc = 1}, {.lid = 31, .lmc = 1}}};

    address.num_rails = 1;
    mr_where_learn(&peer, &m);
    ck_assert_uint_eq(address.rail[1].lid, 11);
    ck_assert_uint_eq(repeats, 0);
}
END_TEST

/* The rail's life and its queue pair in one partition are sent together; those of other partitions stay. */
START_TEST(opened_anew)
{
    struct mr_cm_msg m = {.moves = 1, .partition = 0x11, .port = {{.life = 3, .ud_qpn = {0x39, 0x30, 0}}, {.life = 1}}};

    mr_address_partitions(&address)[address.num_partitions++] =
        (struct mr_partition){.key = 0x8011, .rail = 0, .ud_qpn = 200};
    mr_where_learn(&peer, &m);
    ck_assert_uint_eq(mr_address_partition(&address, 0, 0x8011)->ud_qpn, 12345);
    ck_assert_uint_eq(mr_address_partition(&address, 0, 0xffff)->ud_qpn, 100);
    ck_assert_uint_eq(mr_address_partition(&address, 1, 0xffff)->ud_qpn, 101);
    ck_assert_uint_eq(peer.lives, 3 | 1 << MR_RAIL_LIFE_BITS);
    m.moves = 0; /* late */
    m.port[0].ud_qpn[0] = 0;
    mr_where_learn(&peer, &m);
    ck_assert_uint_eq(mr_address_partition(&address, 0, 0x8011)->ud_qpn, 12345);
}
END_TEST

static uint32_t told_qpn(const struct mr_cm_msg *m, unsigned rail)
{
    return m->port[rail].ud_qpn[0] | (uint32_t)m->port[rail].ud_qpn[1] << 8;
}

/* Handshakes carry the queue pairs of their partition; questions also carry, in turn, those of other ways. */
START_TEST(queue_pairs_told)
{
    unsigned told[2] = {0};
    struct mr_cm_msg m;

    mr_verbs.num_rails = 2;
    for (unsigned i = 0; i < 2; i++)
        mr_verbs.rail[i] = (struct mr_rail){.num_partitions = 2,
                                            .partition = {{.number = 0x7fff, .now = {.key = 0xffff}, .ud_qpn = 300 + i},
                                                          {.number = 0x11, .now = {.key = 0x8011}, .ud_qpn = 400 + i}}};
    sub[1].state = MR_SUB_OPEN;
    sub[1].pkey = 0x8011;
    m = (struct mr_cm_msg){.type = MR_CM_REQ};
    mr_where_say(&m, &sub[0], 0xffff);
    ck_assert_uint_eq(told_qpn(&m, 0), 300);
    ck_assert_uint_eq(told_qpn(&m, 1), 301);
    ck_assert_uint_eq(m.partition, 0x7fff);
    for (unsigned i = 0; i < 4 * peer.num_subs; i++) {
        m = (struct mr_cm_msg){.type = MR_CM_ASK};
        mr_where_say(&m, &sub[0], 0xffff);
        ck_assert_uint_eq(told_qpn(&m, 1), m.partition == 0x11 ? 401 : 301);
        told[m.partition == 0x11]++;
    }
    ck_assert_uint_gt(told[0], told[1]);
    ck_assert_uint_gt(told[1], 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("where");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, first_question);
    tcase_add_test(c, pauses);
    tcase_add_test(c, answered);
    tcase_add_test(c, not_met);
    tcase_add_test(c, ports_take_turns);
    tcase_add_loop_test(c, ports_left_out, 0, 3);
    tcase_add_test(c, port_has_moved);
    tcase_add_test(c, several_answers);
    tcase_add_loop_test(c, answers_without_news, 0, 5);
    tcase_add_test(c, message);
    tcase_add_test(c, message_of_more_ports);
    tcase_add_test(c, opened_anew);
    tcase_add_test(c, queue_pairs_told);
    return check_run(c, NULL);
}
