/* SPDX-License-Identifier: BSD-3-Clause */
/* Capabilities of the kinds of links, and the kinds allowed for a rank: MRMPI_LINKS and MRMPI_RELIABLE. */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/verbs/verbs.h"
#include "tests/check.h"

static struct mr_kinds kinds;
static const char *why;

static bool parse(const char *links, const char *reliable)
{
    memset(&kinds, 0xff, sizeof kinds);
    why = NULL;
    return mr_kinds_parse(links, reliable, false, &kinds, &why);
}

/* Each list of some kinds in some order. */
START_TEST(lists)
{
    static const struct {
        const char *text;
        unsigned num;
        enum mr_link_kind kind[MR_LINK_KINDS];
    } cases[] = {
        {"rc", 1, {MR_LINK_RC}},
        {"uc", 1, {MR_LINK_UC}},
        {"ud", 1, {MR_LINK_UD}},
        {"rc,uc", 2, {MR_LINK_RC, MR_LINK_UC}},
        {"uc,rc", 2, {MR_LINK_UC, MR_LINK_RC}},
        {"rc,ud", 2, {MR_LINK_RC, MR_LINK_UD}},
        {"ud,rc", 2, {MR_LINK_UD, MR_LINK_RC}},
        {"uc,ud", 2, {MR_LINK_UC, MR_LINK_UD}},
        {"ud,uc", 2, {MR_LINK_UD, MR_LINK_UC}},
        {"rc,uc,ud", 3, {MR_LINK_RC, MR_LINK_UC, MR_LINK_UD}},
        {"rc,ud,uc", 3, {MR_LINK_RC, MR_LINK_UD, MR_LINK_UC}},
        {"uc,rc,ud", 3, {MR_LINK_UC, MR_LINK_RC, MR_LINK_UD}},
        {"uc,ud,rc", 3, {MR_LINK_UC, MR_LINK_UD, MR_LINK_RC}},
        {"ud,rc,uc", 3, {MR_LINK_UD, MR_LINK_RC, MR_LINK_UC}},
        {"ud,uc,rc", 3, {MR_LINK_UD, MR_LINK_UC, MR_LINK_RC}},
        {"UD,Rc", 2, {MR_LINK_UD, MR_LINK_RC}},
        {"ring", 1, {MR_LINK_RING}},
        {"ring,rc", 2, {MR_LINK_RING, MR_LINK_RC}},
        {"rc,uc,ring,ud", 4, {MR_LINK_RC, MR_LINK_UC, MR_LINK_RING, MR_LINK_UD}},
    };

    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        bool named[MR_LINK_KINDS] = {false};

        ck_assert_msg(parse(cases[c].text, "auto"), "%s", cases[c].text);
        ck_assert_uint_eq(kinds.num, cases[c].num);
        for (unsigned i = 0; i < kinds.num; i++) {
            ck_assert_uint_eq(kinds.kind[i], cases[c].kind[i]);
            named[kinds.kind[i]] = true;
        }
        for (unsigned k = 0; k < MR_LINK_KINDS; k++)
            ck_assert_int_eq(mr_kinds_have(&kinds, k), named[k]);
    }
}
END_TEST

START_TEST(chosen)
{
    static const struct {
        const char *reliable;
        bool many;
        unsigned num;
    } cases[] = {{"auto", false, 1}, {"auto", true, 2}, {"yes", false, 1},
                 {"yes", true, 2},   {"no", false, 1},  {"no", true, 1}};

    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        ck_assert(mr_kinds_parse("Auto", cases[c].reliable, cases[c].many, &kinds, &why));
        ck_assert_uint_eq(kinds.num, cases[c].num);
        ck_assert_uint_eq(kinds.kind[0], MR_LINK_RC);
        ck_assert_int_eq(mr_kinds_have(&kinds, MR_LINK_UD), cases[c].num == 2);
        ck_assert(!kinds.unsafe);
    }
    ck_assert(mr_kinds_parse("rc", "auto", true, &kinds, &why) &&
              kinds.num == 1); /* exactly the named kinds are used */
    ck_assert(!mr_kinds_parse("auto,ud", "auto", true, &kinds, &why));
}
END_TEST

START_TEST(lists_that_are_none)
{
    static const char *const bad[] = {"",      ",",        "rc,",   ",rc",    "rc,,ud",      "rc ud",     "rc, ud",
                                      " rc",   "rc ",      "r",     "rcx",    "xrc",         "all",       "autos",
                                      "rc,rc", "ud,rc,ud", "uc,UC", "rc;ud",  "rc,uc,ud,rc", "rc,uc,ud,", "shm",
                                      "rcuc",  "rc,u",     "rc,d",  "rc,none"};

    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(!parse(bad[i], "auto"), "'%s'", bad[i]);
        ck_assert_str_eq(why, "MRMPI_LINKS");
    }
    ck_assert(!parse("bad", "bad")); /* one at a time */
    ck_assert_str_eq(why, "MRMPI_LINKS");
}
END_TEST

START_TEST(bad_reliable)
{
    static const char *const bad[] = {"", "y", "n", "1", "0", "true", "yes ", " yes", "yes,no", "never", "autos"};

    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_msg(!parse("rc,ud", bad[i]), "'%s'", bad[i]);
        ck_assert_str_eq(why, "MRMPI_RELIABLE");
    }
    ck_assert(parse("rc", "Yes") && parse("rc", "NO") && parse("rc", "AUTO"));
}
END_TEST

/* RC, UC, UD and rings, each native or reliable: every valid pair of settings. */
START_TEST(six_combinations)
{
    static const struct {
        const char *links, *reliable;
        enum mr_link_kind kind;
        bool native, unsafe;
    } cases[] = {
        {"rc", "auto", MR_LINK_RC, true, false},   {"rc", "no", MR_LINK_RC, true, false},
        {"rc", "yes", MR_LINK_RC, false, false},   {"uc", "auto", MR_LINK_UC, false, false},
        {"uc", "yes", MR_LINK_UC, false, false},   {"uc", "no", MR_LINK_UC, true, true},
        {"ud", "auto", MR_LINK_UD, false, false},  {"ud", "yes", MR_LINK_UD, false, false},
        {"ud", "no", MR_LINK_UD, true, true},      {"ring", "auto", MR_LINK_RING, true, false},
        {"ring", "no", MR_LINK_RING, true, false}, {"ring", "yes", MR_LINK_RING, false, false},
    };

    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        ck_assert(parse(cases[c].links, cases[c].reliable));
        ck_assert_int_eq(kinds.native[cases[c].kind], cases[c].native);
        ck_assert_int_eq(kinds.unsafe, cases[c].unsafe);
    }
}
END_TEST

/* A list is unsafe if one of its kinds loses packets without acknowledgements. */
START_TEST(unsafe_lists)
{
    static const char *const lossy[] = {"rc,ud", "ud,rc", "uc,rc", "uc,ud", "rc,uc,ud"};

    for (unsigned i = 0; i < sizeof lossy / sizeof *lossy; i++) {
        ck_assert(parse(lossy[i], "no") && kinds.unsafe);
        ck_assert(parse(lossy[i], "auto") && !kinds.unsafe);
        ck_assert(kinds.native[MR_LINK_RC] && !kinds.native[MR_LINK_UC] && !kinds.native[MR_LINK_UD]);
        ck_assert(parse(lossy[i], "yes") && !kinds.unsafe);
        ck_assert(!kinds.native[MR_LINK_RC] && !kinds.native[MR_LINK_UC] && !kinds.native[MR_LINK_UD]);
    }
}
END_TEST

/* The traits of each kind, once more. */
START_TEST(traits)
{
    const unsigned rc = 1u << MR_LINK_RC, uc = 1u << MR_LINK_UC, ud = 1u << MR_LINK_UD, ring = 1u << MR_LINK_RING;
    const unsigned all = rc | uc | ud | ring;

    ck_assert_uint_eq(mr_kinds_that_are(all, MR_IS_CONNECTED), rc | uc | ring);
    ck_assert_uint_eq(mr_kinds_that_are(all, MR_IS_RELIABLE), rc | ring);
    ck_assert_uint_eq(mr_kinds_that_are(all, MR_IS_CONFIRMING), rc | uc | ring);
    ck_assert_uint_eq(mr_kinds_that_are(all, MR_IS_RDMA), rc | uc | ring);
    ck_assert_uint_eq(mr_kinds_that_are(all, MR_IS_RDMA | MR_IS_READING), rc | ring);
    ck_assert_uint_eq(mr_kinds_that_are(all, MR_IS_DATAGRAM), ud);
    ck_assert_uint_eq(mr_kinds_that_are(all, MR_IS_RING), ring);
    ck_assert_uint_eq(mr_kinds_that_are(all, 0), all);
    for (unsigned set = 0; set <= all; set++)
        for (unsigned trait = 1; trait <= MR_IS_RING; trait <<= 1) {
            unsigned those = 0;

            for (unsigned k = 0; k < MR_LINK_KINDS; k++)
                those |= (unsigned)(set >> k & 1 && mr_kind_is(k, trait)) << k;
            ck_assert_uint_eq(mr_kinds_that_are(set, trait), those);
            ck_assert(!mr_kind_is(MR_LINK_KINDS, trait));
        }
}
END_TEST

/* The best kind; and none. */
START_TEST(large_messages)
{
    for (unsigned set = 0; set < 1u << MR_LINK_KINDS; set++) {
        unsigned want = set >> MR_LINK_RC & 1     ? MR_LINK_RC
                        : set >> MR_LINK_RING & 1 ? MR_LINK_RING
                        : set >> MR_LINK_UC & 1   ? MR_LINK_UC
                                                  : MR_LINK_KINDS;

        ck_assert_uint_eq(mr_kinds_bulk(set), want);
        ck_assert_uint_eq(mr_kinds_by_rdma(set, false), want);
        ck_assert_uint_eq(mr_kinds_by_rdma(set, true), want == MR_LINK_RING ? MR_LINK_KINDS : want);
    }
}
END_TEST

START_TEST(texts)
{
    char out[MR_KINDS_TEXT];

    ck_assert_str_eq(mr_kinds_list("or", out), "rc, uc, ud or ring");
    ck_assert_str_eq(mr_kinds_form("MRMPI_LINKS", out),
                     "auto, or a comma list of rc, uc, ud and ring, each at most once");
    ck_assert_str_eq(mr_kinds_form("MRMPI_RELIABLE", out), "one of auto, yes, no");
    for (unsigned k = 0; k < MR_LINK_KINDS; k++) {
        ck_assert_uint_eq(mr_kind_by_name(mr_kind_name(k), strlen(mr_kind_name(k))), k);
        ck_assert_uint_gt(strlen(mr_kind_help(k)), 0);
    }
    ck_assert_uint_eq(mr_kind_by_name("RCx", 2), MR_LINK_RC);
    ck_assert_uint_eq(mr_kind_by_name("rcx", 3), MR_LINK_KINDS);
    ck_assert_uint_eq(mr_kind_by_name("", 0), MR_LINK_KINDS);
    ck_assert_str_eq(mr_kind_help(MR_LINK_KINDS), "unknown");
}
END_TEST

START_TEST(names)
{
    ck_assert_str_eq(mr_kind_name(MR_LINK_RC), "rc");
    ck_assert_str_eq(mr_kind_name(MR_LINK_UC), "uc");
    ck_assert_str_eq(mr_kind_name(MR_LINK_UD), "ud");
    ck_assert_str_eq(mr_kind_name(MR_LINK_RING), "ring");
    ck_assert_str_eq(mr_kind_name(MR_LINK_KINDS), "unknown");
}
END_TEST

START_TEST(designs)
{
    enum mr_ring_design d = MR_RING_BASIC;

    ck_assert(mr_ring_design_parse("Zerocopy", &d));
    ck_assert_int_eq(d, MR_RING_ZEROCOPY);
    for (unsigned i = 0; i < MR_RING_DESIGNS; i++) {
        ck_assert(mr_ring_design_parse(mr_ring_design_name(i), &d));
        ck_assert_uint_eq(d, i);
    }
    ck_assert(!mr_ring_design_parse("", &d) && !mr_ring_design_parse("basic,zerocopy", &d));
    ck_assert_str_eq(mr_ring_design_name(MR_RING_DESIGNS), "unknown");
}
END_TEST

/* The size of a slot: as requested, by design, and never more than a packet. */
START_TEST(ring_sizes)
{
    ck_assert_uint_eq(mr_ring_size(MR_RING_BASIC, 0, 8192), 2048);
    ck_assert_uint_eq(mr_ring_size(MR_RING_PIGGYBACK, 0, 1024), 1024);
    ck_assert_uint_eq(mr_ring_size(MR_RING_PIPELINED, 0, 65536), 16384);
    ck_assert_uint_eq(mr_ring_size(MR_RING_ZEROCOPY, 0, 8192), 8192);
    ck_assert_uint_eq(mr_ring_size(MR_RING_ZEROCOPY, 512, 8192), 512);
    ck_assert_uint_eq(mr_ring_size(MR_RING_BASIC, 16384, 8192), 8192);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kinds");

    tcase_add_test(t, lists);
    tcase_add_test(t, chosen);
    tcase_add_test(t, lists_that_are_none);
    tcase_add_test(t, bad_reliable);
    tcase_add_test(t, six_combinations);
    tcase_add_test(t, unsafe_lists);
    tcase_add_test(t, traits);
    tcase_add_test(t, large_messages);
    tcase_add_test(t, texts);
    tcase_add_test(t, names);
    tcase_add_test(t, designs);
    tcase_add_test(t, ring_sizes);
    return check_run(t, NULL);
}
