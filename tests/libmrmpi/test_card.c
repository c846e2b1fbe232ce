/* SPDX-License-Identifier: BSD-3-Clause */
/* Cards of other ranks: whole ones are taken, others are told apart. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "libmrmpi/peer/address.h"

static struct mr_card card;

static void fill(void)
{
    memset(&card, 0xff, sizeof card); /* no string ends */
    card.magic = MR_CARD_MAGIC;
    card.version = MR_CARD_VERSION;
    card.num_rails = MR_RAILS_MAX;
    card.paths = 1;
    for (unsigned i = 0; i < MR_RAILS_MAX; i++) {
        card.rail[i].lmc = 7;
        card.rail[i].mtu = 5;
    }
}

START_TEST(whole)
{
    fill();
    ck_assert_int_eq(mr_card_check(&card, sizeof card), 0);
    ck_assert_uint_eq(strlen(card.host), sizeof card.host - 1);
    ck_assert_uint_eq(strlen(card.rail[7].device), sizeof card.rail[7].device - 1);
    card.num_rails = 0;
    ck_assert_int_eq(mr_card_check(&card, mr_card_length(0)), 0);
}
END_TEST

START_TEST(none)
{
    fill();
    ck_assert_int_eq(mr_card_check(&card, 0), -EPROTO);
    ck_assert_int_eq(mr_card_check(&card, mr_card_length(7)), -EPROTO);
    ck_assert_int_eq(mr_card_check(&card, sizeof card + 1), -EPROTO);
    card.num_rails = MR_RAILS_MAX + 1;
    ck_assert_int_eq(mr_card_check(&card, mr_card_length(MR_RAILS_MAX + 1)), -EPROTO);
    fill();
    card.rail[3].lmc = 8;
    ck_assert_int_eq(mr_card_check(&card, sizeof card), -EPROTO);
    fill();
    card.rail[3].mtu = 0;
    ck_assert_int_eq(mr_card_check(&card, sizeof card), -EPROTO);
    fill();
    card.paths = 0;
    ck_assert_int_eq(mr_card_check(&card, sizeof card), -EPROTO);
    fill();
    card.eager_max = 0;
    ck_assert_int_eq(mr_card_check(&card, sizeof card), -EPROTO);
    fill();
    card.magic++;
    ck_assert_int_eq(mr_card_check(&card, sizeof card), -EPROTO);
}
END_TEST

/* Whatever else is different: what is longer than we have room for, too. */
START_TEST(other_version)
{
    fill();
    card.version = MR_CARD_VERSION + 1;
    card.num_rails = 900;
    ck_assert_int_eq(mr_card_check(&card, sizeof card), -EPROTONOSUPPORT);
    ck_assert_int_eq(mr_card_check(&card, 100000), -EPROTONOSUPPORT);
    ck_assert_int_eq(mr_card_check(&card, 6), -EPROTONOSUPPORT);
    ck_assert_int_eq(mr_card_check(&card, 5), -EPROTO);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("card");
    TCase *t = tcase_create("card");
    SRunner *sr;
    int bad;

    tcase_add_test(t, whole);
    tcase_add_test(t, none);
    tcase_add_test(t, other_version);
    suite_add_tcase(s, t);
    sr = srunner_create(s);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    bad = srunner_ntests_failed(sr);
    srunner_free(sr);
    return bad != 0;
}
