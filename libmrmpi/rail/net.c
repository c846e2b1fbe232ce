/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The channel to peers on other hosts: multirail over links. A packet takes the subchannel that has carried the least,
 * of those that have room; what finds none, or no connection yet, waits in the peer's window and goes out from poll.
 * Slow receivers hold senders back through the HCA (no receive buffer: the sender's queue pair waits and tries again),
 * so a sender's queues fill and the rest waits in the window too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/lock.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/link/ring.h"
#include "libmrmpi/link/wire.h"
#include "libmrmpi/rail/net.h"
#include "libmrmpi/rail/view.h"
#include "libmrmpi/verbs/odp.h"
#include "libmrmpi/verbs/watch.h"

struct mr_net mr_net;

#define FABRIC_TIMEOUT_MS 1000
/* Port events, what broken links need, and news of fabricd are looked for once in so long. An idle look asks the clock.
 */
#define NEWS_NS    20000
#define BUSY_CHECK 64 /* other looks: one in so many asks the clock */
#define BUSY_NS    500000
/* While there is no way to a peer: after so many looks in a row at which no channel had anything, a short sleep. */
#define NAP_CHECK       256
#define NAP_NS          50000
#define NAP_ISOLATED_NS 500000
/* While packets wait to be acknowledged: the same, but not before that long, and for so small a part of the time that
 * has been waited; or where time does not pass by looking. */
#define RELY_NAP_NS   1000000
#define RELY_NAP_MOST 1000000
#define RELY_NAP_PART 16
#define LOOK_LEAST_NS 2 /* what a look takes at least */
/* While parts of large messages are late: the same, and microseconds count. */
#define CATCH_NAP_NS 20000
/* While packets wait for the peer's pace: a nap that ends so much too late is none, and another is tried after so long. */
#define NAP_LATE_NS  5000
#define BLUNT_NS     1000000000ull
#define SLOW_MBPS    10000 /* 4X SDR */
#define RINGS_FIRST  8     /* looks at rings that found something before the completion queues are looked at, too */

/* ---- up from the HCA --------------------------------------------------------------------------------------------- */

static void on_packet(struct mr_rail *rail, const void *data, size_t len)
{
    struct mr_hdr hdr;
    size_t head = mr_wire_get(data, &len, &hdr);
    const unsigned char *payload = (const unsigned char *)data + head;

    mr_net.arrived++;
    if (__builtin_expect(!head, 0))
        mr_log(MR_LOG_WARN, "rail %u: dropped a packet of %zu bytes that is none of ours", rail->index, len);
    else if (__builtin_expect(hdr.form || mr_net.attentive, 0))
        mr_rely_arrived(&hdr, payload, len - head);
    else
        mr_channel_up.arrived(&hdr, payload, len - head);
}

static void on_segment(struct mr_rail *rail, const void *data, size_t len, const uint32_t *imm)
{
    if (imm)
        data = mr_assemblies_add(&mr_net.assemblies, data, len, *imm, &len);
    if (!data)
        return;
    mr_rail_add(rail, MR_RAIL_PACKETS_RECEIVED, 1);
    mr_rail_add(rail, MR_RAIL_BYTES_RECEIVED, len);
    on_packet(rail, data, len);
}

static void on_landed(struct mr_rail *rail, uint32_t imm)
{
    mr_bulk_landed(imm);
}

static void on_datagram(struct mr_rail *rail, const void *data, size_t len)
{
    mr_wireup_datagram(data, len);
}

static const struct mr_verbs_handlers handlers = {
    .packet = on_packet,
    .segment = on_segment,
    .landed = on_landed,
    .datagram = on_datagram,
    .rail_changed = mr_mend_rail_changed,
    .rail_moved = mr_mend_rail_moved,
};

/* ---- life -------------------------------------------------------------------------------------------------------- */

static const struct mr_regcache_backend reg_backend = {.add = mr_memory_register, .remove = mr_memory_deregister};

/* As the setting says, or as the device with the least room for registrations lets the ranks of this host have. */
static void limit_registrations(void)
{
    size_t least = SIZE_MAX;

    for (unsigned i = 0; i < mr_verbs.num_devices; i++)
        if (mr_verbs.device[i].max_mr && mr_verbs.device[i].max_mr < least)
            least = mr_verbs.device[i].max_mr;
    mr_regcache_limit_entries(&mr_net.regs, mr_config.reg_cache_entries
                                                ? (size_t)mr_config.reg_cache_entries
                                                : mr_regcache_fair_entries(least, (size_t)mr_net.launch->local_size));
}

/*
 * A page that an adapter has not met costs it far more than pinning it does, and in the middle of a transfer. So buffers
 * that would stay registered are pinned, unless the user wants it otherwise.
 */
static void choose_on_demand(void)
{
    bool yes = !strcasecmp(mr_config.odp, "yes"), no = !strcasecmp(mr_config.odp, "no");
    bool unreliable = mr_kinds_have(&mr_net.kinds, MR_LINK_UC), first = yes || !mr_net.regs.keep;
    bool tell = !mr_net.launch->rank;
    const char *without = mr_odp_missing(mr_kinds_have(&mr_net.kinds, MR_LINK_UD));

    if (!yes && !no && strcasecmp(mr_config.odp, "auto") && tell)
        mr_log(MR_LOG_WARN, "MRMPI_ODP=%s: must be auto, yes or no; auto it is", mr_config.odp);
    if (yes && (without || unreliable) && tell)
        mr_log(MR_LOG_WARN, "MRMPI_ODP=yes: %s on-demand paging; large buffers are pinned",
               unreliable ? "unreliable connections (MRMPI_LINKS) cannot use" : "an adapter of this host has no");
    mr_odp_open(no || without || unreliable ? MR_ODP_NEVER : first ? MR_ODP_FIRST : MR_ODP_LAST);
    if (!mr_net.regs.keep && mr_config.reg_cache_max && tell && (no || without || unreliable))
        mr_log(MR_LOG_INFO,
               "memory is registered anew for each large message: its unmapping cannot be watched here (the "
               "program has an allocator of its own)");
}

static uint32_t hash(const char *s)
{
    uint32_t h = 2166136261u;

    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
    return h;
}

static void ask_fabricd(const struct mr_launch *launch)
{
    struct mr_fabric_qos *q = &mr_net.qos;
    int err = mr_fabric_open(mr_config.fabricd_socket, mr_config.job_id, FABRIC_TIMEOUT_MS, q);

    if (!err) {
        mr_log(MR_LOG_INFO, "job %s is of class %s: service level %u for small messages, %u for large ones%s",
               mr_config.job_id, *q->class_name ? q->class_name : "(no policy)", q->level[MR_LEVEL_SMALL].sl[0],
               q->level[MR_LEVEL_BULK].sl[0],
               q->generation && !q->verified ? "; the fabric's tables are not verified" : "");
        return;
    }
    if (err == -ENOENT || err == -ECONNREFUSED) {
        if (!launch->rank)
            mr_log(MR_LOG_WARN, "there is no fabricd at %s: all traffic goes on service level 0",
                   mr_config.fabricd_socket);
    } else if (!launch->local_rank) {
        mr_log(MR_LOG_WARN, "fabricd at %s cannot be asked (%s): till it can this host's traffic is on service level 0",
               mr_config.fabricd_socket, strerror(-err));
    }
}

/* As fabricd says of this process and each of its rails at present. */
static void take_ahead_budgets(void)
{
    uint64_t now_ns = mr_clock_ns();

    mr_net.ahead_limited = mr_net.peers_pace;
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        const struct mr_rail *r = &mr_verbs.rail[i];
        uint64_t rate = mr_ahead_rate(r->rate_mbps, mr_fabric_ahead(r->dev->name, r->port), MR_FABRIC_AHEAD_ALL);

        for (unsigned l = 0; l < MR_LEVEL_PACKETS; l++)
            mr_ahead_set(&mr_net.ahead[i][l], rate, now_ns);
        mr_ahead_set(&mr_net.adapter[i], rate ? mr_ahead_time(mr_fabric_messages(), MR_FABRIC_AHEAD_ALL) : 0, now_ns);
        mr_net.message_ns[i] = mr_ahead_message_ns(r->rate_mbps);
        mr_net.ahead_limited |= rate != 0;
    }
}

/* Bytes, at most. */
static size_t reads_under_way(const struct mr_rail *rail)
{
    size_t parts = 0;

    for (int r = 0; r < mr_net.launch->size; r++) {
        const struct mr_peer *p = mr_net.peer[r];

        for (unsigned i = 0; p && p->puts && i < p->num_now; i++) {
            const struct mr_link *l = p->now[i].rail == rail ? p->now[i].level[MR_LEVEL_BULK] : NULL;

            parts += l && l->ops->connected ? l->qp.depth - l->qp.room : 0;
        }
    }
    return parts * MR_PACE_LONG;
}

/* As fabricd says of each rail at present. What is under way when a limit comes is the first to keep to it. */
static void take_paces(uint64_t now_ns)
{
    bool before = mr_net.paced;

    mr_net.paced = false;
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        const struct mr_rail *r = &mr_verbs.rail[i];
        uint64_t kb = mr_fabric_pace(r->dev->name, r->port);

        bool alone = mr_net.pace[i].rate == MR_PACE_ALONE;

        mr_pace_set(&mr_net.pace[i], kb * 1000, r->count[MR_RAIL_BYTES_RECEIVED], now_ns);
        if (alone && mr_pace_limits(&mr_net.pace[i]))
            mr_net.pace[i].left -= (int64_t)reads_under_way(r);
        mr_net.paced |= kb != 0;
    }
    if (!before && mr_net.paced)
        mr_net.reads = (struct mr_pace_report){.since_ns = now_ns};
}

static void tell_reads(uint64_t now_ns)
{
    struct mr_pace_report before = mr_net.reads;

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        mr_pace_arrived(&mr_net.pace[i], mr_verbs.rail[i].count[MR_RAIL_BYTES_RECEIVED], now_ns);
    if (mr_pace_report(&mr_net.reads, mr_net.pace, mr_verbs.num_rails, now_ns) &&
        !mr_fabric_tell_reads(mr_net.reads.told))
        mr_net.reads.told = before.told; /* later */
}

static bool rings_have_rdma(void)
{
    return mr_net.rings && !mr_net.by_ring;
}

/*
 * Reading takes that every rail can: a message is cut over all. The peer sees to its own. It spares the sender's answer
 * to who is ready, which the adapter gives instead; what it costs, one more packet after the data, shows only on the
 * InfiniBand adapters of old, whose bus goes one way at a time. Unreliable connections can only write.
 */
static unsigned find_caps(void)
{
    unsigned caps = MR_VC_PUT | MR_VC_READ | MR_VC_READ_FIRST;

    if (!mr_kinds_have(&mr_net.kinds, MR_LINK_RC) && !rings_have_rdma())
        return mr_kinds_have(&mr_net.kinds, MR_LINK_UC) ? MR_VC_PUT : 0;
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        if (!mr_verbs.rail[i].addr.reads)
            caps &= ~(unsigned)(MR_VC_READ | MR_VC_READ_FIRST);
        if (mr_verbs.rail[i].rate_mbps <= SLOW_MBPS && !mr_verbs.rail[i].addr.global)
            caps &= ~(unsigned)MR_VC_READ_FIRST;
    }
    return caps;
}

static void net_finalize(void)
{
    while (mr_config.leaks && mr_verbs_poll()) /* so that all that is done has come back */
        ;
    mr_cards_close();
    mr_peers_free();
    mr_memory_watch_for(NULL);
    mr_odp_close();
    mr_regcache_clear(&mr_net.regs);
    if (mr_config.leaks && mr_net.regs.bytes)
        mr_log_print(MR_LOG_WARN, "leak: %zu bytes of memory are still registered", mr_net.regs.bytes);
    mr_landings_free(&mr_net.landings);
    free(mr_net.catches);
    mr_zcopy_clear();
    mr_assemblies_free(&mr_net.assemblies);
    mr_packets_close();
    mr_qps_all_gone();
    mr_verbs_close();
    mr_fabric_close();
    memset(&mr_net, 0, sizeof mr_net);
}

/* MRMPI_RING_SIZE=0: where large messages go through the ring they are cut into as much. */
static const size_t ring_sizes[MR_RING_DESIGNS] = {[MR_RING_BASIC] = 2048,
                                                   [MR_RING_PIGGYBACK] = 2048,
                                                   [MR_RING_PIPELINED] = 16384,
                                                   [MR_RING_ZEROCOPY] = SIZE_MAX};

static void choose_ring_design(const struct mr_launch *launch)
{
    mr_net.rings = mr_kinds_have(&mr_net.kinds, MR_LINK_RING);
    if (!mr_ring_design_parse(mr_config.ring_design, &mr_net.ring_design)) {
        mr_net.ring_design = MR_RING_ZEROCOPY;
        if (!launch->rank)
            mr_log(MR_LOG_WARN,
                   "MRMPI_RING_DESIGN=%s: must be basic, piggyback, pipelined or zerocopy; zerocopy it is",
                   mr_config.ring_design);
    }
    mr_net.by_ring = mr_net.rings && mr_net.ring_design != MR_RING_ZEROCOPY;
    if (!mr_config.ring_size)
        mr_config.ring_size = ring_sizes[mr_net.ring_design];
    if (mr_config.ring_size > mr_config.eager_max)
        mr_config.ring_size = mr_config.eager_max; /* no packet is longer */
}

static int choose_kinds(const struct mr_launch *launch)
{
    const char *why;

    if (!mr_kinds_parse(mr_config.links, mr_config.reliable, mr_budget_exceeded(launch), &mr_net.kinds, &why)) {
        bool links = !strcmp(why, "MRMPI_LINKS");

        mr_log(MR_LOG_ERROR, "%s=%s is not %s", why, links ? mr_config.links : mr_config.reliable,
               links ? MR_LINKS_FORM : "one of auto, yes, no");
        return -EINVAL;
    }
    if (mr_net.kinds.unsafe && !launch->rank)
        mr_log(MR_LOG_WARN, "MRMPI_RELIABLE=no: a packet that the network loses is lost, and the job will wait for it "
                            "for ever");
    mr_budget_init();
    choose_ring_design(launch);
    if (!strcasecmp(mr_config.ud_rndv, "copy"))
        mr_config.ud_pool = 0;
    else if (strcasecmp(mr_config.ud_rndv, "zcopy") && !launch->rank)
        mr_log(MR_LOG_WARN, "MRMPI_UD_RNDV=%s: must be zcopy or copy; zcopy it is", mr_config.ud_rndv);
    return mr_steer_init();
}

/* Datagrams are as long as the shortest MTU at most, and a packet is no more than so many. */
static void limit_packets(void)
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        const struct mr_rail_addr *a = &mr_verbs.rail[i].addr;
        size_t most = (size_t)MR_PARTS_MAX * (mr_udp_mtu(a, a) - MR_PART_HEAD) - MR_WIRE_MAX - MR_ACK_WIRE_MAX;

        if (!mr_verbs.datagrams || mr_config.eager_max <= most)
            continue;
        mr_log(MR_LOG_INFO, "MRMPI_EAGER_MAX is %zu: more does not fit into %u datagrams of rail %u", most,
               MR_PARTS_MAX, i);
        mr_config.eager_max = most;
    }
}

static const struct mr_peer_events peer_events = {.lossy = mr_rely_begin};

static int net_init(const struct mr_launch *launch)
{
    size_t packet_max;
    int err;

    memset(&mr_net, 0, sizeof mr_net);
    mr_net.launch = launch;
    mr_peer_subscribe(&peer_events);
    mr_bulk_init();
    err = choose_kinds(launch);
    if (err)
        return err;
    packet_max = MR_WIRE_MAX + mr_config.eager_max + MR_ACK_WIRE_MAX;
    mr_net.run = hash(launch->job_id);
    mr_net.peer = calloc((size_t)launch->size, sizeof *mr_net.peer);
    if (!mr_net.peer)
        return -ENOMEM;
    ask_fabricd(launch);
    mr_regcache_init(&mr_net.regs, &reg_backend, mr_config.reg_cache_max, mr_memory_watched());
    mr_memory_watch_for(&mr_net.regs);
    mr_assemblies_init(&mr_net.assemblies, packet_max);
    mr_rings_init(on_packet, mr_net.ring_design, (unsigned)mr_config.ring_slots,
                  MR_WIRE_MAX + mr_config.ring_size + MR_ACK_WIRE_MAX);
    err = mr_verbs_open(&handlers, packet_max, mr_kinds_have(&mr_net.kinds, MR_LINK_UD), mr_fabric_rejects, NULL);
    if (!err) {
        take_ahead_budgets();
        limit_registrations();
        choose_on_demand();
    }
    if (!err)
        err = mr_packets_open(packet_max);
    if (!err)
        err = mr_spread_init();
    if (!err)
        limit_packets();
    if (!err)
        err = mr_card_publish();
    if (err)
        net_finalize();
    else
        mr_net.caps = find_caps();
    return err;
}

static bool net_drained(void)
{
    mr_net.parting = true;
    if (mr_net.relying || mr_net.open_puts || mr_net.backlogged || mr_net.failing)
        return false;
    for (const struct mr_peer *p = mr_net.connecting; p; p = p->next_connecting)
        if (mr_window_waiting(&p->out))
            return false;
    return true;
}

/* A peer whose last word to us was lost sends again what we have, and waits for the word. */
static bool net_lingers(void)
{
    return mr_net.careful;
}

static bool net_reaches(int rank)
{
    return mr_peer_is_remote(rank);
}

/* Where the card cannot be had sends fail anyway. 0: it has not come yet. */
static size_t net_eager_max(int rank)
{
    struct mr_peer *p = mr_peer_get(rank);
    int err = p ? mr_peer_fetch_card(p) : -ENOMEM;

    if (err == -EAGAIN)
        return 0;
    if (err || p->card->eager_max > mr_config.eager_max)
        return mr_config.eager_max;
    return p->card->eager_max;
}

static bool rails_are_alike(const struct mr_peer *p)
{
    uint32_t rate = mr_verbs.rail[0].addr.rate_mbps;

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        if (mr_verbs.rail[i].addr.rate_mbps != rate)
            return false;
    for (unsigned i = 0; p && p->card->magic && i < p->card->num_rails; i++)
        if (p->card->rail[i].rate_mbps != rate)
            return false;
    return true;
}

/*
 * One over unequal rails: a burst of packets fills the queue of the fast one, and what then goes over the slow one holds
 * up all that follows, while messages by RDMA are cut as the rails carry them.
 */
static unsigned net_eager_packets(int rank)
{
    return rails_are_alike(mr_peer_get(rank)) ? (unsigned)mr_config.eager_packets : 1;
}

/*
 * But a message that comes alone, as the one before did, is no burst: the fast rail has it there before an offer is
 * answered.
 */
static bool net_eager_alone(int rank, size_t len, bool quiet)
{
    enum mr_policy_turn turn = mr_net.policy[MR_POLICY_SMALL].kind->turn;
    struct mr_peer *p = mr_peer_get(rank);
    bool before;

    if (!p || !p->packet_turn.uneven || (turn != MR_TURN_FAIR && turn != MR_TURN_SOONEST) ||
        len > mr_vc_front(p->vc)->eager_max * (size_t)mr_config.eager_packets)
        return false;
    before = p->alone;
    p->alone = quiet && !p->num_puts;
    if (p->alone) {
        mr_sched_tell_time(&p->packet_turn, p->load, p->num_now, mr_clock_ns());
        p->alone = p->packet_turn.idle;
    }
    return p->alone && before;
}

static unsigned net_rate(int rank, size_t *whole)
{
    const struct mr_peer *p = mr_net.peer[rank];
    unsigned rails = mr_verbs.num_rails;

    if (!p || !p->card->magic || !rails_are_alike(p))
        return 0;
    if (rails > 1 && mr_net.policy[MR_POLICY_LARGE].kind->where != MR_WHERE_ALL)
        return 0; /* packets go where the other policy says */
    if (p->card->num_rails < rails)
        rails = p->card->num_rails;
    *whole = rails > 1 ? MR_STRIPE_BUSY * mr_config.stripe_min : 0;
    return rails * (unsigned)(mr_ahead_rate(mr_verbs.rail[0].addr.rate_mbps, 1, 1) / 1000000);
}

/* Long messages in pieces that are one datagram each. */
static size_t net_packet_max(int rank)
{
    size_t least = net_eager_max(rank);

    if (least && mr_net.by_ring && mr_net.kinds.kind[0] == MR_LINK_RING)
        return least < mr_config.ring_size ? least : mr_config.ring_size;
    if (!least || mr_net.kinds.kind[0] != MR_LINK_UD)
        return least;
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        const struct mr_rail_addr *a = &mr_verbs.rail[i].addr;
        size_t fits = mr_udp_mtu(a, a) - MR_WIRE_MAX - MR_ACK_WIRE_MAX;

        least = fits < least ? fits : least;
    }
    return least;
}

/*
 * What both have. Until the card has come: what we have, the peer looks again; but for messages that are only offered
 * because it has not come. They would have memory registered, the program's stack perhaps, which a forked child then
 * lacks.
 */
static unsigned net_caps(int rank, size_t len)
{
    struct mr_peer *p = mr_net.rationed ? mr_peer_get(rank) : mr_net.peer[rank];
    unsigned common = !p ? 0 : p->card->magic ? p->card->kinds & mr_net.our_kinds : mr_net.our_kinds;
    unsigned datagrams = common >> MR_LINK_UD & 1 && mr_config.ud_pool ? MR_VC_DATAGRAMS : 0;

    if (p && !p->card->magic && len <= mr_config.eager_max)
        return 0;
    if (p && common && mr_net.rules.num && !mr_steer_by_rdma(p, len))
        return 0;
    if (p && mr_net.rationed && !mr_budget_rdma(p))
        return datagrams;
    if (common >> MR_LINK_RC & 1 || (common >> MR_LINK_RING & 1 && !mr_net.by_ring))
        return mr_net.caps | datagrams;
    return datagrams | (common >> MR_LINK_UC & 1 ? mr_net.caps & MR_VC_PUT : 0);
}

/* ---- down -------------------------------------------------------------------------------------------------------- */

static inline int post_on(struct mr_peer *p, struct mr_link *l, struct mr_packet *k)
{
    int err;

    if (__builtin_expect(p->careful, 0))
        return mr_rely_send(p, l, k);
    err = l->ops->send(l, k);
    if (__builtin_expect(!err, 1))
        mr_window_sent(&p->out, &k->kept, l->index, true, 0);
    return err;
}

/*
 * The peer lets a packet come now. If not, it waits with all others. Where there is a pace no more is under way than keeps a
 * link busy: the pace may go down, and what has been posted cannot be taken back.
 */
static bool pace_lets(struct mr_pace *pace, const struct mr_link *l, size_t len)
{
    uint64_t now_ns;

    if (pace->rate && l->ops->connected && (l->qp.depth - l->qp.room) * (len + MR_AHEAD_WIRE) >= MR_PACE_UNDER_WAY)
        return false;
    if (pace->left > 0 || !mr_pace_limits(pace))
        return true;
    now_ns = mr_clock_ns();
    if (mr_pace_fill(pace, now_ns))
        return true;
    mr_net.pace_until_ns = now_ns + mr_pace_wait_ns(pace);
    return false;
}

/*
 * The same on the link of its level, or, beyond the ahead budget or what the peer grants, or with more messages than the
 * class's share of the adapter, or if it has no room, on that of packets which go with the bulk.
 */
static int post_by_level(struct mr_peer *p, struct mr_sub *sub, enum mr_level level, struct mr_packet *k)
{
    struct mr_link *behind = sub->level[MR_LEVEL_PACKETS];
    unsigned rail = sub->rail->index;
    int err = -EAGAIN;

    if (level == MR_LEVEL_BULK)
        return post_on(p, sub->level[level], k);
    if (sub->level[level] != behind && (!p->granted || mr_bucket_lets(&p->granted[level], k->payload)) &&
        mr_may_go_ahead(sub, level, k->payload) && mr_bucket_lets(&mr_net.adapter[rail], k->payload)) {
        err = post_on(p, sub->level[level], k);
        if (!err) {
            mr_ahead_take(&mr_net.ahead[rail][level], k->payload);
            mr_ahead_handle(&mr_net.adapter[rail], mr_net.message_ns[rail]);
        }
        if (!err && p->granted)
            mr_ahead_take(&p->granted[level], k->payload);
    }
    if (err != -EAGAIN || mr_link_is_deep_enough(behind, k->payload))
        return err;
    err = post_on(p, behind, k);
    if (!err && level != MR_LEVEL_PACKETS) {
        mr_ahead_handle(&mr_net.adapter[rail], mr_net.message_ns[rail]);
        mr_stat_add(MR_STAT_NET_BEHIND, 1);
    }
    return err;
}

/* The same, at the pace that the peer gives, if it gives one. */
static __attribute__((noinline)) int post_ahead(struct mr_peer *p, struct mr_sub *sub, enum mr_level level,
                                                struct mr_packet *k)
{
    int err;

    if (p->pace && !pace_lets(p->pace, sub->level[MR_LEVEL_PACKETS], k->payload))
        return -EAGAIN;
    err = post_by_level(p, sub, level, k);
    if (!err && p->pace)
        mr_pace_take(p->pace, k->payload + MR_AHEAD_WIRE);
    return err;
}

/* One of the packets that a message is cut into. */
static enum mr_level level_of_part(const struct mr_packet *k)
{
    unsigned flags = mr_wire_flags(k->data) & MR_VC_FLAGS_HEAD;

    if (flags == MR_VC_FLAG_PART)
        return mr_fabric_level_of(&mr_net.qos, (uint32_t)mr_wire_len(k->data));
    return flags == MR_VC_FLAG_BULK ? MR_LEVEL_BULK : MR_LEVEL_PACKETS;
}

/* Over none of the subchannels in the set full. -EAGAIN: no other has room. */
static inline __attribute__((always_inline)) int post_but(struct mr_peer *p, struct mr_packet *k, uint32_t full)
{
    enum mr_level level = MR_LEVEL_SMALL;

    if (__builtin_expect(mr_wire_flags(k->data) & (MR_VC_FLAG_BULK | MR_VC_FLAG_PART), 0))
        level = level_of_part(k);
    else if (k->payload > mr_net.qos.level[MR_LEVEL_SMALL].max)
        level = mr_fabric_level_of(&mr_net.qos, k->payload);
    for (;;) {
        unsigned i = mr_packet_turn(p, full, k->payload);
        int err;

        if (__builtin_expect(i == p->num_now, 0))
            return -EAGAIN;
        if (__builtin_expect(mr_net.ahead_limited, 0))
            err = post_ahead(p, &p->now[i], level, k);
        else
            err = post_on(p, p->now[i].level[level], k);
        if (__builtin_expect(!err, 1)) {
            mr_packet_taken(p, i, k->payload);
            return 0;
        }
        if (err == -EAGAIN)
            full |= 1u << i;
        else
            mr_sub_break(&p->now[i]);
    }
}

/* What a packet is says where it may go. */
static __attribute__((noinline)) int post_by_rules(struct mr_peer *p, struct mr_packet *k)
{
    enum mr_rule_use use = mr_wire_flags(k->data) & MR_VC_FLAG_BULK    ? MR_RULE_PIECE
                           : mr_wire_kind(k->data) == MR_VC_KIND_EAGER ? MR_RULE_EAGER
                                                                       : MR_RULE_CONTROL;

    return post_but(p, k, mr_steer_spare(p, use, k->payload));
}

/*
 * -EAGAIN: no subchannel has room. Where there are rules all are spare, so that the fast path knows nothing of them; it
 * knows nothing either of rails that are taken only when the near ones have no room.
 */
static int post_packet(struct mr_peer *p, struct mr_packet *k)
{
    int err = post_but(p, k, p->spare);

    if (__builtin_expect(err == -EAGAIN && p->steer, 0))
        err = post_by_rules(p, k);
    else if (__builtin_expect(err == -EAGAIN && p->far, 0))
        err = post_but(p, k, p->spare & ~p->far);
    return err;
}

/* Posts what waits, as far as there is room. */
static void push_packets(struct mr_peer *p)
{
    struct mr_kept *k;

    while ((k = mr_window_ready(&p->out)) && !post_packet(p, (struct mr_packet *)k))
        mr_channel_waiting--;
    if (!k && mr_window_waiting(&p->out))
        mr_ping_unsignaled(p);
}

static unsigned net_waiting(struct mr_vc *vc)
{
    struct mr_peer *p = vc->data;

    return p ? mr_window_waiting(&p->out) : 0;
}

static int first_send(struct mr_vc *vc, struct mr_peer **out)
{
    struct mr_peer *p = mr_peer_get(mr_vc_world_rank(vc));

    if (!p)
        return -ENOMEM;
    mr_wireup_connect(p);
    *out = p;
    return p->error;
}

static int net_reserve(struct mr_vc *vc, unsigned packets)
{
    struct mr_peer *p = vc->data;
    int err = p && p->up ? 0 : first_send(vc, &p);

    if (!err)
        err = mr_packets_reserve(packets);
    return err ? err : mr_window_make_room(&p->out, packets);
}

static int net_send(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_peer *p = vc->data;
    struct mr_packet *k;

    if (__builtin_expect(!p || !p->up, 0)) {
        int err = first_send(vc, &p);

        if (err)
            return err;
    }
    k = mr_packet_make(hdr, payload, len);
    if (__builtin_expect(!k, 0))
        return -ENOMEM;
    if (__builtin_expect(mr_window_push(&p->out, &k->kept), 0)) {
        mr_packet_free(k);
        return -ENOMEM;
    }
    mr_stat_add(MR_STAT_NET_SENT, 1);
    if (__builtin_expect(p->up && mr_window_waiting(&p->out) == 1 && mr_window_ready(&p->out), 1) && !post_packet(p, k))
        return 0;
    mr_channel_waiting++;
    mr_peer_backlog(p);
    return 0;
}

static int net_expose(struct mr_vc *vc, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                      struct mr_remote *out)
{
    struct mr_peer *p = mr_peer_get(mr_vc_world_rank(vc));

    return p ? mr_bulk_expose(p, buf, len, how, region, out) : -ENOMEM;
}

static int net_put(struct mr_vc *vc, const void *buf, size_t len, const struct mr_remote *dst, uint64_t rreq,
                   void *cookie)
{
    struct mr_peer *p = vc->data;

    if (!p || p->error)
        return p ? p->error : -ENOTCONN;
    return mr_bulk_put(p, buf, len, dst, cookie);
}

static int net_read(struct mr_vc *vc, void *buf, size_t size, struct mr_vc_part part, const struct mr_remote *src,
                    void *cookie)
{
    struct mr_peer *p = vc->data;

    if (!p || p->error)
        return p ? p->error : -ENOTCONN;
    return mr_bulk_read(p, buf, size, part, src, cookie);
}

/* ---- what waits -------------------------------------------------------------------------------------------------- */

/* True if something still waits. */
static bool flush(struct mr_peer *p)
{
    bool waits;

    push_packets(p);
    waits = mr_bulk_resume(p);
    return waits || mr_window_waiting(&p->out);
}

/* A peer that has been read from at our pace comes last the next time. */
static __attribute__((noinline)) void flush_backlog(void)
{
    struct mr_peer **at = &mr_net.backlogged, *p, *served = NULL, **served_end = &served;

    while ((p = *at)) {
        unsigned parts = mr_net.paced_parts;
        bool waits = !p->error && flush(p);

        if (waits && parts == mr_net.paced_parts) {
            at = &p->next_backlogged;
            continue;
        }
        *at = p->next_backlogged;
        if (waits) {
            *served_end = p;
            served_end = &p->next_backlogged;
        } else {
            p->backlogged = false;
        }
    }
    *served_end = NULL;
    *at = served;
}

/* ---- poll -------------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) void look_for_news(bool idle, uint64_t now)
{
    struct mr_fabric_qos q;
    bool news, respread;

    mr_net.news_ns = now;
    mr_verbs_check_events();
    mr_view_update(now);
    if (mr_net.mending)
        mr_peers_poll();
    if ((mr_net.rationed || mr_net.rules.num || mr_net.rings) && mr_budget_tick(now))
        mr_rings_tick();
    if (idle)
        mr_ping_silent(now);
    if (mr_net.paced)
        tell_reads(now);
    news = mr_fabric_news(&q, now);
    mr_where_news();
    if (news)
        take_ahead_budgets();
    if (mr_fabric_pace_news())
        take_paces(now);
    if (mr_net.ahead_limited || mr_net.grants.said || mr_net.paced)
        mr_grant_tick(now);
    if (!news || !memcmp(&q, &mr_net.qos, sizeof q))
        return;
    if (!mr_net.launch->rank)
        mr_log(MR_LOG_INFO, "fabricd: class %s now, service levels %u and %u", q.class_name,
               q.level[MR_LEVEL_SMALL].sl[0], q.level[MR_LEVEL_BULK].sl[0]);
    respread = memcmp(q.spread, mr_net.qos.spread, sizeof q.spread) != 0;
    mr_net.qos = q;
    if (respread) {
        mr_spread_news();
        mr_peers_reweigh();
    }
    mr_change_all();
}

/*
 * The time-outs of links that lose packets are seconds at most: who has found nothing for a millisecond may sleep a
 * little. So may who has looked more often than the time allows: on a simulated fabric looking alone moves no time.
 */
static bool has_waited(uint64_t ns)
{
    return ns > RELY_NAP_NS || (mr_channel_idle >= NAP_CHECK && ns < (uint64_t)mr_channel_idle * LOOK_LEAST_NS);
}

static uint64_t rely_nap_ns(uint64_t part_ns)
{
    return part_ns < NAP_NS ? NAP_NS : part_ns < RELY_NAP_MOST ? part_ns : RELY_NAP_MOST;
}

/*
 * What a peer's pace holds back goes on time if naps end on time, as they do on a simulated fabric, where looking alone
 * moves no time. Where they do not, as with most kernels, waiting is looking.
 */
static void nap_for_pace(void)
{
    uint64_t before = mr_clock_ns(), ns = mr_net.pace_until_ns > before ? mr_net.pace_until_ns - before : 0, after;

    mr_net.pace_until_ns = 0;
    if (!ns || ns > NAP_NS || (mr_net.blunt_ns && before - mr_net.blunt_ns < BLUNT_NS))
        return;
    mr_lock_nap(ns);
    after = mr_clock_ns();
    mr_net.blunt_ns = after - before > ns + NAP_LATE_NS ? after : 0;
}

/*
 * For so long nothing can be missed: there is a peer to which nothing leads yet, or any more, or one that has said
 * nothing for a while, or parts of large messages are late, or wait for queue pairs. 0: there is none.
 */
static uint64_t nap_ns(void)
{
    uint64_t waited = mr_net.looked_ns - mr_net.idle_ns;

    for (const struct mr_peer *p = mr_net.connecting; p; p = p->next_connecting)
        if (!p->up && mr_channel_idle >= NAP_CHECK)
            return NAP_NS;
    if ((mr_net.num_catching || (mr_net.starved && !mr_net.serve_due)) && waited > CATCH_NAP_NS)
        return NAP_NS;
    if (mr_net.num_isolated && mr_channel_idle >= NAP_CHECK)
        return NAP_ISOLATED_NS;
    return mr_net.relying && has_waited(waited) ? rely_nap_ns(waited / RELY_NAP_PART) : 0;
}

/*
 * A process that has waited for a while sleeps a little: its peer may share the processor, and on a simulated fabric an
 * idle poll alone moves no time. A thread that calls MPI meanwhile ends the nap.
 */
static __attribute__((noinline)) bool nap(void)
{
    uint64_t ns = nap_ns();

    if (ns)
        mr_lock_nap(ns);
    return ns;
}

/* The datagrams of connecting may be lost, as packets are that are acknowledged. now: 0 if the clock was not read. */
static __attribute__((noinline)) void serve_time(int done, uint64_t now)
{
    if (mr_net.connecting)
        mr_wireup_tick();
    mr_net.attentive = mr_net.careful || mr_net.connecting;
    if (mr_net.relying)
        mr_rely_poll(!done, now);
    if (mr_net.starved)
        mr_zcopy_serve();
    if (done || !mr_channel_idle)
        mr_net.idle_ns = mr_net.looked_ns;
}

/*
 * What is in rings comes first. They are looked at again before this counts as an idle look, which costs more, since
 * looking at the completion queues has taken a while.
 */
static int poll_rings(void)
{
    int done = mr_rings_poll();

    if (done && ++mr_net.ring_polls % RINGS_FIRST)
        return done;
    done += mr_verbs_poll();
    return done ? done : mr_rings_poll();
}

static int net_poll(void)
{
    uint64_t now = 0;
    bool timed;
    int done;

    if (__builtin_expect(mr_net.untimed, 0))
        mr_rely_time();
    done = __builtin_expect(mr_rings_num != 0, 0) ? poll_rings() : mr_verbs_poll();
    timed = mr_net.connecting || mr_net.relying || mr_net.num_isolated;

    if (__builtin_expect(timed, 0) && !done && nap())
        done = mr_verbs_poll(); /* what has come meanwhile is not overdue */
    if (!done || ++mr_net.polls % BUSY_CHECK == 0)
        now = mr_clock_ns();
    if (__builtin_expect(timed, 0))
        serve_time(done, now);
    if (__builtin_expect(mr_net.mend_due, 0))
        mr_peers_poll();
    if (__builtin_expect(mr_net.backlogged != NULL, 0)) {
        flush_backlog();
        if (mr_net.pace_until_ns)
            nap_for_pace();
    }
    if (__builtin_expect(mr_net.failing != NULL, 0))
        done += mr_peers_report();
    if (now && now - mr_net.news_ns >= (done ? BUSY_NS : NEWS_NS))
        look_for_news(!done, now);
    return done;
}

static void net_word(int rank, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_peer *p = mr_peer_get(rank);

    if (p && !p->error && !mr_bulk_word(p, hdr, payload, len) && !mr_rings_word(p, hdr, payload, len) &&
        !mr_grant_word(p, hdr, len) && !mr_change_word(p, hdr) && !mr_budget_word(p, hdr))
        mr_mend_word(p, hdr);
}

const struct mr_channel_ops mr_channel_net = {
    .name = "net",
    .init = net_init,
    .finalize = net_finalize,
    .poll = net_poll,
    .drained = net_drained,
    .lingers = net_lingers,
    .waiting = net_waiting,
    .reaches = net_reaches,
    .eager_max = net_eager_max,
    .eager_packets = net_eager_packets,
    .eager_alone = net_eager_alone,
    .rate = net_rate,
    .packet_max = net_packet_max,
    .caps = net_caps,
    .reserve = net_reserve,
    .send = net_send,
    .expose = net_expose,
    .unexpose = mr_bulk_unexpose,
    .put = net_put,
    .read = net_read,
    .word = net_word,
};
