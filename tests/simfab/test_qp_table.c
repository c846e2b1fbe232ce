/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state machine of queue pairs, pair of states by pair of states and attribute by attribute, against the tables of
 * the specification written out in words; and the codes of static rates and receiver-not-ready timers.
 */
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/hca/qp_table.h"
#include "tests/check.h"

static const struct {
    const char *name;
    int bit;
} attributes[] = {
    {"cur_state", IBV_QP_CUR_STATE},
    {"sqd_notify", IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {"access", IBV_QP_ACCESS_FLAGS},
    {"pkey", IBV_QP_PKEY_INDEX},
    {"port", IBV_QP_PORT},
    {"qkey", IBV_QP_QKEY},
    {"av", IBV_QP_AV},
    {"mtu", IBV_QP_PATH_MTU},
    {"timeout", IBV_QP_TIMEOUT},
    {"retry", IBV_QP_RETRY_CNT},
    {"rnr_retry", IBV_QP_RNR_RETRY},
    {"rq_psn", IBV_QP_RQ_PSN},
    {"rd", IBV_QP_MAX_QP_RD_ATOMIC},
    {"alt", IBV_QP_ALT_PATH},
    {"rnr_timer", IBV_QP_MIN_RNR_TIMER},
    {"sq_psn", IBV_QP_SQ_PSN},
    {"dest_rd", IBV_QP_MAX_DEST_RD_ATOMIC},
    {"mig", IBV_QP_PATH_MIG_STATE},
    {"cap", IBV_QP_CAP},
    {"qpn", IBV_QP_DEST_QPN},
    {"rate", IBV_QP_RATE_LIMIT},
};
#define ATTRIBUTES (sizeof attributes / sizeof *attributes)

/* from, to, and for each type the required and the optional attributes; "-": not allowed */
static const struct row {
    enum ibv_qp_state from, to;
    const char *rc, *rc_may, *uc, *uc_may, *ud, *ud_may;
} rows[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, "pkey port access", "", "pkey port access", "", "pkey port qkey", ""},
    {IBV_QPS_INIT, IBV_QPS_INIT, "", "pkey port access", "", "pkey port access", "", "pkey port qkey"},
    {IBV_QPS_INIT, IBV_QPS_RTR, "av mtu qpn rq_psn dest_rd rnr_timer", "alt access pkey", "av mtu qpn rq_psn",
     "alt access pkey", "", "pkey qkey"},
    {IBV_QPS_RTR, IBV_QPS_RTS, "timeout retry rnr_retry sq_psn rd", "cur_state access alt rnr_timer mig", "sq_psn",
     "cur_state access alt mig", "sq_psn", "cur_state qkey"},
    {IBV_QPS_RTS, IBV_QPS_RTS, "", "cur_state access alt rnr_timer mig", "", "cur_state access alt mig", "",
     "cur_state qkey"},
    {IBV_QPS_RTS, IBV_QPS_SQD, "", "sqd_notify", "", "sqd_notify", "", "sqd_notify"},
    {IBV_QPS_SQD, IBV_QPS_RTS, "", "cur_state access alt rnr_timer mig", "", "cur_state access alt mig", "",
     "cur_state qkey"},
    {IBV_QPS_SQD, IBV_QPS_SQD, "", "port av timeout retry rnr_retry rd dest_rd alt access pkey rnr_timer mig", "",
     "av alt access pkey mig", "", "pkey qkey"},
    {IBV_QPS_SQE, IBV_QPS_RTS, "-", "", "", "cur_state access", "", "cur_state qkey"},
};

static int mask_of(const char *words)
{
    char text[200], *save, *w;
    int mask = 0;

    strcpy(text, words);
    for (w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        int before = mask;

        for (unsigned i = 0; i < ATTRIBUTES; i++)
            if (!strcmp(attributes[i].name, w))
                mask |= attributes[i].bit;
        ck_assert_msg(mask != before, "no attribute %s", w);
    }
    return mask;
}

struct expected {
    bool possible;
    int required, optional;
};

static struct expected expected(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
    if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
        return (struct expected){.possible = true};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        const char *must = type == IBV_QPT_RC ? r->rc : type == IBV_QPT_UC ? r->uc : r->ud;
        const char *may = type == IBV_QPT_RC ? r->rc_may : type == IBV_QPT_UC ? r->uc_may : r->ud_may;

        if (r->from == from && r->to == to && strcmp(must, "-") != 0)
            return (struct expected){true, mask_of(must), mask_of(may)};
    }
    return (struct expected){.possible = false};
}

static void compare(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask,
                    const struct expected *e)
{
    bool want = e->possible && (mask & e->required) == e->required && !(mask & ~(e->required | e->optional));

    ck_assert_msg(qp_transition_allowed(type, from, to, mask | IBV_QP_STATE) == want,
                  "type %d from %d to %d mask %#x: %s expected", type, from, to, (unsigned)mask, want ? "yes" : "no");
}

/* All subsets of the attributes known for the pair of states, alone and with each unknown attribute. */
static void every_mask(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to)
{
    struct expected e = expected(type, from, to);
    int known = e.required | e.optional, subset = known;

    do {
        compare(type, from, to, subset, &e);
        for (unsigned i = 0; i < ATTRIBUTES; i++)
            compare(type, from, to, subset | attributes[i].bit, &e);
        compare(type, from, to, subset | 1 << 21, &e);
        compare(type, from, to, subset | 1 << 30, &e);
        subset = (subset - 1) & known;
    } while (subset != known);
    for (unsigned i = 0; i < 1u << ATTRIBUTES; i += 97) {
        int mask = 0;

        for (unsigned bit = 0; bit < ATTRIBUTES; bit++)
            if (i & 1u << bit)
                mask |= attributes[bit].bit;
        compare(type, from, to, mask, &e);
    }
}

START_TEST(every_transition_with_every_mask)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

    for (int from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++)
        for (int to = IBV_QPS_RESET; to <= IBV_QPS_UNKNOWN; to++)
            every_mask(types[_i], (enum ibv_qp_state)from, (enum ibv_qp_state)to);
}
END_TEST

START_TEST(without_a_state_it_stays_where_it_is)
{
    ck_assert(qp_transition_allowed(IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS));
    ck_assert(!qp_transition_allowed(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTR, IBV_QP_ACCESS_FLAGS));
    ck_assert(!qp_transition_allowed(IBV_QPT_RC, IBV_QPS_ERR, IBV_QPS_ERR, IBV_QP_ACCESS_FLAGS));
}
END_TEST

START_TEST(static_rates)
{
    ck_assert_int_eq(qp_static_rate_bps(IBV_RATE_MAX), 0);
    ck_assert_int_eq(qp_static_rate_bps(1), -1);
    ck_assert_int_eq(qp_static_rate_bps(25), -1);
    ck_assert_int_eq(qp_static_rate_bps(255), -1);
    ck_assert_int_eq(qp_static_rate_bps(IBV_RATE_10_GBPS), 8000000000); /* the data rate of 4X SDR */
    ck_assert_int_eq(qp_static_rate_bps(IBV_RATE_200_GBPS), 200000000000);
    for (unsigned i = IBV_RATE_2_5_GBPS; i <= IBV_RATE_1200_GBPS; i++)
        ck_assert_int_gt(qp_static_rate_bps(i), 0);
}
END_TEST

START_TEST(receiver_not_ready_timers)
{
    /* milliseconds by code: 0.01, 0.02, 0.03, 0.04, 0.06, then doubling in pairs; 0 is the longest */
    ck_assert_uint_eq(qp_rnr_delay_ps(0), 655360000000ull);
    ck_assert_uint_eq(qp_rnr_delay_ps(1), 10000000ull);
    ck_assert_uint_eq(qp_rnr_delay_ps(2), 20000000ull);
    ck_assert_uint_eq(qp_rnr_delay_ps(3), 30000000ull);
    ck_assert_uint_eq(qp_rnr_delay_ps(12), 640000000ull);
    ck_assert_uint_eq(qp_rnr_delay_ps(31), 491520000000ull);
    for (unsigned code = 4; code < 30; code++)
        ck_assert_uint_eq(qp_rnr_delay_ps(code + 2), 2 * qp_rnr_delay_ps(code));
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("tables");

    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, every_transition_with_every_mask, 0, 3);
    tcase_add_test(c, without_a_state_it_stays_where_it_is);
    tcase_add_test(c, static_rates);
    tcase_add_test(c, receiver_not_ready_timers);
    return check_run(c, NULL);
}
