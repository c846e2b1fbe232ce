/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers as JSON, and names as YAML. */
#include "fabricd/ctl/json.h"
#include "tests/check.h"

#include <string.h>

/* Names with another meaning in YAML are quoted: a job is read as written. */
START_TEST(odd_names)
{
    static const char *const names[] = {"@x",   "a@b", "true", "Null", "~",  "7",   "-",     "a - b",     "- a", "a: b",
                                        "a #b", "#",   "'",    "*a",   "&a", "!a",  "%a",    "`a",        "?",   "? a",
                                        "|",    ">",   "[",    "{}",   ",",  "=",   "<<",    ".",         "...", "---",
                                        "0x1f", "1e3", ".inf", " a",   "a ", "1_0", "12:30", "2001-01-01"};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct text yaml = {0}, json = {0}, want = {0};
        text_printf(&yaml, "- {id: ");
        text_yaml_string(&yaml, names[i]);
        text_printf(&yaml, ", b: c}\n");
        text_printf(&want, "[{\"id\": \"%s\", \"b\": \"c\"}]\n", names[i]);
        ck_assert_msg(json_of_yaml(&json, yaml.s, yaml.len), "%s", yaml.s);
        ck_assert_str_eq(json.s, want.s);
        text_free(&yaml);
        text_free(&json);
        text_free(&want);
    }
}
END_TEST

START_TEST(as_json)
{
    static const struct {
        const char *yaml, *json;
    } cases[] = {
        {"", "[]\n"},
        {"- {id: \"7\", n: 7, f: 12.50, t: true, s: \"true\", w: two words}\n- {}\n",
         "[{\"id\": \"7\", \"n\": 7, \"f\": 12.50, \"t\": true, \"s\": \"true\", \"w\": \"two words\"}, {}]\n"},
        {"a: []\nb:\n  - [1, 02, -3, 4.]\n", "{\"a\": [], \"b\": [[1, \"02\", -3, \"4.\"]]}\n"},
        {"v: 0.1.0\nq: \"a \\\"b\\\"\"\n", "{\"v\": \"0.1.0\", \"q\": \"a \\\"b\\\"\"}\n"},
        {"n: null\n", "{\"n\": \"null\"}\n"},
        /* line ends to YAML, which must read the output, too; other characters stay */
        {"\"a\\Nb\\L\\P\": \"\\N\"\n", "{\"a\\u0085b\\u2028\\u2029\": \"\\u0085\"}\n"},
        {"e: \xc3\xa9\xe2\x80\xa7\xc2\xa0.\n", "{\"e\": \"\xc3\xa9\xe2\x80\xa7\xc2\xa0.\"}\n"},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct text t = {0};
        ck_assert(json_of_yaml(&t, cases[i].yaml, strlen(cases[i].yaml)));
        ck_assert_str_eq(t.s, cases[i].json);
        struct text again = {0};
        ck_assert(json_of_yaml(&again, t.s, t.len));
        ck_assert_str_eq(again.s, t.s);
        text_free(&again);
        text_free(&t);
    }
    struct text t = {0};
    ck_assert(!json_of_yaml(&t, "{", 1));
    ck_assert_uint_eq(t.len, 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("json");
    tcase_add_test(t, odd_names);
    tcase_add_test(t, as_json);
    return check_run(t, NULL);
}
