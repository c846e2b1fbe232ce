/* SPDX-License-Identifier: BSD-3-Clause */
/* The P_Keys of a table that count, and the P_Key between two ports. */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/verbs/verbs.h"
#include "tests/check.h"

static struct mr_pkey found[MR_PKEYS_MAX];

static unsigned take(const uint16_t *table, unsigned n, uint16_t preferred)
{
    memset(found, 0, sizeof found);
    return mr_pkeys_of_table(table, n, preferred, found);
}

START_TEST(match)
{
    ck_assert(mr_pkey_match(0xffff, 0x7fff) && mr_pkey_match(0x7fff, 0xffff) && mr_pkey_match(0x8011, 0x8011));
    ck_assert(!mr_pkey_match(0x7fff, 0x7fff)); /* limited members */
    ck_assert(!mr_pkey_match(0x8011, 0x8012));
    ck_assert(!mr_pkey_match(0x8000, 0x8000)); /* no partition */
    ck_assert(!mr_pkey_match(0, 0x8000));
}
END_TEST

START_TEST(tables)
{
    static const uint16_t table[] = {0, 0x8022, 0x7fff, 0x8000, 0x0011, 0x8011, 0x0022, 0x8011};

    ck_assert_uint_eq(take(table, 8, 0), 3);
    ck_assert(found[0].key == 0x7fff && found[0].index == 2); /* the default partition, wherever its entry is */
    ck_assert(found[1].key == 0x8011 && found[1].index == 5); /* the full key of two, the first of two alike */
    ck_assert(found[2].key == 0x8022 && found[2].index == 1);
    ck_assert_uint_eq(take(table, 8, 0x0022), 3);
    ck_assert(found[0].key == 0x8022 && found[1].key == 0x7fff && found[2].key == 0x8011);
    ck_assert_uint_eq(take(table, 8, 0xffff), 3);
    ck_assert(found[0].key == 0x7fff && found[1].key == 0x8011);
    ck_assert_uint_eq(take(table, 8, 0x8033), 3); /* no member of the preferred partition */
    ck_assert_uint_eq(found[0].key, 0x7fff);
    ck_assert_uint_eq(take(table, 1, 0), 0);
    ck_assert_uint_eq(take(table, 0, 0), 0);
}
END_TEST

/* All ports leave out the same keys: the highest numbers. */
START_TEST(too_many)
{
    uint16_t table[3 * MR_PKEYS_MAX];
    unsigned n = sizeof table / sizeof *table;

    for (unsigned i = 0; i < n; i++)
        table[i] = (uint16_t)(0x8000 | (n - i));
    ck_assert_uint_eq(take(table, n, (uint16_t)n), n);
    ck_assert_uint_eq(found[0].key, 0x8000 | n);
    for (unsigned i = 1; i < MR_PKEYS_MAX; i++) {
        ck_assert_uint_eq(found[i].key, 0x8000 | i);
        ck_assert_uint_eq(table[found[i].index], found[i].key);
    }
}
END_TEST

START_TEST(choice)
{
    static const uint16_t limited[] = {0x7fff, 0x0011, 0x8022}, full[] = {0xffff, 0x8011};

    ck_assert_uint_eq(mr_pkey_choose(limited, 3, full, 2, 0), 0x7fff);
    ck_assert_uint_eq(mr_pkey_choose(full, 2, limited, 3, 0), 0xffff);
    ck_assert_uint_eq(mr_pkey_choose(limited, 3, full, 2, 1), 0x0011);
    ck_assert_uint_eq(mr_pkey_choose(limited, 3, full, 2, 2), 0x7fff); /* counted round */
    ck_assert_uint_eq(mr_pkey_choose(limited, 3, limited, 3, 0), 0x8022);
    ck_assert_uint_eq(mr_pkey_choose(limited, 2, limited, 2, 0), 0);
    ck_assert_uint_eq(mr_pkey_choose(limited, 3, full, 0, 5), 0);
    ck_assert_uint_eq(mr_pkey_choose(NULL, 0, full, 2, 0), 0);
}
END_TEST

/* Both ends come to the same partition, one of them is a full member, and none is missed: whatever the tables say. */
START_TEST(both_ends)
{
    srand(64);
    for (unsigned round = 0; round < 20000; round++) {
        uint16_t table[2][12], keys[2][MR_PKEYS_MAX], chosen[2], preferred = (uint16_t)(rand() % 6);
        unsigned num[2];
        bool possible = false;

        for (unsigned end = 0; end < 2; end++) {
            for (unsigned i = 0; i < 12; i++)
                table[end][i] = (uint16_t)(rand() % 3 ? 0 : (rand() % 6 | (rand() & 0x8000)));
            num[end] = take(table[end], 12, preferred);
            for (unsigned i = 0; i < num[end]; i++) {
                keys[end][i] = found[i].key;
                ck_assert_uint_eq(table[end][found[i].index], found[i].key);
            }
        }
        for (unsigned i = 0; i < 144; i++)
            possible |= mr_pkey_match(table[0][i / 12], table[1][i % 12]);
        for (unsigned end = 0; end < 2; end++)
            chosen[end] = mr_pkey_choose(keys[end], num[end], keys[!end], num[!end], round);
        ck_assert_int_eq(possible, chosen[0] != 0);
        ck_assert_int_eq(possible, chosen[1] != 0);
        ck_assert(!possible || mr_pkey_match(chosen[0], chosen[1]));
    }
}
END_TEST

START_TEST(texts)
{
    static const uint16_t keys[] = {0x7fff, 0, 0x8011};
    char text[64], small[12];

    ck_assert_str_eq(mr_pkeys_text(keys, 3, text, sizeof text), "0x7fff (limited), 0x8011");
    ck_assert_str_eq(mr_pkeys_text(keys + 1, 1, text, sizeof text), "none");
    ck_assert_str_eq(mr_pkeys_text(keys, 3, small, sizeof small), "0x7fff (lim");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("pkey");

    tcase_add_test(t, match);
    tcase_add_test(t, tables);
    tcase_add_test(t, too_many);
    tcase_add_test(t, choice);
    tcase_add_test(t, both_ends);
    tcase_add_test(t, texts);
    return check_run(t, NULL);
}
