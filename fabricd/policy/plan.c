/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares and waits under a load: see plan.h. */
#include "fabricd/policy/plan.h"

#include "fabricd/policy/ahead.h"
#include "fabricd/policy/pace.h"
#include "libmrmpi/base/packet.h"
#include "libmrmpi/base/parts.h"
#include "libmrmpi/conn/route/ahead.h"
#include "libmrmpi/conn/route/pace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MTU     4096u
#define PACKET_OVERHEAD 34u                            /* headers and checksums of a packet of a large message */
#define PART_MAX        (MR_PACE_PACKET - MR_WIRE_MAX) /* data of the longest part, where a receiver gives paces */
#define EAGER_MAX       (16u * 1024)                   /* the largest eager message */
#define FULL_PACKETS    64u                            /* of a message: more of the same teach nothing */
#define RUN_PACKETS     40000u
#define PING_BYTES      8u
#define WRITES_MBPS     8000u /* of data, 4X SDR: on such links large messages are written, without a pace */

/* The load on the lanes of the bottleneck. */
struct traffic {
    double budget[POLICY_CLASSES_MAX]; /* percent of the cable, to go ahead of bulk */
    struct arbiter_lane lane[ARBITER_LANES];
    bool on[ARBITER_LANES][POLICY_CLASSES_MAX];
    double bytes[ARBITER_LANES][POLICY_CLASSES_MAX]; /* of one list of packets */
    bool cut;       /* the receiver gives paces: messages that are sent at once are cut into parts */
    unsigned hosts; /* sending hosts */
    unsigned class_hosts[POLICY_CLASSES_MAX];
};

static unsigned mtu_of(const struct plan_fabric *f)
{
    return f->mtu ? f->mtu : DEFAULT_MTU;
}

/* ---- messages on lanes ---- */

static void put_packet(struct traffic *x, unsigned vl, unsigned bytes, unsigned class)
{
    struct arbiter_lane *l = &x->lane[vl];
    if (l->num_packets == ARBITER_PACKETS_MAX)
        return;
    l->packet[l->num_packets++] = (struct arbiter_packet){.bytes = (uint16_t)bytes, .owner = (uint8_t) class};
    x->on[vl][class] = true;
    x->bytes[vl][class] += bytes;
}

static void put_parts(struct traffic *x, unsigned vl, uint32_t size, unsigned class)
{
    uint32_t part = (uint32_t)mr_part_size(size, PART_MAX);
    for (uint32_t at = 0; at < size; at += part)
        put_packet(x, vl, (size - at < part ? size - at : part) + (uint32_t)MR_WIRE_PART + PACKET_OVERHEAD, class);
}

/* An eager message has its header in front of its data; a large message goes by RDMA, without a header. */
static void put_message(struct traffic *x, unsigned vl, uint32_t size, unsigned mtu, unsigned class)
{
    if (x->cut && size <= EAGER_MAX && size > PART_MAX) {
        put_parts(x, vl, size, class);
        return;
    }
    uint32_t bytes = size <= EAGER_MAX ? size + (uint32_t)MR_WIRE_MIN : size;
    unsigned full = bytes / mtu < FULL_PACKETS ? bytes / mtu : FULL_PACKETS;
    for (unsigned i = 0; i < full; i++)
        put_packet(x, vl, mtu + PACKET_OVERHEAD, class);
    if (bytes % mtu && full < FULL_PACKETS)
        put_packet(x, vl, bytes % mtu + PACKET_OVERHEAD, class);
}

static bool is_bulk_lane(const struct class_levels *l, unsigned vl)
{
    for (unsigned i = 0; i < l->num_lanes; i++)
        if (l->vl_bulk[i] == vl)
            return true;
    return false;
}

/* The lane of messages of this size within the budget. */
static unsigned lane_of_size(const struct policy_class *c, const struct class_levels *l, uint32_t size)
{
    if (size <= c->small_max)
        return l->vl_small;
    for (unsigned i = 0; i < l->num_medium; i++)
        if (size <= c->medium_max[i])
            return l->vl_medium[i];
    return l->vl_bulk[0];
}

static void put_traffic(struct traffic *x, const struct policy *p, const struct qos_tables *t, unsigned class,
                        uint32_t size, unsigned mtu)
{
    const struct class_levels *l = &t->classes[class];
    unsigned vl = lane_of_size(&p->classes[class], l, size);
    if (!is_bulk_lane(l, vl)) {
        if (!x->on[vl][class])
            x->lane[vl].most += l->num_ahead ? x->budget[class] / 100 / l->num_ahead : 0;
        put_message(x, vl, size, mtu, class);
    }
    for (unsigned i = 0; i < l->num_lanes; i++)
        put_message(x, l->vl_bulk[i], size, mtu, class);
}

static void put_load(struct traffic *x, const struct policy *p, const struct qos_tables *t,
                     const struct plan_load *load, unsigned mtu)
{
    bool together = false;
    for (unsigned i = 0; i < load->num_streams; i++) {
        const struct plan_stream *s = &load->stream[i];
        for (unsigned k = 0; k < s->num_sizes; k++)
            put_traffic(x, p, t, s->class_index, s->size[k], mtu);
        x->class_hosts[s->class_index] += s->many_to_one ? s->jobs : 1;
        x->hosts += s->many_to_one ? s->jobs : 0;
        together |= !s->many_to_one;
    }
    x->hosts += together;
}

/* ---- the place where it meets ---- */

/* Of a rate of data, with headers. */
static double on_wire(double mbytes, unsigned mtu)
{
    return mbytes * (mtu + PACKET_OVERHEAD) / mtu;
}

static double lesser(double a, double b)
{
    return a > 0 && (b <= 0 || a < b) ? a : b; /* 0: not known */
}

/* The part of the receiver's bus under a pace, with headers. */
static double paced_room(const struct plan_fabric *f)
{
    return on_wire(f->bus_write_mbytes * (PACE_PERCENT / 100.0), mtu_of(f));
}

struct place_of {
    double host, cable, receiver; /* 10^6 bytes a second with headers; 0: not known */
    double room;                  /* of the narrowest */
    enum plan_limit limit;
};

static struct place_of find_bottleneck(const struct plan_fabric *f, unsigned hosts)
{
    unsigned mtu = mtu_of(f);
    struct place_of at = {
        .cable = f->rate_mbps / 8.0, .receiver = on_wire(f->bus_write_mbytes, mtu), .limit = PLAN_CABLE};
    double bus = on_wire(f->bus_read_mbytes, mtu);
    at.host = lesser(bus, at.cable);
    at.room = at.cable;
    if (at.receiver > 0 && (at.room <= 0 || at.receiver < at.room)) {
        at.room = at.receiver;
        at.limit = PLAN_RECEIVER;
    }
    /* where both buses are alike it is the sender's: reading memory takes a request and an answer */
    if (bus > 0 &&
        (at.room <= 0 || bus * hosts < at.room || (hosts == 1 && bus <= at.room && at.limit == PLAN_RECEIVER))) {
        at.room = bus * hosts;
        at.limit = hosts == 1 ? PLAN_SENDER : PLAN_NOTHING;
    }
    return at;
}

/* Budgets are parts of the cable's rate; the arbiter's are parts of the passing traffic. */
static void scale_budgets(struct traffic *x, const struct place_of *at)
{
    for (unsigned vl = 0; vl < ARBITER_LANES && at->cable > 0 && at->room > 0; vl++)
        x->lane[vl].most = lesser(x->lane[vl].most * at->cable / at->room, 1);
}

/* The capacity of a class's sending hosts, as a part of the passing traffic; only bulk lanes are limited by it. */
static void hold_to_hosts(struct traffic *x, const struct qos_tables *t, const struct place_of *at)
{
    for (unsigned i = 0; i < t->num_classes && at->host > 0 && at->room > 0 && x->hosts > 1; i++) {
        const struct class_levels *l = &t->classes[i];
        double most = at->host * x->class_hosts[i] / at->room;
        for (unsigned n = 0; n < l->num_lanes && most < 1 && most > 0; n++)
            if (x->on[l->vl_bulk[n]][i])
                x->lane[l->vl_bulk[n]].most = most / l->num_lanes;
    }
}

/*
 * The receiver's processes set paces by share although its bus is not the narrowest place: tables that would give a
 * class more have no effect. The rest goes to the others.
 */
static void hold_to_paces(struct traffic *x, const struct qos_tables *t, const struct plan_fabric *f,
                          const struct place_of *at)
{
    struct pace_claim claim[POLICY_CLASSES_MAX] = {0};
    for (unsigned i = 0; i < t->num_classes; i++) {
        bool sends = x->class_hosts[i] > 0;
        claim[i] = (struct pace_claim){.weight = sends ? t->classes[i].share : 0, .want = sends};
    }
    pace_fill(claim, t->num_classes, paced_room(f) / at->room);
    for (unsigned i = 0; i < t->num_classes; i++) {
        const struct class_levels *l = &t->classes[i];
        for (unsigned n = 0; n < l->num_lanes && claim[i].part > 0; n++)
            x->lane[l->vl_bulk[n]].most = lesser(x->lane[l->vl_bulk[n]].most, claim[i].part / l->num_lanes);
    }
}

/* All lanes get the same, except lanes with smaller wants. */
static void divide_evenly(const struct traffic *x, double got[ARBITER_LANES][POLICY_CLASSES_MAX])
{
    double room = 1, part[ARBITER_LANES] = {0};
    bool open[ARBITER_LANES];
    unsigned left = 0;
    for (unsigned vl = 0; vl < ARBITER_LANES; vl++)
        left += open[vl] = x->lane[vl].num_packets > 0;
    for (bool again = true; again && left;) {
        again = false;
        for (unsigned vl = 0; vl < ARBITER_LANES; vl++)
            if (open[vl] && x->lane[vl].most > 0 && x->lane[vl].most < room / left) {
                part[vl] = x->lane[vl].most;
                room -= part[vl];
                open[vl] = false;
                left--;
                again = true;
                break;
            }
    }
    for (unsigned vl = 0; vl < ARBITER_LANES; vl++) {
        double all = 0;
        if (open[vl])
            part[vl] = room / left;
        for (unsigned i = 0; i < POLICY_CLASSES_MAX; i++)
            all += x->bytes[vl][i];
        for (unsigned i = 0; i < POLICY_CLASSES_MAX && all > 0; i++)
            got[vl][i] = part[vl] * x->bytes[vl][i] / all;
    }
}

/*
 * The receivers' processes divide their bus by share (pace.h). A class has no more than its hosts can give, and its
 * lanes have the traffic sent there.
 */
static void divide_by_share(const struct traffic *x, const struct qos_tables *t, const struct place_of *at,
                            double got[ARBITER_LANES][POLICY_CLASSES_MAX])
{
    struct pace_claim claim[POLICY_CLASSES_MAX] = {0};
    double bytes[POLICY_CLASSES_MAX] = {0};
    for (unsigned vl = 0; vl < ARBITER_LANES; vl++)
        for (unsigned i = 0; i < t->num_classes; i++)
            bytes[i] += x->bytes[vl][i];
    for (unsigned i = 0; i < t->num_classes; i++) {
        double most = at->host > 0 && x->hosts > 1 ? at->host * x->class_hosts[i] / at->room : 1;
        claim[i] =
            (struct pace_claim){.weight = bytes[i] > 0 ? t->classes[i].share : 0, .want = bytes[i] > 0 ? most : 0};
    }
    pace_fill(claim, t->num_classes, 1);
    for (unsigned vl = 0; vl < ARBITER_LANES; vl++)
        for (unsigned i = 0; i < t->num_classes; i++)
            got[vl][i] = bytes[i] > 0 ? claim[i].part * x->bytes[vl][i] / bytes[i] : 0;
}

static void sum_up(const struct place_of *at, double got[ARBITER_LANES][POLICY_CLASSES_MAX], double time,
                   struct plan_result *out)
{
    double all = 0, of_class[POLICY_CLASSES_MAX] = {0};
    for (unsigned vl = 0; vl < ARBITER_LANES; vl++)
        for (unsigned i = 0; i < POLICY_CLASSES_MAX; i++) {
            of_class[i] += got[vl][i];
            all += got[vl][i];
        }
    for (unsigned i = 0; i < POLICY_CLASSES_MAX && all > 0; i++) {
        out->classes[i].sends = of_class[i] > 0;
        out->classes[i].share = 100 * of_class[i] / all;
        out->classes[i].mbytes = at->room * of_class[i] / time;
    }
}

/* ---- waits ---- */

/*
 * The wait added by known buses to the wait at one port of the path. An adapter makes packets in the order of its
 * port's tables, as fast as it reads memory: its bus is one more place with that wait. At the receiver packets cross
 * the bus in the order of arrival, so the packet in front may be the largest.
 */
static double bus_wait_ns(const struct plan_fabric *f, double port_ns, unsigned largest)
{
    double data = largest && largest < mtu_of(f) ? largest : mtu_of(f), ns = 0;
    if (f->bus_read_mbytes)
        ns += port_ns * (f->rate_mbps / 8.0) / on_wire(f->bus_read_mbytes, mtu_of(f));
    if (f->bus_write_mbytes)
        ns += data * 1000 / f->bus_write_mbytes;
    return ns;
}

/* The library rations traffic ahead by bytes of the link, on each level, and by the time of the adapter. */
static double ahead_per_s(const struct qos_tables *t, unsigned class, const struct plan_fabric *f)
{
    const struct class_levels *l = &t->classes[class];
    double percent[POLICY_CLASSES_MAX];
    ahead_budgets(t, percent);
    if (!l->num_ahead || percent[class] <= 0 || !f->rate_mbps)
        return 0;
    double bytes = percent[class] / 100 / l->num_ahead * f->rate_mbps * 1e6 / 8;
    double time_ns = l->share / 100 * 1e9;
    unsigned message_ns = mr_ahead_message_ns(mr_ahead_signal_mbps(f->rate_mbps));
    return lesser(bytes / (PING_BYTES + MR_AHEAD_WIRE), time_ns / message_ns);
}

static void find_waits(const struct policy *p, const struct qos_tables *t, const struct plan_fabric *f,
                       const struct plan_load *load, struct plan_result *out)
{
    struct fabric_caps c = {.mtu = f->mtu, .rate_mbps = f->rate_mbps, .hops = f->hops};
    struct wait_load w = {0};
    w.high_bytes = policy_high_bytes(p, t); /* regardless of the load: such a packet may be there */
    for (unsigned i = 0; i < load->num_streams; i++)
        for (unsigned k = 0; k < load->stream[i].num_sizes; k++)
            if (load->stream[i].size[k] > w.low_bytes)
                w.low_bytes = load->stream[i].size[k];
    for (unsigned i = 0; i < p->num_classes; i++) {
        out->classes[i].ahead = !is_bulk_lane(&t->classes[i], t->classes[i].vl_small);
        if (out->classes[i].ahead)
            out->classes[i].ahead_per_s = ahead_per_s(t, i, f);
        if (out->limit == PLAN_RECEIVER) /* packets wait in the receiver's buffers, whatever their lane */
            continue;
        uint64_t ns = tables_wait_ns(t, t->classes[i].vl_small, &c, &w);
        if (ns && ns != WAIT_UNBOUNDED)
            ns += (uint64_t)ceil(bus_wait_ns(f, (double)ns / (f->hops ? f->hops : WAIT_HOPS), w.low_bytes));
        out->classes[i].wait_ns = ns;
    }
}

bool plan_is_paced(const struct qos_tables *t, const struct plan_fabric *f)
{
    return t->num_classes > 1 && f->rate_mbps > WRITES_MBPS;
}

void plan_predict(const struct policy *p, const struct qos_tables *t, const struct plan_fabric *f,
                  const struct plan_load *load, struct plan_result *out)
{
    struct traffic *x = calloc(1, sizeof *x);
    struct arbiter_sent *sent = calloc(1, sizeof *sent);
    if (!x || !sent)
        abort();
    *out = (struct plan_result){0};
    ahead_budgets(t, x->budget);
    x->cut = plan_is_paced(t, f) && find_bottleneck(f, PLAN_JOBS_MAX).limit == PLAN_RECEIVER;
    put_load(x, p, t, load, mtu_of(f));
    struct place_of at = find_bottleneck(f, x->hosts);
    if (at.limit == PLAN_RECEIVER && plan_is_paced(t, f))
        at.room = paced_room(f);
    scale_budgets(x, &at);
    hold_to_hosts(x, t, &at);
    if (x->cut && at.room > 0)
        hold_to_paces(x, t, f, &at);
    out->limit = at.limit;
    out->paced = at.limit == PLAN_RECEIVER && plan_is_paced(t, f);
    out->mbytes = at.room;
    if (at.limit == PLAN_RECEIVER) {
        if (plan_is_paced(t, f))
            divide_by_share(x, t, &at, sent->bytes);
        else
            divide_evenly(x, sent->bytes);
        sent->time = 1;
    } else {
        arbiter_run(t, x->lane, (double)RUN_PACKETS * mtu_of(f), sent);
    }
    sum_up(&at, sent->bytes, sent->time > 0 ? sent->time : 1, out);
    find_waits(p, t, f, load, out);
    free(x);
    free(sent);
}
