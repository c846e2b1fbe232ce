/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time to wait for an acknowledgement. Pure: the caller reads the clock.
 *
 * A smoothed round-trip time and its mean deviation (V. Jacobson, M. Karels, "Congestion Avoidance and Control", 1988,
 * section 2 and appendix A), with the constants and rules of RFC 6298:
 * - 2.2, 2.3: the first sample R gives SRTT = R, RTTVAR = R/2; later ones count 1/8 and 1/4.
 * - 3 (Karn's rule): a packet that was sent more than once gives no sample. The caller sees to that.
 * - 5.5 to 5.7: a time-out doubles the time to wait, up to a maximum; a new sample ends the doubling, and so do several
 *   acknowledgements without a sample (mr_rtt_heard).
 *
 * The receiver delays its acknowledgements by half of the shortest time-out ("t_timeout/2" in M. Koop, R. Kumar, D.
 * Panda, "Can Software Reliability Outperform Hardware Reliability on High Performance Interconnects?", ICS 2008,
 * section 6.2). Samples are taken from the newest packet of an acknowledgement and do not contain this delay; the delay
 * is added to the result, as in RFC 9002, section 6.2.1, with max_ack_delay. Both sides must use the same min_ns.
 */
#ifndef MRMPI_RTT_H
#define MRMPI_RTT_H

#include <stdint.h>

#define MR_RTT_FIRST 4 /* times min_ns: the time-out before the first sample */

struct mr_rtt {
    uint64_t min_ns, max_ns; /* bounds of the time-out */
    uint64_t srtt_ns;        /* 0: no sample yet */
    uint64_t var_ns;
    uint64_t base_ns; /* the time-out without back-off */
    unsigned backoff; /* time-outs since the last sample */
};

static inline uint64_t mr_rtt_clamp(const struct mr_rtt *r, uint64_t ns)
{
    return ns < r->min_ns ? r->min_ns : ns > r->max_ns ? r->max_ns : ns;
}

/* 0 < min_ns <= max_ns < 2^58: about nine years, so no sum overflows. */
static inline void mr_rtt_init(struct mr_rtt *r, uint64_t min_ns, uint64_t max_ns)
{
    *r = (struct mr_rtt){.min_ns = min_ns, .max_ns = max_ns};
    r->base_ns = mr_rtt_clamp(r, MR_RTT_FIRST * min_ns);
}

/* How long the receiver may keep an acknowledgement back. */
static inline uint64_t mr_rtt_ack_delay(uint64_t min_ns)
{
    return min_ns / 2;
}

static inline void mr_rtt_sample(struct mr_rtt *r, uint64_t ns)
{
    int64_t error;

    if (ns > r->max_ns)
        ns = r->max_ns; /* the time-out is no longer in any case */
    if (!ns)
        ns = 1;
    if (!r->srtt_ns) {
        r->srtt_ns = ns;
        r->var_ns = ns / 2;
    } else {
        error = (int64_t)ns - (int64_t)r->srtt_ns;
        r->var_ns = (uint64_t)((int64_t)r->var_ns + ((error < 0 ? -error : error) - (int64_t)r->var_ns) / 4);
        r->srtt_ns = (uint64_t)((int64_t)r->srtt_ns + error / 8);
    }
    r->base_ns = mr_rtt_clamp(r, r->srtt_ns + 4 * r->var_ns + mr_rtt_ack_delay(r->min_ns));
    r->backoff = 0;
}

/*
 * The peer has acknowledged packets without a sample, because they were sent again: the peer is there, so one doubling
 * less. With many losses there are few samples, and the time to wait would grow to its maximum. Ending all doublings at
 * once would be too much: a longer round trip would never give a sample.
 */
static inline void mr_rtt_heard(struct mr_rtt *r)
{
    if (r->backoff)
        r->backoff--;
}

static inline void mr_rtt_expired(struct mr_rtt *r)
{
    if (r->backoff < 63)
        r->backoff++;
}

/* So many time-outs belonged to a lost link: they say nothing about the others. */
static inline void mr_rtt_forgive(struct mr_rtt *r, unsigned timeouts)
{
    r->backoff -= timeouts < r->backoff ? timeouts : r->backoff;
}

/* How long to wait from the sending of a packet. */
static inline uint64_t mr_rtt_timeout(const struct mr_rtt *r)
{
    return r->max_ns >> r->backoff <= r->base_ns ? r->max_ns : r->base_ns << r->backoff;
}

#endif
