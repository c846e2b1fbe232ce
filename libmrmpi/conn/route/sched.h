/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communication scheduler: the subchannel of a packet, and the cut of a large message over several, by the policy
 * of its class (conn/route/policy.h). Pure: from data to data. Weights are relative; equal weights give even striping
 * and, to packets of one length, round robin (net/stripe/adapt.h makes weights follow measurements).
 */
#ifndef MRMPI_SCHED_H
#define MRMPI_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/conn/route/policy.h"

#define MR_SUBS_MAX 32 /* subchannels to one peer: pairs of rails times LID paths */

#define MR_WEIGHT_MAX 1024u
#define MR_WEIGHT_MIN 32u

struct mr_load {
    bool up;
    uint32_t weight;       /* up to MR_WEIGHT_MAX */
    uint32_t small_weight; /* the same, for small messages under weighted-round-robin */
    uint64_t queued;       /* bytes of large messages under way; counts for whole messages, if others are cut */
    uint64_t *until;       /* the time when its port will have sent its queue, in units of time */
    uint32_t after; /* additional time of packets, because its adapter is far from the process: in units of time */
    uint32_t sick;  /* reduction of the weight by the health of its rails, of MR_WEIGHT_MAX, and by all if */
    uint32_t
        small_sick; /* the way costs more than it carries; for small messages the reduction by losses counts, too */
};

/* The weight for cutting large messages. Of a sick subchannel at least 1, for the case without a healthier one. */
static inline uint32_t mr_load_weight(const struct mr_load *l)
{
    uint32_t weight = l->weight;

    if (likely(!l->sick))
        return weight;
    weight = weight * (MR_WEIGHT_MAX - l->sick) / MR_WEIGHT_MAX;
    return weight ? weight : 1;
}

#define MR_SCHED_NS      16u    /* units of time in a nanosecond */
#define MR_SCHED_QUANTUM 4096u  /* bytes over the same subchannel before the next is sought, if there is hurry */
#define MR_SCHED_SELDOM  65536u /* the same of short packets over unequal rails: they take the processor's time */
#define MR_SCHED_RARELY  (4 * MR_SCHED_SELDOM) /* of all packets, where the processor is slower than the heaviest */
#define MR_SCHED_FAR     (200u * MR_SCHED_NS)  /* time of a packet between the sockets of a host, about */
#define MR_SCHED_PACKET  512u                  /* cost of a packet, whatever its length, in bytes of a long packet */
#define MR_SCHED_LONG    3072u                 /* a packet that takes so much longer over a slow rail needs the time */
#define MR_SCHED_BOUND   3u /* packets in a row whose copies took longer than the heaviest: the processor is slower */

struct mr_sched {
    unsigned next;  /* the next in turn, among equals */
    unsigned home;  /* of even ones: the subchannel of all packets while the processor is slower, */
    unsigned stay;  /* and so many bytes more without a question: charged already */
    unsigned used;  /* of the window, or quantum, of the subchannel that next is (MR_TURN_FAIR: was): messages or bytes.
                       Not of even ones that take turns */
    bool answers;   /* MR_TURN_FAIR: the next packet follows an arrival, not a departure */
    bool uneven;    /* not all weights are the same by the ports' rates, or some adapters are far */
    bool partly;    /* some are not even */
    bool again;     /* the next packet needs the time, too: to measure one packet */
    unsigned bound; /* packets in a row that took the processor longer: up to MR_SCHED_BOUND */
    /* MR_TURN_FAIR: of the packets since the time was last told */
    unsigned run;      /* its bytes, */
    unsigned packets;  /* how many, */
    uint64_t sent;     /* and the heaviest's time for them, in units of time; */
    uint64_t told;     /* the time of that */
    uint64_t now;      /* MR_TURN_FAIR, MR_TURN_WEIGHTED: the former load of the subchannel taken last */
    uint64_t clock;    /* the time, as last told, and the known time of packets since */
    uint32_t kib_time; /* the heaviest's time for 1024 bytes, by its port's rate: in units of time */
    unsigned plans;    /* made since all subchannels had a part */
    uint32_t even;     /* MR_TURN_FAIR, not uneven: set of active ones that are not excluded; else nothing */
    uint64_t *due;     /* the load of each, in bytes of the heaviest: less goes first. The owner's, one for each */
    uint64_t least; /* a subchannel with less load takes its turn; at its discovery the even ones had the same weight.
                       0: to be found for each packet */
};

struct mr_stripe {
    unsigned sub;
    uint64_t offset, len;
};

/* The heaviest's time for 1024 bytes, at a rate in Mb/s. */
static inline uint32_t mr_sched_kib_time(uint32_t mbps)
{
    return 1024u * 8u * 1000u * MR_SCHED_NS / (mbps ? mbps : 1);
}

/* The processor, which copies packets, is slower than the heaviest: nothing waits there. */
static inline bool mr_sched_is_bound(const struct mr_sched *s)
{
    return s->bound == MR_SCHED_BOUND;
}

/*
 * True if the next pick needs the time. Not for each packet: reading a clock takes as long as posting a message. Seldom
 * if nothing waits, whatever the length, and then for two packets in a row, to check that nothing waits.
 */
static inline bool mr_sched_wants_time(const struct mr_policy *p, const struct mr_sched *s, unsigned n, uint64_t len)
{
    if (n < 2 || p->kind->turn != MR_TURN_FAIR)
        return n > 1 && p->kind->turn == MR_TURN_SOONEST && s->used >= MR_SCHED_QUANTUM;
    if (!s->uneven)
        return s->again || s->run >= (s->bound % MR_SCHED_BOUND ? MR_SCHED_QUANTUM : MR_SCHED_RARELY);
    return s->again || (mr_sched_is_bound(s)  ? s->run >= MR_SCHED_RARELY
                        : len < MR_SCHED_LONG ? s->run >= MR_SCHED_SELDOM
                                              : s->answers || s->run >= MR_SCHED_QUANTUM);
}

void mr_sched_tell_time(struct mr_sched *s, uint64_t ns);
uint64_t mr_sched_note(struct mr_sched *s, uint64_t len); /* sent since: returns the heaviest's time */
/*
 * Tells that so many packets of about len bytes were under way over subchannel i since then, in units of time, as far
 * as known. By the port's rate some of them may have left; half of them are assumed to remain, and a port that carries
 * less than its rate, because another process uses it, too, is never believed to be idle.
 */
void mr_sched_tell_backlog(const struct mr_sched *s, const struct mr_load *load, unsigned i, uint64_t len,
                           unsigned under_way, uint64_t since);

unsigned mr_sched_take(const struct mr_policy *p, const struct mr_sched *s, const struct mr_load *load, unsigned n,
                       uint32_t excluded, uint64_t len);
void mr_sched_count(const struct mr_policy *p, struct mr_sched *s, const struct mr_load *load, unsigned n, unsigned i,
                    uint64_t len);

/*
 * The subchannel for the next packet or whole message, of len bytes: an active one, outside of the set excluded (bit i:
 * subchannel i); n if there is none. Fair ones count bytes, not packets: if a program sends a short and a long message
 * in turn, one rail must not get all long ones.
 */
static inline unsigned mr_sched_pick(const struct mr_policy *p, const struct mr_sched *s, const struct mr_load *load,
                                     unsigned n, uint32_t excluded, uint64_t len)
{
    return n == 1 ? !load[0].up || excluded : mr_sched_take(p, s, load, n, excluded, len);
}

/*
 * The same for short packets over even subchannels, in a few instructions: mr_sched_even sets them, after each change
 * of them or of the policy. A packet that follows a departure goes to s->next, if that is its turn, or after the search
 * for the least load: false if not, or if the subchannels are not even any more. A subchannel may carry
 * MR_SCHED_QUANTUM more than the least, so short packets of any lengths go round.
 */
void mr_sched_even(const struct mr_policy *p, struct mr_sched *s, uint32_t set, unsigned n);
static inline bool mr_sched_is_turn(const struct mr_sched *s)
{
    return s->due[s->next] < s->least;
}
/* All goes over s->home: the processor is slower than that. */
static inline bool mr_sched_stays(const struct mr_sched *s, const struct mr_load *load)
{
    return mr_sched_is_bound(s) && s->even >> s->home & 1 && load[s->home].weight == MR_WEIGHT_MAX;
}
/*
 * A packet that is no answer takes the same subchannel, and is charged. mr_sched_stays_on: true if the next does, too.
 */
void mr_sched_stay(const struct mr_policy *p, struct mr_sched *s, const struct mr_load *load, unsigned n, uint64_t len);
static inline bool mr_sched_stays_on(struct mr_sched *s, uint64_t len)
{
    unsigned cost = (unsigned)len + MR_SCHED_PACKET, on = s->stay >= cost;

    s->stay -= on ? cost : 0;
    return on;
}
bool mr_sched_find_least(struct mr_sched *s, const struct mr_load *load);
/* An answer takes the subchannel taken last, if that may take another. */
static inline unsigned mr_sched_last(const struct mr_sched *s, unsigned n)
{
    return (s->next && s->next < n ? s->next : n) - 1;
}
static inline bool mr_sched_takes_again(const struct mr_sched *s, const struct mr_load *load, unsigned last)
{
    return s->used < MR_SCHED_QUANTUM && s->even >> last & 1 && load[last].weight == MR_WEIGHT_MAX;
}

/*
 * Subchannel i, picked for a packet of len bytes, has no room at ns: so many are under way there, of about that length.
 * True: the packet arrives sooner by waiting than over another subchannel, outside of the set excluded: i is fast, and
 * a packet on a slow one holds up all later packets. Even ones do not wait for each other.
 */
bool mr_sched_waits(const struct mr_policy *p, struct mr_sched *s, const struct mr_load *load, unsigned n,
                    uint32_t excluded, unsigned i, uint64_t len, unsigned under_way, uint64_t ns);

/* It has taken a packet, or a message, of len bytes. */
static inline void mr_sched_charge(const struct mr_policy *p, struct mr_sched *s, const struct mr_load *load,
                                   unsigned n, unsigned i, uint64_t len)
{
    if (n > 1)
        mr_sched_count(p, s, load, n, i, len);
}
/*
 * The same for the turn of s->next, which is returned, and for the last one taken again. A subchannel that was down
 * does not catch up with the others.
 */
static inline unsigned mr_sched_take_turn(struct mr_sched *s, unsigned n, uint64_t len)
{
    unsigned i = s->next;

    s->due[i] = (s->due[i] > s->now ? s->due[i] : s->now) + len + MR_SCHED_PACKET;
    s->next = i + 1 < n ? i + 1 : 0;
    return i;
}
static inline void mr_sched_take_again(struct mr_sched *s, unsigned last, uint64_t len)
{
    if (s->due[last] > s->now)
        s->now = s->due[last];
    s->due[last] = s->now + len + MR_SCHED_PACKET;
    s->used += (unsigned)len + MR_SCHED_PACKET;
    s->packets++;
}

/*
 * Cuts [0, len) into stripes, each on a subchannel of its own; the cuts are the nearest multiples of align. A policy
 * without striping leaves messages whole. Messages shorter than stripe_min stay whole, on the subchannel that will have
 * carried them first by its queue and the weights; and no stripe is made shorter than about half of stripe_min: a
 * subchannel with a smaller part gets none, except for one message in MR_PLANS_PROBE, so that it is not forgotten.
 * Returns the number of stripes (0: no subchannel is up); their offsets ascend and they cover the message without gaps.
 */
#define MR_PLANS_PROBE 64
unsigned mr_sched_plan(const struct mr_policy *p, struct mr_sched *s, const struct mr_load *load, unsigned n,
                       uint64_t len, uint64_t stripe_min, uint64_t align, struct mr_stripe out[MR_SUBS_MAX]);

#endif
