/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a thread has stopped time, by its own time (stuck.h). Pure. */
#include "simfab/engine/clock/stuck.h"

#define STUCK_NS  30000000000ull   /* own time before a thread is named */
#define RARELY_NS 1800000000000ull /* most time until the next report */

static bool is_due(const struct stuck *t)
{
    uint64_t pause = t->told_ns < RARELY_NS ? t->told_ns : RARELY_NS;

    return t->own_ns >= STUCK_NS && t->own_ns - t->told_ns >= pause;
}

static uint64_t since(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

/* Within one run, all time except waits for a processor. If others had turns in between, the thread's run time. */
static uint64_t own_time(const struct stuck *t, const struct stuck_sample *now)
{
    uint64_t ran = since(t->ran_ns, now->ran_ns);
    uint64_t most = since(since(t->queued_ns, now->queued_ns), since(t->at_ns, now->at_ns));

    return now->run == t->run && most > ran ? most : ran;
}

bool stuck_add(struct stuck *t, uint64_t since_ns, const struct stuck_sample *now, bool *calls)
{
    bool first = t->since_ns != since_ns, due;

    *calls = !first && now->calls != t->calls;
    if (first)
        *t = (struct stuck){.since_ns = since_ns};
    else
        t->own_ns += own_time(t, now);
    t->at_ns = now->at_ns;
    t->ran_ns = now->ran_ns;
    t->calls = now->calls;
    t->queued_ns = now->queued_ns;
    t->run = now->run;
    due = is_due(t);
    if (due)
        t->told_ns = t->own_ns;
    return due;
}
