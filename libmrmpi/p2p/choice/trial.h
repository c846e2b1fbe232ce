/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trials: find the faster of two protocols for a stream of messages, during sending. The result depends on the length
 * of messages and on the bytes under way at a time, so each class of loads has a learner of its own (base/learn.h). A
 * new class begins with the result of a lesser class, or with the first protocol.
 *
 * An operation of the learner is a piece of the stream: MR_TRIAL_BYTES or two windows, from the beginning of a burst if
 * bursts end. Its sample is the time for 1024 bytes. The first piece after a change of the protocol does not count,
 * because traffic under way has to change over. The second protocol has to gain twice as much as the learner asks for:
 * its buffers have to stay registered. A piece in which the peer did not cooperate proves nothing. A trial with an
 * eighth of the messages shows an eighth of the difference, which is scaled to all of them; what it shows holds no
 * longer if twice as many messages can use the second protocol as then, or as at any time since: there is a trial at
 * once. Pieces are long, so they count as MR_TRIAL_LONG operations in the learner's rests.
 *
 * Pure: no messages, and the clock is given.
 */
#ifndef MRMPI_TRIAL_H
#define MRMPI_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/learn.h"

#define MR_TRIAL_BYTES   (256u << 10)
#define MR_TRIAL_LONG    8u
#define MR_TRIAL_COPIES  2u /* a receiver that falls behind copies messages twice */
#define MR_TRIAL_LENGTHS 3u /* means: less than 6 KiB, than 12 KiB, more */
#define MR_TRIAL_DEPTHS  4u /* under way: less than shallow, than 2 and 4 times as much, more */

struct mr_trial_class {
    struct mr_learn learn; /* way 0 is the first protocol */
    uint8_t tried; /* eighths of the messages that could use the second protocol at the last trial, or fewer that could
                      since */
};

struct mr_trials {
    struct mr_trial_class class[MR_TRIAL_LENGTHS][MR_TRIAL_DEPTHS];
    uint32_t shallow;           /* bytes under way; fewer hide no round trip: there the second protocol is tried late */
    struct mr_trial_class *now; /* NULL: no message yet */
    bool second;                /* the protocol in use */
    bool settled;               /* being timed */
    bool refused;               /* the peer did not go along, or time went elsewhere, since the last check */
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
/* The time for 1024 bytes by the first protocol; 0: not known. */
static inline uint32_t mr_trial_first_ps(const struct mr_trials *t)
{
    return t->now ? mr_median_of(&t->now->learn.time[false]) : 0;
}
/* The second protocol is the better one, as far as known. */
static inline bool mr_trial_is_second(const struct mr_trials *t)
{
    return t->now && t->now->learn.kept;
}
/* The second protocol is known to be the better one. */
static inline bool mr_trial_pays(const struct mr_trials *t)
{
    return t->second && t->now->learn.kept && t->now->learn.time[true].num;
}

#endif
