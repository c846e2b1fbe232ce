/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of other ranks: whole ones are taken, others are told apart. */
#include <errno.h>
#include <string.h>

#include "libmrmpi/conn/route/address.h"
#include "tests/check.h"

static struct mr_address_long all;
#define address (all.address)
#define WHOLE   mr_address_length(MR_RAILS_MAX, 3)

static void fill(void)
{
    memset(&all, 0xff, sizeof all); /* no string ends */
    address.magic = MR_ADDRESS_MAGIC;
    address.version = MR_ADDRESS_VERSION;
    address.num_rails = MR_RAILS_MAX;
    address.paths = 1;
    address.num_partitions = 3;
    for (unsigned i = 0; i < 3; i++)
        mr_address_partitions(&address)[i] =
            (struct mr_partition){.key = (uint16_t)(0x8011 + i / 2), .rail = (uint8_t)(3 + i % 2), .ud_qpn = 0xffffff};
    for (unsigned i = 0; i < MR_RAILS_MAX; i++) {
        address.rail[i].lmc = 7;
        address.rail[i].mtu = 5;
    }
}

START_TEST(whole)
{
    fill();
    ck_assert_int_eq(mr_address_check(&address, WHOLE), 0);
    ck_assert_uint_eq(strlen(address.host), sizeof address.host - 1);
    ck_assert_uint_eq(strlen(address.rail[7].device), sizeof address.rail[7].device - 1);
    address.num_rails = address.num_partitions = 0;
    ck_assert_int_eq(mr_address_check(&address, mr_address_length(0, 0)), 0);
}
END_TEST

START_TEST(none)
{
    fill();
    ck_assert_int_eq(mr_address_check(&address, 0), -EPROTO);
    ck_assert_int_eq(mr_address_check(&address, mr_address_length(7, 3)), -EPROTO);
    ck_assert_int_eq(mr_address_check(&address, WHOLE + 1), -EPROTO);
    address.num_rails = MR_RAILS_MAX + 1;
    ck_assert_int_eq(mr_address_check(&address, mr_address_length(MR_RAILS_MAX + 1, 3)), -EPROTO);
    fill();
    address.rail[3].lmc = 8;
    ck_assert_int_eq(mr_address_check(&address, WHOLE), -EPROTO);
    fill();
    address.rail[3].mtu = 0;
    ck_assert_int_eq(mr_address_check(&address, WHOLE), -EPROTO);
    fill();
    address.paths = 0; /* left to fabricd */
    ck_assert_int_eq(mr_address_check(&address, WHOLE), 0);
    fill();
    address.eager_max = 0;
    ck_assert_int_eq(mr_address_check(&address, WHOLE), -EPROTO);
    fill();
    address.magic++;
    ck_assert_int_eq(mr_address_check(&address, WHOLE), -EPROTO);
}
END_TEST

START_TEST(partitions)
{
    uint16_t key[MR_PARTITIONS_MAX];

    fill();
    ck_assert_uint_eq(mr_address_keys(&address, 3, key), 2);
    ck_assert(key[0] == 0x8011 && key[1] == 0x8012);
    ck_assert_uint_eq(mr_address_keys(&address, 4, key), 1);
    ck_assert_uint_eq(mr_address_keys(&address, 5, key), 0);
    ck_assert_ptr_eq(mr_address_partition(&address, 3, 0x0012), &mr_address_partitions(&address)[2]);
    ck_assert_ptr_null(mr_address_partition(&address, 4, 0x0012));
    mr_address_partitions(&address)[1].rail = MR_RAILS_MAX;
    ck_assert_int_eq(mr_address_check(&address, WHOLE), -EPROTO);
    fill();
    mr_address_partitions(&address)[1].key = 0x8000;
    ck_assert_int_eq(mr_address_check(&address, WHOLE), -EPROTO);
    fill();
    mr_address_partitions(&address)[1].ud_qpn = 1 << 24;
    ck_assert_int_eq(mr_address_check(&address, WHOLE), -EPROTO);
    fill();
    address.num_partitions++;
    ck_assert_int_eq(mr_address_check(&address, WHOLE), -EPROTO);
    fill();
    address.num_rails = 0;
    ck_assert_int_eq(mr_address_check(&address, mr_address_length(0, 3)), -EPROTO);
}
END_TEST

/* Whatever else differs, including a length beyond our room. */
START_TEST(other_version)
{
    fill();
    address.version = MR_ADDRESS_VERSION + 1;
    address.num_rails = 900;
    ck_assert_int_eq(mr_address_check(&address, WHOLE), -EPROTONOSUPPORT);
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
    tcase_add_test(t, partitions);
    tcase_add_test(t, other_version);
    return check_run(t, NULL);
}
