/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules: the meaning of a text, places of errors, and the kind of link of a message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/conn/route/rules.h"
#include "tests/check.h"

#define RC  (1u << MR_LINK_RC)
#define UC  (1u << MR_LINK_UC)
#define UD  (1u << MR_LINK_UD)
#define ALL (RC | UC | UD)

static struct mr_rules rules;
static struct mr_rules_error err;
static struct mr_rules_peer peer;

/* In memory of the exact length, so a sanitizer detects a read behind. */
static bool parse(const char *text)
{
    size_t len = strlen(text);
    char *copy = malloc(len ? len : 1);
    bool ok;

    memcpy(copy, text, len);
    ok = mr_rules_parse(copy, len, &rules, &err);
    free(copy);
    return ok;
}

static void reads(const char *text)
{
    ck_assert_msg(parse(text), "%s: %u:%u: %s", text, err.line, err.column, err.what);
    peer = (struct mr_rules_peer){.class_name = ""};
}

static unsigned pick(enum mr_rule_use use, uint64_t len, unsigned open)
{
    return mr_rules_pick(&rules, use, mr_rules_size_class(&rules, len), &peer, open);
}

START_TEST(none)
{
    static const char *const texts[] = {"", "  ", ";;", "\n\n", "# nothing", " ; # nothing\n;"};

    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        reads(texts[i]);
        ck_assert_uint_eq(rules.num, 0);
        ck_assert_uint_eq(pick(MR_RULE_EAGER, 8, ALL), MR_LINK_KINDS);
    }
}
END_TEST

/* The sample of the Aptus paper, in our kinds. */
START_TEST(first_match_that_is_open)
{
    reads("eager size<=2K: uc,ud\n"
          "eager size<=8K: rc\n"
          "rdma: rc # over a connection\n"
          "any: ud");
    ck_assert_uint_eq(rules.num, 4);
    ck_assert_uint_eq(pick(MR_RULE_EAGER, 0, ALL), MR_LINK_UC);
    ck_assert_uint_eq(pick(MR_RULE_EAGER, 2048, RC | UD), MR_LINK_UD);
    ck_assert_uint_eq(pick(MR_RULE_EAGER, 2049, ALL), MR_LINK_RC);
    ck_assert_uint_eq(pick(MR_RULE_EAGER, 2048, RC), MR_LINK_RC);
    ck_assert_uint_eq(pick(MR_RULE_EAGER, 8192, ALL), MR_LINK_RC);
    ck_assert_uint_eq(pick(MR_RULE_EAGER, 8193, ALL), MR_LINK_UD);
    ck_assert_uint_eq(pick(MR_RULE_EAGER, 8193, RC), MR_LINK_KINDS);
    ck_assert_uint_eq(pick(MR_RULE_RDMA, 1 << 20, ALL), MR_LINK_RC);
    ck_assert_uint_eq(pick(MR_RULE_RDMA, 1 << 20, UD), MR_LINK_UD);
    ck_assert_uint_eq(pick(MR_RULE_CONTROL, 0, ALL), MR_LINK_UD);
    ck_assert_uint_eq(mr_rules_kinds(&rules), ALL);
}
END_TEST

START_TEST(sizes)
{
    reads("size<100: rc; size>=100 size<=200: uc; size>200 : ud");
    ck_assert_uint_eq(rules.num_sizes, 2);
    ck_assert_uint_eq(pick(MR_RULE_EAGER, 0, ALL), MR_LINK_RC);
    ck_assert_uint_eq(pick(MR_RULE_EAGER, 99, ALL), MR_LINK_RC);
    ck_assert_uint_eq(pick(MR_RULE_EAGER, 100, ALL), MR_LINK_UC);
    ck_assert_uint_eq(pick(MR_RULE_EAGER, 200, ALL), MR_LINK_UC);
    ck_assert_uint_eq(pick(MR_RULE_EAGER, 201, ALL), MR_LINK_UD);
    ck_assert_uint_eq(pick(MR_RULE_EAGER, UINT64_MAX, ALL), MR_LINK_UD);
    reads("size<=1g:ud;size>=1024G:rc");
    ck_assert_uint_eq(pick(MR_RULE_RDMA, 1ull << 30, ALL), MR_LINK_UD);
    ck_assert_uint_eq(pick(MR_RULE_RDMA, (1ull << 30) + 1, ALL), MR_LINK_KINDS);
    ck_assert_uint_eq(pick(MR_RULE_RDMA, 1ull << 40, ALL), MR_LINK_RC);
    reads("size>=0: rc");
    ck_assert_uint_eq(rules.num_sizes, 0);
    ck_assert_uint_eq(pick(MR_RULE_RDMA, 0, ALL), MR_LINK_RC);
}
END_TEST

START_TEST(peers)
{
    reads("control|eager count>=16: rc,ud; class=urgent rate>=1000: uc; any: ud");
    ck_assert_uint_eq(pick(MR_RULE_EAGER, 8, ALL), MR_LINK_UD);
    ck_assert_uint_eq(mr_rules_holding(&rules, &peer), 4);
    peer.count = 15;
    ck_assert_uint_eq(pick(MR_RULE_CONTROL, 8, ALL), MR_LINK_UD);
    peer.count = 16;
    ck_assert_uint_eq(pick(MR_RULE_CONTROL, 8, ALL), MR_LINK_RC);
    ck_assert_uint_eq(pick(MR_RULE_PIECE, 8, ALL), MR_LINK_UD);
    ck_assert_uint_eq(mr_rules_holding(&rules, &peer), 5);
    peer = (struct mr_rules_peer){.rate = 1000, .class_name = "urgen"};
    ck_assert_uint_eq(pick(MR_RULE_PIECE, 8, ALL), MR_LINK_UD);
    peer.class_name = "urgent";
    ck_assert_uint_eq(pick(MR_RULE_PIECE, 8, ALL), MR_LINK_UC);
    peer.rate = 999;
    ck_assert_uint_eq(pick(MR_RULE_PIECE, 8, ALL), MR_LINK_UD);
}
END_TEST

START_TEST(wrong)
{
    static const struct {
        const char *text;
        unsigned line, column;
        const char *what;
    } cases[] = {
        {"bogus: rc", 1, 1, "not a condition"},
        {": rc", 1, 1, "a condition is missing"},
        {"any", 1, 4, "a colon"},
        {"any:", 1, 5, "a kind of link"},
        {"any: rc;\n  any: xc", 2, 8, "a kind of link"},
        {"any: rc,rc", 1, 9, "rc is named twice"},
        {"any: ring, ring", 1, 12, "ring is named twice"},
        {"any: rc ud", 1, 9, "a rule ends"},
        {"any: rc,", 1, 9, "a kind of link"},
        {"size=5: rc", 1, 5, "one of <= < >= >"},
        {"size<: rc", 1, 6, "a number is missing"},
        {"size<0: rc", 1, 5, "shorter than 0"},
        {"size<=5KB: rc", 1, 7, "not a number"},
        {"size<=99999999999999999999: rc", 1, 7, "not a number"},
        {"size<=1025G: rc", 1, 7, "more than"},
        {"size<=5 size<4: rc", 1, 13, "twice"},
        {"size<=5 size>5: rc", 1, 13, "within both"},
        {"count<5: rc", 1, 6, "after count comes >="},
        {"count>=5G: rc", 1, 8, "more than 4294967295"},
        {"rate>=5 rate>=6: rc", 1, 13, "twice"},
        {"class: rc", 1, 6, "after class comes ="},
        {"class=: rc", 1, 7, "a class has a name"},
        {"class=abcdefghijklmnopqrstuvwxyz012345: rc", 1, 7, "a class has a name"},
        {"class=a class=b: rc", 1, 14, "the class is given twice"},
        {"eager control: rc", 1, 7, "join the words"},
        {"eager|bulk: rc", 1, 7, "after | comes"},
        {"eager,control: rc", 1, 6, "a blank or a colon"},
        {"# first\nany: rc\nany size: ud", 3, 9, "one of <="},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(!parse(cases[i].text), "%s is taken", cases[i].text);
        ck_assert_msg(err.line == cases[i].line && err.column == cases[i].column && strstr(err.what, cases[i].what),
                      "%s: %u:%u: %s", cases[i].text, err.line, err.column, err.what);
        ck_assert_uint_eq(rules.num, 0);
    }
}
END_TEST

/* Each text cut off anywhere is read or refused, and nothing behind it is looked at. */
START_TEST(cut_off)
{
    static const char text[] = "control|eager size<=2K size>1 count>=16 rate>=1M class=a-b: rc , uc,ud # x\nany:ud";

    for (size_t len = 0; len < sizeof text; len++) {
        char *copy = malloc(len ? len : 1);

        memcpy(copy, text, len);
        if (!mr_rules_parse(copy, len, &rules, &err))
            ck_assert_uint_le(err.column, len + 1);
        free(copy);
    }
}
END_TEST

START_TEST(bounds)
{
    char text[MR_RULES_TEXT + 2], *at = text;

    for (unsigned i = 0; i < MR_RULES_MAX; i++)
        at += sprintf(at, "any: rc;");
    reads(text);
    ck_assert_uint_eq(rules.num, MR_RULES_MAX);
    strcat(text, "any: ud");
    ck_assert(!parse(text));
    ck_assert_str_eq(err.what, "more than 32 rules");
    at = text;
    for (unsigned i = 0; i < MR_RULES_SIZES; i++)
        at += sprintf(at, "size<=%u: rc;", i + 10);
    reads(text);
    ck_assert_uint_eq(rules.num_sizes, MR_RULES_SIZES);
    strcat(text, "size>=10 size<=12: ud"); /* 9 is one more */
    ck_assert(!parse(text));
    ck_assert_str_eq(err.what, "the rules differ at more than 16 sizes");
    memset(text, ' ', sizeof text);
    text[MR_RULES_TEXT + 1] = '\0';
    ck_assert(!parse(text));
    text[MR_RULES_TEXT] = '\0';
    reads(text);
}
END_TEST

/* Printed rules are read as the same. */
START_TEST(print)
{
    static const char *const texts[] = {
        "any: rc,ud",
        "control|eager size<=2K count>=16: rc,ud",
        "rdma size>=65537: uc",
        "piece size>=1K size<=1M rate>=1000 class=urgent: ud,rc,uc",
    };
    char line[160];

    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        reads(texts[i]);
        mr_rules_print(&rules, 0, line, sizeof line);
        ck_assert_str_eq(line, texts[i]);
        for (size_t room = 1; room < sizeof line; room++) { /* and cut where there is no room */
            memset(line, 'x', sizeof line);
            mr_rules_print(&rules, 0, line, room);
            ck_assert(memchr(line, 0, room) && (room == sizeof line || line[room] == 'x'));
        }
    }
}
END_TEST

static void standard(const char *links, bool by_ring, unsigned rc_after, const char *want)
{
    struct mr_kinds kinds;
    const char *why;
    char text[400] = "", line[100];

    ck_assert(mr_kinds_parse(links, "auto", false, &kinds, &why));
    mr_rules_standard(&kinds, by_ring, rc_after, &rules);
    for (unsigned i = 0; i < rules.num; i++) {
        mr_rules_print(&rules, i, line, sizeof line);
        strcat(strcat(text, i ? "; " : ""), line);
    }
    ck_assert_str_eq(text, want);
}

START_TEST(without_rules)
{
    standard("rc", false, 0, "rdma: rc; any: rc");
    standard("ud", false, 0, "any: ud");
    standard("uc,rc", false, 0, "rdma: rc,uc; any: uc,rc");
    standard("rc,ud", false, 0, "rdma: rc; any: rc,ud");
    standard("ring", false, 0, "rdma: ring; any: ring");
    standard("uc,ring,rc", false, 0, "rdma: rc,ring,uc; any: uc,ring,rc");
    standard("ring,ud", false, 16, "rdma: ring; control|eager|piece count>=16: ring,ud; any: ud; any: ring,ud");
    standard("ring", true, 0, "any: ring");
    standard("ring,rc", true, 0, "rdma: rc; any: ring,rc");
    standard("uc,ring", true, 0, "any: uc,ring");
    standard("ud,rc", false, 5, "rdma: rc; any: ud,rc");
    standard("rc,ud", false, 16, "rdma: rc; control|eager|piece count>=16: rc,ud; any: ud; any: rc,ud");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("rules");

    tcase_add_test(t, none);
    tcase_add_test(t, first_match_that_is_open);
    tcase_add_test(t, sizes);
    tcase_add_test(t, peers);
    tcase_add_test(t, wrong);
    tcase_add_test(t, cut_off);
    tcase_add_test(t, bounds);
    tcase_add_test(t, print);
    tcase_add_test(t, without_rules);
    return check_run(t, NULL);
}
