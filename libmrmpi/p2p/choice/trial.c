/* SPDX-License-Identifier: BSD-3-Clause */
/* Two protocols are tried, class by class: see trial.h. */
#include "libmrmpi/base/idioms.h"
#include "libmrmpi/p2p/choice/trial.h"

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
            if (t->class[l][d].known && t->class[l][d].second)
                return true;
    return false;
}

static void open_class(struct mr_trials *t, struct mr_trial_class *c)
{
    unsigned at = (unsigned)(c - &t->class[0][0]), len = at / MR_TRIAL_DEPTHS, depth = at % MR_TRIAL_DEPTHS;

    *c = (struct mr_trial_class){.known = true, .left = MR_TRIAL_FIRST, .run = MR_TRIAL_RUN, .least = UINT32_MAX};
    c->second = lesser_one_says_second(t, len, depth);
    if (!depth && !c->second)
        c->left = c->run = MR_TRIAL_RUN_MOST / 2;
}

static void take_choice(struct mr_trials *t, bool second)
{
    t->settled = t->settled && t->second == second;
    t->second = second;
    t->samples = 0;
}

/* True if the other protocol is no better, or unknown for want of time. */
static void try_less_often(struct mr_trial_class *c)
{
    c->left = c->run;
    c->run = c->run < MR_TRIAL_RUN_MOST ? c->run * 2 : c->run;
}

static void change_class(struct mr_trials *t, struct mr_trial_class *c)
{
    if (t->now && t->second != t->now->second)
        try_less_often(t->now);
    t->now = c;
    if (!c->known)
        open_class(t, c);
    t->settled = false;
    t->bytes = 0;
    take_choice(t, c->second);
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
 * Messages sent by the first protocol for a while faster than copies are copied later, and then nothing moves at all.
 */
static void add_sample(struct mr_trials *t, uint64_t took_ns, uint64_t copy_ps)
{
    struct mr_trial_class *c = t->now;
    uint64_t ps = took_ns * 1024000 / t->bytes + 1;
    uint32_t took, last = c->last[t->second];

    if (!t->second && ps < copy_ps)
        ps = copy_ps;
    took = ps < UINT32_MAX ? (uint32_t)ps : UINT32_MAX;
    c->ps[t->second] = last && last < took ? last : took;
    c->last[t->second] = took;
}

/*
 * Both protocols are known. Leaving the first takes a larger difference than coming back to it; and the second is
 * judged by its best since the last check, since more and more of its memory is registered meanwhile.
 */
static bool second_is_better(const struct mr_trial_class *c)
{
    return c->second ? c->least < c->ps[false] : c->ps[true] < c->ps[false] - c->ps[false] / 16;
}

static void end_trial(struct mr_trials *t)
{
    struct mr_trial_class *c = t->now;
    bool second = second_is_better(c);

    if (second == c->second) {
        try_less_often(c);
    } else {
        c->run = MR_TRIAL_RUN;
        c->left = MR_TRIAL_RUN;
    }
    c->second = second;
    c->least = c->ps[second];
    c->slow = 0;
    take_choice(t, second);
}

/* This number of eighths can use the second protocol now. A result with fewer than at the trial is no longer valid. */
static bool has_more_to_gain(struct mr_trial_class *c, unsigned can)
{
    if (c->second || !c->tried)
        return false;
    if (can < c->tried)
        c->tried = can ? (uint8_t)can : 1;
    return can >= 2u * c->tried;
}

static void keep_watch(struct mr_trials *t, unsigned can, bool may_second)
{
    struct mr_trial_class *c = t->now;
    uint32_t took = c->ps[t->second];

    c->least = took < c->least ? took : c->least;
    c->slow = took > c->least + c->least / 4 ? c->slow + 1 : 0;
    if (c->slow == MR_TRIAL_SLOW) {
        c->left = 0;
        c->least = took;
        c->slow = 0;
    }
    if (c->left)
        c->left--;
    if (has_more_to_gain(c, can)) {
        c->left = 0;
        c->run = MR_TRIAL_RUN;
    }
    if (c->left || (!c->second && !(can && may_second)))
        return;
    if (!c->second)
        c->tried = (uint8_t)can;
    c->last[!c->second] = 0; /* of another time */
    take_choice(t, !c->second);
}

void mr_trial_check(struct mr_trials *t, uint64_t now_ns, unsigned can, bool must_not, uint64_t copy_ps)
{
    struct mr_trial_class *c = t->now;
    bool trying = t->second != c->second;

    if (must_not && (t->second || trying)) {
        c->last[false] = 0; /* once allowed, the first protocol is timed anew */
        take_choice(t, false);
    } else if (!t->settled) {
        t->settled = true;
    } else if (!t->refused) {
        add_sample(t, now_ns - t->since_ns, copy_ps);
        if (!trying)
            keep_watch(t, can, !must_not && c->ps[false] <= MR_TRIAL_COPIES * copy_ps);
        else if (++t->samples == 2)
            end_trial(t);
    } else if (trying && t->second) {
        c->left = c->run;
        take_choice(t, false);
    }
    t->refused = false;
    t->bytes = 0;
    t->since_ns = now_ns;
}
