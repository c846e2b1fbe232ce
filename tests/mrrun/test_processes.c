/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups in which a program has ended: whose leader, a wrapper, is about to end, and whose leader goes on. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mrrun/processes.h"
#include "tests/check.h"

enum { LOOKS = 20000, LOOK_US = 1000 };

static pid_t leader;
static int told[2]; /* a byte: the leader's program has ended */

/* The leader of a group whose program ends with code 0, and is not reaped: then what(). */
static void wrap(void (*what)(void))
{
    siginfo_t info;
    char byte = 0;

    ck_assert(!pipe(told));
    leader = fork();
    if (!leader) {
        setpgid(0, 0);
        if (!fork())
            _exit(0);
        if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) || write(told[1], &byte, 1) != 1)
            _exit(1);
        what();
        _exit(2);
    }
    ck_assert_int_eq(read(told[0], &byte, 1), 1);
}

static void go(void)
{
    kill(leader, SIGKILL);
    waitpid(leader, NULL, 0);
}

static void compute(void)
{
    for (volatile unsigned i = 0;; i++)
        ;
}

static void rest(void)
{
    for (;;)
        pause();
}

static void end(void)
{
    _exit(0);
}

static bool is_ready(const struct aftermath *a)
{
    return a->ready && !a->ending;
}

static bool is_ending(const struct aftermath *a)
{
    return a->ending && !a->ready;
}

static bool is_over(const struct aftermath *a)
{
    return !a->ending && !a->ready;
}

/* Whether the group gets there, however long the leader waits for a processor. */
static bool becomes(bool (*so)(const struct aftermath *a), uint64_t cpu_ms)
{
    const pid_t group[] = {0, leader};

    for (int i = 0; i < LOOKS; i++) {
        struct aftermath a = processes_aftermath(group, 2);
        if (so(&a) && a.cpu_ms >= cpu_ms)
            return true;
        usleep(LOOK_US);
    }
    return false;
}

START_TEST(a_wrapper_with_work_is_ready)
{
    wrap(compute);
    ck_assert(becomes(is_ready, 0));
    ck_assert(becomes(is_ready, 30)); /* its processor time is counted */
    go();
}
END_TEST

START_TEST(a_wrapper_that_sleeps_goes_on)
{
    wrap(rest);
    ck_assert(becomes(is_over, 0));
    go();
}
END_TEST

START_TEST(a_wrapper_that_has_ended_is_to_be_reaped)
{
    wrap(end);
    ck_assert(becomes(is_ending, 0));
    waitpid(leader, NULL, 0);
    ck_assert(becomes(is_over, 0));
}
END_TEST

START_TEST(other_groups_do_not_count)
{
    const pid_t none[] = {0, 0};
    struct aftermath a;

    wrap(compute);
    ck_assert(becomes(is_ready, 0));
    a = processes_aftermath(none, 2);
    ck_assert(is_over(&a) && !a.cpu_ms);
    go();
}
END_TEST

int main(void)
{
    TCase *processes = tcase_create("processes");

    tcase_set_timeout(processes, 60);
    tcase_add_test(processes, a_wrapper_with_work_is_ready);
    tcase_add_test(processes, a_wrapper_that_sleeps_goes_on);
    tcase_add_test(processes, a_wrapper_that_has_ended_is_to_be_reaped);
    tcase_add_test(processes, other_groups_do_not_count);
    return check_run(processes, NULL);
}
