/* SPDX-License-Identifier: BSD-3-Clause */
/* Which completion queue is looked at when: that of the rail which has something, for a streak, then the others. */
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/internal.h"
#include "tests/check.h"

enum { RAILS = 4 };

struct mr_verbs mr_verbs;
struct mr_verbs_handlers mr_verbs_up;

/* ---- the adapters ------------------------------------------------------------------------------------------------ */

static struct ibv_context context;
static struct ibv_cq cq[RAILS];
static struct mr_wr wr;
static unsigned has[RAILS]; /* completions of each that have not been taken */
static unsigned looks[RAILS], handled;

static int poll_cq(struct ibv_cq *q, int num, struct ibv_wc *wc)
{
    unsigned i = (unsigned)(q - cq), n = has[i] < (unsigned)num ? has[i] : (unsigned)num;

    looks[i]++;
    has[i] -= n;
    for (unsigned k = 0; k < n; k++)
        wc[k] = (struct ibv_wc){.wr_id = (uintptr_t)&wr, .status = IBV_WC_SUCCESS};
    return (int)n;
}

static void done(struct mr_wr *w, const struct mr_wc *wc)
{
    handled++;
}

void mr_device_lost(struct mr_device *dev)
{
    ck_abort();
}

void mr_rx_repost(void)
{
}

void mr_rx_repost_streams(void)
{
}

static void setup(void)
{
    context.ops.poll_cq = poll_cq;
    wr.done = done;
    memset(&mr_verbs, 0, sizeof mr_verbs);
    memset(looks, 0, sizeof looks);
    memset(has, 0, sizeof has);
    handled = 0;
    for (unsigned i = 0; i < RAILS; i++) {
        cq[i].context = &context;
        mr_verbs.rail[i] = (struct mr_rail){.index = i, .cq = &cq[i], .next_polled = &mr_verbs.rail[(i + 1) % RAILS]};
    }
    mr_verbs.polled = &mr_verbs.rail[0];
}

/* So many come to a rail one by one, each when the one before has been handled. Looks at the others meanwhile. */
static unsigned come(unsigned rail, unsigned num)
{
    unsigned before = 0, after = 0;

    for (unsigned i = 0; i < RAILS; i++)
        before += i == rail ? 0 : looks[i];
    for (unsigned i = 0; i < num; i++) {
        has[rail] = 1;
        ck_assert_int_eq(mr_verbs_poll(), 1);
    }
    for (unsigned i = 0; i < RAILS; i++)
        after += i == rail ? 0 : looks[i];
    return after - before;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* The others are looked at after 8, 16, ... 128 completions, and then after each 128. */
START_TEST(streaks_grow_while_others_have_nothing)
{
    unsigned num = MR_POLL_STREAK;

    ck_assert_uint_eq(come(0, MR_POLL_STREAK), 0);
    for (; num < MR_POLL_STREAK_MOST; num *= 2)
        ck_assert_uint_eq(come(0, 2 * num), RAILS - 1);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(come(0, MR_POLL_STREAK_MOST), RAILS - 1);
}
END_TEST

/* Another rail that has something is found, and its streaks begin anew. */
START_TEST(another_rail_begins_anew)
{
    come(0, 1000);
    has[2] = 1;
    for (unsigned i = 0; has[2]; i++) {
        ck_assert_uint_le(i, MR_POLL_STREAK_MOST);
        has[0] = 1;
        mr_verbs_poll();
    }
    has[0] = 0;
    come(2, MR_POLL_STREAK - 1);
    ck_assert_uint_eq(come(2, 1), RAILS - 1);
}
END_TEST

/* Of two floods each is handled as often as the other, in turns of no more than a long streak. */
START_TEST(floods_have_turns)
{
    unsigned of_first = 0, in_row = 0;

    come(0, 1000);
    for (unsigned i = 0; i < 1000; i++) {
        unsigned before;

        has[0] = has[1] = 1000;
        mr_verbs_poll();
        before = 1000 - has[0];
        of_first += before;
        in_row = before ? in_row + before : 0;
        ck_assert_uint_le(in_row, MR_POLL_STREAK_MOST);
    }
    ck_assert_uint_gt(of_first, handled / 3);
    ck_assert_uint_lt(of_first, handled * 2 / 3);
}
END_TEST

/* A look that finds nothing anywhere asks each once, and stays where it was. */
START_TEST(an_idle_look_asks_each_once)
{
    come(1, 5);
    memset(looks, 0, sizeof looks);
    ck_assert_int_eq(mr_verbs_poll(), 0);
    for (unsigned i = 0; i < RAILS; i++)
        ck_assert_uint_eq(looks[i], 1);
    ck_assert_ptr_eq(mr_verbs.polled, &mr_verbs.rail[1]);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("poll");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, streaks_grow_while_others_have_nothing);
    tcase_add_test(c, another_rail_begins_anew);
    tcase_add_test(c, floods_have_turns);
    tcase_add_test(c, an_idle_look_asks_each_once);
    return check_run(c, NULL);
}
