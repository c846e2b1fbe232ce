/* SPDX-License-Identifier: BSD-3-Clause */
/* The health of a way: estimates of loss, and of the time that it stands still. They fade. */
#include "libmrmpi/conn/route/trust.h"

#define ONE          65536u
#define MOST         (1024u * ONE) /* packets in the counts: both are halved beyond */
#define PRIOR        (16u * ONE)   /* packets that are assumed to have arrived */
#define HALF_NS      160000000ull  /* in which the counts fade to a half after the first failure; doubles with each */
#define DOUBLED_MOST 6u            /* times: 10 s */
#define PRIOR_US     4000u         /* that the way is assumed to have moved */
#define MOST_US      1000000u      /* in the times: both are halved beyond */
#define MILLION      1000000ull

static uint64_t half_ns(const struct mr_trust *t)
{
    unsigned doubled = t->failures > 1 ? t->failures - 1u : 0;

    return HALF_NS << (doubled < DOUBLED_MOST ? doubled : DOUBLED_MOST);
}

/* By halves, and linearly between two of them. */
static uint32_t faded(uint32_t count, uint64_t passed_ns, uint64_t half)
{
    uint64_t halves = passed_ns / half, part = passed_ns % half;

    if (halves >= 32)
        return 0;
    count >>= halves;
    return count - (uint32_t)(count / 2 * part / half);
}

static uint64_t ns_since_seen(const struct mr_trust *t, uint64_t now_ns)
{
    return now_ns > t->seen_ns ? now_ns - t->seen_ns : 0;
}

static void fade(struct mr_trust *t, uint64_t now_ns)
{
    t->tried = faded(t->tried, ns_since_seen(t, now_ns), half_ns(t));
    t->lost = faded(t->lost, ns_since_seen(t, now_ns), half_ns(t));
    t->before = faded(t->before, ns_since_seen(t, now_ns), half_ns(t));
    t->stood_us = faded(t->stood_us, ns_since_seen(t, now_ns), half_ns(t));
    t->moved_us = faded(t->moved_us, ns_since_seen(t, now_ns), half_ns(t));
    t->seen_ns = now_ns;
}

/* The first loss may be chance. After the second one, arrivals before the first count no more than assumed ones. */
static void forget_before(struct mr_trust *t, unsigned lost)
{
    bool first = t->lost < ONE / 2;

    if (!lost)
        return;
    if (first)
        t->before = t->tried - t->lost;
    if (first && lost == 1)
        return;
    if (t->before > PRIOR)
        t->tried -= t->before - PRIOR;
    t->before = 0;
}

void mr_trust_tried(struct mr_trust *t, unsigned tried, unsigned lost, uint64_t now_ns)
{
    fade(t, now_ns);
    forget_before(t, lost);
    t->tried += (tried < MOST / ONE ? tried : MOST / ONE) * ONE;
    t->lost += (lost < MOST / ONE ? lost : MOST / ONE) * ONE;
    while (t->tried > MOST) {
        t->tried /= 2;
        t->lost /= 2;
        t->before /= 2;
    }
}

void mr_trust_failed(struct mr_trust *t, uint64_t now_ns)
{
    mr_trust_tried(t, 2, 2, now_ns);
    t->failures += t->failures < UINT8_MAX;
}

void mr_trust_steady(struct mr_trust *t, uint64_t used_ns)
{
    if (used_ns > 4 * half_ns(t)) /* a failure has faded to a loss of less than 1 % by then */
        t->failures = 0;
}

bool mr_trust_late(struct mr_trust *t, uint64_t now_ns)
{
    bool again = t->lost || t->stood_us || (t->late_ns && now_ns - t->late_ns < HALF_NS);

    t->late_ns = now_ns;
    return again;
}

static void add_times(struct mr_trust *t, uint64_t stood_ns, uint64_t moved_ns, uint64_t now_ns)
{
    fade(t, now_ns);
    t->stood_us += (uint32_t)(stood_ns / 1000 < MOST_US ? stood_ns / 1000 : MOST_US);
    t->moved_us += (uint32_t)(moved_ns / 1000 < MOST_US ? moved_ns / 1000 : MOST_US);
    while (t->stood_us + t->moved_us > MOST_US) {
        t->stood_us /= 2;
        t->moved_us /= 2;
    }
}

void mr_trust_stood(struct mr_trust *t, uint64_t stood_ns, uint64_t now_ns)
{
    add_times(t, stood_ns, 0, now_ns);
}

void mr_trust_moved(struct mr_trust *t, uint64_t moved_ns, uint64_t now_ns)
{
    if (t->stood_us)
        add_times(t, 0, moved_ns, now_ns);
}

uint32_t mr_trust_loss(const struct mr_trust *t, uint64_t now_ns)
{
    uint64_t tried = faded(t->tried, ns_since_seen(t, now_ns), half_ns(t));
    uint64_t lost = faded(t->lost, ns_since_seen(t, now_ns), half_ns(t));

    return (uint32_t)(lost * MILLION / (tried + PRIOR));
}

static uint64_t value_by_loss(const struct mr_trust *t, const struct mr_trust_way *way, uint64_t now_ns)
{
    uint64_t loss = mr_trust_loss(t, now_ns);
    uint64_t stall = (uint64_t)MR_TRUST_STALL_NS * way->rate_mbps / 8000 / (way->mtu ? way->mtu : 1);

    return MR_TRUST_FULL * MILLION / (MILLION + loss * loss / 1000 * stall / 1000);
}

static uint64_t value_by_time(const struct mr_trust *t, uint64_t now_ns)
{
    uint64_t stood = faded(t->stood_us, ns_since_seen(t, now_ns), half_ns(t));
    uint64_t moved = PRIOR_US + faded(t->moved_us, ns_since_seen(t, now_ns), half_ns(t));

    return MR_TRUST_FULL * moved / (stood + moved);
}

uint32_t mr_trust_value(const struct mr_trust *t, const struct mr_trust_way *way, uint64_t now_ns)
{
    uint64_t by_loss = value_by_loss(t, way, now_ns), by_time = value_by_time(t, now_ns);

    return (uint32_t)(by_loss < by_time ? by_loss : by_time);
}

uint32_t mr_trust_least(const struct mr_trust_way *way)
{
    uint64_t all = (uint64_t)way->rate_mbps + way->others_mbps;

    return all ? (uint32_t)(MR_TRUST_FULL * (uint64_t)way->others_mbps / all) : 0;
}
