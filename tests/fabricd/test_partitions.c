/* SPDX-License-Identifier: BSD-3-Clause */
/* opensm's partition file: members of classes in a section, everything else kept, and nothing left when it goes. */
#include "fabricd/fabric/partitions.h"
#include "tests/check.h"

#include <stdio.h>
#include <string.h>

static const char adapters[] =
    "0x0000000000000011 h1 mlx5_0\n0x0000000000000012 h1 mlx5_1\n0x0000000000000021 h2 mlx5_0\n"
    "0x0000000000000031 h3 HCA-1 #; red=0x5 : ALL;\n";

static struct policy policy_of(unsigned pkey, const char *first, const char *second)
{
    struct policy p = {.num_classes = 2};
    for (unsigned i = 0; i < 2; i++) {
        struct policy_class *c = &p.classes[i];
        const char *pattern = i ? second : first;
        snprintf(c->name, sizeof(c->name), "c%u", i);
        c->partition.pkey = pkey + i;
        if (pattern)
            snprintf(c->partition.members[c->partition.num_members++], POLICY_MEMBER_MAX, "%s", pattern);
    }
    return p;
}

static struct partition_file file_of(const char *s)
{
    struct partition_file f = {.there = s != NULL};
    text_put(&f.text, s ? s : "", s ? strlen(s) : 0);
    return f;
}

/* The file for p, unchanged by a second merge. */
static struct partition_file merged(const struct partition_file *old, const struct policy *p, const char *seen)
{
    struct partition_file once = {0}, twice = {0};
    partitions_merge(old, p, NULL, seen, &once);
    partitions_merge(&once, p, NULL, seen, &twice);
    ck_assert(partition_file_equal(&once, &twice));
    partition_file_free(&twice);
    return once;
}

static void is_back(const struct partition_file *now, const char *was)
{
    struct partition_file back = {0}, want = file_of(was);
    struct policy none = policy_of(1, NULL, NULL);
    partitions_merge(now, &none, NULL, "", &back);
    ck_assert_int_eq(back.there, want.there);
    ck_assert_str_eq(text_str(&back.text), text_str(&want.text));
    partition_file_free(&back);
    partitions_take_section(now, NULL, &back);
    ck_assert(partition_file_equal(&back, &want));
    partition_file_free(&back);
    partition_file_free(&want);
}

START_TEST(section)
{
    static const char *const before[] = {NULL, "", "# ours\nDefault=0x7fff : ALL=full ;\nred=0x0022 :\n ALL ;\n"};
    struct policy p = policy_of(0x11, "h[12]", "h3");
    for (unsigned i = 0; i < 3; i++) {
        struct partition_file old = file_of(before[i]), now = merged(&old, &p, adapters);
        ck_assert(now.there);
        ck_assert(!strncmp(now.text.s, text_str(&old.text), old.text.len));
        ck_assert_int_eq(strstr(now.text.s, "Default=0x7fff, ipoib : ALL=full ;") != NULL, i == 0);
        ck_assert_ptr_nonnull(strstr(now.text.s, "fabricd_0x0011=0x0011 :\n"
                                                 "    0x0000000000000011=full, # h1 mlx5_0\n"
                                                 "    0x0000000000000012=full, # h1 mlx5_1\n"
                                                 "    0x0000000000000021=full ; # h2 mlx5_0\n"
                                                 "fabricd_0x0012=0x0012 :\n"
                                                 "    0x0000000000000031=full ; # h3 HCA-1 \n"));
        is_back(&now, before[i]);
        partition_file_free(&old);
        partition_file_free(&now);
    }
}
END_TEST

/* Two classes of one partition have the members of both, and no port twice. */
START_TEST(one_partition)
{
    struct policy p = policy_of(0x11, "h1", "h?");
    struct partition_file old = file_of(""), now;
    p.classes[1].partition.pkey = 0x11;
    now = merged(&old, &p, adapters);
    const char *first = strstr(now.text.s, "=0x0011 :");
    ck_assert(first && !strstr(first + 1, "=0x0011 :"));
    const char *h1 = strstr(now.text.s, "0x0000000000000011");
    ck_assert(h1 && !strstr(h1 + 1, "0x0000000000000011"));
    ck_assert_ptr_nonnull(strstr(now.text.s, "0x0000000000000031=full ;"));
    ck_assert(policy_is_member(&p, NULL, 0x11, "h3 x") && !policy_is_member(&p, NULL, 0x12, "h3 x"));
    partition_file_free(&now);
    partition_file_free(&old);
}
END_TEST

/* A host that is down stays a member; a host present under another name does not. */
START_TEST(members_that_are_down)
{
    struct policy p = policy_of(0x11, "h[12]", NULL);
    struct partition_file old = file_of(NULL), all = merged(&old, &p, adapters), now;
    now = merged(&all, &p, "0x0000000000000021 h2 mlx5_0\n");
    ck_assert(partition_file_equal(&all, &now));
    partition_file_free(&now);
    now = merged(&all, &p, "0x0000000000000012 h9 mlx5_1\n");
    ck_assert(strstr(now.text.s, "0x0000000000000011=full") && !strstr(now.text.s, "0x0000000000000012"));
    partition_file_free(&now);
    p = policy_of(0x11, "h2", NULL);
    now = merged(&all, &p, "");
    ck_assert(!strstr(now.text.s, "h1") && strstr(now.text.s, "0x0000000000000021=full ;"));
    partition_file_free(&now);
    partition_file_free(&all);
    partition_file_free(&old);
}
END_TEST

START_TEST(sections_of_others)
{
    struct policy p = policy_of(0x11, "h1", NULL), q = policy_of(0x11, "h2", NULL);
    struct partition_file ours = file_of("red=0x0022 : ALL ;\n"), one = merged(&ours, &p, adapters), taken = {0};
    struct partition_file other = file_of(NULL), two = merged(&other, &q, adapters);
    partitions_take_section(&one, &two, &taken);
    ck_assert(!strncmp(taken.text.s, ours.text.s, ours.text.len));
    ck_assert(strstr(taken.text.s, "h2 mlx5_0") && !strstr(taken.text.s, "h1"));
    partition_file_free(&taken);
    partition_file_free(&one);
    partition_file_free(&two);
    partition_file_free(&ours);
}
END_TEST

static const struct {
    const char *text, *says; /* NULL: the keys are free */
} files[] = {
    {"", NULL},
    {"red=0x0012 : ALL ; # red=0x0011 : ALL ;\n", NULL},
    {"Default=0x7fff : ALL=full ;\nred=0x0022 : ALL ;\n\n  blue = 0x8011 ,\n ipoib : ALL ;\n",
     "f:4: partition 'blue' has the P_Key 0x0011 of class 'c0'"},
    {"a=1 : ALL ; b=17 : ALL ;\n", "f:1: partition 'b' has the P_Key 0x0011 of class 'c0'"},
    {"no key : ALL ;\nb=0x12 : ALL;\n", NULL}, /* class c1 has no members */
};

START_TEST(keys_of_others)
{
    struct policy p = policy_of(0x11, "h1", NULL);
    struct partition_file f = file_of(files[_i].text), with = merged(&f, &p, adapters);
    struct text why = {0};
    bool free = partitions_free(&f, &p, "f", &why);
    ck_assert_int_eq(free, !files[_i].says);
    if (files[_i].says)
        ck_assert_msg(!strncmp(text_str(&why), files[_i].says, strlen(files[_i].says)), "%s", text_str(&why));
    else
        ck_assert(partitions_free(&with, &p, "f", &why)); /* the section is not another's */
    text_free(&why);
    partition_file_free(&with);
    partition_file_free(&f);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("partitions");
    tcase_add_test(t, section);
    tcase_add_test(t, one_partition);
    tcase_add_test(t, members_that_are_down);
    tcase_add_test(t, sections_of_others);
    tcase_add_loop_test(t, keys_of_others, 0, (int)(sizeof(files) / sizeof(files[0])));
    return check_run(t, NULL);
}
