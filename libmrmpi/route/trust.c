/* SPDX-License-Identifier: BSD-3-Clause */
/* The health of a way: an estimate of loss that fades. */
#include "libmrmpi/route/trust.h"

#define ONE          65536u
#define MOST         (1024u * ONE) /* packets in the counts: both are halved beyond */
#define PRIOR        (16u * ONE)   /* packets that are assumed to have arrived */
#define HALF_NS      160000000ull  /* in which the counts fade to a half after the first failure; doubles with each */
#define DOUBLED_MOST 6u            /* times: 10 s */
#define STALLS       3u            /* that tell how often it stands still */
#define APART        10u           /* times as long as a stall: the next one has nothing to do with the last */
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

static uint64_t passed(const struct mr_trust *t, uint64_t now_ns)
{
    return now_ns > t->seen_ns ? now_ns - t->seen_ns : 0;
}

static void fade(struct mr_trust *t, uint64_t now_ns)
{
    t->tried = faded(t->tried, passed(t, now_ns), half_ns(t));
    t->lost = faded(t->lost, passed(t, now_ns), half_ns(t));
    t->seen_ns = now_ns;
}

void mr_trust_tried(struct mr_trust *t, unsigned tried, unsigned lost, uint64_t now_ns)
{
    fade(t, now_ns);
    t->tried += (tried < MOST / ONE ? tried : MOST / ONE) * ONE;
    t->lost += (lost < MOST / ONE ? lost : MOST / ONE) * ONE;
    while (t->tried > MOST) {
        t->tried /= 2;
        t->lost /= 2;
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

bool mr_trust_stood(struct mr_trust *t, uint64_t stood_ns, uint64_t now_ns)
{
    if (!t->stalls || now_ns - t->stalled_ns > APART * stood_ns) {
        t->stalls = 0;
        t->stalls_ns = now_ns - stood_ns;
        t->stood_ns = 0;
    }
    t->stalls += t->stalls < UINT8_MAX;
    t->stood_ns += stood_ns;
    t->stalled_ns = now_ns;
    return t->stalls >= STALLS && 2 * t->stood_ns > now_ns - t->stalls_ns;
}

uint32_t mr_trust_loss(const struct mr_trust *t, uint64_t now_ns)
{
    uint64_t tried = faded(t->tried, passed(t, now_ns), half_ns(t));
    uint64_t lost = faded(t->lost, passed(t, now_ns), half_ns(t));

    return (uint32_t)(lost * MILLION / (tried + PRIOR));
}

uint32_t mr_trust_value(const struct mr_trust *t, uint64_t now_ns)
{
    uint64_t loss = mr_trust_loss(t, now_ns), part = loss * loss * MR_TRUST_STALL / MILLION; /* of a million */

    return (uint32_t)(MR_TRUST_FULL * MILLION / (MILLION + part));
}
