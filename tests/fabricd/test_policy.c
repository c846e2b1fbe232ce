/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy file: what is accepted, what is refused and where, and which class a job gets by the rules. */
#include "fabricd/policy.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const char GOOD[] = "version: 1\n"
                           "vls: 4\n"
                           "mtu: 2048\n"
                           "classes:\n"
                           "  - {name: urgent, share: 60, priority: high, lanes: 2, small: 16K}\n"
                           "  - {name: normal, share: 30}\n"
                           "  - {name: batch, share: 10, priority: 0}\n"
                           "jobs:\n"
                           "  default: normal\n"
                           "  rules:\n"
                           "    - {user: alice, name: \"prod-*\", class: urgent}\n"
                           "    - {account: students, class: batch}\n"
                           "limits: {bulk_minimum: 25}\n"
                           "paths: {lmc: 2}\n";

START_TEST(good)
{
    struct policy p;
    struct diag d = {.file = "good.yaml"};
    ck_assert(policy_parse(&p, GOOD, strlen(GOOD), &d));
    ck_assert_str_eq(text_str(&d.out), "");
    ck_assert_uint_eq(p.vls, 4);
    ck_assert_uint_eq(p.mtu, 2048);
    ck_assert_uint_eq(p.lmc, 2);
    ck_assert_uint_eq(p.bulk_minimum, 25);
    ck_assert_int_eq(p.high_limit, -1);
    ck_assert_uint_eq(p.num_classes, 3);
    ck_assert_str_eq(p.classes[0].name, "urgent");
    ck_assert_uint_eq(p.classes[0].priority, PRIORITY_HIGH);
    ck_assert_uint_eq(p.classes[0].lanes, 2);
    ck_assert_uint_eq(p.classes[0].small_max, 16384);
    ck_assert_uint_eq(p.classes[1].priority, PRIORITY_NORMAL);
    ck_assert_uint_eq(p.classes[1].lanes, 1);
    ck_assert_uint_eq(p.classes[2].priority, PRIORITY_LOW);
    ck_assert_uint_eq(p.default_class, 1);
    ck_assert_uint_eq(policy_class_of(&p, "alice", "", "prod-7"), 0);
    ck_assert_uint_eq(policy_class_of(&p, "alice", "students", "prod-7"), 0);
    ck_assert_uint_eq(policy_class_of(&p, "bob", "students", "prod-7"), 2);
    ck_assert_uint_eq(policy_class_of(&p, "bob", "", "prod-7"), 1);
}
END_TEST

/* Every case: a file with one mistake, and the place and the text that must be named. */
static const struct {
    const char *text, *says;
} bad[] = {
    {"", "f.yaml:1:1: error: the file is empty"},
    {"version: 1\nclasses: [\n", "f.yaml:3:1: error: "},
    {"- a\n", "f.yaml:1:1: error: the policy is a list; allowed: a mapping"},
    {"version: 1\nclases: []\njobs: {default: a}\n",
     "f.yaml:2:1: error: unknown key 'clases' in the policy, did you mean 'classes'? allowed: version, classes, jobs, "
     "limits, paths, vls, mtu"},
    {"version: 2\nclasses: [{name: a, share: 1}]\njobs: {default: a}\n",
     "f.yaml:1:10: error: version is '2'; allowed: a whole number from 1 to 1"},
    {"version: 1\nversion: 1\nclasses: [{name: a, share: 1}]\njobs: {default: a}\n",
     "f.yaml:2:1: error: 'version' is given twice in the policy (first on line 1)"},
    {"version: 1\nclasses:\n  - name: a\n    share: 60\n  - name: b\n    share: 50\njobs: {default: a}\n",
     "f.yaml:6:12: error: the shares add up to more than 100 with class 'b' (60 before it, 110 with it)"},
    {"version: 1\nclasses:\n  - {name: a, share: 1}\n  - {name: a, share: 2}\njobs: {default: a}\n",
     "f.yaml:4:12: error: class 'a' is given twice (first on line 3)"},
    {"version: 1\nclasses:\n  - {name: a, share: ten}\njobs: {default: a}\n",
     "f.yaml:3:22: error: share is 'ten'; allowed: a whole number from 1 to 100"},
    {"version: 1\nclasses:\n  - {name: a, share: 0}\njobs: {default: a}\n", "f.yaml:3:22: error: share is '0'"},
    {"version: 1\nclasses:\n  - {name: a, share: -5}\njobs: {default: a}\n", "f.yaml:3:22: error: share is '-5'"},
    {"version: 1\nclasses:\n  - {name: a}\njobs: {default: a}\n", "f.yaml:3:5: error: a class has no 'share'"},
    {"version: 1\nclasses:\n  - {name: a, share: 1, priority: hihg}\njobs: {default: a}\n",
     "f.yaml:3:35: error: priority is 'hihg', did you mean 'high'?; allowed: high, normal, low"},
    {"version: 1\nclasses:\n  - {name: a, share: 1, priority: 4}\njobs: {default: a}\n",
     "f.yaml:3:35: error: priority is '4'; allowed: a whole number from 0 to 3"},
    {"version: 1\nclasses:\n  - {name: a, share: 1, lanes: 9}\njobs: {default: a}\n",
     "f.yaml:3:32: error: lanes is '9'"},
    {"version: 1\nclasses:\n  - {name: a, share: 1, small: 2M}\njobs: {default: a}\n",
     "f.yaml:3:32: error: small is '2M'"},
    {"version: 1\nclasses:\n  - {name: a, share: 1, medium: much}\njobs: {default: a}\n",
     "f.yaml:3:33: error: medium is 'much'; allowed: bytes from 0 to 1073741824"},
    {"version: 1\nclasses:\n  - {name: a, share: 1, medium: 8K}\njobs: {default: a}\n",
     "f.yaml:3:33: error: medium is 8192, and small goes up to 8192; allowed: more than that"},
    {"version: 1\nclasses:\n  - {name: a, medium: 64K, small: 64K, share: 1}\njobs: {default: a}\n",
     "f.yaml:3:23: error: medium is 65536, and small goes up to 65536"},
    {"version: 1\nclasses:\n  - {name: a, share: 1, medium: [64K, 32K]}\njobs: {default: a}\n",
     "f.yaml:3:39: error: medium is 32768, and the level before goes up to 65536"},
    {"version: 1\nclasses:\n  - {name: a, share: 1, medium: [16K, 32K, 64K]}\njobs: {default: a}\n",
     "f.yaml:3:44: error: more than 2 sizes in medium"},
    {"version: 1\nclasses:\n  - {name: a, share: 1, medium: []}\njobs: {default: a}\n",
     "f.yaml:3:33: error: medium is empty; allowed: 1 to 2 sizes"},
    {"version: 1\nclasses:\n  - {name: a, share: 1, medium: {upto: 1}}\njobs: {default: a}\n",
     "f.yaml:3:33: error: medium is a mapping; allowed: a size"},
    {"version: 1\nclasses:\n  - {name: a, share: 1, rails: near}\njobs: {default: a}\n",
     "f.yaml:3:32: error: rails is"},
    {"version: 1\nclasses:\n  - {name: a, share: 1, rails: {large: near}}\njobs: {default: a}\n",
     "f.yaml:3:40: error: large in rails: \"near\" is not one of fair"},
    {"version: 1\nclasses:\n  - {name: a, share: 1, rails: {small: even}}\njobs: {default: a}\n",
     "f.yaml:3:40: error: small in rails: \"even\" is not one of fair soonest"},
    {"version: 1\nclasses:\n  - {name: a, share: 1, rails: {small: window}}\njobs: {default: a}\n",
     "f.yaml:3:40: error: small in rails: it needs the length of the window"},
    {"version: 1\nclasses:\n  - {name: a, share: 1, rails: {smal: near}}\njobs: {default: a}\n",
     "f.yaml:3:33: error: unknown key 'smal' in rails, did you mean 'small'?"},
    {"version: 1\nclasses:\n  - {name: a, share: 1, medum: 9K}\njobs: {default: a}\n",
     "f.yaml:3:25: error: unknown key 'medum' in a class, did you mean 'medium'?"},
    {"version: 1\nclasses:\n  - {name: \"a b\", share: 1}\njobs: {default: \"a b\"}\n",
     "f.yaml:3:12: error: class name 'a b'; allowed: letters"},
    {"version: 1\nclasses: []\njobs: {default: a}\n", "f.yaml:2:10: error: classes is empty"},
    {"version: 1\nclasses: [{name: a, share: 1}]\njobs: {default: b}\n",
     "f.yaml:3:17: error: default is 'b'; allowed: a"},
    {"version: 1\nclasses: [{name: abc, share: 1}]\njobs: {default: abc, rules: [{class: abc}]}\n",
     "f.yaml:3:30: error: a rule without user, account or name"},
    {"version: 1\nclasses: [{name: abc, share: 1}]\njobs: {default: abc}\nvls: 3\n",
     "f.yaml:4:6: error: vls is '3'; allowed: 1, 2, 4, 8, 15"},
    {"version: 1\nclasses: [{name: abc, share: 1}]\njobs: {default: abc}\npaths: {lmc: 4}\n",
     "f.yaml:4:14: error: lmc is '4'; allowed: a whole number from 0 to 3"},
    {"version: 1\nclasses: [{name: abc, share: 1}]\njobs: {default: abc}\nlimits: {bulk_minimum: 20, high_limit: 3}\n",
     "f.yaml:4:40: error: bulk_minimum and high_limit"},
    {"version: 1\nclasses: [{name: abc, share: 1}]\njobs: {default: abc}\n---\na: 1\n",
     "f.yaml:5:1: error: a second YAML document"},
    {"version: 1\nclasses: [{name: abc, share: 99999999999999999999}]\njobs: {default: abc}\n",
     "f.yaml:2:30: error: share is"},
    {"version: 1\nclasses: [{name: \"a\\0b\", share: 1}]\njobs: {default: a}\n", "text with a zero byte in it"},
};

START_TEST(levels_between)
{
    static const char text[] = "version: 1\nclasses:\n  - {name: a, share: 50, small: 256, medium: 16K}\n"
                               "  - {name: b, share: 30, medium: [64K, 1M]}\n  - {name: c, share: 20}\n"
                               "jobs: {default: a}\n";
    struct policy p;
    struct diag d = {.file = "f.yaml"};
    ck_assert(policy_parse(&p, text, strlen(text), &d));
    ck_assert_str_eq(text_str(&d.out), "");
    ck_assert_uint_eq(p.classes[0].num_medium, 1);
    ck_assert_uint_eq(p.classes[0].medium_max[0], 16384);
    ck_assert_uint_eq(p.classes[1].num_medium, 2);
    ck_assert_uint_eq(p.classes[1].medium_max[0], 65536);
    ck_assert_uint_eq(p.classes[1].medium_max[1], 1 << 20);
    ck_assert_uint_eq(p.classes[2].num_medium, 0);
}
END_TEST

START_TEST(refused)
{
    struct policy p;
    struct diag d = {.file = "f.yaml"};
    ck_assert(!policy_parse(&p, bad[_i].text, strlen(bad[_i].text), &d));
    ck_assert_uint_gt(d.errors, 0);
    ck_assert_msg(strstr(text_str(&d.out), bad[_i].says) != NULL, "case %d: wanted '%s', got '%s'", _i, bad[_i].says,
                  text_str(&d.out));
    text_free(&d.out);
}
END_TEST

START_TEST(all_errors_at_once)
{
    static const char text[] =
        "version: 1\nclasses:\n  - {name: a, share: x}\n  - {name: b, lanes: 0}\njobs: {default: c}\n";
    struct policy p;
    struct diag d = {.file = "f.yaml"};
    ck_assert(!policy_parse(&p, text, strlen(text), &d));
    ck_assert_uint_eq(d.errors, 4);
    text_free(&d.out);
}
END_TEST

START_TEST(shares_below_100_warn)
{
    static const char text[] = "version: 1\nclasses:\n  - {name: a, share: 30}\njobs: {default: a}\n";
    struct policy p;
    struct diag d = {.file = "f.yaml"};
    ck_assert(policy_parse(&p, text, strlen(text), &d));
    ck_assert_uint_eq(d.warnings, 1);
    ck_assert_ptr_nonnull(strstr(text_str(&d.out), "f.yaml:3:3: warning: the shares add up to 30"));
    text_free(&d.out);
}
END_TEST

START_TEST(nearest)
{
    static const char *const names[] = {"classes", "jobs", "limits", NULL};
    ck_assert_str_eq(nearest_name("limit", names), "limits");
    ck_assert_str_eq(nearest_name("clsases", names), "classes");
    ck_assert_ptr_null(nearest_name("weather", names));
}
END_TEST

START_TEST(yaml_strings)
{
    static const struct {
        const char *in, *out;
    } cases[] = {{"plain-1.x", "plain-1.x"}, {"12", "\"12\""}, {"true", "\"true\""},
                 {"a: b", "\"a: b\""},       {"", "\"\""},     {"q\"\\", "\"q\\\"\\\\\""},
                 {"h1 mlx5_0", "h1 mlx5_0"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct text t = {0};
        text_yaml_string(&t, cases[i].in);
        ck_assert_str_eq(t.s, cases[i].out);
        text_free(&t);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("policy");
    TCase *t = tcase_create("policy");
    tcase_add_test(t, good);
    tcase_add_test(t, levels_between);
    tcase_add_loop_test(t, refused, 0, (int)(sizeof(bad) / sizeof(bad[0])));
    tcase_add_test(t, all_errors_at_once);
    tcase_add_test(t, shares_below_100_warn);
    tcase_add_test(t, nearest);
    tcase_add_test(t, yaml_strings);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
