/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handshakes: requests, answers, refusals and their effects on subchannels, with the state machine of conn/cm/conn.c
 * and datagrams taken and written by the test. This is rank 0; rank 1 is the test.
 */
#include "libmrmpi/conn/peer/guard.h"
#include "tests/check.h"
#include "tests/libmrmpi/fake_peer.h"

#include <limits.h>
#include <stdlib.h>

#include "libmrmpi/verbs/datagram.h"
#include "libmrmpi/verbs/verbs.h"

struct mr_peers mr_peers;
struct mr_connect mr_connect;
struct mr_verbs mr_verbs;

#define RUN 77u

static struct mr_cm_msg sent;
static unsigned num_sent, opened, established, connected, later, refused, epoch_failed, epoch_opened, unopened, learnt;
static struct mr_sub *paused;
static int lost_error, fetch_error, connect_error;
static bool grants;
static struct mr_vc vc;

/* ---- the files beside -------------------------------------------------------------------------------------------- */

int mr_ud_send(struct mr_rail *rail, const struct mr_ud_route *way, const void *data, size_t len)
{
    memset(&sent, 0, sizeof sent);
    memcpy(&sent, data, len);
    num_sent++;
    return 0;
}

int mr_peer_fetch_address(struct mr_peer *p)
{
    return fetch_error;
}

int mr_subs_make(struct mr_peer *p)
{
    p->sub = sub;
    p->num_subs = 2 * SUBS;
    return 0;
}

int mr_sub_open(struct mr_sub *s, const struct mr_link_events *events)
{
    s->state = MR_SUB_OPENING;
    s->link[0].state = MR_LINK_OPENING;
    s->epoch = (uint8_t)(s->peer->epoch + !mr_sub_is_current(s));
    return 0;
}

struct mr_cm_sub mr_sub_describe(const struct mr_sub *s)
{
    return (struct mr_cm_sub){.rail = (uint8_t)s->rail->index,
                              .remote = s->remote_rail,
                              .path = s->path,
                              .kind = mr_sub_kind(s),
                              .generation = s->generation,
                              .epoch = s->epoch,
                              .pkey = s->pkey};
}

int mr_sub_connect(struct mr_sub *s, const struct mr_rail_addr *to, const struct mr_cm_sub *remote,
                   const struct mr_cm_sub *sls, uint32_t local_psn, uint32_t remote_psn)
{
    if (connect_error)
        return connect_error;
    s->link[0].state = MR_LINK_OPEN;
    connected++;
    return 0;
}

void mr_recovery_unopen(struct mr_sub *s)
{
    s->state = MR_SUB_CLOSED;
    s->link[0].state = MR_LINK_CLOSED;
    unopened++;
}

struct mr_sub *mr_sub_find(struct mr_peer *p, unsigned rail, unsigned remote, unsigned path, unsigned kind)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (sub[i].rail->index == rail && sub[i].remote_rail == remote && mr_sub_kind(&sub[i]) == kind)
            return &sub[i];
    return NULL;
}

void mr_sub_renew_fast(struct mr_peer *p)
{
    ck_assert(p->up);
}

void mr_sub_gone(struct mr_sub *s, uint8_t generation)
{
    s->peer_from = (uint8_t)(generation + 1);
    if (s->state == MR_SUB_OPEN)
        s->state = MR_SUB_BROKEN;
}

struct mr_link_events mr_recovery_events;

void mr_recovery_opened(struct mr_sub *s)
{
    opened++;
}

static struct mr_sub *path_opened;

void mr_path_opened(struct mr_sub *s)
{
    path_opened = s;
}

static unsigned rescue_failed;

void mr_recovery_ask_again(struct mr_peer *p)
{
    rescue_failed++;
}

static unsigned asked, answers; /* subchannels whose ways have answered: set */

void mr_silence_ask(struct mr_peer *p, uint64_t now_ns)
{
    asked++;
    p->connect->round_ns = now_ns;
}

bool mr_silence_answered(const struct mr_sub *s)
{
    return answers >> (s - sub) & 1;
}

bool mr_silence_leads(const struct mr_sub *s)
{
    return s->peer->connect->round_ns && mr_silence_answered(s);
}

bool mr_silence_heard(const struct mr_peer *p, uint64_t now_ns)
{
    return answers;
}

void mr_recovery_later(struct mr_sub *s)
{
    later++;
    paused = s;
}

void mr_epoch_failed(struct mr_peer *p)
{
    epoch_failed++;
}

void mr_epoch_opened(struct mr_peer *p, uint8_t epoch)
{
    epoch_opened = epoch;
}

bool mr_budget_allows(struct mr_peer *p, bool needed)
{
    return grants || needed;
}

void mr_budget_refused(struct mr_peer *p)
{
    refused++;
}

void mr_ration_lost(struct mr_peer *p)
{
    p->connect->wanted = 0;
}

struct mr_peer *mr_peer_make(int rank, size_t bytes)
{
    return NULL; /* there is one */
}

static const struct mr_peer_events *events;

void mr_peer_subscribe(const struct mr_peer_events *e)
{
    events = e;
}

void mr_peer_tell_established(struct mr_peer *p)
{
    ck_assert(p->up);
    established = opened; /* all of these were delivered before */
}

void mr_where_learn(struct mr_peer *p, const struct mr_cm_msg *m)
{
    learnt = m->id;
}

static unsigned looked;

void mr_verbs_check_events(void)
{
    ck_assert_int_ne(sub[0].state, MR_SUB_OPENING); /* subchannels for a request are opened after this */
    looked++;
}

void mr_peer_lost(struct mr_peer *p, int error)
{
    p->error = lost_error = error;
}

static unsigned guards_made, guards_connected, guards_dropped;

void mr_guard_make(struct mr_peer *p, const struct mr_cm_msg *req, struct mr_cm_msg *out)
{
    guards_made++;
    out->guard[1].qpn = 77;
}

void mr_guard_connect(struct mr_peer *p, const struct mr_cm_msg *remote, const struct mr_cm_msg *sls)
{
    guards_connected += remote->guard[0].qpn == 88;
}

void mr_guard_free(struct mr_peer *p)
{
    guards_dropped++;
}

bool mr_peer_is_remote(int rank)
{
    return rank == 1;
}

struct mr_vc *mr_vc_make(int rank)
{
    return &vc;
}

struct mr_address mr_address_none;

/* ---- stubs ------------------------------------------------------------------------------------------------------- */

/* A peer met by its first subchannels, all closed; nothing is connected. */
static void setup(void)
{
    make_peer();
    memset(&mr_connect, 0, sizeof mr_connect);
    num_sent = opened = established = connected = later = refused = epoch_failed = epoch_opened = unopened = learnt = 0;
    lost_error = fetch_error = connect_error = 0;
    guards_made = guards_connected = guards_dropped = looked = asked = 0;
    answers = UINT_MAX;
    grants = true;
    mr_config.connect_timeout_ms = 100;
    mr_config.connect_retries = 0;
    mr_peers.run = RUN;
    mr_verbs.num_rails = SUBS;
    peer.up = false;
    mr_rtt_init(&mr_connect.connect_rtt, 2 * MS, 100 * MS);
    mr_cm_init(&peer.cm, &mr_handshake_ops, RUN, 0, 1, 100 * MS, 0);
}

static void teardown(void)
{
    mr_cm_free(&peer.cm);
}

static struct mr_cm_msg message(enum mr_cm_type type, uint32_t id)
{
    return (struct mr_cm_msg){.magic = MR_CM_MAGIC,
                              .version = MR_CM_VERSION,
                              .type = (uint8_t)type,
                              .job = RUN,
                              .from = 1,
                              .to = 0,
                              .id = id};
}

/* The peer describes its end of a subchannel. */
static void add(struct mr_cm_msg *m, const struct mr_sub *s, uint8_t generation)
{
    m->sub[m->num_subs] = mr_sub_describe(s);
    m->sub[m->num_subs].rail = s->remote_rail;
    m->sub[m->num_subs].remote = (uint8_t)s->rail->index;
    m->sub[m->num_subs++].generation = generation;
}

static unsigned came; /* the rail of incoming messages */

static void receive(const struct mr_cm_msg *m)
{
    struct mr_cm_msg sent_so = *m;

    sent_so.rail = (uint8_t)came;
    mr_handshake_datagram(&rails[came], &sent_so, MR_CM_LENGTH(m->num_subs));
}

static void reject(enum mr_cm_reason reason)
{
    struct mr_cm_msg m = message(MR_CM_REJ, peer.cm.id);

    m.reason = (uint8_t)reason;
    m.by_initiator = false;
    receive(&m);
}

/* The first handshake, which the peer answers for all requested subchannels. */
static void connect_first(void)
{
    struct mr_cm_msg m;

    mr_peer_connect(&peer);
    m = message(MR_CM_REP, peer.cm.id);
    add(&m, &sub[0], 5);
    add(&m, &sub[1], 5);
    receive(&m);
    ck_assert(peer.up);
}

static void close_again(struct mr_sub *s)
{
    s->state = MR_SUB_CLOSED;
    s->link[0].state = MR_LINK_CLOSED;
    s->generation++;
}

/* ---- ours -------------------------------------------------------------------------------------------------------- */

/* The request names exactly the subchannels of the present epoch with ports up; the answer opens them. */
START_TEST(request_and_answer)
{
    sub_conn[0].told = sub_conn[0].heard = true; /* of a generation before */
    mr_peer_connect(&peer);
    ck_assert(!sub_conn[0].told && !sub_conn[0].heard);
    ck_assert_uint_eq(num_sent, 1);
    ck_assert_uint_eq(sent.type, MR_CM_REQ);
    ck_assert_uint_eq(sent.num_subs, SUBS);
    ck_assert_int_eq(sub[0].state, MR_SUB_OPENING);
    ck_assert_int_eq(sub[SUBS].state, MR_SUB_CLOSED);
    ck_assert_ptr_eq(mr_peers.connecting, &peer);
    mr_peer_connect(&peer); /* under way */
    ck_assert_uint_eq(num_sent, 1);
    connect_first();
    ck_assert_uint_eq(sent.type, MR_CM_RTU);
    ck_assert_uint_eq(opened, SUBS);
    ck_assert_uint_eq(established, SUBS);
    ck_assert_int_eq(sub[1].state, MR_SUB_OPEN);
    ck_assert(loads[0][0].up && loads[0][1].up && !loads[1][0].up);
    mr_handshake_tick();
    ck_assert_ptr_null(mr_peers.connecting);
}
END_TEST

/* The second subchannel of both epochs is one of a further path. */
static void make_path(bool chosen)
{
    for (unsigned i = 1; i < 2 * SUBS; i += SUBS) {
        sub[i].spare = true;
        sub[i].path = 1;
        sub[i].chosen = chosen;
    }
}

static void answer_first(void)
{
    struct mr_cm_msg m;

    mr_peer_connect(&peer);
    ck_assert_uint_eq(sent.num_subs, 1);
    m = message(MR_CM_REP, peer.cm.id);
    add(&m, &sub[0], 5);
    receive(&m);
    ck_assert(peer.up);
}

/*
 * A further path is not in the first handshake. If the peer opens the path later, large messages use the path here,
 * too.
 */
START_TEST(further_path)
{
    struct mr_cm_msg m = message(MR_CM_REQ, 9);

    path_opened = NULL;
    make_path(false);
    answer_first();
    ck_assert_ptr_null(path_opened);
    ck_assert(!mr_sub_is_wanted(&sub[1]));
    add(&m, &sub[1], 1);
    receive(&m);
    ck_assert_uint_eq(sent.type, MR_CM_REP);
    ck_assert_uint_eq(sent.num_subs, 1);
    m = message(MR_CM_RTU, 9);
    receive(&m);
    ck_assert_int_eq(sub[1].state, MR_SUB_OPEN);
    ck_assert_ptr_eq(path_opened, &sub[1]);
}
END_TEST

/* A path named by fabricd is wanted. While no subchannel is open, any path is, but only as a spare. */
START_TEST(wanted_path)
{
    struct mr_cm_msg m = message(MR_CM_REQ, 9);

    path_opened = NULL;
    make_path(false);
    answer_first();
    make_path(true);
    ck_assert(mr_sub_is_wanted(&sub[1]));
    make_path(false);
    peer.connect->isolated_ns = 1;
    ck_assert(mr_sub_is_wanted(&sub[1]));
    add(&m, &sub[1], 1);
    receive(&m);
    m = message(MR_CM_RTU, 9);
    receive(&m);
    ck_assert_int_eq(sub[1].state, MR_SUB_OPEN);
    ck_assert_ptr_null(path_opened);
    peer.connect->isolated_ns = 0;
}
END_TEST

/*
 * Of several rails, none with its port down is used for a request, and the answer takes the rail of the peer's message.
 */
START_TEST(first_way)
{
    struct mr_cm_msg m = message(MR_CM_REQ, 7);

    if (_i == 0) {
        rails[0].down = true;
        mr_peer_connect(&peer);
        ck_assert_ptr_eq(conn.datagram_sub, &sub[1]);
        rails[1].down = true; /* then any */
        stub_clock_ns += 1000 * MS;
        mr_handshake_tick();
        ck_assert_uint_eq(num_sent, 2);
        return;
    }
    came = 1;
    add(&m, &sub[0], 5);
    add(&m, &sub[1], 5);
    receive(&m);
    came = 0;
    ck_assert_uint_eq(sent.type, MR_CM_REP);
    ck_assert_ptr_eq(conn.datagram_sub, &sub[1]);
    stub_clock_ns += 1000 * MS;
    mr_handshake_tick();
    ck_assert_uint_eq(num_sent, 2);
    ck_assert_uint_eq(conn.datagram_sub->rail->index, 0);
}
END_TEST

/* ---- partitions -------------------------------------------------------------------------------------------------- */

/* This rail and the peer's are in these: each has the key at its end. */
static void set_keys(unsigned rail, uint16_t ours, uint16_t theirs, uint16_t ours_too, uint16_t theirs_too)
{
    rails[rail].num_partitions = ours_too ? 2 : 1;
    rails[rail].partition[0] = (struct mr_rail_partition){.number = mr_pkey_partition(ours), .now = {.key = ours}};
    rails[rail].partition[1] =
        (struct mr_rail_partition){.number = mr_pkey_partition(ours_too), .now = {.key = ours_too}};
    mr_address_partition(&address, rail, 0xffff)->key = theirs;
    if (theirs_too)
        mr_address_partitions(&address)[address.num_partitions++] =
            (struct mr_partition){.key = theirs_too, .rail = (uint8_t)rail, .ud_qpn = 200 + rail};
}

/* A rail without a common partition is left out; without any the peer is lost at once. */
START_TEST(no_partition)
{
    set_keys(0, 0x7fff, 0x7fff, 0, 0);
    if (_i)
        set_keys(1, 0x8011, 0x8022, 0, 0);
    mr_peer_connect(&peer);
    if (_i) {
        ck_assert_uint_eq(num_sent, 0);
        ck_assert_int_eq(lost_error, -ENOKEY);
        return;
    }
    ck_assert_uint_eq(sent.num_subs, 1);
    ck_assert_uint_eq(sent.sub[0].rail, 1);
    ck_assert_uint_eq(sent.sub[0].pkey, 0xffff);
    ck_assert_ptr_eq(conn.datagram_sub, &sub[1]);
    ck_assert_int_eq(sub[0].state, MR_SUB_CLOSED);
}
END_TEST

/* The peer is not in the first of the common partitions any more: the other one is asked for, and nothing then. */
START_TEST(partition_refused)
{
    set_keys(0, 0xffff, 0xffff, 0x8011, 0x0011);
    rails[1].down = true;
    mr_peer_connect(&peer);
    ck_assert_uint_eq(sent.num_subs, 1);
    ck_assert_uint_eq(sent.sub[0].pkey, 0xffff);
    reject(MR_CM_NO_PKEY);
    ck_assert_int_eq(lost_error, 0);
    ck_assert_uint_eq(num_sent, 2);
    ck_assert_uint_eq(sent.sub[0].pkey, 0x8011);
    if (_i) {
        struct mr_cm_msg m = message(MR_CM_REP, peer.cm.id);

        add(&m, &sub[0], 5);
        m.sub[0].pkey = 0x8011; /* a full member by now */
        receive(&m);
        ck_assert(peer.up);
        ck_assert_uint_eq(mr_address_partition(&address, 0, 0x11)->key, 0x8011);
        return;
    }
    reject(MR_CM_NO_PKEY);
    ck_assert_int_eq(lost_error, -ENOKEY);
}
END_TEST

/* The initiator's partition counts, if this end can talk in it. */
START_TEST(partition_asked_for)
{
    struct mr_cm_msg m = message(MR_CM_REQ, 7);

    set_keys(0, 0xffff, 0xffff, 0x0011, 0x8011);
    set_keys(1, 0xffff, 0xffff, 0x0022, 0x0022);
    add(&m, &sub[0], 5);
    add(&m, &sub[1], 5);
    m.sub[0].pkey = _i == 2 ? 0x8033 : 0x8011;
    m.sub[1].pkey = _i ? 0x0022 : 0xffff;
    receive(&m);
    if (_i == 2) {
        ck_assert_uint_eq(sent.type, MR_CM_REJ);
        ck_assert_uint_eq(sent.reason, MR_CM_NO_PKEY);
        return;
    }
    ck_assert_uint_eq(sent.type, MR_CM_REP);
    ck_assert_uint_eq(sent.num_subs, _i ? 1 : 2);
    ck_assert_uint_eq(sent.sub[0].pkey, 0x0011);
    ck_assert_uint_eq(sub[0].pkey, 0x0011);
}
END_TEST

/* Guards go with the request, and the peer's with its answer; after a failure they are dropped. */
START_TEST(guards)
{
    struct mr_cm_msg m;

    mr_peer_connect(&peer);
    ck_assert_uint_eq(guards_made, 1);
    ck_assert_uint_eq(sent.guard[1].qpn, 77);
    m = message(MR_CM_REP, peer.cm.id);
    m.guard[0].qpn = 88;
    if (!_i) {
        add(&m, &sub[0], 5);
        receive(&m);
        ck_assert_uint_eq(sent.type, MR_CM_RTU);
        ck_assert_uint_eq(sent.guard[1].qpn, 0);
    } else {
        reject(MR_CM_NO_ROOM);
    }
    ck_assert_uint_eq(guards_connected, !_i);
    ck_assert_uint_eq(guards_dropped, _i);
}
END_TEST

/*
 * While nothing leads to the peer, a request names all possible subchannels, and takes another way each time; a new
 * request begins soon.
 */
START_TEST(rescue)
{
    connect_first();
    close_again(&sub[0]);
    close_again(&sub[1]);
    conn.isolated_ns = stub_clock_ns;
    rescue_failed = later = 0;
    ck_assert(mr_handshake_begin(&peer, &sub[1]));
    ck_assert(peer.cm.yields);
    ck_assert_uint_eq(sent.num_subs, SUBS);
    ck_assert_ptr_eq(conn.datagram_sub, &sub[0]);
    stub_clock_ns += 2 * MS;
    mr_handshake_tick();
    ck_assert_uint_eq(sent.num_subs, SUBS);
    ck_assert_ptr_eq(conn.datagram_sub, &sub[1]);
    for (unsigned i = 0; i < MR_RESCUE_ATTEMPTS - 1; i++) {
        ck_assert_uint_eq(rescue_failed, 0);
        stub_clock_ns += 9 * MS;
        mr_handshake_tick();
    }
    ck_assert_uint_eq(rescue_failed, 1);
    ck_assert_uint_eq(later, 0);
    ck_assert_int_eq(sub[0].state, MR_SUB_CLOSED);
    conn.isolated_ns = 0; /* otherwise about one subchannel */
    ck_assert(mr_handshake_begin(&peer, &sub[1]));
    ck_assert_uint_eq(sent.num_subs, 1);
}
END_TEST

/* With several ways, and no subchannel open, a request names the ways that answer; nothing is begun before. */
START_TEST(rescue_of_those_that_answer)
{
    connect_first();
    close_again(&sub[0]);
    close_again(&sub[1]);
    conn.isolated_ns = stub_clock_ns;
    num_sent = 0;
    answers = 0;
    mr_peers.recovering = &peer;
    conn.recovering = true;
    mr_peers_poll();
    ck_assert_uint_eq(asked, 1);
    ck_assert_uint_eq(num_sent, 0);
    answers = 2;
    conn.recovering = true;
    mr_peers.recovering = &peer;
    mr_peers_poll();
    ck_assert_uint_eq(asked, 1);
    ck_assert_uint_eq(num_sent, 1);
    ck_assert_uint_eq(sent.num_subs, 1);
    ck_assert_uint_eq(sent.sub[0].rail, 1);
}
END_TEST

/*
 * A handshake about a way without answers does not hold up another one, whose way answers; one about a way that answers
 * does, as does any if questions are over.
 */
static const struct {
    unsigned answers;
    bool asked, theirs, begun;
} held_up[] = {{2, true, false, true},  {2, true, true, true},  {0, true, false, false},
               {3, true, false, false}, {3, true, true, false}, {2, false, false, false}};

START_TEST(vain_ones_give_way)
{
    struct mr_cm_msg m = message(MR_CM_REQ, 9);

    connect_first();
    close_again(&sub[0]);
    close_again(&sub[1]);
    conn.round_ns = answers = later = 0;
    add(&m, &sub[0], 1);
    if (held_up[_i].theirs)
        receive(&m);
    else
        ck_assert(mr_handshake_begin(&peer, &sub[0]));
    ck_assert_uint_eq(sent.sub[0].rail, 0);
    answers = held_up[_i].answers;
    conn.round_ns = held_up[_i].asked ? stub_clock_ns : 0;
    ck_assert_int_eq(mr_handshake_begin(&peer, &sub[1]), held_up[_i].begun);
    ck_assert_int_eq(sub[0].state, held_up[_i].begun ? MR_SUB_CLOSED : MR_SUB_OPENING);
    ck_assert_uint_eq(later, held_up[_i].begun);
    if (held_up[_i].begun) {
        ck_assert_uint_eq(sent.type, MR_CM_REQ);
        ck_assert_uint_eq(sent.num_subs, 1);
        ck_assert_uint_eq(sent.sub[0].rail, 1);
        ck_assert_ptr_eq(paused, &sub[0]);
    }
    conn.round_ns = answers = 0;
}
END_TEST

/* What does not come over a way that answers has been lost: it is sent again soon. */
START_TEST(repeated_soon)
{
    connect_first();
    close_again(&sub[1]);
    answers = _i ? 2 : 0;
    conn.round_ns = stub_clock_ns;
    ck_assert(mr_handshake_begin(&peer, &sub[1]));
    num_sent = 0;
    stub_clock_ns += 5 * MS;
    mr_handshake_tick();
    ck_assert_uint_eq(num_sent, (unsigned)_i);
    conn.round_ns = answers = 0;
}
END_TEST

/* The first request has no answer: it is repeated over all ways at once. */
START_TEST(first_request_repeated)
{
    rails[1].down = _i;
    mr_peer_connect(&peer);
    ck_assert_uint_eq(num_sent, 1);
    stub_clock_ns += 1000 * MS;
    mr_handshake_tick();
    ck_assert_uint_eq(num_sent, _i ? 2 : 1 + SUBS);
}
END_TEST

/* The way of the first RTU may be dead: each repeated answer shows that the RTU has not arrived. */
START_TEST(repeated_over_other_ways)
{
    const struct mr_sub *way;

    connect_first();
    for (unsigned i = 0; i < 3; i++) {
        way = conn.datagram_sub;
        connect_first();
        ck_assert_uint_eq(sent.type, MR_CM_RTU);
        ck_assert_ptr_eq(conn.datagram_sub, &sub[(way - sub + 1) % peer.num_subs]);
    }
}
END_TEST

/*
 * Ports that went down and up while this rank computed do not break subchannels opened at the next poll, and the first
 * request does not take a port that went down.
 */
START_TEST(ports_are_looked_at_first)
{
    struct mr_cm_msg m = message(MR_CM_REQ, 1);

    connect_first();
    ck_assert_uint_eq(looked, 1);
    close_again(&sub[0]);
    add(&m, &sub[0], sub[0].generation);
    receive(&m);
    ck_assert_uint_eq(looked, 2);
    ck_assert_int_eq(sub[0].state, MR_SUB_OPENING);
}
END_TEST

/* The state of a peer in connect/, from the listing of its subchannels to the end. */
START_TEST(extensions)
{
    mr_connect_init(&(struct mr_connect_upcalls){0});
    peer.sub = sub;
    peer.num_subs = 2 * SUBS;
    ck_assert_int_eq(events->made(&peer), 0);
    for (unsigned i = 0; i < 2 * SUBS; i++)
        ck_assert_ptr_eq(sub[i].connect, &conn.subs[i]);
    conn.waited_ns = 7;
    events->answered(&peer);
    ck_assert_uint_eq(conn.waited_ns, 0);
    conn.isolated_ns = 1;
    mr_peers.num_isolated = 3;
    events->lost(&peer);
    ck_assert_uint_eq(mr_peers.num_isolated, 2);
    ck_assert_uint_eq(conn.isolated_ns, 0);
    ck_assert_uint_eq(conn.wanted, 0);
    events->freed(&peer);
}
END_TEST

START_TEST(port_down)
{
    rails[0].down = true;
    mr_peer_connect(&peer);
    ck_assert_uint_eq(sent.num_subs, 1);
    ck_assert_uint_eq(sent.sub[0].rail, 1);
    ck_assert_int_eq(sub[0].state, MR_SUB_CLOSED);
}
END_TEST

/* A subchannel missing in the peer's answer is closed; the rest is open. */
START_TEST(answer_leaves_one_out)
{
    struct mr_cm_msg m;

    mr_peer_connect(&peer);
    m = message(MR_CM_REP, peer.cm.id);
    add(&m, &sub[1], 5);
    receive(&m);
    ck_assert(peer.up);
    ck_assert_int_eq(sub[0].state, MR_SUB_CLOSED);
    ck_assert_int_eq(sub[1].state, MR_SUB_OPEN);
}
END_TEST

/* An answer of an earlier handshake, of another job, or to another rank changes nothing. */
START_TEST(stale_answer)
{
    struct mr_cm_msg m;

    mr_peer_connect(&peer);
    m = message(MR_CM_REP, peer.cm.id + (_i == 0));
    add(&m, &sub[0], 5);
    m.job += _i == 1;
    m.to += _i == 2;
    receive(&m);
    ck_assert(!peer.up);
    ck_assert_uint_eq(connected, 0);
    ck_assert_int_eq(sub[0].state, MR_SUB_OPENING);
}
END_TEST

/* No queue pair can be connected: the first handshake fails, and the peer is lost. */
START_TEST(nothing_connects)
{
    struct mr_cm_msg m;

    mr_peer_connect(&peer);
    connect_error = -ENOMEM;
    m = message(MR_CM_REP, peer.cm.id);
    add(&m, &sub[0], 5);
    add(&m, &sub[1], 5);
    receive(&m);
    ck_assert_int_eq(lost_error, -ENOMEM);
    ck_assert_uint_eq(sent.type, MR_CM_REJ);
    ck_assert_int_eq(sub[0].state, MR_SUB_CLOSED);
}
END_TEST

/* The launcher does not have the address yet: nothing is sent before. Without an address the peer is lost. */
START_TEST(address_is_awaited)
{
    fetch_error = -EAGAIN;
    peer.sub = NULL;
    peer.num_subs = 0;
    mr_peer_connect(&peer);
    ck_assert_uint_eq(num_sent, 0);
    ck_assert_int_eq(lost_error, 0);
    fetch_error = _i ? -EPROTO : 0;
    mr_cm_resume(&peer.cm, stub_clock_ns);
    ck_assert_uint_eq(num_sent, !_i);
    ck_assert_int_eq(lost_error, fetch_error);
}
END_TEST

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

/* A refusal of the first handshake is final, except for one that comes too early: then the request is repeated. */
START_TEST(first_is_refused)
{
    static const struct {
        enum mr_cm_reason reason;
        int lost;
    } row[] = {
        {MR_CM_LATER, 0}, {MR_CM_NO_RAIL, -EHOSTUNREACH}, {MR_CM_GIVEN_UP, -ECONNREFUSED}, {MR_CM_NO_ROOM, -ENOMEM}};

    mr_peer_connect(&peer);
    reject(row[_i].reason);
    ck_assert_int_eq(lost_error, row[_i].lost);
    ck_assert_int_eq(sub[0].state, row[_i].lost ? MR_SUB_CLOSED : MR_SUB_OPENING);
    stub_clock_ns += 1000 * MS;
    mr_handshake_tick();
    ck_assert_uint_eq(num_sent, row[_i].lost ? 1 : 2);
}
END_TEST

/* Later, a refusal concerns only the requested subchannels. */
START_TEST(later_one_is_refused)
{
    static const struct {
        enum mr_cm_reason reason;
        int lost;
        bool absent;
        unsigned later, refused;
    } row[] = {{MR_CM_NO_RAIL, 0, true, 0, 0},
               {MR_CM_PORT_DOWN, 0, false, 1, 0},
               {MR_CM_NO_ROOM, 0, false, 1, 0},
               {MR_CM_ENOUGH, 0, false, 0, 1},
               {MR_CM_GIVEN_UP, -ECONNREFUSED, false, 0, 0}};

    connect_first();
    close_again(&sub[0]);
    ck_assert(mr_handshake_begin(&peer, &sub[0]));
    ck_assert(!mr_handshake_begin(&peer, &sub[1])); /* one at a time */
    ck_assert_uint_eq(sent.num_subs, 1);
    ck_assert_uint_eq(sent.sub[0].generation, 6);
    reject(row[_i].reason);
    ck_assert_int_eq(lost_error, row[_i].lost);
    ck_assert_int_eq(sub_conn[0].absent, row[_i].absent);
    ck_assert_uint_eq(later, row[_i].later);
    ck_assert_uint_eq(refused, row[_i].refused);
    ck_assert_int_eq(sub[0].state, MR_SUB_CLOSED);
    ck_assert_int_eq(sub[1].state, MR_SUB_OPEN);
}
END_TEST

/* A failed handshake of the peer concerns only its own subchannels, not those of our last handshake. */
START_TEST(the_peers_fails)
{
    struct mr_cm_msg m;

    connect_first();
    close_again(&sub[0]);
    ck_assert(mr_handshake_begin(&peer, &sub[0]));
    reject(MR_CM_PORT_DOWN);
    ck_assert_uint_eq(later, 1);
    close_again(&sub[1]);
    m = message(MR_CM_REQ, 9);
    add(&m, &sub[1], 6);
    receive(&m);
    ck_assert_int_eq(sub[1].state, MR_SUB_OPENING);
    m = message(MR_CM_REJ, 9);
    m.reason = _i ? MR_CM_NO_RAIL : MR_CM_PORT_DOWN;
    m.by_initiator = true;
    receive(&m);
    ck_assert_int_eq(sub[1].state, MR_SUB_CLOSED);
    ck_assert(!sub_conn[0].absent && !sub_conn[1].absent);
    ck_assert_ptr_eq(paused, &sub[1]);
    ck_assert_uint_eq(later, 2);
    ck_assert_uint_eq(epoch_failed, 0);
}
END_TEST

/* Both ends began, and the request of the peer, the lower rank here, counts: our next epoch is tried again. */
START_TEST(next_epoch_gives_way)
{
    struct mr_cm_msg m = message(MR_CM_REQ, 9);

    connect_first();
    close_again(&sub[1]);
    peer.cm.self = 2;
    peer.cm.first = false;
    ck_assert(mr_handshake_begin(&peer, NULL));
    add(&m, &sub[1], 6);
    receive(&m);
    ck_assert_uint_eq(sent.type, MR_CM_REP);
    ck_assert_int_eq(sub[SUBS].state, MR_SUB_CLOSED);
    ck_assert_uint_eq(epoch_failed, 1);
}
END_TEST

/* A late datagram's data on ports is outdated. */
START_TEST(late_ones_are_not_learnt_from)
{
    struct mr_cm_msg m = message(MR_CM_REQ, 9);

    connect_first();
    close_again(&sub[1]);
    add(&m, &sub[1], 6);
    receive(&m);
    ck_assert_uint_eq(learnt, 9);
    m.id = 8;
    receive(&m);
    m = message(MR_CM_REP, 1); /* to the first request */
    receive(&m);
    ck_assert_uint_eq(learnt, 9);
    m = message(MR_CM_RTU, 9);
    learnt = 0;
    receive(&m);
    ck_assert_uint_eq(learnt, 9);
    m = message(MR_CM_HERE, 3); /* of no handshake */
    add(&m, &sub[1], 6);
    receive(&m);
    ck_assert_uint_eq(learnt, 3);
}
END_TEST

/* The next epoch: all of the other parity in one handshake, which opens all or fails as a whole. */
START_TEST(next_epoch)
{
    struct mr_cm_msg m;

    connect_first();
    ck_assert(mr_handshake_begin(&peer, NULL));
    ck_assert_uint_eq(sent.num_subs, SUBS);
    ck_assert_int_eq(sub[SUBS].state, MR_SUB_OPENING);
    if (_i) {
        reject(MR_CM_PORT_DOWN);
        ck_assert_uint_eq(epoch_failed, 1);
        ck_assert_int_eq(sub[SUBS].state, MR_SUB_CLOSED);
        return;
    }
    m = message(MR_CM_REP, peer.cm.id);
    add(&m, &sub[SUBS], 5);
    add(&m, &sub[SUBS + 1], 5);
    receive(&m);
    ck_assert_uint_eq(epoch_opened, 1);
    ck_assert_int_eq(sub[SUBS].state, MR_SUB_OPEN);
    ck_assert_int_eq(sub[0].state, MR_SUB_OPEN);
    ck_assert(loads[1][0].up);
}
END_TEST

/* ---- the peer's -------------------------------------------------------------------------------------------------- */

/* Requested subchannels are opened and answered; they are open here when the peer confirms the answer. */
START_TEST(peer_asks)
{
    struct mr_cm_msg m = message(MR_CM_REQ, 9);

    add(&m, &sub[1], 5);
    receive(&m);
    ck_assert_uint_eq(sent.type, MR_CM_REP);
    ck_assert_uint_eq(sent.num_subs, 1);
    ck_assert_uint_eq(sent.sub[0].rail, 1);
    ck_assert(!peer.up);
    receive(&m); /* the answer was lost */
    ck_assert_uint_eq(num_sent, 2);
    ck_assert_uint_eq(connected, 1);
    m = message(MR_CM_RTU, 9);
    receive(&m);
    ck_assert(peer.up);
    ck_assert_int_eq(sub[0].state, MR_SUB_CLOSED);
    ck_assert_int_eq(sub[1].state, MR_SUB_OPEN);
}
END_TEST

/* A request of a later generation ends an open subchannel; the answer follows after draining. */
START_TEST(peer_asks_for_a_later_generation)
{
    struct mr_cm_msg m = message(MR_CM_REQ, 9);

    connect_first();
    add(&m, &sub[0], 6);
    receive(&m);
    ck_assert_int_eq(sub[0].state, MR_SUB_BROKEN);
    ck_assert_uint_eq(sub[0].peer_from, 6);
    ck_assert_uint_eq(sent.type, MR_CM_REJ);
    ck_assert_uint_eq(sent.reason, MR_CM_LATER);
    close_again(&sub[0]);
    receive(&m);
    ck_assert_uint_eq(sent.type, MR_CM_REP);
    ck_assert_uint_eq(sent.sub[0].generation, 6);
}
END_TEST

/* A subchannel closed here learns the generation from the request. */
START_TEST(peer_is_generations_ahead)
{
    struct mr_cm_msg m = message(MR_CM_REQ, 9);

    add(&m, &sub[0], 9);
    receive(&m);
    ck_assert_uint_eq(sent.type, MR_CM_REP);
    ck_assert_uint_eq(sent.sub[0].generation, 9);
}
END_TEST

/* Why a request is refused. */
START_TEST(peer_is_refused)
{
    static const enum mr_cm_reason reasons[] = {MR_CM_PORT_DOWN, MR_CM_NO_RAIL, MR_CM_GIVEN_UP, MR_CM_ENOUGH,
                                                MR_CM_LATER};
    struct mr_cm_msg m = message(MR_CM_REQ, 9);

    add(&m, &sub[0], 5);
    switch (_i) {
    case 0:
        rails[0].down = true; /* for long */
        break;
    case 1:
        m.sub[0].kind = MR_LINK_UD;
        break;
    case 2:
        peer.error = -EIO;
        break;
    case 3:
        mr_peers.rationed = 1u << MR_LINK_RC;
        grants = false;
        break;
    case 4:
        sub[0].state = MR_SUB_BROKEN;
        break;
    }
    receive(&m);
    ck_assert_uint_eq(sent.type, MR_CM_REJ);
    ck_assert_uint_eq(sent.reason, reasons[_i]);
    ck_assert_uint_eq(connected, 0);
    ck_assert_int_ne(sub[0].state, MR_SUB_OPENING);
}
END_TEST

/* Subchannels that the peer needs are not refused for lack of room. */
START_TEST(peer_needs_it)
{
    struct mr_cm_msg m = message(MR_CM_REQ, 9);

    mr_peers.rationed = 1u << MR_LINK_RC;
    grants = false;
    add(&m, &sub[0], 5);
    m.sub[0].needed = true;
    receive(&m);
    ck_assert_uint_eq(sent.type, MR_CM_REP);
}
END_TEST

/* Our connections are left out of the peer's answer: that is a refusal, the rest is open. */
START_TEST(peer_leaves_connections_out)
{
    struct mr_cm_msg m;

    mr_peers.rationed = 1u << MR_LINK_RC;
    sub[1].kind = MR_LINK_UD;
    conn.wanted |= 1u << MR_LINK_UD;
    mr_peer_connect(&peer);
    m = message(MR_CM_REP, peer.cm.id);
    add(&m, &sub[1], 5);
    receive(&m);
    ck_assert(peer.up);
    ck_assert_uint_eq(refused, 1);
}
END_TEST

/* Both begin at once: the lower rank's request counts, which is ours. */
START_TEST(both_begin)
{
    struct mr_cm_msg m = message(MR_CM_REQ, 9);

    mr_peer_connect(&peer);
    add(&m, &sub[0], 5);
    receive(&m);
    ck_assert_uint_eq(num_sent, 1);
    ck_assert_uint_eq(connected, 0);
    ck_assert_int_eq(peer.cm.state, MR_CM_REQ_SENT);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("handshake");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, request_and_answer);
    tcase_add_test(c, further_path);
    tcase_add_test(c, wanted_path);
    tcase_add_loop_test(c, no_partition, 0, 2);
    tcase_add_loop_test(c, partition_refused, 0, 2);
    tcase_add_loop_test(c, partition_asked_for, 0, 3);
    tcase_add_loop_test(c, first_way, 0, 2);
    tcase_add_loop_test(c, guards, 0, 2);
    tcase_add_test(c, rescue);
    tcase_add_test(c, rescue_of_those_that_answer);
    tcase_add_loop_test(c, vain_ones_give_way, 0, sizeof held_up / sizeof *held_up);
    tcase_add_loop_test(c, repeated_soon, 0, 2);
    tcase_add_loop_test(c, first_request_repeated, 0, 2);
    tcase_add_test(c, repeated_over_other_ways);
    tcase_add_test(c, ports_are_looked_at_first);
    tcase_add_test(c, extensions);
    tcase_add_test(c, port_down);
    tcase_add_test(c, answer_leaves_one_out);
    tcase_add_loop_test(c, stale_answer, 0, 3);
    tcase_add_test(c, nothing_connects);
    tcase_add_loop_test(c, address_is_awaited, 0, 2);
    tcase_add_loop_test(c, first_is_refused, 0, 4);
    tcase_add_loop_test(c, later_one_is_refused, 0, 5);
    tcase_add_loop_test(c, the_peers_fails, 0, 2);
    tcase_add_test(c, next_epoch_gives_way);
    tcase_add_test(c, late_ones_are_not_learnt_from);
    tcase_add_loop_test(c, next_epoch, 0, 2);
    tcase_add_test(c, peer_asks);
    tcase_add_test(c, peer_asks_for_a_later_generation);
    tcase_add_test(c, peer_is_generations_ahead);
    tcase_add_loop_test(c, peer_is_refused, 0, 5);
    tcase_add_test(c, peer_needs_it);
    tcase_add_test(c, peer_leaves_connections_out);
    tcase_add_test(c, both_begin);
    return check_run(c, NULL);
}
