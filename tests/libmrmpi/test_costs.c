/* SPDX-License-Identifier: BSD-3-Clause */
/* Measured inputs of the cost model, over an adapter and a clock of the test's own. */
#include <infiniband/verbs.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/model.h"
#include "libmrmpi/verbs/verbs.h"
#include "tests/check.h"

#define CLOCK_NS   20
#define READS_COPY 3 /* of the clock for each copy: twice before, once after */
#define COPIES     8

struct mr_verbs mr_verbs;

/* ---- the clock and the adapter ----------------------------------------------------------------------------------- */

static uint64_t now_ns, copy_ns, late_ns, fixed_ns, page_ps;
static unsigned reads, late, registered, most_registered, registrations, refused_from, asks;
static unsigned interrupted; /* the registration of this number; 0: none */
static bool copies, refuses;
static struct ibv_mr region;
static char memory[1 << 20];

/*
 * The first reading is of the whole measurement; a copy is between the second and the third reading of its own. The
 * first `late` copies are interrupted.
 */
uint64_t mr_clock_ns(void)
{
    unsigned copy = reads / READS_COPY;
    bool ends_copy = reads && reads % READS_COPY == 0 && copy <= COPIES;

    reads++;
    now_ns += CLOCK_NS + (copies && ends_copy ? copy_ns + (copy <= late ? late_ns * copy : 0) : 0);
    return now_ns;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    ck_assert((char *)addr >= memory && (char *)addr + length <= memory + sizeof memory);
    if (refused_from && registrations + 1 >= refused_from)
        return NULL;
    now_ns += fixed_ns + length / 4096 * page_ps / 1000 + (registrations++ < late ? late_ns * registrations : 0);
    now_ns += registrations == interrupted ? late_ns : 0;
    most_registered = ++registered > most_registered ? registered : most_registered;
    return &region;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
    return ibv_reg_mr(pd, addr, length, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    ck_assert_ptr_eq(mr, &region);
    registered--;
    now_ns += 5000;
    return 0;
}

static int ask(struct mr_link *l)
{
    if (refuses)
        return -EAGAIN;
    ck_assert(!l->keepalive_sent);
    l->keepalive_sent = true;
    asks++;
    now_ns += 150;
    return 0;
}

static const struct mr_link_ops ops = {.ask = ask}, without = {.ask = NULL};

static void setup(void)
{
    char why[64];

    mr_verbs.costs = (struct mr_costs){0};
    mr_costs_may_begin();
    ck_assert_int_eq(mr_config_init(), 0);
    ck_assert_int_eq(mr_model_init(why, sizeof why), 0);
    fixed_ns = 30000;
    page_ps = 300000;
    copy_ns = 8192; /* 32 KiB at 4 GB/s */
    copies = false;
    late = reads = registrations = refused_from = asks = interrupted = 0;
    refuses = false;
}

static void measure(size_t bytes)
{
    copies = bytes == sizeof memory;
    mr_costs_measure_memory(NULL, memory, bytes);
}

#define SEEN(cost) ((unsigned)mr_stat_get(MR_STAT_SEEN_##cost))

/* ---- memory ------------------------------------------------------------------------------------------------------ */

START_TEST(copies_and_registrations)
{
    measure(sizeof memory);
    ck_assert_uint_eq(mr_model.copy_mbps, 4000);
    ck_assert_uint_eq(mr_model.register_ns, 39600);
    ck_assert_uint_eq(mr_model.register_byte_ps, 73); /* 300 ns for each page */
    ck_assert_uint_eq(registered, 0);
    ck_assert_uint_eq(most_registered, 1);
    copy_ns = 100;
    measure(sizeof memory); /* of the next rail: nothing */
    ck_assert_uint_eq(mr_model.copy_mbps, 4000);
    ck_assert_uint_eq(registrations, 3);
}
END_TEST

/* Slow adapters have one long registration fewer. */
START_TEST(registrations_keep_the_budget)
{
    uint64_t begun = now_ns;

    copy_ns = 0;
    measure(sizeof memory);
    ck_assert_uint_le(now_ns - begun, 200000);
    ck_assert_uint_eq(mr_model.register_byte_ps, 73);
    setup();
    copy_ns = 0;
    fixed_ns = 20000;
    page_ps = 150000;
    begun = now_ns;
    measure(sizeof memory);
    ck_assert_uint_le(now_ns - begun, 200000);
    ck_assert_uint_eq(registrations, 4);
    ck_assert_uint_eq(mr_model.register_ns, 24800);
    ck_assert_uint_eq(mr_model.register_byte_ps, 36);
}
END_TEST

/* The single long registration of a slow adapter takes far longer than by its pages. */
START_TEST(a_single_one_is_interrupted)
{
    late_ns = 60000;
    interrupted = 2;
    fixed_ns = 25000;
    page_ps = 150000;
    measure(sizeof memory);
    ck_assert_uint_eq(registrations, 3);
    ck_assert_uint_eq(mr_model.register_ns, 29800);
    ck_assert_uint_eq(mr_model.register_byte_ps, 15);
}
END_TEST

/* Some are interrupted: nothing changes. All but one are: the defaults stay. */
START_TEST(interruptions)
{
    late_ns = 20000;
    late = COPIES - 2;
    measure(sizeof memory);
    ck_assert_uint_eq(mr_model.copy_mbps, 4000);
    ck_assert_uint_eq(mr_model.register_ns, 10500);
    ck_assert_uint_eq(mr_model.register_byte_ps, 15);
    setup();
    late = COPIES - 1;
    measure(sizeof memory);
    ck_assert_uint_eq(mr_model.copy_mbps, 12500);
    ck_assert_str_eq(mr_model_origin(&mr_model, MR_MODEL_COPY_MBPS), "default");
}
END_TEST

/* A hundred times the default, each time. */
START_TEST(refused_measurements)
{
    copy_ns = 100 * 32768 / 12;
    fixed_ns = 1000000;
    page_ps = 100 * 60000;
    measure(sizeof memory);
    ck_assert_uint_eq(mr_model.copy_mbps, 12500);
    ck_assert_uint_eq(mr_model.register_ns, 10500);
    ck_assert_uint_eq(mr_model.register_byte_ps, 15);
    ck_assert_uint_eq(SEEN(MEMORY_MBPS), 120);
    ck_assert_uint_eq(registrations, 2); /* no second round of that */
}
END_TEST

/* Copies take no time in a simulator without a rate; adapters may have no room, and queues few buffers. */
START_TEST(nothing_to_measure)
{
    copy_ns = 0;
    refused_from = 2;
    measure(sizeof memory);
    ck_assert_uint_eq(registered, 0);
    ck_assert_uint_eq(registrations, 1);
    setup();
    measure(64 << 10);
    ck_assert_uint_eq(registrations, 0);
    for (unsigned i = 0; i < MR_MODEL_INPUTS; i++)
        ck_assert_str_eq(mr_model_origin(&mr_model, i), "default");
}
END_TEST

/* ---- round trips ------------------------------------------------------------------------------------------------- */

/* The i-th write of no bytes has been confirmed ns after it was posted. */
static void confirm(struct mr_link *l, uint64_t ns, bool failed)
{
    ck_assert(l->keepalive_sent);
    l->keepalive_sent = false;
    now_ns = mr_verbs.costs.posted_ns + ns - CLOCK_NS;
    mr_costs_answered(l, failed);
}

START_TEST(round_trips)
{
    struct mr_link l = {.ops = &ops, .state = MR_LINK_OPEN}, other = l;

    mr_costs_answered(&l, false);
    mr_costs_answered(&other, false);             /* one link at a time */
    for (unsigned i = 0; i < MR_COSTS_TRIPS; i++) /* whose process is late sometimes */
        confirm(&l, i % 3 ? 7000 : 5100 + i, false);
    ck_assert_uint_eq(asks, MR_COSTS_TRIPS);
    ck_assert_uint_eq(mr_model.trip_ns, 5100 + 890);
    ck_assert_uint_eq(SEEN(TRIP_NS), 5100 + 890);
    mr_costs_answered(&l, false); /* and once */
    ck_assert_uint_eq(asks, MR_COSTS_TRIPS);
}
END_TEST

START_TEST(late_round_trips_are_refused)
{
    struct mr_link l = {.ops = &ops, .state = MR_LINK_OPEN};

    mr_costs_answered(&l, false);
    for (unsigned i = 0; i < MR_COSTS_TRIPS; i++)
        confirm(&l, 175000, false);
    ck_assert_uint_eq(mr_model.trip_ns, 1750);
    setup();
    mr_costs_answered(&l, false);
    for (unsigned i = 0; i < MR_COSTS_TRIPS; i++)
        confirm(&l, 4000 << i, false); /* no two alike */
    ck_assert_uint_eq(mr_model.trip_ns, 1750);
}
END_TEST

/* A link breaks, another goes on; links without asks, with full queues, and broken ones are left alone. */
START_TEST(links_that_break)
{
    struct mr_link l = {.ops = &ops, .state = MR_LINK_OPEN}, none = {.ops = &without, .state = MR_LINK_OPEN},
                   closed = l;

    mr_costs_answered(&none, false);
    mr_costs_answered(&closed, true);
    mr_verbs.costs.quiet = false; /* packets are under way */
    mr_costs_answered(&l, false);
    mr_verbs.costs.quiet = true;
    refuses = true;
    mr_costs_answered(&l, false);
    ck_assert_uint_eq(asks, 0);
    refuses = false;
    mr_costs_answered(&l, false);
    confirm(&l, 5000, false);
    confirm(&l, 5000, true);
    ck_assert_uint_eq(asks, 2);
    mr_costs_answered(&l, false);
    for (unsigned i = 1; i < MR_COSTS_TRIPS; i++)
        confirm(&l, 5000, false);
    ck_assert_uint_eq(mr_model.trip_ns, 5000 + 890);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("costs");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, copies_and_registrations);
    tcase_add_test(c, registrations_keep_the_budget);
    tcase_add_test(c, a_single_one_is_interrupted);
    tcase_add_test(c, interruptions);
    tcase_add_test(c, refused_measurements);
    tcase_add_test(c, nothing_to_measure);
    tcase_add_test(c, round_trips);
    tcase_add_test(c, late_round_trips_are_refused);
    tcase_add_test(c, links_that_break);
    return check_run(c, NULL);
}
