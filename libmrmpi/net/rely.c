/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets over lossy links. ACKs for the peer's packets go with ours, or, after a while, in a packet of their own;
 * packets not acknowledged in time are sent again. The rules are those of reliable/. Here are the place of ACKs in
 * packets, the limit of packets under way, and the reading of the clock: by the progress engine, before it polls.
 * Sending and receiving do not read the clock: traffic gets its time then, when most programs wait for an answer
 * anyway. Peers with native links only, in both directions, are not concerned (mr_peer.has_lossy_link).
 */
#include "libmrmpi/net/internal.h"

#include <errno.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/record.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/base/wire.h"
#include "libmrmpi/conn/conn.h"

#define ACK_EVERY    32  /* packets without an ACK, at most */
#define FLIGHT_FIRST 8   /* packets under way on lossy links before the peer has said how many may be */
#define FLIGHT_MAX   256 /* whatever the peer allows */
#define FLIGHT_LEAST 4
#define POLL_LATE_NS 200000 /* without a poll for this time, the arrival time of a packet is unknown */
#define SAMPLE_NS    50000  /* between two samples of the round-trip time, for which the clock is read */
#define SILENT_NS    60000000000ull

/* ---- peers concerned --------------------------------------------------------------------------------------------- */

/* Does a link from this peer have receive buffers of its own, and so only a few? */
static bool has_own_buffers(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        for (unsigned l = 0; l < p->sub[i].num_links; l++) {
            const struct mr_link *link = &p->sub[i].link[l];

            if (mr_kind_is(link->kind, MR_IS_CONNECTED) && link->state != MR_LINK_CLOSED && link->qp.rx)
                return true;
        }
    return false;
}

void mr_rely_init(void)
{
    size_t least = SIZE_MAX;

    mr_net.parts = 1;
    if (!mr_verbs.datagrams)
        return;
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        size_t mtu = mr_udp_mtu(&mr_verbs.rail[i].addr, &mr_verbs.rail[i].addr) - MR_PART_HEADER;

        least = mtu < least ? mtu : least;
    }
    mr_net.parts = (unsigned)((mr_verbs.packet_max + least - 1) / least);
}

/* Each peer that packets go to or come from may have its part of the receive buffers under way. */
static unsigned allowed_flight(const struct mr_peer *p)
{
    unsigned packets = (unsigned)mr_config.srq_depth / mr_net.parts / (mr_peers.num_relying ? mr_peers.num_relying : 1);

    if (has_own_buffers(p) && packets > MR_OWN_RECVS / 2)
        packets = MR_OWN_RECVS / 2;
    return packets < FLIGHT_LEAST ? FLIGHT_LEAST : packets < FLIGHT_MAX ? packets : FLIGHT_MAX;
}

/* Senders with a small allowance hear often. */
static unsigned ack_interval(unsigned allowed)
{
    return allowed < 2 * ACK_EVERY ? allowed / 2 : ACK_EVERY;
}

void mr_rely_begin(struct mr_peer *p)
{
    unsigned most;

    if (p->has_lossy_link)
        return;
    most = allowed_flight(p);
    p->has_lossy_link = mr_net.has_lossy_link = mr_peers.attentive = true;
    p->fast = false;
    mr_net_renew_short(p);
    mr_net_of(p)->flight_max = FLIGHT_FIRST;
    p->heard_ns = mr_clock_ns();
    mr_ack_init(&mr_net_of(p)->in, mr_vc_received(p->vc), mr_rtt_ack_delay(MR_WINDOW_TIMEOUT_MIN_NS),
                ack_interval(most), most);
    mr_ack_hasten(&mr_net_of(p)->in); /* must learn its limit */
}

/* Others have come, or gone, with whom the buffers are shared. */
static void renew_flight(struct mr_peer *p)
{
    unsigned most;

    if (mr_net_of(p)->shared_by == mr_peers.num_relying)
        return;
    mr_net_of(p)->shared_by = mr_peers.num_relying;
    most = allowed_flight(p);
    mr_ack_set_flight(&mr_net_of(p)->in, ack_interval(most), most, mr_net.clock_ns);
}

/* The number of packets waiting in p's window has changed. */
static void count_waiting(struct mr_peer *p, unsigned before)
{
    mr_channel_waiting += mr_window_waiting(&p->out) - before;
    if (mr_window_waiting(&p->out))
        mr_peer_backlog(p);
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

static bool is_sent_again(const struct mr_peer *p, const struct mr_packet *k)
{
    return k->kept.seq != p->out.fresh;
}

/*
 * Adds the owed ACK behind the packet. A packet that is sent again wants an ACK over any link: what the peer said of
 * the packets after it may be lost, too, and a link that confirms by itself would confirm this one only.
 */
static void add_ack(struct mr_peer *p, struct mr_packet *k, const struct mr_link *l)
{
    unsigned flags = l->native && !is_sent_again(p, k) ? 0 : MR_WIRE_WANTS;

    k->ack_len = 0;
    if (mr_ack_owed(&mr_net_of(p)->in)) {
        struct mr_ack_msg ack;

        renew_flight(p);
        ack = mr_ack_take(&mr_net_of(p)->in, mr_net.clock_ns);

        k->ack_len = (uint8_t)mr_ack_encode(&ack, k->data + k->size);
        flags |= k->ack_len == MR_ACK_WIRE_MIN ? MR_WIRE_ACK : MR_WIRE_LONG_ACK;
    }
    mr_wire_dress(k->data, flags);
}

static int send_dressed(struct mr_peer *p, struct mr_link *l, struct mr_packet *k)
{
    struct mr_ack before = mr_net_of(p)->in;
    int err;

    add_ack(p, k, l);
    err = l->ops->send(l, k);
    if (err)
        mr_net_of(p)->in = before; /* the ACK is still owed */
    return err;
}

/* The adapter may still read the bytes of an earlier post, which must not change. */
static int send_packet_copy(struct mr_peer *p, struct mr_link *l, struct mr_packet *k)
{
    struct mr_packet *copy = mr_packet_copy(k);
    int err;

    if (!copy)
        return -EAGAIN;
    err = send_dressed(p, l, copy);
    mr_packet_free(copy);
    return err;
}

static void note_sent(struct mr_peer *p, struct mr_link *l, struct mr_packet *k)
{
    bool again = is_sent_again(p, k);

    mr_window_sent(&p->out, &k->kept, l->index, l->native, 0);
    mr_stat_add(MR_STAT_RESENT, again);
    mr_rail_add(l->rail, MR_RAIL_RESENT, again);
    mr_stat_most(MR_STAT_WINDOW_MOST, p->out.num_most);
    mr_stat_most(MR_STAT_WINDOW_BYTES, p->out.bytes_most);
    if (!l->native)
        mr_peer_watch(p);
    else if (!mr_kind_is(l->kind, MR_IS_CONFIRMING))
        mr_packets_free(mr_window_confirmed(&p->out, l->index, 1));
}

int mr_rely_send(struct mr_peer *p, struct mr_link *l, struct mr_packet *k)
{
    bool carries = mr_ack_owed(&mr_net_of(p)->in);
    int err;

    if (!l->native && k->kept.seq - p->out.base >= mr_net_of(p)->flight_max)
        return -EAGAIN;
    mr_packet_settle(k);
    err = k->posted ? send_packet_copy(p, l, k) : send_dressed(p, l, k);
    if (err)
        return err;
    mr_stat_add(MR_STAT_ACKS_CARRIED, carries);
    note_sent(p, l, k);
    return 0;
}

/* ---- ACKs of their own ------------------------------------------------------------------------------------------ */

/* An ACK packet has no number, and is not sent again: the consequences of its loss bring the next. */
static bool post_ack(struct mr_peer *p, struct mr_link *l, struct mr_packet *k)
{
    add_ack(p, k, l);
    mr_wire_dress(k->data, k->ack_len == MR_ACK_WIRE_MIN ? MR_WIRE_ACK : MR_WIRE_LONG_ACK);
    if (l->ops->send(l, k))
        return false;
    mr_window_unnumbered(&p->out, l->index);
    return true;
}

static void send_ack(struct mr_peer *p)
{
    struct mr_hdr hdr = {.kind = MR_VC_KIND_ACK, .src = p->vc->self};
    uint32_t excluded = p->steer ? mr_steer_excluded(p, MR_RULE_CONTROL, 0) : p->excluded;
    unsigned i = mr_packet_turn(p, excluded, 0);
    struct mr_ack before = mr_net_of(p)->in;
    struct mr_packet *k;

    if (i == p->num_now || !(k = mr_packet_make(&hdr, NULL, 0)))
        return;
    if (post_ack(p, p->now[i].level[MR_LEVEL_SMALL], k)) {
        mr_stat_add(MR_STAT_ACKS_SENT, 1);
        mr_packet_taken(p, i, k->size);
    } else {
        mr_net_of(p)->in = before;
    }
    mr_packet_free(k);
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

/*
 * True if the present ACK came just now, and a sample is useful. Then *now_ns is the time. After a time-out any sample
 * is useful: it ends the doubling.
 */
static bool wants_sample(struct mr_peer *p, uint64_t *now_ns)
{
    if (mr_net.clock_ns - mr_net_of(p)->sampled_ns < SAMPLE_NS && !p->out.rtt.backoff)
        return false;
    mr_net_of(p)->sampled_ns = mr_net.clock_ns;
    *now_ns = mr_clock_ns();
    return *now_ns - mr_net.clock_ns < POLL_LATE_NS;
}

static void take_ack(struct mr_peer *p, const struct mr_hdr *hdr, const void *at)
{
    bool is_long = hdr->form & MR_WIRE_LONG_ACK, sample;
    unsigned before = mr_window_waiting(&p->out);
    uint64_t now_ns = mr_net.clock_ns;
    struct mr_ack_msg ack;

    if (!mr_ack_decode(at, mr_wire_ack_bytes(hdr->form), is_long, p->out.base, &ack))
        return;
    sample = wants_sample(p, &now_ns);
    mr_packets_free(mr_window_acked(&p->out, ack.cum, ack.sack, now_ns, sample));
    mr_net_of(p)->flight_max = ack.flight < FLIGHT_MAX ? ack.flight : FLIGHT_MAX;
    p->heard_ns = now_ns;
    count_waiting(p, before);
}

void mr_rely_arrived(struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_peer *p = mr_peer_of(hdr->src);
    unsigned form = hdr->form;

    if (!p || p->error)
        return;
    if (!p->up)
        mr_cm_traffic(&p->cm); /* in later handshakes it may have come over another subchannel */
    if (form & MR_WIRE_WANTS)
        mr_rely_begin(p);
    if (form & (MR_WIRE_ACK | MR_WIRE_LONG_ACK))
        take_ack(p, hdr, (const char *)payload + len);
    if (hdr->kind == MR_VC_KIND_ACK)
        return;
    hdr->form = 0;
    mr_vc_arrived(hdr, payload, len);
    if (!p->has_lossy_link || p->error)
        return;
    mr_ack_arrived(&mr_net_of(p)->in, hdr->seq, mr_vc_received(p->vc), form & MR_WIRE_WANTS, 0);
    if (form & MR_WIRE_WANTS)
        mr_peer_watch(p);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

/*
 * Packets on links of this subchannel may have timed out. An adapter that is still trying, which takes seconds after a
 * lost NAK, is not given up for this: conn/silence.c decides whether the way is silent.
 */
static void judge_timeouts(struct mr_sub *sub, uint64_t now_ns)
{
    const struct mr_window *w = &sub->peer->out;
    bool silent = false, doubtful = false;
    char name[MR_SUB_NAME];

    for (unsigned i = 0; i < sub->num_links; i++) {
        const struct mr_link *l = &sub->link[i];

        if (l->state != MR_LINK_OPEN)
            continue;
        silent |= !mr_kind_is(l->kind, MR_IS_RELIABLE) && mr_window_link_silent(w, l->index);
        doubtful |= mr_kind_breaks_unseen(l->kind) && mr_window_link_doubtful(w, l->index);
    }
    if (silent) {
        mr_log(MR_LOG_WARN, "rank %d on %s, %s: its packets do not come any more", sub->peer->rank,
               sub->peer->address->host, mr_sub_name(sub, name));
        mr_sub_break(sub);
    } else if (doubtful) {
        mr_keepalive_ask(sub, now_ns);
    }
}

static void expire_packets(struct mr_peer *p, uint64_t now_ns)
{
    unsigned before = mr_window_waiting(&p->out);

    if (!mr_window_expired(&p->out, now_ns))
        return;
    mr_stat_add(MR_STAT_TIMEOUTS, 1);
    mr_record_timeout((uint32_t)p->rank, now_ns);
    count_waiting(p, before);
    for (unsigned i = 0; i < p->num_subs; i++)
        if (p->sub[i].state == MR_SUB_OPEN)
            judge_timeouts(&p->sub[i], now_ns);
}

/* A computing peer is silent, too: its death cannot be known here. */
static void warn_of_silence(struct mr_peer *p, uint64_t now_ns)
{
    if (!p->out.probing || now_ns - p->heard_ns < SILENT_NS)
        return;
    mr_log(MR_LOG_WARN, "rank %d on %s has acknowledged nothing for %llu s, and %u packets wait for that", p->rank,
           p->address->host, (unsigned long long)(SILENT_NS / 1000000000), p->out.num);
    p->heard_ns = now_ns;
}

/* True while this peer has to be checked. */
static bool rely_check_peer(struct mr_peer *p, bool idle, uint64_t now_ns)
{
    bool late;

    if (p->error)
        return false;
    if (mr_ack_owed(&mr_net_of(p)->in) && (mr_net.parting || mr_ack_deadline(&mr_net_of(p)->in) <= now_ns))
        send_ack(p);
    if (idle && !mr_peers.untimed && mr_window_deadline(&p->out) <= now_ns) {
        expire_packets(p, now_ns);
        warn_of_silence(p, now_ns);
    }
    late = mr_bulk_watch(p, idle, now_ns);
    return late || mr_ack_owed(&mr_net_of(p)->in) || mr_window_deadline(&p->out) != UINT64_MAX;
}

void mr_rely_time(void)
{
    mr_peers.untimed = false;
    mr_net.clock_ns = mr_clock_ns();
    for (struct mr_peer *p = mr_peers.relying; p; p = p->next_relying) {
        mr_ack_check(&mr_net_of(p)->in, mr_net.clock_ns);
        mr_window_check(&p->out, mr_net.clock_ns);
    }
}

void mr_rely_poll(bool idle, uint64_t now_ns)
{
    struct mr_peer **at = &mr_peers.relying, *p;

    if (now_ns)
        mr_net.clock_ns = now_ns;
    while ((p = *at)) {
        if (rely_check_peer(p, idle, mr_net.clock_ns)) {
            at = &p->next_relying;
            continue;
        }
        p->relying = false;
        mr_peers.num_relying--;
        *at = p->next_relying;
    }
}
