/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The polling of rails, and the cost of empty polls: a rail with all the traffic causes few polls of others, and none
 * of these waits long beside a busy rail. The adapters are the test's own.
 */
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/internal.h"
#include "tests/check.h"

#define RAILS 4u

struct mr_verbs mr_verbs;
struct mr_verbs_handlers mr_verbs_up;

static struct ibv_context context;
static struct ibv_cq cq[RAILS];
static unsigned has[RAILS], taken[RAILS], in_vain[RAILS]; /* completions there, taken; looks at an empty queue */
static struct mr_wr work[RAILS];
static struct mr_rail *lost; /* its queue cannot be polled */

static int poll_cq(struct ibv_cq *q, int num, struct ibv_wc *wc)
{
    unsigned rail = (unsigned)(q - cq);

    if (&mr_verbs.rail[rail] == lost)
        return -1;
    if (!has[rail]) {
        in_vain[rail]++;
        return 0;
    }
    has[rail]--;
    *wc = (struct ibv_wc){.wr_id = mr_wr_id(&work[rail]), .status = IBV_WC_SUCCESS};
    return 1;
}

static void done(struct mr_wr *wr, const struct mr_wc *wc)
{
    taken[wr - work]++;
}

/* ---- the files beside -------------------------------------------------------------------------------------------- */

void mr_device_lost(struct mr_device *dev)
{
    for (unsigned i = 0; i < RAILS; i++)
        if (mr_verbs.rail[i].next_polled == lost)
            mr_verbs.rail[i].next_polled = lost->next_polled;
    if (mr_verbs.polled == lost)
        mr_verbs.polled = lost->next_polled;
    lost->next_polled = NULL;
    lost = NULL;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void setup(void)
{
    mr_config.log_level = -1;
    context.ops.poll_cq = poll_cq;
    lost = NULL;
    memset(&mr_verbs, 0, sizeof mr_verbs);
    memset(has, 0, sizeof has);
    memset(taken, 0, sizeof taken);
    memset(in_vain, 0, sizeof in_vain);
    mr_verbs.num_rails = RAILS;
    for (unsigned i = 0; i < RAILS; i++) {
        cq[i].context = &context;
        work[i].done = done;
        mr_verbs.rail[i] = (struct mr_rail){.index = i, .dev = &mr_verbs.device[i], .port = 1, .cq = &cq[i]};
        mr_verbs.rail[i].next_polled = &mr_verbs.rail[(i + 1) % RAILS];
    }
    mr_verbs.polled = &mr_verbs.rail[0];
}

static unsigned all_in_vain(void)
{
    return in_vain[0] + in_vain[1] + in_vain[2] + in_vain[3];
}

/* Polls a rail that has a completion each time, and others beside. */
static void look(unsigned busy, unsigned looks)
{
    for (unsigned i = 0; i < looks; i++) {
        has[busy]++;
        ck_assert_int_eq(mr_verbs_poll(), 1);
    }
}

START_TEST(one_that_is_alone_costs_few_looks_at_others)
{
    look(2, 64);
    memset(in_vain, 0, sizeof in_vain);
    look(2, 640);
    ck_assert_uint_eq(taken[2], 704);
    ck_assert_uint_le(all_in_vain(), 640 / MR_POLL_STREAK);
    for (unsigned i = 0; i < RAILS; i++)
        ck_assert_uint_ge(in_vain[i], i == 2 ? 0 : 640 / MR_POLL_STREAK / RAILS);
}
END_TEST

START_TEST(none_waits_long_beside_it)
{
    for (unsigned late = 1; late < RAILS; late++)
        for (unsigned before = 0; before < 100; before++) {
            unsigned waits = 0;

            setup();
            look(0, before);
            has[late] = 1;
            for (; !taken[late]; waits++)
                look(0, 1);
            ck_assert_uint_le(waits, (RAILS - 1) * MR_POLL_STREAK + 1);
        }
}
END_TEST

/* Two busy rails have equal parts, whichever they are. */
START_TEST(those_that_are_busy_take_turns)
{
    for (unsigned i = 0; i < RAILS; i++)
        for (unsigned k = 0; k < RAILS; k++) {
            setup();
            look(i, 100);
            memset(taken, 0, sizeof taken);
            has[i] = has[k] = 2000;
            for (unsigned n = 0; n < 1000; n++)
                ck_assert_int_eq(mr_verbs_poll(), 1);
            ck_assert_uint_ge(taken[k], i == k ? 1000 : 500 - 4 * MR_POLL_STREAK);
            ck_assert_uint_le(taken[k], i == k ? 1000 : 500 + 4 * MR_POLL_STREAK);
        }
}
END_TEST

START_TEST(an_idle_look_is_at_all)
{
    for (unsigned before = 0; before < 100; before++) {
        setup();
        look(1, before);
        memset(in_vain, 0, sizeof in_vain);
        ck_assert_int_eq(mr_verbs_poll(), 0);
        for (unsigned i = 0; i < RAILS; i++)
            ck_assert_uint_ge(in_vain[i], 1);
        ck_assert_uint_le(all_in_vain(), RAILS + 1);
    }
}
END_TEST

/* A rail with an awaited completion is polled first. This is only a beginning: others have their turns. */
START_TEST(one_that_is_named_is_first)
{
    unsigned waits = 0;

    look(0, 3);
    has[2] = 1;
    mr_verbs_poll_first(&mr_verbs.rail[2]);
    memset(in_vain, 0, sizeof in_vain);
    ck_assert_int_eq(mr_verbs_poll(), 1);
    ck_assert_uint_eq(taken[2], 1);
    ck_assert_uint_eq(all_in_vain(), 0);
    for (has[3] = 1; !taken[3]; waits++) {
        mr_verbs_poll_first(&mr_verbs.rail[0]);
        look(0, 1);
    }
    ck_assert_uint_le(waits, (RAILS - 1) * MR_POLL_STREAK + 1);
    mr_verbs.rail[1].next_polled = NULL; /* its device is lost */
    mr_verbs_poll_first(&mr_verbs.rail[1]);
    ck_assert_ptr_ne(mr_verbs.polled, &mr_verbs.rail[1]);
}
END_TEST

START_TEST(one_that_is_lost_is_left_out)
{
    for (unsigned gone = 0; gone < RAILS; gone++) {
        setup();
        look(0, 100);
        lost = &mr_verbs.rail[gone];
        for (unsigned n = 0; lost && n < 100; n++) {
            has[0] += gone != 0;
            mr_verbs_poll();
        }
        ck_assert_ptr_null(lost);
        look((gone + 1) % RAILS, 1000);
        for (unsigned i = 0; i < RAILS; i++)
            ck_assert_uint_eq(has[i], 0);
    }
}
END_TEST

/* A queue pair without room may have some: nobody has looked since it was filled. */
START_TEST(a_full_queue_has_been_looked_at)
{
    struct mr_qp qp = {.rail = &mr_verbs.rail[0]};

    for (unsigned n = 0; n < 3; n++) {
        ck_assert(!mr_qp_is_full(&qp));
        ck_assert(!mr_qp_is_full(&qp));
        mr_verbs_poll(); /* nothing of the broken rail */
        ck_assert(mr_qp_is_full(&qp));
        ck_assert(mr_qp_is_full(&qp));
        qp.finished++; /* there was room, and is none again */
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("looking at rails");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, one_that_is_alone_costs_few_looks_at_others);
    tcase_add_test(t, none_waits_long_beside_it);
    tcase_add_test(t, those_that_are_busy_take_turns);
    tcase_add_test(t, an_idle_look_is_at_all);
    tcase_add_test(t, one_that_is_named_is_first);
    tcase_add_test(t, one_that_is_lost_is_left_out);
    tcase_add_test(t, a_full_queue_has_been_looked_at);
    return check_run(t, NULL);
}
