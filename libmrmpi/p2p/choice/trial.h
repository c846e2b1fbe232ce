/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trials: find the faster of two protocols for a stream of messages, during sending. The result depends on the length
 * of messages and on the bytes under way at a time, so each class of loads has a result of its own. A class without a
 * result begins with that of a lesser class, or with the first protocol.
 *
 * A sample is the time for 1024 bytes, over MR_TRIAL_BYTES or two windows, from the beginning of a burst if bursts end.
 * Of each protocol the lesser of the last two samples counts, since time is only ever added: a registration, here or at
 * the peer, decides nothing. The other protocol is tried for two samples, after the traffic under way has changed over:
 * after MR_TRIAL_FIRST samples, then MR_TRIAL_RUN, then twice as many after each trial without a gain, and soon if
 * times stay longer by a quarter. A trial in which the peer did not cooperate proves nothing. Nor does a trial that
 * ends with its load. And a trial with an eighth of the messages shows an eighth of the gain: the second protocol is
 * tried anew whenever twice as many messages can use it as then, or as at any time since.
 *
 * Pure: no messages, and the clock is given.
 */
#ifndef MRMPI_TRIAL_H
#define MRMPI_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_TRIAL_BYTES    (256u << 10)
#define MR_TRIAL_FIRST    8u /* samples before the first trial */
#define MR_TRIAL_RUN      16u
#define MR_TRIAL_RUN_MOST 256u
#define MR_TRIAL_SLOW     4u /* samples in a row that are slower by a quarter: the other protocol is tried soon */
#define MR_TRIAL_COPIES   2u /* a receiver that falls behind copies messages twice */
#define MR_TRIAL_LENGTHS  3u /* means: less than 6 KiB, than 12 KiB, more */
#define MR_TRIAL_DEPTHS   4u /* under way: less than shallow, than 2 and 4 times as much, more */

struct mr_trial_class {
    uint32_t ps[2], last[2]; /* for 1024 bytes: the lesser of the last two, the last; 0: not known */
    uint32_t least;          /* of the samples since its choice */
    uint8_t slow;            /* consecutive samples a quarter above that */
    bool known, second;      /* there is a result; the second protocol is the better one */
    uint8_t tried; /* eighths of the messages that could use the second protocol at the last trial, or fewer that could
                      since */
    uint16_t left, run; /* samples until the other protocol is tried; the number after that, if it is not better */
};

struct mr_trials {
    struct mr_trial_class class[MR_TRIAL_LENGTHS][MR_TRIAL_DEPTHS];
    uint32_t shallow;           /* bytes under way; fewer hide no round trip: there the second protocol is tried late */
    struct mr_trial_class *now; /* NULL: no message yet */
    bool second;                /* the protocol in use */
    bool settled;               /* being timed */
    bool refused;               /* the peer did not go along, or time went elsewhere, since the last check */
    unsigned samples;           /* of the present trial */
    uint32_t mean;              /* of lengths */
    uint64_t most;              /* under way at a time */
    uint64_t bytes, since_ns;   /* of the sample */
};

/*
 * A message of len bytes is sent, of a burst with up to most bytes under way; begins: the first of its burst. True:
 * call mr_trial_check.
 */
bool mr_trial_sent(struct mr_trials *t, size_t len, uint64_t most, bool begins);
/*
 * can: eighths of the messages that can use the second protocol; 0: no trial possible. must_not: it has to be left.
 * copy_ps: a processor's time to copy 1024 bytes, as done at both ends by the first protocol, and not by the second. If
 * messages take more than MR_TRIAL_COPIES times this, there is nothing to gain.
 */
void mr_trial_check(struct mr_trials *t, uint64_t now_ns, unsigned can, bool must_not, uint64_t copy_ps);
/* The sample under way says nothing. */
static inline void mr_trial_spoil(struct mr_trials *t)
{
    t->refused = true;
}
/* The second protocol is known to be the better one. */
static inline bool mr_trial_pays(const struct mr_trials *t)
{
    return t->second && t->now->known && t->now->second && t->now->ps[true];
}

#endif
