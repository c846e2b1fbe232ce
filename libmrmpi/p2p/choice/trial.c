/* SPDX-License-Identifier: BSD-3-Clause */
/* Two protocols are tried, class by class: see trial.h. */
#include "libmrmpi/base/idioms.h"
#include "libmrmpi/p2p/choice/trial.h"

enum {
    FIRST = 1,
    BOTH = 3,                     /* bits of ways */
    PIECES = 1 + MR_LEARN_SAMPLES /* of a trial: the first one does not count */
};

static struct mr_trial_class *trial_class(struct mr_trials *t)
{
    unsigned len = t->mean >= 12u << 10 ? 2 : t->mean >= 6u << 10 ? 1 : 0, depth = 0;

    while (depth + 1 < MR_TRIAL_DEPTHS && t->most >= (uint64_t)t->shallow << depth)
        depth++;
    return &t->class[len][depth];
}

/* If the second protocol is better with less under way, of messages no longer, it is most likely better here, too. */
static bool lesser_one_says_second(const struct mr_trials *t, unsigned len, unsigned depth)
{
    for (unsigned l = 0; l <= len; l++)
        for (unsigned d = 0; d <= depth; d++)
            if (t->class[l][d].learn.kept)
                return true;
    return false;
}

/* Where hardly anything is under way the second protocol is tried late. */
static void open_class(struct mr_trials *t, struct mr_trial_class *c)
{
    unsigned at = (unsigned)(c - &t->class[0][0]), len = at / MR_TRIAL_DEPTHS, depth = at % MR_TRIAL_DEPTHS;
    bool second = lesser_one_says_second(t, len, depth), late = !depth && !second;

    c->learn = (struct mr_learn){.kept = second, .known = late};
    mr_learn_next(&c->learn, BOTH, PIECES);
    if (late)
        c->learn.rest.left = c->learn.rest.length = MR_BACKOFF_MOST / 4;
}

static void take_choice(struct mr_trials *t, bool second)
{
    t->settled = t->settled && t->second == second;
    t->second = second;
}

static void change_class(struct mr_trials *t, struct mr_trial_class *c)
{
    t->now = c;
    if (!c->learn.begun)
        open_class(t, c);
    t->settled = false;
    t->bytes = 0;
    take_choice(t, c->learn.kept);
}

bool mr_trial_sent(struct mr_trials *t, size_t len, uint64_t most, bool begins)
{
    struct mr_trial_class *c;
    uint64_t enough;

    t->mean = t->mean ? (uint32_t)((15 * (uint64_t)t->mean + len) / 16) : (uint32_t)len;
    t->most = most;
    c = trial_class(t);
    if (unlikely(c != t->now))
        change_class(t, c);
    enough = 2 * most > MR_TRIAL_BYTES ? 2 * most : MR_TRIAL_BYTES;
    if (!t->settled)
        enough /= 2;
    t->bytes += len;
    return t->bytes >= 2 * enough || (begins && t->bytes >= enough);
}

/*
 * The time by the second protocol, if all messages could use it: an eighth of them shows an eighth of the difference.
 * can is rounded down, so there may be nearly another eighth. The result is at least a quarter of the first protocol's
 * time.
 */
static uint64_t of_all(uint64_t ps, uint64_t first_ps, unsigned can)
{
    uint64_t gain = ps < first_ps ? (first_ps - ps) * 8 / (can + 1) : 0;

    if (ps >= first_ps)
        return first_ps + (ps - first_ps) * 8 / (can + 1);
    return first_ps - (gain < first_ps / 4 * 3 ? gain : first_ps / 4 * 3);
}

/*
 * Messages sent by the first protocol for a while faster than copies are copied later, and then nothing moves at all.
 */
static void add_sample(struct mr_trials *t, uint64_t took_ns, unsigned can, uint64_t copy_ps)
{
    uint64_t ps = took_ns * 1024000 / t->bytes + 1;
    uint32_t first_ps = mr_trial_first_ps(t);

    if (!t->second && ps < copy_ps)
        ps = copy_ps;
    if (t->second && first_ps && can && can < 8)
        ps = of_all(ps, first_ps, can);
    if (t->second)
        ps += ps / MR_LEARN_GAIN;
    mr_learn_took(&t->now->learn, t->second, ps);
}

/* This number of eighths can use the second protocol now. A result with fewer than at the trial is no longer valid. */
static bool has_more_to_gain(struct mr_trial_class *c, unsigned can)
{
    if (!c->tried)
        return false;
    if (can < c->tried)
        c->tried = can ? (uint8_t)can : 1;
    return can >= 2u * c->tried;
}

static bool next_way(struct mr_trials *t, unsigned can, uint64_t copy_ps)
{
    struct mr_trial_class *c = t->now;
    bool may = c->learn.kept || (can && mr_trial_first_ps(t) <= MR_TRIAL_COPIES * copy_ps), second;

    if (!c->learn.kept && !t->second && has_more_to_gain(c, can))
        mr_learn_anew(&c->learn);
    second = mr_learn_next(&c->learn, may ? BOTH : FIRST, PIECES);
    if (second && !t->second && !c->learn.kept)
        c->tried = (uint8_t)can;
    if (may)
        mr_learn_long(&c->learn, MR_TRIAL_LONG);
    return second;
}

void mr_trial_check(struct mr_trials *t, uint64_t now_ns, unsigned can, bool must_not, uint64_t copy_ps)
{
    struct mr_learn *l = &t->now->learn;

    if (must_not && (t->second || l->kept)) {
        take_choice(t, false);
    } else {
        if (t->refused && t->second && !l->kept)
            mr_learn_void(l);
        else if (t->settled && !t->refused)
            add_sample(t, now_ns - t->since_ns, can, copy_ps);
        t->settled = true;
        take_choice(t, must_not ? false : next_way(t, can, copy_ps));
    }
    t->refused = false;
    t->bytes = 0;
    t->since_ns = now_ns;
}
