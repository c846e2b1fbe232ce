/* SPDX-License-Identifier: BSD-3-Clause */
/* Timed copies, registrations, round trips and posts, for the cost model. */
#include "libmrmpi/verbs/verbs.h"

#include <infiniband/verbs.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/model.h"

#define COPY_BYTES (32u << 10)
#define COPIES     8u /* from memory not copied before, to the same */
#define PAGE       4096u
#define SHORT      MR_MODEL_REGISTER_MIN
#define LONG       (3 * MR_MODEL_REGISTER_MIN)
/*
 * A write of no bytes is confirmed sooner than a read of some bytes is complete: both adapters access memory for a
 * read, and the answer has data. With the model's calibration the write takes 0.86 us, the read 1.75 us.
 */
#define DATA_NS 890u

#define BUDGET_NS 200000u /* of registrations; the first two are made in any case */

/* Without the time of reading the clock. */
static uint64_t time_since(uint64_t before_ns, uint64_t begun_ns)
{
    uint64_t took = mr_clock_ns() - begun_ns, clock = begun_ns - before_ns;

    return took > clock ? took - clock : 0;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* A first touch of a page is not part of a copy. */
static void touch_pages(char *memory, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += PAGE)
        *(volatile char *)(memory + at) = 0;
}

static void measure_copies(char *memory, size_t bytes)
{
    struct mr_least least = {0};
    char *to = memory + COPIES * COPY_BYTES;
    uint64_t ns;

    if (bytes < 2 * COPIES * COPY_BYTES)
        return;
    touch_pages(memory, 2 * COPIES * COPY_BYTES);
    for (size_t i = 0; i < COPIES; i++) {
        uint64_t before = mr_clock_ns(), begun = mr_clock_ns();

        memcpy(to + i * COPY_BYTES, memory + i * COPY_BYTES, COPY_BYTES);
        mr_least_add(&least, time_since(before, begun));
    }
    ns = mr_least_ns(&least);
    if (ns)
        mr_model_measured(MR_MODEL_COPY_MBPS, COPY_BYTES * 1000ull / ns);
}

/* False: the device has no room. */
static bool measure_registration(struct ibv_pd *pd, char *memory, size_t bytes, struct mr_least *least)
{
    uint64_t before = mr_clock_ns(), begun = mr_clock_ns();
    struct ibv_mr *mr =
        ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);

    if (!mr)
        return false;
    mr_least_add(least, time_since(before, begun));
    ibv_dereg_mr(mr);
    return true;
}

/*
 * A second registration confirms the first. If the budget does not suffice for a second long one, the first counts
 * alone unless interrupted: three times the pages take at most three times as long.
 */
static uint64_t long_ns(const struct mr_least *more, uint64_t some_ns)
{
    if (more->num != 1)
        return mr_least_ns(more);
    return more->least_ns <= LONG / SHORT * some_ns ? more->least_ns : 0;
}

static void measure_registrations(struct ibv_pd *pd, char *memory, size_t bytes)
{
    struct mr_least some = {0}, more = {0};
    uint64_t begun = mr_clock_ns(), last = begun, took[2] = {0}, some_ns, more_ns;

    if (bytes < LONG)
        return;
    for (unsigned i = 0; i < 4 && (i < 2 || last - begun + took[i % 2] < BUDGET_NS); i++) {
        uint64_t from = last;

        if (!measure_registration(pd, memory, i % 2 ? LONG : SHORT, i % 2 ? &more : &some))
            return;
        last = mr_clock_ns();
        took[i % 2] = last - from;
    }
    some_ns = mr_least_ns(&some);
    more_ns = long_ns(&more, some_ns);
    if (some_ns)
        mr_model_measured(MR_MODEL_REGISTER_NS, some_ns);
    if (some_ns && more_ns > some_ns)
        mr_model_measured(MR_MODEL_REGISTER_BYTE_PS, (more_ns - some_ns) * 1000 / (LONG - SHORT));
}

void mr_costs_measure_memory(struct ibv_pd *pd, void *memory, size_t bytes)
{
    uint64_t begun = mr_clock_ns();

    if (mr_verbs.costs.memory)
        return;
    mr_verbs.costs.memory = true;
    measure_copies(memory, bytes);
    measure_registrations(pd, memory, bytes);
    mr_log(MR_LOG_DEBUG, "costs of memory measured in %.1f us", (double)(mr_clock_ns() - begun) / 1e3);
}

/* ---- connections ------------------------------------------------------------------------------------------------- */

static void begin_trip(struct mr_link *l)
{
    struct mr_costs *c = &mr_verbs.costs;
    uint64_t before = mr_clock_ns();

    c->posted_ns = mr_clock_ns();
    c->link = l->ops->ask(l) ? NULL : l;
    if (c->link)
        mr_least_add(&c->post, time_since(before, c->posted_ns));
}

static void end_trips(const struct mr_costs *c)
{
    uint64_t trip = mr_least_ns(&c->trip), post = mr_least_ns(&c->post);

    if (trip)
        mr_model_measured(MR_MODEL_TRIP_NS, trip + DATA_NS);
    if (post)
        mr_stat_set(MR_STAT_SEEN_POST_NS, post); /* the call alone; the input has the completion, too */
}

void mr_costs_may_begin(void)
{
    mr_verbs.costs.quiet = true;
}

void mr_costs_answered(struct mr_link *l, bool failed)
{
    struct mr_costs *c = &mr_verbs.costs;

    if (c->link == l) {
        c->link = NULL;
        if (failed)
            return;
        mr_least_add(&c->trip, mr_clock_ns() - c->posted_ns);
        if (++c->trips == MR_COSTS_TRIPS)
            end_trips(c);
    }
    if (!failed && c->quiet && !c->link && c->trips < MR_COSTS_TRIPS && l->ops->ask)
        begin_trip(l);
}
