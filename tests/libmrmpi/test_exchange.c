/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that cross: the choice of RDMA writes, and a peer that is late. */
#include "libmrmpi/p2p/choice/exchange.h"
#include "tests/check.h"

#define LEN 65536u

START_TEST(written_while_one_of_ours_is_open)
{
    struct mr_exchange e = {0};

    ck_assert(!mr_exchange_writes(&e, LEN, 1, false));
    e.open = 1;
    ck_assert(mr_exchange_writes(&e, LEN, 2, false));
    ck_assert(mr_exchange_writes(&e, LEN, MR_EXCHANGE_MOST, false));
    ck_assert(!mr_exchange_writes(&e, LEN, MR_EXCHANGE_MOST + 1, false));
    ck_assert(mr_exchange_writes(&e, MR_EXCHANGE_SHARED / 2, 2, true));
    ck_assert(!mr_exchange_writes(&e, MR_EXCHANGE_SHARED / 2, 3, true));
    e.open = 0;
    ck_assert(!mr_exchange_writes(&e, LEN, 2, false));
}
END_TEST

/* Number of messages read until one is written again. */
static unsigned read_from(struct mr_exchange *e)
{
    unsigned n = 0;

    while (!mr_exchange_writes(e, LEN, 2, false))
        n++;
    return n;
}

START_TEST(who_is_late_is_read_from)
{
    struct mr_exchange e = {.open = 1};
    unsigned rest = MR_EXCHANGE_FIRST;

    mr_exchange_landed(&e, MR_MODEL_LATE_NS + LEN, LEN);
    ck_assert_uint_eq(read_from(&e), 0);
    for (unsigned i = 0; i < 20; i++) {
        mr_exchange_landed(&e, MR_MODEL_LATE_NS + LEN + 1, LEN);
        ck_assert_uint_eq(read_from(&e), rest);
        rest = rest < MR_BACKOFF_MOST ? rest * 2 : rest;
    }
    ck_assert_uint_eq(rest, MR_BACKOFF_MOST);
    mr_exchange_landed(&e, 1000, LEN);
    mr_exchange_landed(&e, UINT64_MAX, LEN);
    ck_assert_uint_eq(read_from(&e), MR_EXCHANGE_FIRST);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("exchange");

    tcase_add_test(c, written_while_one_of_ours_is_open);
    tcase_add_test(c, who_is_late_is_read_from);
    return check_run(c, NULL);
}
