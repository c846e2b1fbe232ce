/* SPDX-License-Identifier: BSD-3-Clause */
/* The pace of reads: see pace.h. */
#include "libmrmpi/conn/route/pace.h"

#define SPARE 4 /* a part of the reads beside that, since they may become more */

static int64_t pace_depth(const struct mr_pace *p, uint64_t rate)
{
    return p->late_ns ? (int64_t)(rate / 1000 * p->late_ns / 1000000) + 1 : MR_PACE_DEPTH;
}

void mr_pace_set(struct mr_pace *p, uint64_t rate, uint64_t arrived, uint64_t now_ns)
{
    int64_t depth = pace_depth(p, rate);

    if (mr_pace_limits(p) && rate)
        mr_pace_fill(p, now_ns);
    else if (p->bucket.rate && rate)
        p->bucket.filled_ns = now_ns;
    else
        *p = (struct mr_pace){.late_ns = p->late_ns,
                              .bucket = mr_bucket_full(rate, depth, now_ns),
                              .arrived = arrived,
                              .arrived_ns = now_ns};
    mr_bucket_set(&p->bucket, rate, depth);
}

void mr_pace_arrived(struct mr_pace *p, uint64_t arrived, uint64_t now_ns)
{
    uint64_t came = arrived - p->arrived, passed = now_ns > p->arrived_ns ? now_ns - p->arrived_ns : 0, most, took;

    if (!mr_pace_limits(p) || __builtin_mul_overflow(passed, p->bucket.rate, &most))
        most = 0;
    most /= 2 * MR_BUCKET_SECOND_NS;
    p->owed += came;
    took = p->owed < most ? p->owed : most;
    mr_bucket_take(&p->bucket, took);
    p->owed -= took;
    if (!mr_pace_limits(p))
        p->owed = 0;
    else if (p->owed > MR_PACE_READING)
        p->owed = MR_PACE_READING;
    p->taken += came;
    p->arrived = arrived;
    p->arrived_ns = now_ns;
}

bool mr_pace_fill(struct mr_pace *p, uint64_t now_ns)
{
    mr_bucket_fill(&p->bucket, now_ns, true);
    return p->bucket.left > 0;
}

static uint32_t measured_rate(const struct mr_pace *p, unsigned n, uint64_t passed_ns)
{
    uint64_t most = 0, kb;

    for (unsigned i = 0; i < n; i++)
        most = p[i].taken > most ? p[i].taken : most;
    kb = (most + most / SPARE) * 1000000 / passed_ns;
    return kb < MR_PACE_ALL ? (uint32_t)kb : MR_PACE_ALL - 1;
}

static bool report_differs(uint32_t a, uint32_t b)
{
    uint32_t off = a > b ? a - b : b - a;

    return a == MR_PACE_ALL || (off && (!a || !b)) || off > a / SPARE;
}

bool mr_pace_report(struct mr_pace_report *r, struct mr_pace *p, unsigned n, uint64_t now_ns)
{
    uint64_t passed = now_ns - r->since_ns;
    bool waited = false;
    uint32_t kb;

    for (unsigned i = 0; i < n; i++)
        waited |= p[i].waited || p[i].held;
    if (passed < MR_PACE_INTERVAL_NS && (!waited || r->told == MR_PACE_ALL))
        return false;
    kb = waited ? MR_PACE_ALL : measured_rate(p, n, passed);
    for (unsigned i = 0; i < n; i++) {
        p[i].waited = false;
        p[i].taken = 0;
    }
    r->since_ns = now_ns;
    if (kb == r->told || !report_differs(r->told, kb))
        return false;
    r->told = kb;
    return true;
}
