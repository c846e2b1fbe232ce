/* SPDX-License-Identifier: BSD-3-Clause */
/* From counters to a state: see health.h. */
#include "fabricd/policy/health.h"

#include <inttypes.h>
#include <string.h>

#define BUCKET_US   (HEALTH_WINDOW_S * 1000000ull / HEALTH_BUCKETS)
#define WEIGHT_OFF  (FD_HEALTHY / 2) /* of a rail that has just become degraded; less, the more errors there are */
#define WEIGHT_STEP 64u              /* changes of the weight worth a report */
#define LOSSY_PART  1000u            /* one in so many packets */
#define LOSSY_LEAST 20000u           /* an idle link has errors without packets: so many are taken to have come */
#define WRAP_NEAR   (1ull << 40)     /* a 64-bit counter that went back from so near its end has wrapped */

/* Errors a minute. */
struct limits {
    uint64_t degraded, bad; /* 0: the counter never has this effect */
};

enum kind { BITS, EVENTS, DOWNS, DISCARDS, NOTHING };

static const struct {
    const char *name;
    enum kind kind;
} counters[HEALTH_COUNTERS] = {
    [HEALTH_SYMBOL] = {"SymbolErrorCounter", BITS},
    [HEALTH_RECOVERY] = {"LinkErrorRecoveryCounter", EVENTS},
    [HEALTH_DOWNED] = {"LinkDownedCounter", DOWNS},
    [HEALTH_RCV] = {"PortRcvErrors", BITS},
    [HEALTH_REMOTE] = {"PortRcvRemotePhysicalErrors", NOTHING}, /* the error was on another cable */
    [HEALTH_DISCARDS] = {"PortXmitDiscards", DISCARDS},
    [HEALTH_INTEGRITY] = {"LocalLinkIntegrityErrors", EVENTS},
    [HEALTH_OVERRUN] = {"ExcessiveBufferOverrunErrors", EVENTS},
    [HEALTH_VL15] = {"VL15Dropped", NOTHING}, /* too many management packets at a time */
    [HEALTH_WAIT] = {"PortXmitWait", NOTHING},
    [HEALTH_PACKETS] = {"PortRcvPkts", NOTHING},
};

/*
 * By the rate of a lane. Links of 8b/10b count each wrong code, and are allowed a bit in 10^12: two errors a minute at
 * 40 Gb/s. From FDR on most errors are corrected before they count, with HDR nearly all: the remaining errors are
 * worse.
 */
static const struct {
    uint32_t up_to_mbps;
    struct limits bits;
} generations[] = {
    {10400, {10, 6000}},    /* SDR, DDR, QDR, FDR10 */
    {26000, {5, 3000}},     /* FDR, EDR */
    {UINT32_MAX, {2, 600}}, /* HDR and later */
};

const char *health_counter_name(enum health_counter c)
{
    return counters[c].name;
}

const char *health_state_name(enum fd_rail_state s)
{
    static const char *const names[] = {"healthy", "degraded", "bad", "drained"};
    return names[s];
}

static struct limits limits_of(const struct health_rules *r, uint32_t lane_mbps, enum health_counter c)
{
    unsigned g = 0;
    while (lane_mbps > generations[g].up_to_mbps)
        g++;
    struct limits bits = generations[g].bits;
    bits.degraded = r->degraded ? r->degraded : bits.degraded;
    bits.degraded = r->suspected ? 1 : bits.degraded;
    bits.bad = r->bad ? r->bad : bits.bad > bits.degraded ? bits.bad : 600 * bits.degraded;
    switch (counters[c].kind) {
    case BITS:
        return bits;
    case EVENTS:
        return (struct limits){3, 60};
    case DOWNS:
        return (struct limits){2, 4};
    case DISCARDS:
        return (struct limits){10 * bits.degraded, 0};
    default:
        return (struct limits){0, 0};
    }
}

/* ---- counting ---- */

static uint64_t maximum(uint8_t bits)
{
    return bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;
}

static void start_buckets(struct health *h, uint64_t now_us)
{
    uint64_t no = now_us / BUCKET_US;
    for (uint64_t i = 0; h->bucket_no + i < no && i < HEALTH_BUCKETS; i++)
        for (unsigned e = 0; e < HEALTH_ENDS; e++)
            for (unsigned c = 0; c < HEALTH_COUNTERS; c++)
                h->end[e].bucket[c][(no - i) % HEALTH_BUCKETS] = 0;
    h->bucket_no = no;
}

static uint64_t in_window(const struct health *h, unsigned end, unsigned c)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < HEALTH_BUCKETS; i++)
        sum += h->end[end].bucket[c][i];
    return sum;
}

static void forget_window(struct health *h)
{
    for (unsigned e = 0; e < HEALTH_ENDS; e++)
        memset(h->end[e].bucket, 0, sizeof(h->end[e].bucket));
}

/* The counter's increase since the last look. *cleared: it went back. */
static uint64_t increase(uint64_t before, uint64_t value, uint8_t bits, bool *cleared)
{
    if (value >= before)
        return value - before;
    if (bits >= 64 && before > UINT64_MAX - WRAP_NEAR && value < WRAP_NEAR)
        return value - before;
    *cleared = true;
    return value;
}

/* Errors of the rail; 0 if there were none, or none that alarm. */
static uint64_t count_port(struct health *h, unsigned e, const struct health_port *p)
{
    uint64_t delta[HEALTH_COUNTERS] = {0}, alarming = 0;
    bool cleared = false, first = !h->end[e].seen || h->end[e].id != p->id, full = false;
    if (!p->known)
        return 0;
    for (unsigned c = 0; c < HEALTH_COUNTERS; c++) {
        if (!p->bits[c])
            continue;
        if (!first)
            delta[c] = increase(h->end[e].value[c], p->value[c], p->bits[c], &cleared);
        h->end[e].value[c] = p->value[c];
        full |= p->bits[c] < 64 && p->value[c] == maximum(p->bits[c]) && counters[c].kind <= DOWNS;
    }
    if (delta[HEALTH_WAIT]) /* congestion */
        delta[HEALTH_DISCARDS] = 0;
    for (unsigned c = 0; c < HEALTH_COUNTERS; c++) {
        h->end[e].total[c] += delta[c];
        h->end[e].bucket[c][h->bucket_no % HEALTH_BUCKETS] += delta[c];
        alarming += counters[c].kind == NOTHING ? 0 : delta[c];
    }
    h->end[e].cleared += cleared;
    h->end[e].knows_packets = p->bits[HEALTH_PACKETS] && p->value[HEALTH_PACKETS] != maximum(p->bits[HEALTH_PACKETS]);
    h->end[e].was_saturated = full && (first || h->end[e].was_saturated);
    h->end[e].saturated = full;
    h->end[e].seen = true;
    h->end[e].id = p->id;
    return alarming;
}

/* ---- judging ---- */

struct verdict {
    enum fd_rail_state state;
    uint32_t weight;
    struct health_reason reason;
};

static bool is_errors(const struct verdict *v)
{
    return v->reason.why == HEALTH_ERRORS || v->reason.why == HEALTH_LOSSY;
}

static unsigned log2_of(uint64_t v)
{
    unsigned n = 0;
    while (v >>= 1)
        n++;
    return n;
}

/* Between the limits the weight falls with the logarithm of the errors. */
static uint32_t degraded_weight(uint64_t count, const struct limits *l)
{
    unsigned all = l->bad > l->degraded ? log2_of(l->bad / l->degraded) : 0, over = log2_of(count / l->degraded);
    uint32_t weight = all ? WEIGHT_OFF - WEIGHT_OFF * (over < all ? over : all) / all : WEIGHT_OFF;
    weight -= weight % WEIGHT_STEP;
    return weight < WEIGHT_STEP ? WEIGHT_STEP : weight;
}

static struct verdict judge_counter(const struct health *h, const struct health_rules *r, uint32_t lane_mbps,
                                    unsigned e, unsigned c)
{
    struct limits l = limits_of(r, lane_mbps, c);
    uint64_t count = in_window(h, e, c);
    struct verdict v = {FD_RAIL_HEALTHY, FD_HEALTHY, {HEALTH_WELL, c, e, count, l.degraded}};
    uint64_t packets = in_window(h, e, HEALTH_PACKETS), at_least = packets > LOSSY_LEAST ? packets : LOSSY_LEAST;
    if (l.bad && count >= l.bad) {
        v = (struct verdict){FD_RAIL_BAD, 0, {HEALTH_ERRORS, c, e, count, l.bad}};
    } else if (counters[c].kind == BITS && count >= l.degraded && count >= at_least / LOSSY_PART &&
               h->end[e].knows_packets) {
        v = (struct verdict){FD_RAIL_BAD, 0, {HEALTH_LOSSY, c, e, count, packets}};
    } else if (l.degraded && count >= l.degraded) {
        v.state = FD_RAIL_DEGRADED;
        v.weight = degraded_weight(count, &l);
        v.reason.why = HEALTH_ERRORS;
    }
    return v;
}

static struct verdict judge_rail(struct health *h, const struct health_rules *r, const struct health_look *l)
{
    struct verdict worst = {FD_RAIL_HEALTHY, FD_HEALTHY, {.why = HEALTH_WELL}};
    uint8_t can = l->width_can > h->width_best ? l->width_can : h->width_best;
    if (r->off)
        return worst;
    for (unsigned e = 0; e < HEALTH_ENDS; e++)
        for (unsigned c = 0; c < HEALTH_COUNTERS; c++) {
            struct verdict v = judge_counter(h, r, l->lane_mbps, e, c);
            if (v.state > worst.state || (v.state == worst.state && v.weight < worst.weight))
                worst = v;
        }
    if (worst.state == FD_RAIL_HEALTHY && l->width && l->width < can)
        worst = (struct verdict){
            FD_RAIL_DEGRADED, HEALTH_NARROWED, {.why = HEALTH_NARROW, .count = l->width, .limit = can}};
    return worst;
}

/* ---- states ---- */

static void set_own(struct health *h, const struct verdict *v, uint64_t now_us)
{
    if (h->own_state != v->state)
        h->own_since_us = now_us;
    h->own_state = v->state;
    h->own_weight = v->weight;
    h->own_reason = v->reason;
}

/* The result of the judgement and the administrator's order. */
static bool settle_state(struct health *h, uint64_t now_us)
{
    enum fd_rail_state state = h->drained ? FD_RAIL_DRAINED : h->own_state;
    uint32_t weight = h->drained ? 0 : h->own_weight;
    struct health_reason reason = h->drained ? (struct health_reason){.why = HEALTH_ORDERED} : h->own_reason;
    bool changed = state != h->state || weight != h->weight || reason.why != h->reason.why;
    if (state != h->state)
        h->since_us = now_us;
    h->state = state;
    h->weight = weight;
    if (changed || state != FD_RAIL_HEALTHY)
        h->reason = reason;
    return changed;
}

static uint64_t hold_us(const struct health *h, const struct health_rules *r)
{
    return (r->hold_s ? r->hold_s : HEALTH_HOLD_S) * 1000000ull << h->relapses;
}

static void get_worse(struct health *h, const struct health_rules *r, struct verdict v, uint64_t now_us)
{
    bool returning = h->own_reason.why == HEALTH_RETURNING;
    if (is_errors(&v) && (h->own_state == FD_RAIL_HEALTHY || returning)) {
        uint64_t well_us = now_us - h->own_since_us;
        bool soon = h->flaps && well_us < HEALTH_FORGET_S * 1000000ull;
        h->relapses = !soon ? 0 : h->relapses < HEALTH_RELAPSES ? h->relapses + 1 : h->relapses;
        h->flaps++;
    }
    if (returning) { /* bad before and now */
        v.state = FD_RAIL_BAD;
        v.weight = 0;
    }
    set_own(h, &v, now_us);
}

static void get_better(struct health *h, uint64_t now_us)
{
    struct verdict v = {FD_RAIL_HEALTHY, FD_HEALTHY, {.why = HEALTH_WELL}};
    if (h->own_state == FD_RAIL_BAD)
        v = (struct verdict){FD_RAIL_DEGRADED, HEALTH_PROBATION, {.why = HEALTH_RETURNING}};
    set_own(h, &v, now_us);
    forget_window(h);
}

static bool is_blind(const struct health *h)
{
    for (unsigned e = 0; e < HEALTH_ENDS; e++)
        if (h->end[e].saturated && !h->end[e].was_saturated)
            return true;
    return false;
}

static bool may_get_better(const struct health *h, const struct health_rules *r, uint64_t now_us)
{
    if (h->own_reason.why == HEALTH_NARROW || r->off)
        return true;
    return now_us - h->quiet_us >= (r->hold_s ? r->hold_s : HEALTH_HOLD_S) * 1000000ull &&
           now_us - h->own_since_us >= hold_us(h, r) && !is_blind(h);
}

void health_init(struct health *h, uint64_t now_us)
{
    *h = (struct health){.weight = FD_HEALTHY,
                         .own_weight = FD_HEALTHY,
                         .since_us = now_us,
                         .own_since_us = now_us,
                         .quiet_us = now_us,
                         .bucket_no = now_us / BUCKET_US};
}

bool health_take(struct health *h, const struct health_rules *r, const struct health_look *l)
{
    uint64_t errors = 0;
    start_buckets(h, l->now_us);
    for (unsigned e = 0; e < HEALTH_ENDS; e++)
        errors += count_port(h, e, &l->port[e]);
    if (errors || !l->up)
        h->quiet_us = l->now_us;
    if (l->up && l->width > h->width_best)
        h->width_best = l->width;
    struct verdict v = judge_rail(h, r, l);
    bool worse = v.state > h->own_state || (v.state == h->own_state && v.weight < h->own_weight);
    if (worse || (h->own_reason.why == HEALTH_RETURNING && is_errors(&v)))
        get_worse(h, r, v, l->now_us);
    else if (h->own_state != FD_RAIL_HEALTHY && l->up && may_get_better(h, r, l->now_us) &&
             !(h->own_reason.why == HEALTH_NARROW && v.reason.why == HEALTH_NARROW))
        get_better(h, l->now_us);
    else if (v.state == h->own_state && is_errors(&v))
        h->own_reason = v.reason; /* with the present count */
    h->seen = true;
    return settle_state(h, l->now_us);
}

void health_restore(struct health *h, enum fd_rail_state state, bool drained, unsigned flaps, unsigned relapses,
                    uint64_t now_us)
{
    struct verdict v = {state,
                        state == FD_RAIL_BAD        ? 0
                        : state == FD_RAIL_DEGRADED ? HEALTH_PROBATION
                                                    : FD_HEALTHY,
                        {.why = state == FD_RAIL_HEALTHY ? HEALTH_WELL : HEALTH_BEFORE}};
    health_init(h, now_us);
    set_own(h, &v, now_us);
    h->drained = drained;
    h->flaps = flaps;
    h->relapses = relapses;
    settle_state(h, now_us);
}

bool health_drain(struct health *h, bool drained, uint64_t now_us)
{
    if (!drained) {
        struct verdict well = {FD_RAIL_HEALTHY, FD_HEALTHY, {.why = HEALTH_WELL}};
        forget_window(h);
        set_own(h, &well, now_us);
        h->relapses = 0;
        for (unsigned e = 0; e < HEALTH_ENDS; e++)
            h->end[e].was_saturated = h->end[e].saturated;
    }
    h->drained = drained;
    return settle_state(h, now_us);
}

void health_reason_text(struct text *out, const struct health_reason *r)
{
    switch (r->why) {
    case HEALTH_WELL:
        text_printf(out, "no errors that matter");
        break;
    case HEALTH_ERRORS:
        text_printf(out, "%s %s: %" PRIu64 " in a minute, limit %" PRIu64, counters[r->counter].name,
                    r->end == HEALTH_HERE ? "of this port" : "of the port at the other end", r->count, r->limit);
        break;
    case HEALTH_LOSSY:
        text_printf(out, "%s %s: %" PRIu64 " in a minute, with %" PRIu64 " packets that came",
                    counters[r->counter].name, r->end == HEALTH_HERE ? "of this port" : "of the port at the other end",
                    r->count, r->limit);
        break;
    case HEALTH_NARROW:
        text_printf(out, "the link runs with %" PRIu64 " of %" PRIu64 " lanes", r->count, r->limit);
        break;
    case HEALTH_RETURNING:
        text_printf(out, "no more errors: on probation");
        break;
    case HEALTH_ORDERED:
        text_printf(out, "drained by an administrator");
        break;
    case HEALTH_BEFORE:
        text_printf(out, "it was so when fabricd ended");
        break;
    }
}
