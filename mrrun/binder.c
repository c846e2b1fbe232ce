/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/binder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "libmrmpi/base/idioms.h"
#include "mrrun/environment.h"
#include "mrrun/rails.h"

/* The first part of the answer. */
struct binder_head {
    int failed; /* the rest is the reason */
    size_t bytes;
};

enum { ANSWER_MAX = 64 << 20 };

/* ---- the process ---- */

static void write_all(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len) {
        ssize_t n = write(fd, at, len);

        if (n < 0 && errno != EINTR)
            _exit(1);
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

/* Near the adapters used by the ranks, which are the same for all ranks of a host. */
static int choose_near(struct processors *p, const struct binding_wish *wish, char *host, char *const *env, int ranks,
                       char *why, size_t cap)
{
    struct host_rails *rails = calloc(1, sizeof(*rails));
    const char **of_rank = calloc((size_t)ranks + 1, sizeof(*of_rank));
    char *devices = NULL, *adapters;
    struct hosts one = {.name = &host, .devices = &devices, .count = 1};

    if (!rails || !of_rank) {
        snprintf(why, cap, "out of memory");
        return -1;
    }
    rails_ask(&one, 1, env, rails);
    adapters = rails_adapters(rails, environment_get(env, "MRMPI_DEVICES"));
    for (int i = 0; i < ranks; i++)
        of_rank[i] = adapters;
    return processors_choose(p, wish, ranks, of_rank, why, cap);
}

static _Noreturn void choose(int fd, const struct binding_wish *wish, char *host, char *const *env, int ranks,
                             pid_t parent)
{
    struct processors p = {.set = NULL};
    struct binder_head head = {.failed = 0};
    char why[512] = "";

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    head.failed = choose_near(&p, wish, host, env, ranks, why, sizeof(why));
    head.bytes = p.bytes;
    write_all(fd, &head, sizeof(head));
    if (head.failed)
        write_all(fd, why, strlen(why));
    for (int i = 0; i < ranks && !head.failed; i++)
        write_all(fd, p.set[i], p.bytes);
    _exit(0);
}

/* ---- the agent ---- */

void binder_close(struct binder *b)
{
    if (b->answer.ready)
        watch_close(b->set, &b->answer);
    free(b->got);
    b->got = NULL;
}

/* False: no memory. */
static bool take_sets(struct binder *b, const char *sets, size_t bytes)
{
    struct processors *p = b->to;

    *p = (struct processors){.set = calloc((size_t)b->ranks + 1, sizeof(*p->set)), .bytes = bytes, .ranks = b->ranks};
    for (int i = 0; p->set && i < b->ranks; i++) {
        p->set[i] = malloc(bytes);
        if (!p->set[i])
            return false;
        memcpy(p->set[i], sets + (size_t)i * bytes, bytes);
    }
    return p->set;
}

static void take_answer_of_binder(struct binder *b)
{
    struct binder_head head = {.failed = 1};
    size_t rest = b->len > sizeof(head) ? b->len - sizeof(head) : 0;
    char why[512] = "the process that looks for processors has ended early";

    if (rest)
        memcpy(&head, b->got, sizeof(head));
    if (rest && head.failed)
        snprintf(why, sizeof(why), "%.*s", (int)(rest < 500 ? rest : 500), b->got + sizeof(head));
    else if (rest && head.bytes == rest / (size_t)b->ranks && rest % (size_t)b->ranks == 0 &&
             take_sets(b, b->got + sizeof(head), head.bytes))
        *why = '\0';
    binder_close(b);
    b->done(b, *why ? why : NULL);
}

static void read_answer_of_binder(struct watch *w, uint32_t events)
{
    struct binder *b = container_of(w, struct binder, answer);
    ssize_t n;

    if (b->len == b->room) {
        b->room = b->room ? 2 * b->room : 4096;
        b->got = realloc(b->got, b->room);
        if (!b->got)
            abort();
    }
    n = read(w->fd, b->got + b->len, b->room - b->len);
    b->len += n > 0 ? (size_t)n : 0;
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN) || b->len > ANSWER_MAX)
        take_answer_of_binder(b);
}

void binder_start(struct binder *b, const struct binding_wish *wish, char *host, char *const *env, int ranks)
{
    int fds[2];
    pid_t pid, parent = getpid();

    b->ranks = ranks;
    if (pipe2(fds, O_CLOEXEC)) {
        b->done(b, strerror(errno));
        return;
    }
    pid = fork();
    if (!pid) {
        close(fds[0]);
        choose(fds[1], wish, host, env, ranks, parent);
    }
    close(fds[1]);
    b->answer = (struct watch){.fd = watch_ready_fd(fds[0]), .ready = read_answer_of_binder};
    watch_want(b->set, &b->answer, EPOLLIN); /* without a process: its end */
}
