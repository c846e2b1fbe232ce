/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets over lossy links, as handled by net/rely.c: the carriers of ACKs, the amount under way, and the running of
 * the clock. One peer with two subchannels; links, packets and time are the test's own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/base/wire.h"
#include "libmrmpi/net/internal.h"
#include "libmrmpi/conn/reliable/loss.h"
#include "libmrmpi/verbs/datagram.h"
#include "libmrmpi/verbs/verbs.h"
#include "tests/check.h"

#define PACKETS 64
#define BYTES   128
#define SRC     3u

struct mr_net mr_net;

static void set_policies(void)
{
    char what[MR_POLICY_TEXT];

    for (unsigned c = 0; c < MR_POLICY_CLASSES; c++)
        ck_assert(mr_policy_parse(mr_policy_standard(c), c, &mr_peers.policy[c], what, sizeof what));
}
struct mr_verbs mr_verbs;
unsigned mr_channel_waiting;
unsigned mr_channel_idle;

static const struct mr_launch launch = {.size = 5};
static struct mr_vc peer_vc;
static struct mr_net_peer net_peer;
#define PEER (net_peer.base.base)
static struct mr_sub sub[2];
static struct mr_address address;
static struct mr_load load[2];
static uint64_t until[2];
static uint64_t due[2];
static struct mr_link link_of[2];
static uint64_t clock_ns = 1000000;
static unsigned readings; /* of the clock */

/* ---- packets and links ------------------------------------------------------------------------------------------- */

static struct mr_packet packet[PACKETS];
static unsigned char bytes[PACKETS][BYTES];
static unsigned made, freed;

struct mr_packet *mr_packet_make(const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_packet *p = &packet[made];
    unsigned form = mr_wire_form(hdr, len);

    ck_assert_uint_lt(made, PACKETS);
    *p = (struct mr_packet){.data = bytes[made++]};
    p->size = p->kept.len = (uint32_t)mr_wire_put(hdr, form, p->data);
    return p;
}

struct mr_packet *mr_packet_copy(struct mr_packet *p)
{
    struct mr_packet *copy = &packet[made];

    ck_assert_uint_lt(made, PACKETS);
    *copy = (struct mr_packet){.data = bytes[made++], .size = p->size};
    memcpy(copy->data, p->data, p->size);
    return copy;
}

void mr_packet_free(struct mr_packet *p)
{
    freed++;
}

void mr_packets_free(struct mr_kept *chain)
{
    for (; chain; chain = chain->next)
        freed++;
}

static struct mr_packet *last; /* posted */
static unsigned posted;
static int refusal; /* send's result */

static int send_packet(struct mr_link *l, struct mr_packet *p)
{
    if (refusal)
        return refusal;
    last = p;
    posted++;
    return 0;
}

static const struct mr_link_ops ops = {.send = send_packet};

/* ---- the files beside -------------------------------------------------------------------------------------------- */

static unsigned delivered, broken;
static uint32_t received; /* in order */

uint64_t mr_clock_ns(void)
{
    readings++;
    return clock_ns;
}

struct mr_peer *mr_peer_of(uint32_t rank)
{
    return rank == SRC ? &PEER : NULL;
}

void mr_vc_arrived(const struct mr_hdr *hdr, const void *payload, size_t len)
{
    ck_assert_uint_eq(hdr->form, 0); /* higher folders do not know the field */
    received += hdr->seq == received;
    delivered++;
}

uint32_t mr_vc_received(const struct mr_vc *vc)
{
    return received;
}

void mr_net_renew_short(struct mr_peer *p)
{
    ck_assert(!p->fast);
}

void mr_sub_break(struct mr_sub *s)
{
    broken++;
    s->state = MR_SUB_BROKEN;
}

static unsigned asked;

void mr_keepalive_ask(struct mr_sub *s, uint64_t now_ns)
{
    ck_assert_ptr_eq(s, &sub[0]);
    asked++;
}

/* ---- stubs ------------------------------------------------------------------------------------------------------- */

static struct mr_link *lossy, *native;
static struct mr_rail rail;

static void setup(void)
{
    memset(&mr_peers, 0, sizeof mr_peers);
    memset(&mr_net, 0, sizeof mr_net);
    memset(&mr_verbs, 0, sizeof mr_verbs);
    set_policies();
    memset(&net_peer, 0, sizeof net_peer);
    memset(sub, 0, sizeof sub);
    memset(due, 0, sizeof due);
    made = freed = posted = delivered = broken = asked = readings = received = 0;
    refusal = 0;
    last = NULL;
    mr_channel_waiting = 0;
    mr_config.log_level = -1;
    mr_config.srq_depth = 512;
    mr_peers.launch = &launch;
    PEER.vc = &peer_vc;
    PEER.address = &address;
    PEER.rank = SRC;
    PEER.up = true;
    PEER.sub = PEER.now = sub;
    PEER.num_subs = PEER.num_now = 2;
    PEER.load = load;
    PEER.packet_turn.due = due;
    PEER.excluded = 2; /* packets take the first */
    mr_window_init(&PEER.out, 1024);
    ck_assert_int_eq(mr_window_reserve(&PEER.out, 2), 0);
    for (unsigned i = 0; i < 2; i++) {
        PEER.load[i] = (struct mr_load){.up = true, .weight = 1, .until = &until[i]};
        sub[i] = (struct mr_sub){.peer = &PEER, .state = MR_SUB_OPEN, .link = &link_of[i], .num_links = 1};
        sub[i].link[0] = (struct mr_link){.rail = &rail,
                                          .ops = &ops,
                                          .owner = &sub[i],
                                          .kind = i ? MR_LINK_RC : MR_LINK_UD,
                                          .state = MR_LINK_OPEN,
                                          .index = (uint8_t)i,
                                          .native = i == 1};
        for (unsigned l = 0; l < MR_LEVELS; l++)
            sub[i].level[l] = &sub[i].link[0];
    }
    lossy = &sub[0].link[0];
    native = &sub[1].link[0];
    mr_rely_init();
    mr_rely_begin(&PEER);
    mr_ack_take(&net_peer.in, 0); /* nothing is owed */
}

static void finish(void)
{
    mr_window_free(&PEER.out);
}

static struct mr_packet *push(void)
{
    struct mr_packet *p = mr_packet_make(&(struct mr_hdr){.kind = MR_VC_KIND_EAGER}, NULL, 0);

    ck_assert_int_eq(mr_window_push(&PEER.out, &p->kept), 0);
    return p;
}

static void arrives(uint32_t seq, unsigned form)
{
    struct mr_hdr hdr = {.kind = MR_VC_KIND_EAGER, .src = SRC, .seq = seq, .form = (uint8_t)form};

    mr_rely_arrived(&hdr, NULL, 0);
}

/* An ACK that all packets before cum have come, with a grant for the amount under way. */
static void word(uint32_t cum, uint32_t grant)
{
    struct mr_hdr hdr = {.kind = MR_VC_KIND_ACK, .src = SRC, .form = MR_WIRE_ACK};
    unsigned char ack_len[MR_ACK_WIRE_MAX];

    ck_assert_uint_eq(mr_ack_encode(&(struct mr_ack_msg){.cum = cum, .flight = grant}, ack_len), MR_ACK_WIRE_MIN);
    mr_rely_arrived(&hdr, ack_len, 0);
}

static unsigned form(const struct mr_packet *p)
{
    return p->data[offsetof(struct mr_hdr, form)];
}

/* A poll of the network without result. */
static void look(uint64_t later_ns)
{
    clock_ns += later_ns;
    if (mr_peers.untimed)
        mr_rely_time();
    mr_rely_poll(true, clock_ns);
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

START_TEST(no_more_than_may_be_under_way)
{
    unsigned n = 0;
    struct mr_packet *p;

    for (p = push(); !mr_rely_send(&PEER, lossy, p); p = push(), n++)
        ck_assert_uint_eq(form(p), MR_WIRE_WANTS);
    ck_assert_uint_eq(posted, n);
    ck_assert_uint_eq(n, net_peer.flight_max);
    ck_assert_int_eq(mr_rely_send(&PEER, lossy, p), -EAGAIN);
    ck_assert_int_eq(mr_rely_send(&PEER, native, p), 0); /* which confirms its own packets */
    ck_assert_uint_eq(form(p), 0);
    word(n / 2, 16);
    ck_assert_uint_eq(delivered, 0); /* no message */
    ck_assert_uint_eq(freed, n / 2);
    ck_assert_uint_eq(net_peer.flight_max, 16);
    p = push();
    ck_assert_int_eq(mr_rely_send(&PEER, lossy, p), 0);
}
END_TEST

/* An owed ACK goes with the next packet; if that post fails, with the packet after it. */
START_TEST(acks_ride_along)
{
    struct mr_packet *p = push();

    arrives(0, MR_WIRE_WANTS);
    ck_assert_uint_eq(delivered, 1);
    ck_assert(mr_ack_owed(&net_peer.in));
    refusal = -EAGAIN;
    ck_assert_int_eq(mr_rely_send(&PEER, lossy, p), -EAGAIN);
    ck_assert(mr_ack_owed(&net_peer.in));
    refusal = 0;
    ck_assert_int_eq(mr_rely_send(&PEER, lossy, p), 0);
    ck_assert_uint_eq(form(p), MR_WIRE_WANTS | MR_WIRE_ACK);
    ck_assert_uint_eq(p->ack_len, MR_ACK_WIRE_MIN);
    ck_assert(!mr_ack_owed(&net_peer.in));
    look(1);
    look(2 * mr_rtt_timeout(&PEER.out.rtt));
    ck_assert_int_eq(mr_rely_send(&PEER, lossy, p), 0); /* once more, and nothing is owed */
    ck_assert_uint_eq(form(p), MR_WIRE_WANTS);
    ck_assert_uint_eq(p->ack_len, 0);
}
END_TEST

/* The adapter still reads a packet to be sent again: a copy goes, and the packet stays unchanged. */
START_TEST(a_packet_that_is_posted_stays)
{
    struct mr_packet *p = push();
    unsigned before;

    ck_assert_int_eq(mr_rely_send(&PEER, lossy, p), 0);
    p->posted = true;
    before = form(p);
    look(1);
    look(2 * mr_rtt_timeout(&PEER.out.rtt));
    ck_assert_uint_eq(mr_channel_waiting, 1);
    ck_assert_ptr_eq(mr_peers.backlogged, &PEER);
    arrives(0, MR_WIRE_WANTS);
    ck_assert_int_eq(mr_rely_send(&PEER, lossy, p), 0);
    ck_assert_ptr_ne(last, p);
    ck_assert_uint_eq(form(last), MR_WIRE_WANTS | MR_WIRE_ACK);
    ck_assert_uint_eq(form(p), before);
    ck_assert_uint_eq(freed, 1); /* the copy */
    word(1, 16);
    ck_assert_uint_eq(freed, 2);
}
END_TEST

/* ---- words of their own ------------------------------------------------------------------------------------------ */

START_TEST(a_word_alone)
{
    arrives(0, MR_WIRE_WANTS);
    look(0);
    look(mr_rtt_ack_delay(MR_WINDOW_TIMEOUT_MIN_NS) - 1);
    ck_assert_uint_eq(posted, 0);
    ck_assert_ptr_nonnull(mr_peers.relying);
    refusal = -EAGAIN; /* then sent at the next poll */
    look(1);
    ck_assert(mr_ack_owed(&net_peer.in));
    refusal = 0;
    look(0);
    ck_assert_uint_eq(posted, 1);
    ck_assert_uint_eq(mr_wire_kind(last->data), MR_VC_KIND_ACK);
    ck_assert_uint_eq(form(last), MR_WIRE_ACK); /* wants no answer */
    ck_assert_uint_eq(mr_window_waiting(&PEER.out) + PEER.out.num, 0);
    look(0);
    ck_assert_uint_eq(posted, 1);
    ck_assert_ptr_null(mr_peers.relying); /* nobody has to be looked after */
    ck_assert_uint_eq(mr_peers.num_relying, 0);
}
END_TEST

START_TEST(at_once_when_parting)
{
    arrives(0, MR_WIRE_WANTS);
    mr_net.parting = true;
    look(0);
    ck_assert_uint_eq(posted, 1);
}
END_TEST

/* An ACK without a number; but an adapter that confirms its posts counts the ACK. */
START_TEST(a_word_over_a_native_link)
{
    struct mr_packet *p = push();

    arrives(0, MR_WIRE_WANTS);
    PEER.excluded = 1;
    mr_net.parting = true;
    look(0);
    ck_assert_uint_eq(posted, 1);
    ck_assert_int_eq(mr_rely_send(&PEER, native, p), 0);
    ck_assert_ptr_null(mr_window_confirmed(&PEER.out, native->index, 1));
    ck_assert_ptr_eq(mr_window_confirmed(&PEER.out, native->index, 1), &p->kept);
}
END_TEST

/* Packets confirmed by the peer's adapter require no ACK. */
START_TEST(native_packets_owe_nothing)
{
    arrives(0, 0);
    ck_assert_uint_eq(delivered, 1);
    ck_assert(!mr_ack_owed(&net_peer.in));
    ck_assert_ptr_null(mr_peers.relying);
}
END_TEST

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* Packets get their time at the next look, and a look that has found something times nothing out. */
START_TEST(overdue_only_when_all_was_handled)
{
    struct mr_packet *p = push();
    uint64_t timeout = mr_rtt_timeout(&PEER.out.rtt);

    readings = 0;
    ck_assert_int_eq(mr_rely_send(&PEER, lossy, p), 0);
    ck_assert_uint_eq(readings, 0);
    clock_ns += 5 * timeout; /* nobody looked */
    look(0);
    ck_assert_uint_eq(mr_channel_waiting, 0);
    clock_ns += timeout;
    mr_rely_poll(false, clock_ns);
    ck_assert_uint_eq(mr_channel_waiting, 0);
    look(0);
    ck_assert_uint_eq(mr_channel_waiting, 1);
    ck_assert_ptr_eq(mr_window_ready(&PEER.out), &p->kept);
}
END_TEST

/* A sample now and then, for which the clock is read; an ACK that may have waited for long gives none. */
START_TEST(samples)
{
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(mr_rely_send(&PEER, lossy, push()), 0);
    look(1000000);
    clock_ns += 30000;
    readings = 0;
    word(1, 16);
    ck_assert_uint_eq(readings, 1);
    ck_assert_uint_eq(PEER.out.rtt.srtt_ns, 30000);
    word(2, 16);
    ck_assert_uint_eq(readings, 1); /* just now */
    look(100000);
    clock_ns += 10000000;
    word(3, 16);
    ck_assert_uint_eq(readings, 2);
    ck_assert_uint_eq(PEER.out.rtt.srtt_ns, 30000);
}
END_TEST

/*
 * A subchannel goes silent, while the other one brings later packets. A reliable connection's adapter may still be
 * retrying: such a subchannel is not given up.
 */
START_TEST(a_silent_link)
{
    struct mr_packet *p = push();

    lossy->kind = _i ? MR_LINK_RC : MR_LINK_UD;
    native->native = false;
    ck_assert_int_eq(mr_rely_send(&PEER, lossy, p), 0);
    for (unsigned n = 0; n < MR_WINDOW_SILENT; n++) {
        struct mr_packet *later = push();
        struct mr_hdr hdr = {.kind = MR_VC_KIND_ACK, .src = SRC, .form = MR_WIRE_LONG_ACK};
        unsigned char ack_len[MR_ACK_WIRE_MAX];

        ck_assert_uint_eq(broken, 0);
        look(0);
        look(MR_WINDOW_TIMEOUT_MAX_NS);
        if (broken)
            break;
        ck_assert_int_eq(mr_rely_send(&PEER, lossy, p), 0);
        ck_assert_int_eq(mr_rely_send(&PEER, native, later), 0);
        look(1);
        mr_ack_encode(&(struct mr_ack_msg){.cum = 0, .flight = 16, .sack = (2u << n) - 1}, ack_len);
        mr_rely_arrived(&hdr, ack_len, 0);
    }
    ck_assert_uint_eq(broken, !_i);
    ck_assert_int_eq(sub[0].state, _i ? MR_SUB_OPEN : MR_SUB_BROKEN);
}
END_TEST

/* A silent unreliable connection, without another: the process is asked, and only its answers count. */
START_TEST(a_peer_that_answers)
{
    bool answers = _i;
    struct mr_packet *p = push();

    lossy->kind = MR_LINK_UC;
    native->state = MR_LINK_CLOSED;
    ck_assert_int_eq(mr_rely_send(&PEER, lossy, p), 0);
    for (unsigned n = 1; n <= 4 * MR_WINDOW_SILENT && !broken; n++) {
        look(1); /* time of sending */
        look(MR_WINDOW_TIMEOUT_MAX_NS);
        ck_assert_uint_eq(asked, broken || n < MR_WINDOW_DOUBTFUL ? asked : n - MR_WINDOW_DOUBTFUL + 1);
        ck_assert(!broken || n >= MR_WINDOW_SILENT);
        if (answers && asked)
            mr_window_answered(&PEER.out, 0, clock_ns);
        if (!broken)
            ck_assert_int_eq(mr_rely_send(&PEER, lossy, p), 0);
    }
    ck_assert_uint_ge(asked, MR_WINDOW_ANSWERS);
    ck_assert_uint_eq(broken, answers);
}
END_TEST

/* ---- receive buffers --------------------------------------------------------------------------------------------- */

/* Peers share the grants, and so do the parts of a packet sent as datagrams. */
START_TEST(what_is_granted)
{
    struct mr_net_peer other = {.base.base.num_subs = 0};

    ck_assert_uint_eq(net_peer.in.flight, 256); /* no more, whatever there is */
    mr_peers.num_relying = 8;
    mr_rely_begin(&other.base.base);
    ck_assert_uint_eq(other.in.flight, 64);
    other = (struct mr_net_peer){.base.base.num_subs = 0};
    mr_verbs.datagrams = true;
    mr_verbs.num_rails = 1;
    mr_verbs.packet_max = 4 * (2048 - MR_PART_HEADER);
    mr_rely_init();
    ck_assert_uint_eq(mr_net.parts, 4);
    mr_rely_begin(&other.base.base);
    ck_assert_uint_eq(other.in.flight, 16);
    ck_assert_uint_eq(other.in.every, 8); /* half of it */
    other = (struct mr_net_peer){.base.base.num_subs = 0};
    mr_peers.num_relying = 1000;
    mr_rely_begin(&other.base.base);
    ck_assert_uint_eq(other.in.flight, 4);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("rely");

    tcase_add_checked_fixture(c, setup, finish);
    tcase_add_test(c, no_more_than_may_be_under_way);
    tcase_add_test(c, acks_ride_along);
    tcase_add_test(c, a_packet_that_is_posted_stays);
    tcase_add_test(c, a_word_alone);
    tcase_add_test(c, at_once_when_parting);
    tcase_add_test(c, a_word_over_a_native_link);
    tcase_add_test(c, native_packets_owe_nothing);
    tcase_add_test(c, overdue_only_when_all_was_handled);
    tcase_add_test(c, samples);
    tcase_add_loop_test(c, a_silent_link, 0, 2);
    tcase_add_loop_test(c, a_peer_that_answers, 0, 2);
    tcase_add_test(c, what_is_granted);
    return check_run(c, NULL);
}
