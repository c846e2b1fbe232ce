/* SPDX-License-Identifier: BSD-3-Clause */
/* The pools of packets, with memory that can be registered a limited number of times. */
#include <errno.h>
#include <stdlib.h>

#include "libmrmpi/verbs/link/packet.h"
#include "libmrmpi/verbs/memory/memory.h"
#include "tests/check.h"

#define LONG 4096
#define MANY 100 /* more than one slab */

static int left; /* registrations left */

int mr_memory_register(void *addr, size_t len, enum mr_access access, struct mr_memory *out)
{
    return left-- > 0 ? 0 : -ENOMEM;
}

uint32_t mr_memory_lkey(const struct mr_memory *m, const struct mr_rail *rail)
{
    return 0;
}

static struct mr_packet *made[2 * MANY];

static struct mr_packet *make(size_t len)
{
    static const char payload[LONG];

    return mr_packet_make(&(struct mr_hdr){.kind = MR_VC_KIND_EAGER, .len = len}, payload, len);
}

static void give_back(unsigned num)
{
    while (num)
        mr_packet_free(made[--num]);
}

START_TEST(reserved_packets_are_there)
{
    left = 4; /* short: 1 at first, 1 more; long: 2 */
    ck_assert_int_eq(mr_packets_open(LONG + 100, 1), 0);
    ck_assert_int_eq(mr_packets_reserve(MANY), 0);
    left = 0;
    for (unsigned i = 0; i < MANY; i++)
        ck_assert_ptr_nonnull(made[i] = make(LONG));
    for (unsigned i = MANY; i < 2 * MANY; i++)
        ck_assert_ptr_nonnull(made[i] = make(i % 100));
    give_back(2 * MANY);
    ck_assert_int_eq(mr_packets_reserve(MANY), 0);
    mr_packets_close();
}
END_TEST

START_TEST(no_memory_is_said_before)
{
    left = 1;
    ck_assert_int_eq(mr_packets_open(LONG + 100, 1), 0);
    ck_assert_int_eq(mr_packets_reserve(1), -ENOMEM);
    ck_assert_ptr_nonnull(made[0] = make(10)); /* existing packets stay */
    give_back(1);
    left = 1;
    ck_assert_int_eq(mr_packets_reserve(64), 0);
    left = 0;
    for (unsigned i = 0; i < 10; i++)
        ck_assert_ptr_nonnull(made[i] = make(LONG));
    ck_assert_int_eq(mr_packets_reserve(54), 0);
    ck_assert_int_eq(mr_packets_reserve(55), -ENOMEM);
    give_back(10);
    ck_assert_int_eq(mr_packets_reserve(64), 0);
    mr_packets_close();
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("all");

    tcase_add_test(c, reserved_packets_are_there);
    tcase_add_test(c, no_memory_is_said_before);
    return check_run(c, NULL);
}
