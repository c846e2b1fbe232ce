/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of PMI's messages and PMI_process_mapping: valid text, invalid text, and random bytes. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/launch/mapping.h"
#include "libmrmpi/launch/pmi_text.h"
#include "tests/check.h"

/* ---- the mapping ---- */

static void expect_map(const char *text, int size, const char *want)
{
    uint32_t node_of[64];
    char got[512] = "";

    ck_assert_int_eq(mr_mapping_parse(text, size, node_of), 0);
    for (int r = 0; r < size; r++)
        sprintf(got + strlen(got), "%s%u", r ? "," : "", node_of[r]);
    ck_assert_str_eq(got, want);
}

START_TEST(mapping_places_ranks)
{
    expect_map("(vector,(0,1,4))", 4, "0,0,0,0");
    expect_map("(vector,(0,2,2))", 4, "0,0,1,1");
    expect_map("(vector,(0,3,1))", 3, "0,1,2");
    expect_map("(vector,(0,2,1),(2,1,3))", 5, "0,1,2,2,2");
    expect_map("(vector,(7,1,2),(3,2,1))", 4, "7,7,3,4");
    expect_map(" ( vector , ( 0 , 2 , 1 ) ) ", 2, "0,1");
    expect_map("(vector,(0,2147483647,2147483647))", 3, "0,0,0");
    expect_map("(vector,(2147483647,2,1))", 2, "2147483647,2147483648");
}
END_TEST

START_TEST(mapping_begins_again)
{
    expect_map("(vector,(0,2,1))", 6, "0,1,0,1,0,1");
    expect_map("(vector,(0,1,2),(1,1,1))", 7, "0,0,1,0,0,1,0");
    expect_map("(vector,(0,2,2))", 3, "0,0,1");
}
END_TEST

static const char *const bad_maps[] = {
    "",
    "(",
    "vector",
    "(vector)",
    "(vector,)",
    "(vector,(0,1,1)",
    "(vector,(0,1,1),)",
    "(vector,(0,1,1)))",
    "(vector,(0,1,1))x",
    "(vector,(0,1))",
    "(vector,(0,1,1,1))",
    "(vector,(0,0,1))",
    "(vector,(0,1,0))",
    "(vector,(-1,1,1))",
    "(vector,(0,1,2147483648))",
    "(vector,(99999999999999999999999999,1,1))",
    "(vector,(0x1,1,1))",
    "(vector (0,1,1))",
    "(torus,(0,1,1))",
    "(vector,(0,1,1)(1,1,1))",
    "(vector,(0,2,",
};

START_TEST(mapping_refuses)
{
    uint32_t node_of[4];

    ck_assert_msg(mr_mapping_parse(bad_maps[_i], 4, node_of) == -EPROTO, "'%s'", bad_maps[_i]);
}
END_TEST

/* Any text, cut out of the heap so that a sanitizer detects a read or write too far. */
START_TEST(mapping_random)
{
    static const char alphabet[] = "()(),,,0123456789 vector-x";
    unsigned seed = 7;

    for (int i = 0; i < 200000; i++) {
        size_t len = rand_r(&seed) % 40;
        int size = 1 + rand_r(&seed) % 50;
        char *text = malloc(len + 1);
        uint32_t *node_of = malloc(size * sizeof(*node_of));
        size_t keep = i % 2 && len > 8 ? (size_t)snprintf(text, len + 1, "(vector,") : 0;
        for (size_t k = keep; k < len; k++)
            text[k] = alphabet[rand_r(&seed) % (sizeof(alphabet) - 1)];
        text[len] = '\0';
        int err = mr_mapping_parse(text, size, node_of);
        ck_assert(err == 0 || err == -EPROTO);
        free(node_of);
        free(text);
    }
}
END_TEST

/* ---- messages ---- */

START_TEST(pmi1_values)
{
    const char *m = "cmd=get_result rc=0 msg=success value=a=b/+ last=";
    char v[16];

    ck_assert_int_eq(mr_pmi1_value(m, "cmd", v, sizeof(v)), 0);
    ck_assert_str_eq(v, "get_result");
    ck_assert_int_eq(mr_pmi1_value(m, "value", v, sizeof(v)), 0);
    ck_assert_str_eq(v, "a=b/+");
    ck_assert_int_eq(mr_pmi1_value(m, "last", v, sizeof(v)), 0);
    ck_assert_str_eq(v, "");
    ck_assert_int_eq(mr_pmi1_value(m, "alue", v, sizeof(v)), -ENOENT);
    ck_assert_int_eq(mr_pmi1_value(m, "val", v, sizeof(v)), -ENOENT);
    ck_assert_int_eq(mr_pmi1_value(m, "cmd", v, 10), -EMSGSIZE);
    ck_assert_int_eq(mr_pmi1_value(m, "cmd", v, 11), 0);
    ck_assert_int_eq(mr_pmi1_value("", "cmd", v, sizeof(v)), -ENOENT);
    ck_assert_int_eq(mr_pmi1_value("  cmd=x\r", "cmd", v, sizeof(v)), 0);
    ck_assert_str_eq(v, "x");
}
END_TEST

START_TEST(pmi2_values)
{
    const char *m = "cmd=kvs-get-response;found=TRUE;value=a;;b=c;;;rc=0;";
    char v[16];

    ck_assert_int_eq(mr_pmi2_value(m, "value", v, sizeof(v)), 0);
    ck_assert_str_eq(v, "a;b=c;");
    ck_assert_int_eq(mr_pmi2_value(m, "rc", v, sizeof(v)), 0);
    ck_assert_str_eq(v, "0");
    ck_assert_int_eq(mr_pmi2_value(m, "value", v, 6), -EMSGSIZE);
    ck_assert_int_eq(mr_pmi2_value(m, "value", v, 7), 0);
    ck_assert_int_eq(mr_pmi2_value(m, "value", v, 0), -EMSGSIZE);
    ck_assert_int_eq(mr_pmi2_value("rc=1", "rc", v, sizeof(v)), 0);
    ck_assert_str_eq(v, "1");
    ck_assert_int_eq(mr_pmi2_value("value=x;;", "value", v, sizeof(v)), 0);
    ck_assert_str_eq(v, "x;");
    ck_assert_int_eq(mr_pmi2_value(";;;", "rc", v, sizeof(v)), -ENOENT);
    ck_assert_int_eq(mr_pmi2_escape("a;b", v, sizeof(v)), 4);
    ck_assert_str_eq(v, "a;;b");
    ck_assert_int_eq(mr_pmi2_escape("a;b", v, 5), -EMSGSIZE);
}
END_TEST

START_TEST(messages_random)
{
    static const char alphabet[] = "abc=; ;;\n=";
    unsigned seed = 3;

    for (int i = 0; i < 200000; i++) {
        size_t len = rand_r(&seed) % 24, cap = 1 + rand_r(&seed) % 6;
        char *text = malloc(len + 1), *v = malloc(cap);
        for (size_t k = 0; k < len; k++)
            text[k] = alphabet[rand_r(&seed) % (sizeof(alphabet) - 1)];
        text[len] = '\0';
        if (!mr_pmi1_value(text, "a", v, cap))
            ck_assert(strlen(v) < cap);
        if (!mr_pmi2_value(text, "a", v, cap))
            ck_assert(strlen(v) < cap);
        mr_pmi_quote(text, v, cap);
        ck_assert(strlen(v) < cap && !strchr(v, '\n'));
        free(v);
        free(text);
    }
}
END_TEST

START_TEST(frame_lengths)
{
    ck_assert_int_eq(mr_pmi2_frame_length("    48"), 48);
    ck_assert_int_eq(mr_pmi2_frame_length("114   "), 114);
    ck_assert_int_eq(mr_pmi2_frame_length("065536"), 65536);
    ck_assert_int_eq(mr_pmi2_frame_length("065537"), -EPROTO);
    ck_assert_int_eq(mr_pmi2_frame_length("999999"), -EPROTO);
    ck_assert_int_eq(mr_pmi2_frame_length("     0"), -EPROTO);
    ck_assert_int_eq(mr_pmi2_frame_length("      "), -EPROTO);
    ck_assert_int_eq(mr_pmi2_frame_length("    -1"), -EPROTO);
    ck_assert_int_eq(mr_pmi2_frame_length("  4 8 "), -EPROTO);
    ck_assert_int_eq(mr_pmi2_frame_length("cmd=in"), -EPROTO);
}
END_TEST

START_TEST(numbers)
{
    long long n;

    ck_assert(mr_pmi_number("-5", -5, 5, &n) && n == -5);
    ck_assert(!mr_pmi_number("6", -5, 5, &n));
    ck_assert(!mr_pmi_number("", 0, 5, &n));
    ck_assert(!mr_pmi_number(" 5", 0, 5, &n));
    ck_assert(!mr_pmi_number("5x", 0, 5, &n));
    ck_assert(!mr_pmi_number("99999999999999999999", 0, INT64_MAX, &n));
}
END_TEST

/* ---- values ---- */

START_TEST(values_come_back)
{
    uint8_t in[300], out[300];
    char text[512];

    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)(i * 37 + i / 256);
    for (size_t len = 0; len <= sizeof(in); len++) {
        memset(out, 0x55, sizeof(out));
        mr_pmi_encode(in, len, text);
        ck_assert_uint_eq(strlen(text), mr_pmi_encoded_length(len));
        ck_assert_uint_eq(strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
                          strlen(text));
        ck_assert_int_eq(mr_pmi_decode(text, strlen(text), out, len), 0);
        ck_assert_int_eq(memcmp(in, out, len), 0);
        ck_assert(len == sizeof(in) || out[len] == 0x55);
    }
}
END_TEST

START_TEST(values_refused)
{
    uint8_t out[8];

    ck_assert_int_eq(mr_pmi_decode("AAAA", 4, out, 2), -EPROTO);
    ck_assert_int_eq(mr_pmi_decode("AA", 2, out, 3), -EPROTO);
    ck_assert_int_eq(mr_pmi_decode("AA+A", 4, out, 3), -EPROTO);
    ck_assert_int_eq(mr_pmi_decode("AA=", 3, out, 2), -EPROTO);
    ck_assert_int_eq(mr_pmi_decode("A\0AA", 4, out, 3), -EPROTO);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("all");

    tcase_add_test(t, mapping_places_ranks);
    tcase_add_test(t, mapping_begins_again);
    tcase_add_loop_test(t, mapping_refuses, 0, sizeof(bad_maps) / sizeof(bad_maps[0]));
    tcase_add_test(t, mapping_random);
    tcase_add_test(t, pmi1_values);
    tcase_add_test(t, pmi2_values);
    tcase_add_test(t, messages_random);
    tcase_add_test(t, frame_lengths);
    tcase_add_test(t, numbers);
    tcase_add_test(t, values_come_back);
    tcase_add_test(t, values_refused);
    return check_run(t, NULL);
}
