/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank whose connection to the launcher ends or falls silent: "limits closed|silent OPERATION" or "limits late
 * SECONDS". The connection of rank 0 goes through a relay of its own, which is killed or stopped before the operation.
 * Rank 0 prints the operation's error and how long the operation took. With "late" the launcher lives, and rank 1 comes
 * to the fence so much later. Under Hydra (PMI) there is no relay: "limits stopped proxy|mpiexec OPERATION" stops the
 * process itself.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- the relay ---- */

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static bool copy_bytes(int from, int to)
{
    char bytes[65536];
    ssize_t n = read(from, bytes, sizeof(bytes));

    return n > 0 && write(to, bytes, (size_t)n) == n;
}

static _Noreturn void relay_bytes(int listener, int port, bool refuse)
{
    struct sockaddr_in to = loopback(port);
    int near = accept(listener, NULL, NULL), far = socket(AF_INET, SOCK_STREAM, 0);

    if (near < 0 || refuse || connect(far, (struct sockaddr *)&to, sizeof(to)))
        _exit(1);
    for (;;) {
        struct pollfd fds[] = {{near, POLLIN, 0}, {far, POLLIN, 0}};

        if (poll(fds, 2, -1) < 0 || (fds[0].revents && !copy_bytes(near, far)) ||
            (fds[1].revents && !copy_bytes(far, near)))
            _exit(0);
    }
}

/* All addresses of the launcher's server become that of the relay. Returns the server's port. */
static int redirect(int port)
{
    static const char *const names[] = {"PMIX_SERVER_URI",  "PMIX_SERVER_URI2", "PMIX_SERVER_URI21",
                                        "PMIX_SERVER_URI3", "PMIX_SERVER_URI4", "PMIX_SERVER_URI41"};
    int server = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *uri = getenv(names[i]), *colon = uri ? strrchr(uri, ':') : NULL;
        char text[512];

        if (!colon)
            continue;
        server = atoi(colon + 1);
        snprintf(text, sizeof(text), "%.*s:%d", (int)(colon - uri), uri, port);
        setenv(names[i], text, 1);
    }
    return server;
}

static pid_t start_relay(bool refuse)
{
    struct sockaddr_in at = loopback(0);
    socklen_t len = sizeof(at);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 4) ||
        getsockname(listener, (struct sockaddr *)&at, &len))
        exit(97);
    int server = redirect(ntohs(at.sin_port));
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        relay_bytes(listener, server, refuse);
    }
    close(listener);
    return pid;
}

/* ---- operations ---- */

static int fence_in_steps(void)
{
    int err = mr_launch_fence_begin();

    while (!err && (err = mr_launch_fence_done()) == -EAGAIN) {
        usleep(20);
        err = 0;
    }
    return err;
}

static int operate(const char *operation)
{
    const struct mr_launch *self;
    char byte = 1;
    size_t len;

    if (!strcmp(operation, "init"))
        return mr_launch_init(&self);
    if (!strcmp(operation, "put"))
        return mr_launch_put("mrmpi.test.put", &byte, 1);
    if (!strcmp(operation, "get"))
        return mr_launch_get(1, "mrmpi.test.get", &byte, 1, &len);
    if (!strcmp(operation, "fence"))
        return mr_launch_fence();
    if (!strcmp(operation, "steps"))
        return fence_in_steps();
    if (!strcmp(operation, "abort"))
        mr_launch_abort(42, "told to");
    exit(96);
}

static int join(const struct mr_launch **self)
{
    int err = mr_launch_init(self);

    return err ? err : mr_launch_fence();
}

static int end_of_connection(bool silent, const char *operation, bool me)
{
    bool early = !strcmp(operation, "init");
    pid_t relay = me ? start_relay(early && !silent) : 0;
    const struct mr_launch *self;
    int err = early ? 0 : join(&self);

    if (err)
        return printf("FAIL init: %s\n", mr_launch_why(err)), 1;
    if (!me)
        pause();
    if (silent || !early)
        kill(relay, silent ? SIGSTOP : SIGKILL);
    double begin = now_s();
    err = operate(operation);
    printf("%s: %.1f s: %s\n", operation, now_s() - begin, err ? mr_launch_why(err) : "no error");
    fflush(stdout);
    kill(relay, SIGKILL);
    _exit(1);
}

/* The proxy is the parent of a rank, mpiexec the parent of the proxy. */
static pid_t hydra_process(const char *which)
{
    char path[64];
    pid_t proxy = getppid(), mpiexec = 0;
    FILE *f;

    if (!strcmp(which, "proxy"))
        return proxy;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)proxy);
    f = fopen(path, "r");
    if (!f || fscanf(f, "%*d (%*[^)]) %*c %d", &mpiexec) != 1 || mpiexec < 2)
        exit(94);
    fclose(f);
    return mpiexec;
}

static int stopped_launcher(const char *which, const char *operation, bool me)
{
    pid_t launcher = hydra_process(which);
    const struct mr_launch *self;
    int err = join(&self);

    if (!me) /* the launcher may be stopped before this rank has joined */
        pause();
    if (err)
        return printf("FAIL init: %s\n", mr_launch_why(err)), 1;
    kill(launcher, SIGSTOP);
    double begin = now_s();
    err = operate(operation);
    double end = now_s();
    kill(launcher, SIGCONT);
    printf("%s: %.1f s: %s\n", operation, end - begin, err ? mr_launch_why(err) : "no error");
    fflush(stdout);
    mr_launch_abort(1, "the test is over");
}

static int late_rank(unsigned seconds)
{
    const struct mr_launch *self;
    double begin = now_s();
    int err = join(&self);

    if (!err && self->rank == 1)
        sleep(seconds);
    err = err ? err : mr_launch_fence();
    if (!err && self->rank == 1)
        sleep(seconds);
    err = err ? err : fence_in_steps();
    printf("late: %.1f s: %s\n", now_s() - begin, err ? mr_launch_why(err) : "no error");
    return err || mr_launch_finalize();
}

int main(int argc, char **argv)
{
    const char *rank = getenv("PMIX_RANK") ? getenv("PMIX_RANK") : getenv("PMI_RANK");

    if (argc < 3 || !rank || mr_config_init())
        return 95;
    if (!strcmp(argv[1], "late"))
        return late_rank((unsigned)atoi(argv[2]));
    if (!strcmp(argv[1], "stopped") && argc > 3)
        return stopped_launcher(argv[2], argv[3], !strcmp(rank, "0"));
    return end_of_connection(!strcmp(argv[1], "silent"), argv[2], !strcmp(rank, "0"));
}
