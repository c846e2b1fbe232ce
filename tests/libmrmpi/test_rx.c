/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time to post receive buffers again: not while a peer waits for an answer to their packets, and not too late. The
 * adapter is the test's own.
 */
#include <errno.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/retained.h"
#include "libmrmpi/verbs/internal.h"
#include "tests/check.h"

#define DEPTH   128
#define BATCH   16
#define FILLED  0x5a
#define LONGEST 4096

struct mr_verbs mr_verbs;
struct mr_verbs_handlers mr_verbs_up;

/* ---- the adapter ------------------------------------------------------------------------------------------------- */

static struct ibv_context context;
static struct ibv_cq cq = {.context = &context};
static struct ibv_srq shared = {.context = &context};
static struct ibv_qp queue_pair = {.context = &context};
static struct ibv_mr region;
static uint64_t posted[DEPTH];
static struct ibv_wc pending[DEPTH];
static unsigned num_posted, posts, refuse_at, num_pending;

static int take(struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    posts++;
    for (; wr; wr = wr->next) {
        if (refuse_at && !--refuse_at) {
            *bad = wr;
            return ENOMEM;
        }
        ck_assert_uint_lt(num_posted, DEPTH);
        for (unsigned i = 0; i < num_posted; i++)
            ck_assert_uint_ne(posted[i], wr->wr_id); /* a buffer is posted once */
        posted[num_posted++] = wr->wr_id;
    }
    return 0;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return take(wr, bad);
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return take(wr, bad);
}

static int poll_cq(struct ibv_cq *q, int num, struct ibv_wc *wc)
{
    unsigned n = num_pending < (unsigned)num ? num_pending : (unsigned)num;

    memcpy(wc, pending, n * sizeof *wc);
    num_pending -= n;
    memmove(pending, pending + n, num_pending * sizeof *wc);
    return (int)n;
}

struct ibv_srq *(ibv_create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    return &shared;
}

int(ibv_destroy_srq)(struct ibv_srq *srq)
{
    num_posted = 0;
    return 0;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return &region;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned access)
{
    return &region;
}

int(ibv_dereg_mr)(struct ibv_mr *mr)
{
    return 0;
}

/* ---- the files beside -------------------------------------------------------------------------------------------- */

static unsigned arrived, kept_of_them;
static bool keeps;
static enum mr_retained_term term;
static struct {
    struct mr_retained *retained;
    unsigned char *payload;
} kept[DEPTH];

static void packet(struct mr_rail *rail, const void *data, size_t len)
{
    struct mr_retained *retained = keeps ? mr_retained_take((const char *)data + 40, LONGEST - 40, term) : NULL;

    arrived++;
    if (!retained)
        return;
    kept[kept_of_them].retained = retained;
    kept[kept_of_them++].payload = memset((char *)(uintptr_t)data + 40, FILLED, LONGEST - 40);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static struct mr_rx *rx;

static void setup(void)
{
    num_posted = posts = refuse_at = num_pending = arrived = kept_of_them = 0;
    keeps = false;
    mr_config.log_level = -1;
    context.ops.poll_cq = poll_cq;
    context.ops.post_recv = post_recv;
    context.ops.post_srq_recv = post_srq_recv;
    memset(&mr_verbs, 0, sizeof mr_verbs);
    mr_verbs_up.packet = packet;
    mr_verbs.num_rails = 1;
    mr_verbs.packet_max = LONGEST;
    mr_verbs.rail[0] = (struct mr_rail){.dev = &mr_verbs.device[0], .port = 1, .cq = &cq};
    mr_verbs.polled = mr_verbs.rail[0].next_polled = &mr_verbs.rail[0];
    ck_assert_int_eq(mr_rx_open(&mr_verbs.rail[0], &rx, DEPTH, LONGEST, false), 0);
    ck_assert_uint_eq(num_posted, DEPTH);
    mr_verbs.rail[0].rx = rx;
    posts = 0;
}

static void teardown(void)
{
    mr_rx_close(&rx);
    ck_assert_ptr_null(mr_verbs.rx_due);
}

static void come(unsigned n, enum ibv_wc_status status)
{
    for (unsigned i = 0; i < n; i++) {
        ck_assert_uint_gt(num_posted, 0);
        pending[num_pending++] = (struct ibv_wc){.wr_id = posted[0], .opcode = IBV_WC_RECV, .status = status};
        memmove(posted, posted + 1, --num_posted * sizeof posted[0]);
    }
}

static void packets_come(unsigned n)
{
    come(n, IBV_WC_SUCCESS);
    for (unsigned left = n; left;)
        left -= (unsigned)mr_verbs_poll();
}

START_TEST(an_answer_goes_first)
{
    packets_come(BATCH);
    ck_assert_uint_eq(arrived, BATCH);
    ck_assert_uint_eq(posts, 0);
    mr_verbs.answered = true; /* set by any send */
    come(1, IBV_WC_SUCCESS);
    ck_assert_int_eq(mr_verbs_poll(), 1); /* before the next completion */
    ck_assert_uint_eq(posts, 1);
    ck_assert_uint_eq(num_posted, DEPTH - 1);
}
END_TEST

START_TEST(what_was_sent_before_is_no_answer)
{
    mr_verbs.answered = true;
    packets_come(BATCH);
    packets_come(1);
    ck_assert_uint_eq(posts, 0);
}
END_TEST

START_TEST(there_is_time_when_nothing_comes)
{
    packets_come(BATCH - 1);
    ck_assert_int_eq(mr_verbs_poll(), 0);
    ck_assert_uint_eq(posts, 0);
    packets_come(1);
    ck_assert_int_eq(mr_verbs_poll(), 0);
    ck_assert_uint_eq(posts, 1);
    ck_assert_uint_eq(num_posted, DEPTH);
    ck_assert_int_eq(mr_verbs_poll(), 0);
    ck_assert_uint_eq(posts, 1);
}
END_TEST

START_TEST(a_stream_does_not_wait)
{
    for (unsigned i = 0; i < 10 * DEPTH; i++) {
        packets_come(1);
        ck_assert_uint_gt(num_posted, DEPTH - 2 * BATCH);
    }
    ck_assert_uint_eq(arrived, 10 * DEPTH);
    ck_assert_uint_eq(posts, 10 * DEPTH / BATCH - 1);
}
END_TEST

/* Nor does a stream whose packets come out of order, each kept until the next has come, over two rails. */
START_TEST(a_stream_that_is_kept_does_not_wait)
{
    keeps = true;
    term = MR_RETAINED_UNTIL_TURN;
    for (unsigned i = 0; i < 10 * DEPTH; i++) {
        packets_come(1);
        if (kept_of_them == 2) {
            mr_retained_return(kept[0].retained);
            kept[0] = kept[1];
            kept_of_them = 1;
        }
        ck_assert_uint_gt(num_posted, DEPTH - 2 * BATCH - 2);
    }
    ck_assert_uint_eq(arrived, 10 * DEPTH);
    ck_assert_uint_le(posts, 10 * DEPTH / BATCH);
    mr_retained_return(kept[0].retained);
}
END_TEST

/* ---- two rails ---- */

static struct mr_device second;

static void open_second(struct mr_rx **other)
{
    mr_verbs.num_rails = 2;
    mr_verbs.rail[1] = (struct mr_rail){.dev = &second, .port = 1, .cq = &cq};
    num_posted = posts = 0;
    ck_assert_int_eq(mr_rx_open(&mr_verbs.rail[1], other, DEPTH, LONGEST, false), 0);
    mr_verbs.rail[1].rx = *other;
    mr_rx_rails_changed(rx);
    mr_rx_rails_changed(*other);
    posts = 0; /* the posts belong to the second rail */
}

static void close_second(struct mr_rx **other)
{
    mr_verbs.num_rails = 1;
    mr_rx_close(other);
    second.fatal = false;
}

/* Packets over one of two rails are posted as if the other did not exist. */
START_TEST(one_of_two_rails)
{
    struct mr_rx *other;

    open_second(&other);
    packets_come(BATCH - 1);
    ck_assert_int_eq(mr_verbs_poll(), 0);
    ck_assert_uint_eq(posts, 0);
    packets_come(1);
    ck_assert_int_eq(mr_verbs_poll(), 0);
    ck_assert_uint_eq(posts, 1);
    ck_assert_uint_eq(num_posted, DEPTH);
    close_second(&other);
}
END_TEST

/* A batch counts both rails together: the rail with more of it posts its own. */
START_TEST(a_batch_of_two_rails)
{
    uint64_t firsts[DEPTH];
    struct mr_rx *other;

    memcpy(firsts, posted, sizeof firsts);
    open_second(&other);
    packets_come(BATCH / 2 - 1);
    memcpy(posted, firsts, sizeof firsts);
    num_posted = DEPTH;
    packets_come(BATCH / 2);
    ck_assert_int_eq(mr_verbs_poll(), 0);
    ck_assert_uint_eq(posts, 0);
    packets_come(1);
    num_posted = 0; /* posted now */
    ck_assert_int_eq(mr_verbs_poll(), 0);
    ck_assert_uint_eq(posts, 1);
    ck_assert_uint_eq(num_posted, BATCH / 2 + 1);
    ck_assert_int_eq(mr_verbs_poll(), 0);
    ck_assert_uint_eq(posts, 1);
    close_second(&other);
}
END_TEST

/* While data moves by RDMA a batch is a part of that. */
START_TEST(a_short_batch_of_two_rails)
{
    struct mr_rx *other;

    open_second(&other);
    mr_verbs.moved = true; /* set by posting a read */
    packets_come(BATCH / 2 - 1);
    ck_assert_int_eq(mr_verbs_poll(), 0);
    ck_assert_uint_eq(posts, 0);
    packets_come(1);
    ck_assert_int_eq(mr_verbs_poll(), 0);
    ck_assert_uint_eq(posts, 1);
    packets_come(BATCH - 1); /* packets alone, again */
    ck_assert_int_eq(mr_verbs_poll(), 0);
    ck_assert_uint_eq(posts, 1);
    packets_come(1);
    ck_assert_int_eq(mr_verbs_poll(), 0);
    ck_assert_uint_eq(posts, 2);
    ck_assert_uint_eq(num_posted, DEPTH);
    close_second(&other);
}
END_TEST

/* Buffers of a lost device are none of a batch, and hold up nobody's. */
START_TEST(a_lost_one_of_two)
{
    uint64_t firsts[DEPTH];
    struct mr_rx *other;

    memcpy(firsts, posted, sizeof firsts);
    open_second(&other);
    packets_come(3 * BATCH / 2);
    second.fatal = true;
    memcpy(posted, firsts, sizeof firsts);
    num_posted = DEPTH;
    for (unsigned i = 0; i < 10 * DEPTH; i++) {
        packets_come(1);
        ck_assert_uint_gt(num_posted, DEPTH - 2 * BATCH - 2);
    }
    while (mr_verbs_poll() || mr_verbs.rx_due)
        ;
    packets_come(1);
    while (mr_verbs_poll() || mr_verbs.rx_due)
        ;
    ck_assert_uint_gt(num_posted, DEPTH - BATCH);
    close_second(&other);
}
END_TEST

/* Buffers refused by the adapter are posted another time. */
START_TEST(some_are_refused)
{
    refuse_at = 5;
    packets_come(BATCH);
    ck_assert_int_eq(mr_verbs_poll(), 0);
    ck_assert_uint_eq(num_posted, DEPTH - BATCH + 4);
    packets_come(4);
    ck_assert_int_eq(mr_verbs_poll(), 0);
    ck_assert_uint_eq(num_posted, DEPTH);
}
END_TEST

START_TEST(nothing_for_a_lost_device)
{
    packets_come(BATCH);
    mr_verbs.device[0].fatal = true;
    ck_assert_int_eq(mr_verbs_poll(), 0);
    ck_assert_uint_eq(posts, 0);
    ck_assert_ptr_null(mr_verbs.rx_due);
}
END_TEST

/* The buffers of a queue pair that is given up come back, and stay. */
START_TEST(all_come_back)
{
    struct mr_rx *own;

    num_posted = 0;
    ck_assert_int_eq(mr_rx_open_own(&mr_verbs.rail[0], &own, &queue_pair, DEPTH), 0);
    packets_come(BATCH);
    come(DEPTH - BATCH, IBV_WC_WR_FLUSH_ERR);
    posts = 0;
    for (unsigned i = 0; i < DEPTH; i++)
        mr_verbs_poll();
    ck_assert(mr_rx_is_back(own));
    ck_assert_uint_eq(posts, 0);
    mr_rx_close(&own);
}
END_TEST

/* Kept buffers are not at the adapter until given back, and then each once. */
static void keep(enum mr_retained_term until, unsigned n)
{
    keeps = true;
    term = until;
    packets_come(n);
    while (mr_verbs_poll() || mr_verbs.rx_due)
        ;
}

START_TEST(kept_ones_are_not_posted)
{
    keep(MR_RETAINED_UNTIL_TURN, 2 * BATCH);
    ck_assert_uint_eq(kept_of_them, 2 * BATCH);
    ck_assert_uint_eq(num_posted, DEPTH - 2 * BATCH);
    for (unsigned i = 0; i < 2 * BATCH; i++)
        mr_retained_return(kept[i].retained);
    while (mr_verbs_poll() || mr_verbs.rx_due)
        ;
    ck_assert_uint_eq(num_posted, DEPTH);
}
END_TEST

START_TEST(some_are_always_with_the_adapter)
{
    for (unsigned i = 0; i < 4; i++)
        keep(MR_RETAINED_UNTIL_RECEIVED, DEPTH / 4);
    ck_assert_uint_eq(kept_of_them, DEPTH / 4);
    keep(MR_RETAINED_UNTIL_TURN, DEPTH / 2);
    ck_assert_uint_eq(kept_of_them, DEPTH / 2);
    ck_assert_uint_gt(num_posted, DEPTH / 2 - BATCH);
    while (kept_of_them)
        mr_retained_return(kept[--kept_of_them].retained);
}
END_TEST

/* As when it waited for its turn, and then for the program. */
START_TEST(kept_twice)
{
    struct mr_retained *again;

    keep(MR_RETAINED_UNTIL_TURN, BATCH);
    for (unsigned i = 0; i < BATCH; i++) {
        again = mr_retained_take(kept[i].payload, MR_RETAINED_LEAST, MR_RETAINED_UNTIL_RECEIVED);
        ck_assert_ptr_eq(again, kept[i].retained);
        mr_retained_return(kept[i].retained);
    }
    ck_assert_uint_eq(num_posted, DEPTH - BATCH);
    for (unsigned i = 0; i < BATCH; i++)
        mr_retained_return(kept[i].retained);
    mr_verbs_poll();
    ck_assert_uint_eq(num_posted, DEPTH);
}
END_TEST

START_TEST(short_and_others_memory_is_copied)
{
    char mine[LONGEST];

    keeps = false;
    packets_come(1);
    ck_assert_ptr_null(mr_retained_take(mine, sizeof mine, MR_RETAINED_UNTIL_TURN));
    ck_assert_ptr_null(mr_retained_take(mine, MR_RETAINED_LEAST - 1, MR_RETAINED_UNTIL_TURN));
}
END_TEST

/* The contents can be read until the last one comes back: otherwise memory checkers report errors. */
START_TEST(kept_after_the_end)
{
    unsigned char sum = 0;

    keep(MR_RETAINED_UNTIL_TURN, BATCH);
    mr_rx_close(&rx);
    ck_assert_ptr_null(rx);
    mr_verbs.num_rails = 0;
    for (unsigned i = 0; i < BATCH; i++) {
        sum |= *kept[i].payload;
        mr_retained_return(kept[i].retained);
    }
    ck_assert_uint_eq(sum, FILLED);
    ck_assert_uint_eq(num_posted, 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("posting again");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, an_answer_goes_first);
    tcase_add_test(t, what_was_sent_before_is_no_answer);
    tcase_add_test(t, there_is_time_when_nothing_comes);
    tcase_add_test(t, a_stream_does_not_wait);
    tcase_add_test(t, a_stream_that_is_kept_does_not_wait);
    tcase_add_test(t, one_of_two_rails);
    tcase_add_test(t, a_batch_of_two_rails);
    tcase_add_test(t, a_short_batch_of_two_rails);
    tcase_add_test(t, a_lost_one_of_two);
    tcase_add_test(t, some_are_refused);
    tcase_add_test(t, nothing_for_a_lost_device);
    tcase_add_test(t, all_come_back);
    tcase_add_test(t, kept_ones_are_not_posted);
    tcase_add_test(t, some_are_always_with_the_adapter);
    tcase_add_test(t, kept_twice);
    tcase_add_test(t, short_and_others_memory_is_copied);
    tcase_add_test(t, kept_after_the_end);
    return check_run(t, NULL);
}
