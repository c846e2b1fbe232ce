/* SPDX-License-Identifier: BSD-3-Clause */
/* Partition keys: every combination of memberships, at end ports and at enforcing switches. */
#include <stdlib.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/pkey.h"
#include "tests/check.h"

START_TEST(two_keys)
{
    ck_assert(pkey_match(0xffff, 0xffff));
    ck_assert(pkey_match(0xffff, 0x7fff));
    ck_assert(pkey_match(0x7fff, 0xffff));
    ck_assert(!pkey_match(0x7fff, 0x7fff)); /* limited members do not talk to each other */
    ck_assert(!pkey_match(0x8001, 0x8002));
    ck_assert(!pkey_match(0x8000, 0x8000)); /* no partition */
    ck_assert(!pkey_match(0x8000, 0x0000));
    for (unsigned a = 0; a <= 0xffff; a += 17)
        for (unsigned b = a & 0x7f; b <= 0xffff; b += 257)
            ck_assert(pkey_match((uint16_t)a, (uint16_t)b) == pkey_match((uint16_t)b, (uint16_t)a));
}
END_TEST

START_TEST(tables)
{
    struct port p = {0};

    ck_assert_int_eq(pkey_find(&p, 0xffff), -1); /* empty entries match nothing */
    p.pkeys[3] = 0x7fff;
    p.pkeys[FABRIC_PKEYS - 1] = 0x8011;
    ck_assert_int_eq(pkey_find(&p, 0xffff), 3);
    ck_assert_int_eq(pkey_find(&p, 0x7fff), -1);
    ck_assert_int_eq(pkey_find(&p, 0x0011), FABRIC_PKEYS - 1);
    ck_assert_int_eq(pkey_find(&p, 0x8012), -1);
}
END_TEST

START_TEST(switches)
{
    struct port p = {.pkeys = {0x8011, 0x0022}};

    /* without enforcement anything goes */
    ck_assert(pkey_may_enter(&p, 0x8033) && pkey_may_leave(&p, 0x8033));
    p.partition_enforce = PKEY_ENFORCE_IN;
    ck_assert(pkey_may_leave(&p, 0x8033));
    ck_assert(pkey_may_enter(&p, 0x8011) && pkey_may_enter(&p, 0x0011));
    ck_assert(pkey_may_enter(&p, 0x0022));  /* a limited member's own key */
    ck_assert(!pkey_may_enter(&p, 0x8022)); /* may not pose as a full member */
    ck_assert(!pkey_may_enter(&p, 0x8033) && !pkey_may_enter(&p, 0x8000) && !pkey_may_enter(&p, 0));
    p.partition_enforce = PKEY_ENFORCE_OUT;
    ck_assert(pkey_may_enter(&p, 0x8033));
    ck_assert(pkey_may_leave(&p, 0x8011) && pkey_may_leave(&p, 0x0011));
    ck_assert(pkey_may_leave(&p, 0x8022));
    ck_assert(!pkey_may_leave(&p, 0x0022)); /* a limited member does not listen to another */
    ck_assert(!pkey_may_leave(&p, 0x8033));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("pkey");

    tcase_add_test(t, two_keys);
    tcase_add_test(t, tables);
    tcase_add_test(t, switches);
    return check_run(t, NULL);
}
