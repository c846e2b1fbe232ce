/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue pair closed although packets may have come: they are handed up before the destruction. Its adapter is the
 * test's own, and destroys like a real one: unpolled completions of the queue pair are gone.
 */
#include <errno.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/internal.h"
#include "tests/check.h"

#define COMPLETIONS 8
#define ROOM        100u

struct mr_verbs mr_verbs;

/* ---- the adapter ------------------------------------------------------------------------------------------------- */

static struct ibv_context context;
static struct ibv_cq cq = {.context = &context};
static struct ibv_qp queue_pair = {.context = &context, .qp_num = 7};
static struct ibv_wc pending[COMPLETIONS]; /* a marker is posted after all arrivals */
static unsigned num_pending, markers, destroyed;
static bool failed;

static void complete(uint64_t wr_id, enum ibv_wc_opcode opcode, enum ibv_wc_status status)
{
    ck_assert_uint_lt(num_pending, COMPLETIONS);
    pending[num_pending++] = (struct ibv_wc){.wr_id = wr_id, .opcode = opcode, .status = status, .qp_num = 7};
}

/* One at a time, so the test sees the steps between. */
static int poll_cq(struct ibv_cq *q, int num, struct ibv_wc *wc)
{
    if (!num_pending)
        return 0;
    *wc = pending[0];
    memmove(pending, pending + 1, --num_pending * sizeof pending[0]);
    return 1;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    ck_assert(failed); /* in no other state does all that was posted come back */
    markers++;
    complete(wr->wr_id, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR);
    return 0;
}

struct ibv_qp *(ibv_create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    return &queue_pair;
}

int(ibv_modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    failed |= attr->qp_state == IBV_QPS_ERR;
    return 0;
}

int(ibv_query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
    return EINVAL;
}

int(ibv_destroy_qp)(struct ibv_qp *qp)
{
    destroyed++;
    num_pending = 0;
    return 0;
}

/* ---- the files beside -------------------------------------------------------------------------------------------- */

static bool all_back; /* the receive buffers of a queue pair that has its own */
static bool own;

struct ibv_srq *mr_rx_queue(const struct mr_rx *rx)
{
    static struct ibv_srq srq;

    return own ? NULL : &srq;
}

int mr_rx_open_own(struct mr_rail *rail, struct mr_rx **out, struct ibv_qp *qp, unsigned depth)
{
    static int any;

    *out = (struct mr_rx *)&any;
    return 0;
}

bool mr_rx_is_back(const struct mr_rx *rx)
{
    return all_back;
}

void mr_rx_close(struct mr_rx **rx)
{
    *rx = NULL;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static struct mr_qp qp;
static unsigned arrived;

static void packet(struct mr_wr *wr, const struct mr_wc *wc)
{
    arrived += !wc->error;
}

static struct mr_wr receive = {.done = packet};

static void comes(void)
{
    complete(mr_wr_id(&receive), IBV_WC_RECV, IBV_WC_SUCCESS);
}

static void nothing(struct mr_qp *q)
{
    ck_abort_msg("the queue pair has a new owner");
}

static const struct mr_qp_events events = {.drained = nothing};

static void setup(void)
{
    num_pending = markers = destroyed = arrived = 0;
    failed = own = all_back = false;
    mr_config.log_level = -1;
    mr_config.sq_depth = 16;
    context.ops.poll_cq = poll_cq;
    context.ops.post_send = post_send;
    memset(&mr_verbs, 0, sizeof mr_verbs);
    mr_verbs.num_rails = 1;
    mr_verbs.rail[0] = (struct mr_rail){.dev = &mr_verbs.device[0], .port = 1, .cq = &cq, .cq_room = ROOM};
    mr_verbs.polled = mr_verbs.rail[0].next_polled = &mr_verbs.rail[0];
}

static void open_qp(enum mr_qp_type type)
{
    ck_assert_int_eq(mr_qp_create(&mr_verbs.rail[0], type, 1, &qp, &events, NULL), 0);
}

static void check_gone(void)
{
    ck_assert_uint_eq(destroyed, 1);
    ck_assert_uint_eq(mr_verbs.rail[0].cq_room, ROOM);
    ck_assert_uint_eq(mr_verbs.rail[0].num_qps, 0);
    ck_assert_ptr_null(mr_verbs.later);
}

START_TEST(what_has_come_is_handed_up)
{
    open_qp(MR_QP_RC);
    comes();
    comes();
    mr_qp_retire(&qp);
    ck_assert_ptr_null(qp.qp); /* free for the next one */
    ck_assert(failed);         /* nothing more is acknowledged */
    for (unsigned n = 1; n <= 2; n++) {
        ck_assert_int_eq(mr_verbs_poll(), 1);
        ck_assert_uint_eq(arrived, n);
        ck_assert_uint_eq(destroyed, 0);
    }
    ck_assert_uint_eq(markers, 1);
    ck_assert_int_eq(mr_verbs_poll(), 1);
    check_gone();
}
END_TEST

/* The completion queue is full: waiting completions come first, making room for the marker. */
START_TEST(no_room_for_the_marker)
{
    open_qp(MR_QP_RC);
    mr_verbs.rail[0].cq_room = 0;
    comes();
    mr_qp_retire(&qp);
    ck_assert_int_eq(mr_verbs_poll(), 1);
    ck_assert_int_eq(mr_verbs_poll(), 0);
    ck_assert_uint_eq(arrived, 1);
    ck_assert_uint_eq(markers + destroyed, 0);
    mr_verbs.rail[0].cq_room = ROOM;
    ck_assert_int_eq(mr_verbs_poll(), 1);
    check_gone();
}
END_TEST

/* With receive buffers of its own, the marker does not cover these: they come back in any order. */
START_TEST(until_its_buffers_are_back)
{
    own = true;
    open_qp(MR_QP_UC);
    ck_assert_ptr_nonnull(qp.rx);
    mr_qp_retire(&qp);
    ck_assert_int_eq(mr_verbs_poll(), 1); /* the marker */
    comes();
    ck_assert_int_eq(mr_verbs_poll(), 1);
    ck_assert_uint_eq(arrived, 1);
    ck_assert_uint_eq(destroyed, 0);
    all_back = true;
    ck_assert_int_eq(mr_verbs_poll(), 1);
    check_gone();
}
END_TEST

START_TEST(at_the_end_nothing_stays)
{
    open_qp(MR_QP_RC);
    comes();
    mr_qp_retire(&qp);
    ck_assert_int_eq(mr_verbs_poll(), 1);
    ck_assert_uint_eq(markers, 1);
    mr_qps_all_gone();
    check_gone();
    mr_qps_all_gone();
    ck_assert_uint_eq(destroyed, 1);
}
END_TEST

START_TEST(one_that_is_no_more)
{
    mr_qp_retire(&qp);
    ck_assert_uint_eq(destroyed, 0);
    ck_assert_ptr_null(mr_verbs.later);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("retire");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, what_has_come_is_handed_up);
    tcase_add_test(c, no_room_for_the_marker);
    tcase_add_test(c, until_its_buffers_are_back);
    tcase_add_test(c, at_the_end_nothing_stays);
    tcase_add_test(c, one_that_is_no_more);
    return check_run(c, NULL);
}
