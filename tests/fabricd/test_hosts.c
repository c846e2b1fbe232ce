/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of hosts: patterns, ranges, lists; and which partition a host of a job has. */
#include "fabricd/policy/hosts.h"
#include "tests/check.h"

#include <string.h>

static const struct {
    const char *pattern, *host;
    bool matches;
} matches[] = {
    {"node1", "node1", true},
    {"node1", "node12", false},
    {"node*", "node12", true},
    {"n[24]", "n2", true}, /* the shell's set */
    {"n[24]", "n24", false},
    {"n[1-4]", "n3", true},
    {"n[0-9]*", "n123", true},
    {"n[!a]", "nb", true},
    {"n[1,3]", "n3", true},
    {"n[1,3]", "n,", false},
    {"n[1-12]", "n7", true},
    {"n[1-12]", "n12", true},
    {"n[1-12]", "n13", false},
    {"n[1-12]", "n07", false},
    {"n[001-128,200]", "n064", true},
    {"n[001-128,200]", "n64", false},
    {"n[001-128,200]", "n200", true},
    {"n[001-128,200]", "n199", false},
    {"n[9-11]", "n10", true},
    {"r[1-12]n[01-16]", "r12n16", true},
    {"r[1-12]n[01-16]", "r12n17", false},
    {"*[10-12]x", "ab11x", true},
    {"[10-12]5", "115", true},
    {"n[10-12", "n11", false},
    {"n[5-10]", "n", false},
};

START_TEST(patterns)
{
    ck_assert_msg(hosts_match(matches[_i].pattern, matches[_i].host) == matches[_i].matches, "%s %s",
                  matches[_i].pattern, matches[_i].host);
}
END_TEST

START_TEST(ranges)
{
    ck_assert(hosts_good("n[001-128,200]") && hosts_good("n[24]") && hosts_good("login*") && hosts_good("n[a-z]"));
    ck_assert(!hosts_good("n[12-3]") && !hosts_good("n[1-1234567890]") && !hosts_good("n[1,,12]"));
    ck_assert(!hosts_good("n[1-12]m[30-4]") && !hosts_good("n[12-]"));
}
END_TEST

static const struct {
    const char *list, *names; /* NULL: no list */
} lists[] = {
    {"h1", " h1"},
    {"h1,h2", " h1 h2"},
    {"n[1-3]", " n1 n2 n3"},
    {"n[08-11]", " n08 n09 n10 n11"},
    {"n[24]", " n24"},
    {"n[1,3],m", " n1 n3 m"},
    {"r[1-2]n[1-2]x", " r1n1x r1n2x r2n1x r2n2x"},
    {"", NULL},
    {"a,,b", NULL},
    {"a,", NULL},
    {"n[", NULL},
    {"n[]", NULL},
    {"n[1-", NULL},
    {"n[3-1]", NULL},
    {"n[a]", NULL},
    {"n[1,]", NULL},
    {"n]1", NULL},
    {"n[1-1000000]", NULL},
    {"a[1-2][1-2][1-2][1-2][1-2][1-2][1-2][1-2][1-2]", NULL},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL},
};

START_TEST(expansion)
{
    struct text out = {0};
    bool good = hosts_expand(lists[_i].list, 1000, &out);
    ck_assert_msg(good == (lists[_i].names != NULL), "%s", lists[_i].list);
    if (good)
        ck_assert_str_eq(text_str(&out), lists[_i].names);
    text_free(&out);
}
END_TEST

/* A list has what its ranges match. */
START_TEST(agreement)
{
    struct text out = {0};
    ck_assert(hosts_expand("r[1-12]n[001-010]", 1000, &out));
    unsigned n = 0;
    for (char *name, *rest = out.s + 1; (name = strsep(&rest, " ")); n++)
        ck_assert_msg(hosts_match("r[1-12]n[001-010]", name), "%s", name);
    ck_assert_uint_eq(n, 120);
    text_free(&out);
}
END_TEST

START_TEST(keys_of_hosts)
{
    struct host_keys k = {0}, copy;
    ck_assert(!host_keys_have(&k, 1, "h1") && !host_keys_have(NULL, 1, "h1"));
    host_keys_sort(&k);
    host_keys_add(&k, 2, "h2 more", 2);
    for (unsigned i = 0; i < 100; i++)
        host_keys_add(&k, 1, "h10", 3);
    host_keys_add(&k, 1, "h1", 2);
    host_keys_sort(&k);
    ck_assert_uint_eq(k.n, 3);
    host_keys_copy(&copy, &k);
    host_keys_free(&k);
    ck_assert(host_keys_have(&copy, 1, "h1") && host_keys_have(&copy, 1, "h10") && host_keys_have(&copy, 2, "h2"));
    ck_assert(!host_keys_have(&copy, 2, "h1") && !host_keys_have(&copy, 1, "h") && !host_keys_have(&copy, 3, "h2"));
    host_keys_free(&copy);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("hosts");
    tcase_add_loop_test(t, patterns, 0, (int)(sizeof(matches) / sizeof(matches[0])));
    tcase_add_test(t, ranges);
    tcase_add_loop_test(t, expansion, 0, (int)(sizeof(lists) / sizeof(lists[0])));
    tcase_add_test(t, agreement);
    tcase_add_test(t, keys_of_hosts);
    return check_run(t, NULL);
}
