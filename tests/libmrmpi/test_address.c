/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of other ranks: whole ones are taken, others are told apart. */
#include <errno.h>
#include <string.h>

#include "libmrmpi/route/address.h"
#include "tests/check.h"

static struct mr_address address;

static void fill(void)
{
    memset(&address, 0xff, sizeof address); /* no string ends */
    address.magic = MR_ADDRESS_MAGIC;
    address.version = MR_ADDRESS_VERSION;
    address.num_rails = MR_RAILS_MAX;
    address.paths = 1;
    for (unsigned i = 0; i < MR_RAILS_MAX; i++) {
        address.rail[i].lmc = 7;
        address.rail[i].mtu = 5;
    }
}

START_TEST(whole)
{
    fill();
    ck_assert_int_eq(mr_address_check(&address, sizeof address), 0);
    ck_assert_uint_eq(strlen(address.host), sizeof address.host - 1);
    ck_assert_uint_eq(strlen(address.rail[7].device), sizeof address.rail[7].device - 1);
    address.num_rails = 0;
    ck_assert_int_eq(mr_address_check(&address, mr_address_length(0)), 0);
}
END_TEST

START_TEST(none)
{
    fill();
    ck_assert_int_eq(mr_address_check(&address, 0), -EPROTO);
    ck_assert_int_eq(mr_address_check(&address, mr_address_length(7)), -EPROTO);
    ck_assert_int_eq(mr_address_check(&address, sizeof address + 1), -EPROTO);
    address.num_rails = MR_RAILS_MAX + 1;
    ck_assert_int_eq(mr_address_check(&address, mr_address_length(MR_RAILS_MAX + 1)), -EPROTO);
    fill();
    address.rail[3].lmc = 8;
    ck_assert_int_eq(mr_address_check(&address, sizeof address), -EPROTO);
    fill();
    address.rail[3].mtu = 0;
    ck_assert_int_eq(mr_address_check(&address, sizeof address), -EPROTO);
    fill();
    address.paths = 0;
    ck_assert_int_eq(mr_address_check(&address, sizeof address), -EPROTO);
    fill();
    address.eager_max = 0;
    ck_assert_int_eq(mr_address_check(&address, sizeof address), -EPROTO);
    fill();
    address.magic++;
    ck_assert_int_eq(mr_address_check(&address, sizeof address), -EPROTO);
}
END_TEST

/* Whatever else is different: what is longer than we have room for, too. */
START_TEST(other_version)
{
    fill();
    address.version = MR_ADDRESS_VERSION + 1;
    address.num_rails = 900;
    ck_assert_int_eq(mr_address_check(&address, sizeof address), -EPROTONOSUPPORT);
    ck_assert_int_eq(mr_address_check(&address, 100000), -EPROTONOSUPPORT);
    ck_assert_int_eq(mr_address_check(&address, 6), -EPROTONOSUPPORT);
    ck_assert_int_eq(mr_address_check(&address, 5), -EPROTO);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("address");

    tcase_add_test(t, whole);
    tcase_add_test(t, none);
    tcase_add_test(t, other_version);
    return check_run(t, NULL);
}
