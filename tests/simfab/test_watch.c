/* SPDX-License-Identifier: BSD-3-Clause */
/* The kept view of processes: threads come and go, processes end and are replaced, parents die, descriptors are few. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simfab/engine/clock/watch.h"
#include "tests/check.h"

static struct watch *look(struct watches *ws, pid_t pid)
{
    watches_turn(ws);
    return watch_get(ws, pid);
}

/* ---- threads of our own ---------------------------------------------------------------------------------------- */

struct helper {
    pthread_t thread;
    uint32_t tid;
    int go[2], told[2]; /* pipes: a byte ends the thread; its number */
};

static void *wait_for_byte(void *arg)
{
    struct helper *h = arg;
    uint32_t tid = (uint32_t)syscall(SYS_gettid);
    char c;

    ck_assert(write(h->told[1], &tid, sizeof tid) == sizeof tid);
    while (read(h->go[0], &c, 1) == 1 && c != 'e')
        ck_assert(write(h->told[1], &tid, sizeof tid) == sizeof tid);
    return NULL;
}

static void start(struct helper *h)
{
    ck_assert(!pipe(h->go) && !pipe(h->told));
    ck_assert(!pthread_create(&h->thread, NULL, wait_for_byte, h));
    ck_assert(read(h->told[0], &h->tid, sizeof h->tid) == sizeof h->tid);
}

static void end(struct helper *h)
{
    ck_assert(write(h->go[1], "e", 1) == 1);
    pthread_join(h->thread, NULL);
    for (unsigned i = 0; i < 2; i++) {
        close(h->go[i]);
        close(h->told[i]);
    }
}

static struct watch_thread *thread_of(const struct watch *w, uint32_t tid)
{
    for (uint32_t i = 0; i < w->num_threads; i++)
        if (w->threads[i].tid == tid)
            return &w->threads[i];
    return NULL;
}

/* pthread_join returns before the kernel has taken the thread off its list. */
static void await_threads(struct watches *ws, uint32_t num)
{
    for (unsigned i = 0; i < 10000; i++) {
        struct watch *w = look(ws, getpid());

        ck_assert_ptr_nonnull(w);
        if (w->num_threads == num)
            return;
        usleep(1000);
    }
    ck_abort_msg("never %u threads", num);
}

static bool all_can_be_read(struct watches *ws, struct watch *w)
{
    bool good = true;

    for (uint32_t i = 0; i < w->num_threads; i++)
        good = watch_ran(ws, w, &w->threads[i]) && watch_state(ws, w, &w->threads[i]) && good;
    return good;
}

static char state_of(struct watches *ws, uint32_t tid, char until)
{
    char state = 0;

    for (unsigned i = 0; i < 10000 && state != until; i++) {
        struct watch *w = look(ws, getpid());

        state = watch_state(ws, w, thread_of(w, tid));
        if (state != until)
            usleep(1000);
    }
    return state;
}

START_TEST(test_threads)
{
    struct watches *ws = watches_new();
    struct helper one, two;
    struct watch *w = look(ws, getpid());

    ck_assert_uint_eq(w->num_threads, 1);
    ck_assert(all_can_be_read(ws, w));
    start(&one);
    w = look(ws, getpid());
    ck_assert_uint_eq(w->num_threads, 2);
    ck_assert(all_can_be_read(ws, w));
    start(&two);
    ck_assert_uint_eq(look(ws, getpid())->num_threads, 3);
    end(&one);
    await_threads(ws, 2);
    w = look(ws, getpid());
    ck_assert_ptr_null(thread_of(w, one.tid));
    ck_assert_ptr_nonnull(thread_of(w, two.tid));
    ck_assert(all_can_be_read(ws, w));
    end(&two);
    await_threads(ws, 1);
    watches_free(ws);
}
END_TEST

/* As many as before, but not the same: reading tells. */
START_TEST(test_threads_replaced)
{
    struct watches *ws = watches_new(), *other = watches_new();
    struct helper one, two;
    struct watch *w;

    start(&one);
    w = look(ws, getpid());
    ck_assert(all_can_be_read(ws, w));
    end(&one);
    await_threads(other, 1);
    start(&two);
    w = look(ws, getpid());
    if (!thread_of(w, two.tid)) {
        ck_assert(!all_can_be_read(ws, w));
        w = look(ws, getpid());
    }
    ck_assert_uint_eq(w->num_threads, 2);
    ck_assert_ptr_nonnull(thread_of(w, two.tid));
    ck_assert_ptr_null(thread_of(w, one.tid));
    ck_assert(all_can_be_read(ws, w));
    end(&two);
    watches_free(ws);
    watches_free(other);
}
END_TEST

START_TEST(test_thread_runs)
{
    struct watches *ws = watches_new();
    struct helper h;
    struct watch *w;
    uint64_t digest;
    uint32_t tid;

    start(&h);
    ck_assert_int_eq(state_of(ws, h.tid, 'S'), 'S');
    w = look(ws, getpid());
    ck_assert(watch_ran(ws, w, thread_of(w, h.tid)));
    digest = thread_of(w, h.tid)->digest;
    ck_assert(watch_ran(ws, w, thread_of(w, h.tid)));
    ck_assert_uint_eq(thread_of(w, h.tid)->digest, digest); /* the thread has not run */
    ck_assert(write(h.go[1], "c", 1) == 1);
    ck_assert(read(h.told[0], &tid, sizeof tid) == sizeof tid);
    ck_assert_int_eq(state_of(ws, h.tid, 'S'), 'S');
    ck_assert(watch_ran(ws, w, thread_of(w, h.tid)));
    ck_assert_uint_ne(thread_of(w, h.tid)->digest, digest);
    ck_assert_int_eq(watch_state(ws, w, thread_of(w, (uint32_t)getpid())), 'R'); /* we do */
    end(&h);
    watches_free(ws);
}
END_TEST

START_TEST(test_descriptors)
{
    struct watches *ws = watches_new();
    struct helper h[3];

    for (unsigned i = 0; i < 3; i++)
        start(&h[i]);
    watches_limit(ws, 3);
    for (unsigned i = 0; i < 3; i++)
        ck_assert(all_can_be_read(ws, look(ws, getpid())));
    ck_assert_uint_eq(watches_kept(ws), 3);
    for (unsigned i = 0; i < 3000; i++)
        watches_turn(ws);
    ck_assert_uint_eq(watches_kept(ws), 0); /* nobody has asked */
    watches_limit(ws, 0);
    ck_assert_uint_eq(look(ws, getpid())->num_threads, 4);
    ck_assert(all_can_be_read(ws, look(ws, getpid())));
    ck_assert_uint_eq(watches_kept(ws), 0);
    for (unsigned i = 0; i < 3; i++)
        end(&h[i]);
    watches_free(ws);
}
END_TEST

/* ---- processes ------------------------------------------------------------------------------------------------- */

static pid_t forked(void)
{
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (!pid)
        for (;;)
            pause();
    return pid;
}

static unsigned count_children(struct watches *ws, pid_t wanted)
{
    struct watch *w = look(ws, getpid());
    unsigned n = 0, found = 0;
    char *end;

    for (const char *at = watch_children(ws, w, &w->threads[0]); *at; at = end) {
        pid_t pid = (pid_t)strtol(at, &end, 10);

        if (at == end)
            break;
        n++;
        found += pid == wanted;
    }
    return wanted && found != 1 ? 0 : n;
}

START_TEST(test_processes)
{
    struct watches *ws = watches_new();
    pid_t a, b;

    ck_assert_uint_eq(count_children(ws, 0), 0);
    a = forked();
    ck_assert_uint_eq(count_children(ws, a), 1);
    b = forked();
    ck_assert_uint_eq(count_children(ws, b), 2);
    ck_assert_int_eq(watch_parent(ws, look(ws, a)), getpid());
    ck_assert_int_eq(watch_parent(ws, look(ws, a)), getpid());
    ck_assert(watch_cpu_s(a) >= 0 && watch_cpu_s(a) < 60);
    kill(a, SIGKILL);
    waitpid(a, NULL, 0);
    ck_assert_ptr_null(look(ws, a));
    ck_assert(watch_cpu_s(a) < 0);
    ck_assert_uint_eq(count_children(ws, b), 1);
    ck_assert_ptr_nonnull(look(ws, b));
    kill(b, SIGKILL);
    waitpid(b, NULL, 0);
    watches_free(ws);
}
END_TEST

/* More children than the kernel lists at once. */
START_TEST(test_many_children)
{
    enum { MANY = 1000 };
    struct watches *ws = watches_new();
    static pid_t pids[MANY];

    for (unsigned i = 0; i < MANY; i++)
        pids[i] = forked();
    ck_assert_uint_eq(count_children(ws, pids[MANY - 1]), MANY);
    for (unsigned i = 0; i < MANY; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    watches_free(ws);
}
END_TEST

/* A process whose parent ends gets another parent, even before the dead parent is reaped. */
START_TEST(test_orphan)
{
    struct watches *ws = watches_new();
    int told[2], go[2];
    pid_t child, orphan;
    struct watch *dead;

    ck_assert(!prctl(PR_SET_CHILD_SUBREAPER, 1));
    ck_assert(!pipe(told) && !pipe(go));
    child = fork();
    if (!child) {
        pid_t pid = forked();

        _exit(write(told[1], &pid, sizeof pid) != sizeof pid || read(go[0], &pid, 1) != 1);
    }
    ck_assert(read(told[0], &orphan, sizeof orphan) == sizeof orphan);
    ck_assert_int_eq(watch_parent(ws, look(ws, orphan)), child);
    ck_assert(write(go[1], "e", 1) == 1);
    ck_assert(!waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT));
    dead = look(ws, child);
    ck_assert_int_eq(watch_state(ws, dead, &dead->threads[0]), 'Z');
    ck_assert_int_eq(watch_parent(ws, look(ws, orphan)), getpid());
    waitpid(child, NULL, 0);
    ck_assert_int_eq(watch_parent(ws, look(ws, orphan)), getpid());
    kill(orphan, SIGKILL);
    waitpid(orphan, NULL, 0);
    watches_free(ws);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("watch");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, test_threads);
    tcase_add_test(tc, test_threads_replaced);
    tcase_add_test(tc, test_thread_runs);
    tcase_add_test(tc, test_descriptors);
    tcase_add_test(tc, test_processes);
    tcase_add_test(tc, test_many_children);
    tcase_add_test(tc, test_orphan);
    return check_run(tc, NULL);
}
