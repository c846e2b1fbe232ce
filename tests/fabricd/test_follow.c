/* SPDX-License-Identifier: BSD-3-Clause */
/* A policy and its lock as files: handed on together, whole, once, and only if they are root's. */
#include "fabricd/apply/follow.h"
#include "fabricd/policy/lock.h"
#include "tests/check.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], policy_path[96], lock_name[96];
static struct follow *follow;

static void write_text(const char *path, const char *s)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(s, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

/* As written by the manager of a subnet. */
static void write_lock_of(const char *policy, unsigned generation)
{
    char s[256];
    snprintf(s, sizeof(s), "lock 1\npolicy generation=%u digest=%016llx\nclass a small=1 bulk=2\n", generation,
             (unsigned long long)lock_digest(policy, strlen(policy)));
    write_text(lock_name, s);
}

static void setup(void)
{
    snprintf(dir, sizeof(dir), "/tmp/fabricd-follow.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(policy_path, sizeof(policy_path), "%s/policy.yaml", dir);
    snprintf(lock_name, sizeof(lock_name), "%s/policy.lock", dir);
}

static void teardown(void)
{
    follow_stop(follow);
    follow = NULL;
    unlink(policy_path);
    unlink(lock_name);
    ck_assert_int_eq(rmdir(dir), 0);
}

static struct follow_news next_news(void)
{
    struct follow_news n;
    struct pollfd p = {.fd = follow_fd(follow), .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, 20000), 1);
    ck_assert(follow_take(follow, &n));
    return n;
}

static bool quiet(int ms)
{
    struct pollfd p = {.fd = follow_fd(follow), .events = POLLIN};
    return poll(&p, 1, ms) == 0;
}

static void policy_is(const char *want)
{
    struct follow_news n = next_news();
    ck_assert_str_eq(text_str(&n.problem), "");
    ck_assert_str_eq(text_str(&n.policy), want);
    text_free(&n.policy);
    text_free(&n.lock);
}

static void problem_has(const char *want)
{
    struct follow_news n = next_news();
    ck_assert_ptr_nonnull(strstr(text_str(&n.problem), want));
    ck_assert_uint_eq(n.policy.len, 0);
    text_free(&n.problem);
}

START_TEST(the_two_together)
{
    write_text(policy_path, "one");
    write_lock_of("one", 1);
    follow = follow_start(policy_path);
    policy_is("one");
    write_text(policy_path, "tw"); /* half of the file, during the write */
    problem_has("policy.yaml is not the policy that");
    write_text(policy_path, "two");
    ck_assert(quiet(2500)); /* edited, and not in force anywhere: the same problem is told once */
    write_lock_of("two", 2);
    policy_is("two");
    ck_assert(quiet(1500)); /* once */
    follow_again(follow);
    policy_is("two");
    write_text(lock_name, "lock 1\nclas");
    problem_has("policy.lock:2:1: error: 'clas'");
    write_lock_of("two", 2);
    policy_is(""); /* the problem is gone, and nothing is new */
    write_lock_of("two", 3);
    policy_is("two"); /* a lock is news, too */
}
END_TEST

START_TEST(without_a_lock)
{
    follow = follow_start(policy_path);
    problem_has("policy.yaml: No such file or directory");
    write_text(policy_path, "whole");
    policy_is("whole");
    write_text(policy_path, "h");
    usleep(1200000); /* a check has seen the file */
    write_text(policy_path, "half");
    policy_is("half");
}
END_TEST

START_TEST(files_of_others)
{
    write_text(policy_path, "one");
    write_lock_of("one", 1);
    ck_assert_int_eq(chmod(policy_path, 0666), 0);
    follow = follow_start(policy_path);
    problem_has("policy.yaml is not followed: anybody can write it");
    ck_assert_int_eq(chmod(policy_path, 0644), 0);
    policy_is("one");
    if (geteuid())
        return;
    ck_assert_int_eq(chown(lock_name, 65534, 65534), 0);
    problem_has("policy.lock is not followed: it belongs to another user");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("follow");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, the_two_together);
    tcase_add_test(t, without_a_lock);
    tcase_add_test(t, files_of_others);
    return check_run(t, NULL);
}
