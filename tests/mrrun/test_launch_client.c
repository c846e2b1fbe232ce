/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that uses the launch folder directly, for the scripts beside: "client MODE [ARG]". The rank joins, exchanges
 * an address with all others, prints the result, and ends according to MODE.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"

static const struct mr_launch *self;

struct address {
    int rank;
    char text[60];
};

static int fail(const char *what, int rank, int err)
{
    printf("FAIL rank %d: %s of %d: %s\n", self ? self->rank : -1, what, rank, mr_launch_why(err));
    return 1;
}

static int fence_in_steps(void)
{
    int err = mr_launch_fence_begin();

    if (err)
        return err;
    while ((err = mr_launch_fence_done()) == -EAGAIN)
        usleep(100);
    return err;
}

/* Put, fence, get all; then a second round under a new key, with a tested fence. */
static int exchange(const char *key, int mark)
{
    struct address mine = {.rank = self->rank}, got;
    char big[4096];
    size_t len;

    snprintf(mine.text, sizeof(mine.text), "%d/%d of round %d", self->rank, self->size, mark);
    int err = mr_launch_put(key, &mine, sizeof(mine));
    if (!err)
        err = mark % 2 ? mr_launch_fence() : fence_in_steps();
    if (err)
        return fail("put or fence", self->rank, err);
    for (int r = 0; r < self->size; r++) {
        char want[60];
        snprintf(want, sizeof(want), "%d/%d of round %d", r, self->size, mark);
        memset(big, 0x55, sizeof(big));
        err = mr_launch_get(r, key, big, sizeof(big), &len);
        if (err)
            return fail("get", r, err);
        memcpy(&got, big, sizeof(got));
        if (len != sizeof(got) || got.rank != r || strcmp(got.text, want))
            return fail("wrong address", r, -EPROTO);
    }
    err = mr_launch_get(0, key, big, 4, &len);
    if (err != -EMSGSIZE || len != sizeof(got))
        return fail("short buffer", 0, err);
    return 0;
}

static int no_such_key(void)
{
    char buf[8];
    size_t len;
    int err = mr_launch_get(self->size - 1, "mrmpi.test.none", buf, sizeof(buf), &len);

    return err == -ENOENT ? 0 : fail("missing key", self->size - 1, err);
}

static void print_world(void)
{
    char line[4096];
    int n = snprintf(line, sizeof(line), "rank %d/%d local %d/%d nodes %d node %s job %s map", self->rank, self->size,
                     self->local_rank, self->local_size, self->num_nodes, self->node_name, self->job_id);

    for (int r = 0; r < self->size && n < 3000; r++)
        n += snprintf(line + n, sizeof(line) - n, "%s%d", r ? "," : " ", self->node_of[r]);
    n += snprintf(line + n, sizeof(line) - n, " peers");
    for (int i = 0; i < self->local_size && n < 4000; i++)
        n += snprintf(line + n, sizeof(line) - n, "%s%d", i ? "," : " ", self->local_ranks[i]);
    puts(line);
}

/* "kill:2:11": rank 2 raises signal 11 while the others wait for it. */
/* Stops our launcher for seconds. */
static void stop_launcher(int seconds)
{
    pid_t launcher = getppid();

    if (!fork()) {
        sleep((unsigned)seconds);
        kill(launcher, SIGCONT);
        _exit(0);
    }
    kill(launcher, SIGSTOP);
}

/*
 * "react:2:3": rank 2 exits with code 3 (-9: is killed by signal 9), and first has much memory to release. The others
 * notice the loss long before mrrun can, and abort the job (code 1), or, with "answer:2:3", exit with code 77.
 */
static void react(bool me, int who, int code, bool abort)
{
    enum { MUCH = 256 << 20 };
    pid_t pid = getpid();
    size_t len;
    char byte;
    void *much = me ? malloc(MUCH) : NULL;

    if (me && !much)
        _exit(99);
    if (me)
        memset(much, 1, MUCH);
    if (mr_launch_put("mrmpi.test.pid", &pid, sizeof(pid)) || mr_launch_fence() ||
        mr_launch_get(who, "mrmpi.test.pid", &pid, sizeof(pid), &len))
        _exit(98);
    if (me && code < 0)
        raise(-code);
    if (me)
        _exit(code);
    struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)react, 1};
    while (process_vm_readv(pid, &here, 1, &there, 1, 0) >= 0 || errno == EFAULT)
        usleep(100);
    if (abort)
        mr_launch_abort(1, "a peer is gone");
    _exit(77);
}

static int end_as_told(const char *mode)
{
    int who = -1, arg = 0;
    bool me = sscanf(mode, "%*[a-z]:%d:%d", &who, &arg) >= 1 && who == self->rank;

    fflush(stdout);
    if (!strncmp(mode, "react:", 6) || !strncmp(mode, "answer:", 7))
        react(me, who, arg, mode[0] == 'r');
    if (!strncmp(mode, "kill:", 5) && me)
        raise(arg);
    if (!strncmp(mode, "exit:", 5) && me)
        _exit(arg);
    if (!strncmp(mode, "abort:", 6) && me)
        mr_launch_abort(arg, "told to");
    if (!strncmp(mode, "kill:", 5) || !strncmp(mode, "exit:", 5) || !strncmp(mode, "abort:", 6))
        for (;;)
            pause();
    if (!strncmp(mode, "stopped:", 8) && me)
        stop_launcher(arg);
    int err = mr_launch_finalize();
    if (err)
        return fail("finalize", self->rank, err);
    if (!strncmp(mode, "late:", 5) && me)
        return arg;
    return 0;
}

/* "lost": wait until the launcher is gone, say so in a file (nobody else is left to tell), and part cleanly. */
static int wait_for_loss(const char *file)
{
    FILE *out = fopen(file, "w");
    int err;

    if (!out)
        return 1;
    fprintf(out, "waiting %d\n", (int)getpid());
    fflush(out);
    for (int i = 0; !(err = mr_launch_failed()) && i < 2000; i++)
        usleep(10000);
    fprintf(out, "%s\n", err ? strerror(-err) : "nothing noticed");
    fflush(out);
    mr_launch_finalize();
    fprintf(out, "parted\n");
    return fclose(out);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "world";
    int who;

    if (sscanf(mode, "absent:%d", &who) == 1 && getenv("PMIX_RANK") && atoi(getenv("PMIX_RANK")) == who)
        return 0;
    int err = mr_config_init();
    if (!err)
        err = mr_launch_init(&self);
    if (!err && !strcmp(mode, "again")) { /* in a second life */
        err = mr_launch_finalize();
        self = NULL;
        if (!err)
            err = mr_launch_init(&self);
    }
    if (err)
        return fail("init", -1, err);
    if (!strcmp(mode, "start"))
        return mr_launch_finalize() ? 1 : 0;
    if (!strcmp(mode, "lost") && argc > 2)
        return wait_for_loss(argv[2]);
    if (exchange("mrmpi.test.one", 1) || exchange("mrmpi.test.two", 2) || no_such_key())
        return 1;
    print_world();
    return end_as_told(mode);
}
