/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs kept of closed subchannels: the conditions, the numbers of the probing writes, and the ends. */
#include "libmrmpi/conn/peer/probe.h"
#include "libmrmpi/verbs/post.h"
#include "tests/check.h"
#include "tests/libmrmpi/fake_peer.h"

#define SECOND (1000 * MS)
#define PSN    1000u

struct mr_peers mr_peers;

static bool told;

void mr_peer_tell_answered(struct mr_peer *p)
{
    ck_assert_ptr_eq(p, &peer);
    told = true;
}
static unsigned posted, aborted, destroyed;
static uint32_t first_psn;
static int psns_error, again_error;
static struct mr_qp *kept;
static const struct mr_qp_events *events;
static struct mr_tx *last; /* of the run */
static struct mr_qp left;

int mr_qp_psns(struct mr_qp *qp, uint32_t *send, uint32_t *receive)
{
    *send = PSN;
    *receive = 5;
    return psns_error;
}

void mr_qp_keep(struct mr_qp *from, struct mr_qp *to, const struct mr_qp_events *e, void *owner)
{
    *to = *from;
    to->owner = owner;
    to->state = MR_QP_DRAINED;
    kept = to;
    events = e;
}

static struct mr_probe owned;
static unsigned answers;
static const struct mr_rail_addr *now_at;

int mr_qp_again(struct mr_qp *qp, const struct mr_rail_addr *to, uint32_t send, uint32_t receive, bool is_answer)
{
    if (again_error)
        return again_error;
    ck_assert_ptr_eq(to, now_at);
    ck_assert_uint_eq(receive, 5);
    ck_assert(is_answer == (qp == &owned.qp));
    first_psn = send;
    qp->state = MR_QP_ALIVE;
    return 0;
}

int mr_qp_write(struct mr_qp *qp, const void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey,
                const uint32_t *imm, struct mr_tx *tx)
{
    ck_assert_uint_eq(len, 0);
    posted++;
    last = tx;
    return 0;
}

void mr_qp_abort(struct mr_qp *qp)
{
    aborted++;
    qp->state = MR_QP_MARKED;
}

void mr_qp_destroy(struct mr_qp *qp)
{
    destroyed++;
}

/* The first subchannel has drained and is closed; its queue pair takes 100 requests. */
static void setup(void)
{
    make_peer();
    posted = aborted = destroyed = first_psn = 0;
    psns_error = again_error = 0;
    kept = NULL;
    last = NULL;
    rails[0].cq_room = 1000;
    left = (struct mr_qp){.rail = &rails[0], .depth = 100};
    told = false;
}

static void teardown(void)
{
    mr_probe_free(&sub[0]);
}

static void keep(void)
{
    ck_assert(mr_probe_keep(&sub[0], &left));
    stub_clock_ns += SECOND;
}

static unsigned ask(void)
{
    unsigned before = posted;

    mr_probe_ask(&sub[0], stub_clock_ns);
    return posted - before;
}

/* ---- a guard's, without a time-out ------------------------------------------------------------------------------- */

static void owned_answered(struct mr_probe *l)
{
    answers++;
}

static void owned_drained(struct mr_probe *l)
{
    mr_probe_again(l, now_at);
}

static unsigned ask_owned(void)
{
    unsigned before = posted;

    mr_probe_post(&owned, stub_clock_ns);
    return posted - before;
}

/* An unanswered question is repeated after a second, to the peer's present place: nothing is given up meanwhile. */
START_TEST(without_a_time_out)
{
    static const struct mr_rail_addr elsewhere;
    struct mr_wc none = {.error = 0};

    owned = (struct mr_probe){.qp = {.rail = &rails[0], .depth = 100, .untimed = true, .state = MR_QP_ALIVE},
                              .psn = PSN,
                              .receive = 5,
                              .answers = true,
                              .answered = owned_answered,
                              .drained = owned_drained};
    owned.qp.owner = &owned;
    answers = 0;
    now_at = &elsewhere;
    stub_clock_ns += SECOND;
    ck_assert_uint_eq(ask_owned(), 1);
    stub_clock_ns += SECOND - 1;
    ck_assert_uint_eq(ask_owned(), 0);
    stub_clock_ns++;
    ck_assert_uint_eq(ask_owned(), 0);
    ck_assert_uint_eq(aborted, 1);
    ck_assert_uint_eq(ask_owned(), 0); /* once */
    ck_assert_uint_eq(aborted, 1);
    if (_i) {
        last->wr.done(&last->wr, &none); /* the answer comes now: the question is another one then */
        ck_assert_uint_eq(answers, 1);
    }
    owned.qp.state = MR_QP_DRAINED;
    mr_probe_events.drained(&owned.qp);
    ck_assert_uint_eq(first_psn, PSN + (_i ? 1 : 0) - 32);
    ck_assert_uint_eq(posted, 65);
    last->wr.done(&last->wr, &none);
    ck_assert_uint_eq(answers, _i ? 2 : 1);
    ck_assert_uint_eq(owned.psn, PSN + (_i ? 1 : 0) + 32);
    stub_clock_ns += SECOND;
    ck_assert_uint_eq(ask_owned(), 1);
    now_at = NULL;
}
END_TEST

/* ---- those of subchannels ---------------------------------------------------------------------------------------- */

static void complete(int error)
{
    struct mr_wc wc = {.error = error};

    last->wr.done(&last->wr, &wc);
    if (error)
        events->failed(kept, &wc);
}

static void drain(void)
{
    kept->state = MR_QP_DRAINED;
    events->drained(kept);
}

/* Kept once, while the subchannel may be opened again, and the peer's end may be there. */
START_TEST(kept_or_not)
{
    switch (_i) {
    case 0:
        keep();
        break;
    case 1:
        sub[0].closing = true;
        break;
    case 2:
        peer.error = -EIO;
        break;
    case 3:
        sub[0].peer_from = 6; /* the peer's end of generation 5 has gone */
        break;
    case 4:
        device.fatal = true;
        break;
    case 5:
        psns_error = -EIO;
        break;
    }
    ck_assert(!mr_probe_keep(&sub[0], &left));
    ck_assert_int_eq(sub_own[0].probe != NULL, _i == 0);
}
END_TEST

/* The first run begins half its length before the next number; after an answer one write is enough. */
START_TEST(asked_and_answered)
{
    keep();
    ck_assert_uint_eq(ask(), 64);
    ck_assert_uint_eq(first_psn, PSN - 32);
    ck_assert_ptr_nonnull(last); /* only the last is signaled */
    stub_clock_ns += SECOND;
    ck_assert_uint_eq(ask(), 0); /* no answer yet */
    ck_assert(!told);
    complete(0);
    ck_assert(told);
    ck_assert_uint_eq(ask(), 1);
    complete(0);
    ck_assert_uint_eq(ask(), 0);
    stub_clock_ns += SECOND - 1;
    ck_assert_uint_eq(ask(), 0);
    stub_clock_ns++;
    ck_assert_uint_eq(ask(), 1);
    ck_assert_uint_eq(aborted, 0);
}
END_TEST

/* The probes within a short patience. */
START_TEST(short_patience)
{
    mr_config.patience = 2;
    ck_assert(mr_probe_keep(&sub[0], &left));
    stub_clock_ns += SECOND / 2 - 1;
    ck_assert_uint_eq(ask(), 0);
    stub_clock_ns++;
    ck_assert_uint_eq(ask(), 64);
}
END_TEST

/* Silence is none, a refusal is an answer; after either the queue pair drains, and asks once more, by a run. */
START_TEST(failed)
{
    keep();
    ck_assert_uint_eq(ask(), 64);
    complete(_i ? -EIO : -EHOSTUNREACH);
    ck_assert(told == !!_i);
    ck_assert_uint_eq(aborted, 1);
    stub_clock_ns += SECOND;
    ck_assert_uint_eq(ask(), 0); /* not drained */
    drain();
    ck_assert_uint_eq(ask(), 64);
    ck_assert_uint_eq(first_psn, PSN - 32); /* the number is as uncertain as before */
}
END_TEST

/* A short send queue, or a completion queue without room. */
START_TEST(little_room)
{
    left.depth = 10;
    keep();
    rails[0].cq_room = 9;
    ck_assert_uint_eq(ask(), 0);
    rails[0].cq_room = 10;
    stub_clock_ns += SECOND;
    ck_assert_uint_eq(ask(), 10);
    ck_assert_uint_eq(first_psn, PSN - 5);
}
END_TEST

/* Dropped at once, or when all posts have come back; not asked meanwhile. */
START_TEST(dropped)
{
    keep();
    if (_i)
        ask();
    if (_i == 2)
        complete(0);
    mr_probe_drop(&sub[0]);
    ck_assert_uint_eq(destroyed, !_i);
    ck_assert_uint_eq(aborted, _i != 0);
    stub_clock_ns += SECOND;
    ck_assert_uint_eq(ask(), 0);
    if (_i)
        drain();
    ck_assert_uint_eq(destroyed, 1);
    ck_assert_ptr_null(sub_own[0].probe);
    mr_probe_drop(&sub[0]); /* there is none */
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("probe");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, kept_or_not, 0, 6);
    tcase_add_test(c, asked_and_answered);
    tcase_add_test(c, short_patience);
    tcase_add_loop_test(c, failed, 0, 2);
    tcase_add_test(c, little_room);
    tcase_add_loop_test(c, dropped, 0, 3);
    tcase_add_loop_test(c, without_a_time_out, 0, 2);
    return check_run(c, NULL);
}
