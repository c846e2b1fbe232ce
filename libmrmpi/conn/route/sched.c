/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communication scheduler: earliest completion, the least loaded in turn (start-time fair queueing), and striping
 * by weight.
 */
#include "libmrmpi/base/idioms.h"
#include "libmrmpi/conn/route/sched.h"

#define AWAY        (1500ull * MR_SCHED_NS) /* about the latency of a stripe on an idle rail */
#define PACKET_TIME (64ull * MR_SCHED_NS)   /* of a processor, at least, until it has the next packet */

/* The first in turn, among those with the least due. */
static unsigned take_least(const struct mr_sched *s, const struct mr_load *load, unsigned n, uint32_t excluded)
{
    unsigned i = s->next < n ? s->next : 0, best = n;

    for (unsigned k = 0; k < n; k++) {
        if (load[i].up && !(excluded >> i & 1) && (best == n || s->due[i] < s->due[best]))
            best = i;
        i = i + 1 < n ? i + 1 : 0;
    }
    return best;
}

/*
 * For a packet that answers an arrived packet: the same again, for a quantum. Messages that wait for each other need no
 * second rail, and a waiter polls first where the last one came from.
 */
static unsigned take_same(const struct mr_sched *s, const struct mr_load *load, unsigned n, uint32_t excluded)
{
    unsigned last = mr_sched_last(s, n);

    return s->used < MR_SCHED_QUANTUM && load[last].up && !(excluded >> last & 1) ? last
                                                                                  : take_least(s, load, n, excluded);
}

static unsigned next_in_turn(const struct mr_sched *s, const struct mr_load *load, unsigned n, uint32_t excluded)
{
    unsigned i = s->next < n ? s->next : 0;

    for (unsigned k = 0; k < n; k++) {
        if (load[i].up && !(excluded >> i & 1))
            return i;
        i = i + 1 < n ? i + 1 : 0;
    }
    return n;
}

static uint64_t time_for(const struct mr_sched *s, const struct mr_load *l, uint64_t len)
{
    uint64_t time = (len + MR_SCHED_PACKET) * s->kib_time / 1024;
    uint32_t weight = mr_load_weight(l);

    return weight == MR_WEIGHT_MAX ? time : time * MR_WEIGHT_MAX / (weight ? weight : 1);
}

static uint64_t arrival_time(const struct mr_sched *s, const struct mr_load *l, uint64_t len)
{
    return (*l->until > s->clock ? *l->until : s->clock) + time_for(s, l, len);
}

/* The earliest completion if all were idle. */
static unsigned find_fastest(const struct mr_sched *s, const struct mr_load *load, unsigned n, uint32_t excluded,
                             uint64_t len)
{
    uint64_t least = UINT64_MAX;
    unsigned best = n;

    for (unsigned i = 0; i < n; i++) {
        uint64_t time = time_for(s, &load[i], len) + load[i].after;

        if (load[i].up && !(excluded >> i & 1) && time < least) {
            best = i;
            least = time;
        }
    }
    return best;
}

/* The earliest completion; of equals one of the same port as the last, which comes last. */
static unsigned find_soonest(const struct mr_sched *s, const struct mr_load *load, unsigned n, uint32_t excluded,
                             uint64_t len, unsigned last)
{
    unsigned best = n, i = last;
    uint64_t best_end = 0;

    for (unsigned k = 0; k < n; k++) {
        uint64_t end;

        i = i + 1 < n ? i + 1 : 0;
        if (!load[i].up || excluded >> i & 1)
            continue;
        end = arrival_time(s, &load[i], len) + load[i].after;
        if (best == n || end < best_end ||
            (end == best_end && load[i].until == load[last].until && load[best].until != load[last].until)) {
            best = i;
            best_end = end;
        }
    }
    return best;
}

/*
 * A program that sends less than one port takes stays with that port: few completion queues give many completions at a
 * time, and a slow port is not asked while a fast one is idle. Of its subchannels (paths, lanes) each has its turn. For
 * a quantum no other subchannel is sought.
 */
static unsigned take_soonest(const struct mr_sched *s, const struct mr_load *load, unsigned n, uint32_t excluded,
                             uint64_t len)
{
    unsigned last = s->next < n ? s->next : 0;

    if (s->used < MR_SCHED_QUANTUM && load[last].up && !(excluded >> last & 1))
        return last;
    return find_soonest(s, load, n, excluded, len, last);
}

/*
 * Each gets its share. Over unequal ports this is the part carried by the time the fast port has carried the rest: no
 * packet is overtaken by later ones, since those wait for it. So a far adapter carries the part that the near one has
 * no time for. A short answer finds the fast port idle, or nearly so.
 */
static unsigned take_fair(const struct mr_sched *s, const struct mr_load *load, unsigned n, uint32_t excluded,
                          uint64_t len)
{
    if (unlikely(s->uneven))
        return s->answers && len < MR_SCHED_LONG ? find_fastest(s, load, n, excluded, len)
                                                 : find_soonest(s, load, n, excluded, len, mr_sched_last(s, n));
    if (mr_sched_stays(s, load) && !(excluded >> s->home & 1))
        return s->home;
    return s->answers ? take_same(s, load, n, excluded) : take_least(s, load, n, excluded);
}

void mr_sched_tell_time(struct mr_sched *s, uint64_t ns)
{
    s->clock = ns * MR_SCHED_NS;
    if (s->packets == 1 && (s->uneven || !s->answers))
        s->bound = s->clock - s->told < s->sent ? 0 : s->bound < MR_SCHED_BOUND ? s->bound + 1 : s->bound;
    s->again = s->packets != 1;
    s->told = s->clock;
    s->run = s->packets = s->stay = 0;
    s->sent = 0;
}

/* False: unequal weights. A new subchannel does not begin with less than the least has carried. */
static bool find_least(struct mr_sched *s, const struct mr_load *load)
{
    uint64_t least = UINT64_MAX;

    for (unsigned rest = s->even, i = 0; rest; rest >>= 1, i++) {
        if (!(rest & 1))
            continue;
        if (load && load[i].weight != MR_WEIGHT_MAX)
            return false;
        least = s->due[i] < least ? s->due[i] : least;
    }
    s->now = least > s->now ? least : s->now;
    s->least = least + MR_SCHED_QUANTUM + 1;
    return true;
}

void mr_sched_even(const struct mr_policy *p, struct mr_sched *s, uint32_t set, unsigned n)
{
    if (s->even)
        find_least(s, NULL);
    s->even = p->kind->turn == MR_TURN_FAIR && !s->uneven ? set : 0;
    s->partly = !n || s->even != UINT32_MAX >> (MR_SUBS_MAX - n);
    s->least = 0;
    s->stay = 0;
}

/*
 * The carried amounts only grow: the least is searched when the next one has too much more than it was. Changed weights
 * are seen then, too.
 */
bool mr_sched_find_least(struct mr_sched *s, const struct mr_load *load)
{
    bool known = s->even && find_least(s, load), even = s->even >> s->next & 1;
    bool is_turn = known && even && mr_sched_is_turn(s);

    if (s->partly || !even || s->again || mr_sched_is_bound(s))
        s->least = 0;
    s->run += s->run < MR_SCHED_RARELY ? MR_SCHED_QUANTUM : 0;
    return is_turn;
}

unsigned mr_sched_take(const struct mr_policy *p, const struct mr_sched *s, const struct mr_load *load, unsigned n,
                       uint32_t excluded, uint64_t len)
{
    switch (p->kind->turn) {
    case MR_TURN_SOONEST:
        return take_soonest(s, load, n, excluded, len);
    case MR_TURN_FAIR:
        return take_fair(s, load, n, excluded, len);
    case MR_TURN_WEIGHTED:
        return take_least(s, load, n, excluded);
    default:
        return next_in_turn(s, load, n, excluded);
    }
}

void mr_sched_tell_backlog(const struct mr_sched *s, const struct mr_load *load, unsigned i, uint64_t len,
                           unsigned under_way, uint64_t since)
{
    uint64_t least = since + under_way / 2 * time_for(s, &load[i], len);

    if (*load[i].until < least)
        *load[i].until = least;
}

/* As many as the port carries in the time that one is away have gone, and only are not confirmed yet. */
bool mr_sched_waits(const struct mr_policy *p, struct mr_sched *s, const struct mr_load *load, unsigned n,
                    uint32_t excluded, unsigned i, uint64_t len, unsigned under_way, uint64_t ns)
{
    unsigned away;

    if (!s->uneven || (p->kind->turn != MR_TURN_FAIR && p->kind->turn != MR_TURN_SOONEST))
        return false;
    away = (unsigned)(AWAY / time_for(s, &load[i], len));
    s->clock = ns * MR_SCHED_NS;
    mr_sched_tell_backlog(s, load, i, len, under_way > away ? under_way - away : 0, s->clock);
    return find_soonest(s, load, n, excluded, len, i) == i;
}

static void use_quantum(struct mr_sched *s, const struct mr_load *load, unsigned i, uint64_t len)
{
    if (i != s->next || s->used >= MR_SCHED_QUANTUM)
        s->used = 0;
    s->next = i;
    s->used += (unsigned)(len < MR_SCHED_QUANTUM ? len : MR_SCHED_QUANTUM) + MR_SCHED_PACKET;
    *load[i].until = arrival_time(s, &load[i], len);
}

/* A subchannel that was down, or has just become heavier, does not catch up with the others. */
static void add_due(struct mr_sched *s, unsigned n, unsigned i, uint64_t cost, uint32_t weight)
{
    s->used = (i == mr_sched_last(s, n) ? s->used : 0) + (unsigned)(cost < MR_SCHED_QUANTUM ? cost : MR_SCHED_QUANTUM);
    if (s->due[i] > s->now)
        s->now = s->due[i];
    s->due[i] = s->now + (weight == MR_WEIGHT_MAX ? cost : cost * MR_WEIGHT_MAX / (weight ? weight : 1));
    s->next = i + 1 < n ? i + 1 : 0;
}

uint64_t mr_sched_note(struct mr_sched *s, uint64_t len)
{
    uint64_t time = (len + MR_SCHED_PACKET) * s->kib_time / 1024;

    s->sent += time;
    s->packets++;
    if (s->run < MR_SCHED_RARELY)
        s->run += (unsigned)(len < MR_SCHED_QUANTUM ? len : MR_SCHED_QUANTUM) + MR_SCHED_PACKET;
    return time;
}

/*
 * With copies slower than the port, at least the port's time passes: with less, short packets would seem to wait for
 * the fast port, and go over a slow one. More may be wrong, and would seem to be a backlog at the next reading of the
 * clock.
 */
static void add_to_run(struct mr_sched *s, const struct mr_load *l, uint64_t len)
{
    uint64_t time = mr_sched_note(s, len);

    if (likely(!s->uneven))
        return;
    *l->until = arrival_time(s, l, len);
    s->clock += mr_sched_is_bound(s) && time > PACKET_TIME ? time : PACKET_TIME;
}

/* The window of another one begins when this one's is used up, or when this one is passed over. */
static void use_window(const struct mr_policy *p, struct mr_sched *s, unsigned n, unsigned i, uint64_t len)
{
    uint32_t window = p->window_bytes ? p->window_bytes : p->window_messages;
    uint64_t used = (i == s->next ? s->used : 0) + (p->window_bytes ? len : 1);

    s->next = used < window ? i : i + 1 < n ? i + 1 : 0;
    s->used = used < window ? (unsigned)used : 0;
}

void mr_sched_count(const struct mr_policy *p, struct mr_sched *s, const struct mr_load *load, unsigned n, unsigned i,
                    uint64_t len)
{
    switch (p->kind->turn) {
    case MR_TURN_FAIR:
        add_due(s, n, i, len + MR_SCHED_PACKET, load[i].weight);
        add_to_run(s, &load[i], len);
        break;
    case MR_TURN_WEIGHTED:
        add_due(s, n, i, MR_SCHED_PACKET, p->of == MR_POLICY_SMALL ? load[i].small_weight : load[i].weight);
        break;
    case MR_TURN_ROUND:
        s->next = i + 1 < n ? i + 1 : 0;
        break;
    case MR_TURN_WINDOW:
        use_window(p, s, n, i, len);
        break;
    case MR_TURN_SOONEST:
        use_quantum(s, load, i, len);
        break;
    }
}

/* Not beyond the next reading of the clock: one timed packet has to go alone. */
void mr_sched_stay(const struct mr_policy *p, struct mr_sched *s, const struct mr_load *load, unsigned n, uint64_t len)
{
    mr_sched_count(p, s, load, n, s->home, len);
    if (s->again)
        return;
    mr_sched_count(p, s, load, n, s->home, MR_SCHED_QUANTUM);
    s->stay = MR_SCHED_QUANTUM;
}

/* Subchannels in turn that are up, whatever their weights; returns how many. */
static unsigned choose_sub(struct mr_sched *s, const struct mr_load *load, unsigned n, unsigned want, unsigned sub[])
{
    unsigned i = s->next < n ? s->next : 0, count = 0;

    for (unsigned k = 0; k < n && count < want; k++) {
        unsigned after = i + 1 < n ? i + 1 : 0;

        if (load[i].up) {
            sub[count++] = i;
            s->next = after;
        }
        i = after;
    }
    return count;
}

static uint64_t sum_of(const uint64_t weight[], unsigned count)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < count; i++)
        total += weight[i];
    return total;
}

static uint64_t least_time(const struct mr_sched *s, const struct mr_load *load, unsigned n, uint64_t len)
{
    uint64_t least = UINT64_MAX;

    for (unsigned i = 0; i < n; i++) {
        uint64_t time = time_for(s, &load[i], len);

        least = load[i].up && time < least ? time : least;
    }
    return least;
}

/*
 * The subchannel of a message that stays whole: the earliest completion, by the amount under way there and the weights.
 * The amount under way shrinks at the rail's speed, so each gets what it carries even while weights are wrong: nothing
 * is measured, since no message is cut. The amount counts twice, because more messages come before this one is done;
 * but a message is also under way while no rail is busy with it (AWAY). A slow rail's longer time counts twice, too: of
 * a few messages its own would be the last to arrive.
 */
static unsigned take_shortest(const struct mr_sched *s, const struct mr_load *load, unsigned n, uint64_t len)
{
    unsigned i = s->next < n ? s->next : 0, best = n;
    uint64_t best_end = 0, least = least_time(s, load, n, len);

    for (unsigned k = 0; k < n; k++) {
        uint64_t busy = 2 * time_for(s, &load[i], load[i].queued), time = time_for(s, &load[i], len);
        uint64_t late = busy > 2 * AWAY ? busy - 2 * AWAY : 0, longer = load[i].up ? time - least : 0;
        uint64_t end = time + (late > longer ? late : longer);

        if (load[i].up && (best == n || end < best_end)) {
            best = i;
            best_end = end;
        }
        i = i + 1 < n ? i + 1 : 0;
    }
    return best;
}

/* 128 bits: a length times a sum of weights */
static uint64_t part_of_weight(uint64_t len, uint64_t weight, uint64_t total)
{
    return total ? (uint64_t)((unsigned __int128)len * weight / total) : len;
}

/*
 * Subchannels whose part of the message is less than the shortest stripe: the lightest goes first, since the others'
 * parts grow by its part. If a check of them is due, all get at least that much instead.
 */
static void drop_light(struct mr_sched *s, uint64_t weight[], unsigned count, uint64_t len, uint64_t shortest)
{
    bool probe = ++s->plans >= MR_PLANS_PROBE;
    uint64_t total = sum_of(weight, count);

    for (;;) {
        unsigned lightest = count;

        for (unsigned i = 0; i < count; i++)
            if (weight[i] && (lightest == count || weight[i] < weight[lightest]))
                lightest = i;
        if (lightest == count || part_of_weight(len, weight[lightest], total) >= shortest)
            break;
        if (probe) {
            for (unsigned i = 0; i < count; i++)
                if (weight[i] && part_of_weight(len, weight[i], total) < shortest)
                    weight[i] = part_of_weight(total, shortest, len) + 1;
            break;
        }
        total -= weight[lightest];
        weight[lightest] = 0;
    }
    if (probe)
        s->plans = 0;
}

unsigned mr_sched_plan(const struct mr_policy *p, struct mr_sched *s, const struct mr_load *load, unsigned n,
                       uint64_t len, uint64_t stripe_min, uint64_t align, struct mr_stripe out[MR_SUBS_MAX])
{
    uint64_t shortest = stripe_min / 2 ? stripe_min / 2 : 1, weight[MR_SUBS_MAX];
    uint64_t most = len / shortest, total, sum = 0, from = 0;
    unsigned sub[MR_SUBS_MAX], count, used = 0, up = 0;

    for (unsigned i = 0; i < n; i++)
        up += load[i].up;
    if (!up)
        return 0;
    if (len < stripe_min || up == 1 || !p->kind->stripes) {
        unsigned i = p->kind->stripes ? take_shortest(s, load, n, len) : mr_sched_pick(p, s, load, n, 0, len);

        *out = (struct mr_stripe){.sub = i, .len = len};
        mr_sched_charge(p, s, load, n, out->sub, len);
        return 1;
    }
    count = choose_sub(s, load, n, most < up ? (unsigned)most : up, sub);
    if (count == up) /* all: the first one posted to has an advantage, which must rotate */
        s->next = sub[0] + 1;
    for (unsigned i = 0; i < count; i++)
        weight[i] = mr_load_weight(&load[sub[i]]);
    drop_light(s, weight, count, len, shortest);
    total = sum_of(weight, count);

    for (unsigned i = 0; i < count; i++) {
        uint64_t to;

        sum += weight[i];
        to = part_of_weight(len, sum, total) + align / 2;
        to -= to % align;
        if (i == count - 1 || sum == total || to > len)
            to = len;
        if (to <= from)
            continue;
        out[used++] = (struct mr_stripe){.sub = sub[i], .offset = from, .len = to - from};
        from = to;
    }
    return used;
}
