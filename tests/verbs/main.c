/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs suite: a program's expectations of any verbs device, as TAP.
 *
 * Alone, the suite is both sides, two processes; with -l and -c the sides are on different hosts. Each case is a
 * process of its own on each side. When a side's case ends, the side tells the other the result (FRAME_END), which ends
 * the other's waiting too.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/verbs/suite.h"

enum { PASS, FAIL, SKIP };
enum { FRAME_DATA, FRAME_END };

struct verdict {
    uint32_t result;
    char text[400];
};

struct frame {
    uint32_t kind, len;
};

/* Shared with the process of the case. */
static struct board {
    struct verdict mine, theirs;
    bool their_end;
} * board;

static const struct theme *const themes[] = {&theme_states,  &theme_rc,       &theme_errors, &theme_srq, &theme_cq,
                                             &theme_events,  &theme_ud,       &theme_uc,     &theme_wr,  &theme_memory,
                                             &theme_process, &theme_refusals, &theme_loss};

static struct {
    const char *device[2], *pattern, *connect;
    int listen, gid_index, port, seconds;
    bool list, paired, verbose;
} opt = {.gid_index = -1, .port = 1, .seconds = 60};

static void die(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    exit(2);
}

/* ---- verdicts -------------------------------------------------------------------------------------------------- */

void case_fail(const char *file, int line, const char *cond, const char *format, ...)
{
    const char *base = strrchr(file, '/');
    va_list ap;
    int n = snprintf(board->mine.text, sizeof board->mine.text, "%s:%d: %s%s", base ? base + 1 : file, line,
                     cond ? cond : "", cond ? ": " : "");

    va_start(ap, format);
    vsnprintf(board->mine.text + n, sizeof board->mine.text - (size_t)n, format, ap);
    va_end(ap);
    board->mine.result = FAIL;
    _exit(FAIL);
}

void case_skip(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(board->mine.text, sizeof board->mine.text, format, ap);
    va_end(ap);
    board->mine.result = SKIP;
    _exit(SKIP);
}

void case_note(const char *format, ...)
{
    va_list ap;

    if (!opt.verbose)
        return;
    va_start(ap, format);
    printf("# ");
    vprintf(format, ap);
    printf("\n");
    va_end(ap);
    fflush(stdout);
}

/* ---- between the sides ----------------------------------------------------------------------------------------- */

static bool move(int fd, void *data, size_t len, bool out)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = out ? write(fd, (char *)data + done, len - done) : read(fd, (char *)data + done, len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static bool send_frame(int fd, uint32_t kind, const void *data, uint32_t len)
{
    char buf[sizeof(struct frame) + 1024];
    struct frame f = {kind, len};

    memcpy(buf, &f, sizeof f);
    memcpy(buf + sizeof f, data, len);
    return move(fd, buf, sizeof f + len, true);
}

/* Reads a frame of that length, or the other side's end. */
static bool read_frame(int fd, void *data, uint32_t len)
{
    struct frame f;

    if (!move(fd, &f, sizeof f, false))
        return false;
    if (f.kind == FRAME_END) {
        board->their_end = true;
        return f.len == sizeof board->theirs && move(fd, &board->theirs, sizeof board->theirs, false);
    }
    return f.len == len && move(fd, data, len, false);
}

void exchange(struct side *s, const void *mine, void *theirs, size_t len)
{
    if (len > 1024 || !send_frame(s->peer, FRAME_DATA, mine, (uint32_t)len) ||
        !read_frame(s->peer, theirs, (uint32_t)len))
        case_fail(__FILE__, __LINE__, NULL, "lost the other side");
    if (board->their_end && board->theirs.result == SKIP)
        case_skip("%.390s", board->theirs.text);
    if (board->their_end)
        case_fail(__FILE__, __LINE__, NULL, "the other side has ended");
}

void sync_sides(struct side *s)
{
    char mine = 's', theirs;

    exchange(s, &mine, &theirs, 1);
}

/* Receives the other side's verdict; skips data still sent by its case. */
static void await_end(int fd)
{
    char rest[1024];
    struct frame f;

    while (!board->their_end) {
        if (!move(fd, &f, sizeof f, false) || f.len > sizeof rest || !move(fd, rest, f.len, false))
            die("Bail out! lost the other side\n");
        if (f.kind == FRAME_END && f.len == sizeof board->theirs) {
            memcpy(&board->theirs, rest, sizeof board->theirs);
            board->their_end = true;
        }
    }
}

/* ---- a case ---------------------------------------------------------------------------------------------------- */

static void open_device(struct side *s, const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    int i = 0;

    CHECK(list, "ibv_get_device_list: %s", strerror(errno));
    while (list[i] && name && strcmp(ibv_get_device_name(list[i]), name))
        i++;
    CHECK(list[i], "no device %s", name ? name : "at all");
    s->ctx = ibv_open_device(list[i]);
    CHECK(s->ctx, "ibv_open_device: %s", strerror(errno));
    ibv_free_device_list(list);
    s->port_num = (uint8_t)opt.port;
    s->gid_index = opt.gid_index;
    CHECK(!ibv_query_device(s->ctx, &s->attr), "of the device");
    CHECK(!ibv_query_port(s->ctx, s->port_num, &s->port), "port %d", opt.port);
    if (s->gid_index >= 0)
        CHECK(!ibv_query_gid(s->ctx, s->port_num, s->gid_index, &s->gid), "GID %d", s->gid_index);
    s->pd = ibv_alloc_pd(s->ctx);
    CHECK(s->pd, "ibv_alloc_pd: %s", strerror(errno));
}

static void run_case(struct side *s, const struct test_case *c)
{
    int status;
    pid_t pid;

    memset(board, 0, sizeof *board);
    fflush(stdout);
    pid = fork();
    if (pid < 0)
        die("Bail out! fork: %s\n", strerror(errno));
    if (!pid) {
        alarm((unsigned)opt.seconds);
        open_device(s, opt.device[s->index]);
        c->run(s);
        _exit(PASS);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status) || board->mine.result != (uint32_t)WEXITSTATUS(status)) {
        board->mine.result = FAIL;
        snprintf(board->mine.text, sizeof board->mine.text, "%s %d",
                 WIFSIGNALED(status) ? "killed by signal" : "ended with",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
}

/* A line of TAP, from both sides' reports. */
static bool report(unsigned n, const struct theme *t, const struct test_case *c)
{
    const struct verdict *bad = board->mine.result == FAIL ? &board->mine : &board->theirs;
    bool failed = bad->result == FAIL;
    const struct verdict *skip = board->mine.result == SKIP ? &board->mine : &board->theirs;

    printf("%s %u - %s: %s%s%.390s\n", failed ? "not ok" : "ok", n, t->name, c->name,
           !failed && skip->result == SKIP ? " # SKIP " : "", !failed && skip->result == SKIP ? skip->text : "");
    if (failed && board->mine.result == FAIL)
        printf("#   first side: %s\n", board->mine.text);
    if (failed && board->theirs.result == FAIL)
        printf("#   second side: %s\n", board->theirs.text);
    fflush(stdout);
    return !failed;
}

static bool wanted(const struct theme *t, const struct test_case *c)
{
    char name[200];

    snprintf(name, sizeof name, "%s: %s", t->name, c->name);
    return (c->paired || !opt.paired) && (!opt.pattern || strstr(name, opt.pattern));
}

static int run_all(enum side_index index, int peer)
{
    struct side s = {.index = index, .peer = peer};
    unsigned n = 0;
    bool good = true;

    for (size_t i = 0; i < COUNT(themes); i++)
        for (size_t j = 0; j < themes[i]->n; j++) {
            const struct test_case *c = &themes[i]->cases[j];

            if (!wanted(themes[i], c))
                continue;
            if (index == FIRST || c->paired)
                run_case(&s, c);
            else
                memset(board, 0, sizeof *board);
            if (!send_frame(peer, FRAME_END, &board->mine, sizeof board->mine))
                die("Bail out! lost the other side\n");
            await_end(peer);
            if (index == FIRST)
                good &= report(++n, themes[i], c);
        }
    if (index == FIRST)
        printf("1..%u\n", n);
    return !good;
}

/* ---- the sides meet -------------------------------------------------------------------------------------------- */

static int tcp(bool listening, const char *host, int port)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = listening ? AI_PASSIVE : 0},
                    *ai;
    char service[16];
    int fd, conn, on = 1;

    snprintf(service, sizeof service, "%d", port);
    if (getaddrinfo(host, service, &hints, &ai))
        die("Bail out! no such host: %s\n", host);
    fd = socket(ai->ai_family, ai->ai_socktype, 0);
    if (fd < 0)
        die("Bail out! socket: %s\n", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (listening ? bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 1) : connect(fd, ai->ai_addr, ai->ai_addrlen))
        die("Bail out! port %d: %s\n", port, strerror(errno));
    freeaddrinfo(ai);
    if (!listening)
        conn = fd;
    else if ((conn = accept(fd, NULL, NULL)) < 0)
        die("Bail out! accept: %s\n", strerror(errno));
    setsockopt(conn, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return conn;
}

static int alone(void)
{
    int pair[2], status, rc;
    pid_t pid = -1;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || (pid = fork()) < 0)
        die("Bail out! %s\n", strerror(errno));
    if (!pid) {
        close(pair[0]);
        board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        _exit(board == MAP_FAILED ? 2 : run_all(SECOND, pair[1]));
    }
    close(pair[1]);
    rc = run_all(FIRST, pair[0]);
    close(pair[0]);
    waitpid(pid, &status, 0);
    return rc;
}

static const char usage[] =
    "usage: verbs_suite [-d DEVICE[,DEVICE OF THE SECOND SIDE]] [-i PORT] [-g GID INDEX] [-k TEXT] [-t SECONDS] [-p] "
    "[-v]\n"
    "                   [-L] [-l TCP PORT | -c HOST:TCP PORT]\n"
    "Without -l (the second side) and -c (the first, which prints) it is both sides. -k runs the cases whose\n"
    "\"theme: name\" has TEXT; -p only those that need both sides; -v tells more; -L lists them;\n"
    "-t is how long one may take.\n";

static void options(int argc, char **argv)
{
    char *comma;

    for (int c; (c = getopt(argc, argv, "d:i:g:k:t:l:c:pvLh")) != -1;) {
        switch (c) {
        case 'd':
            opt.device[FIRST] = opt.device[SECOND] = optarg;
            if ((comma = strchr(optarg, ','))) {
                *comma = 0;
                opt.device[SECOND] = comma + 1;
            }
            break;
        case 'i':
            opt.port = atoi(optarg);
            break;
        case 'g':
            opt.gid_index = atoi(optarg);
            break;
        case 'k':
            opt.pattern = optarg;
            break;
        case 't':
            opt.seconds = atoi(optarg);
            break;
        case 'l':
            opt.listen = atoi(optarg);
            break;
        case 'c':
            opt.connect = optarg;
            break;
        case 'p':
            opt.paired = true;
            break;
        case 'v':
            opt.verbose = true;
            break;
        case 'L':
            opt.list = true;
            break;
        default:
            fputs(usage, c == 'h' ? stdout : stderr);
            exit(c == 'h' ? 0 : 2);
        }
    }
}

int main(int argc, char **argv)
{
    char *colon;

    options(argc, argv);
    if (opt.list) {
        for (size_t i = 0; i < COUNT(themes); i++)
            for (size_t j = 0; j < themes[i]->n; j++)
                printf("%s: %s\n", themes[i]->name, themes[i]->cases[j].name);
        return 0;
    }
    signal(SIGPIPE, SIG_IGN);
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        die("Bail out! %s\n", strerror(errno));
    if (opt.listen)
        return run_all(SECOND, tcp(true, NULL, opt.listen));
    if (!opt.connect)
        return alone();
    if (!(colon = strrchr(opt.connect, ':')))
        die("Bail out! -c wants HOST:PORT\n");
    *colon = 0;
    return run_all(FIRST, tcp(false, opt.connect, atoi(colon + 1)));
}
