/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ping-pong between two hosts, and neighbours that must not disturb it. For time_world.sh.
 *
 *   time_world pong DIR ROUNDS    run by both sides, which meet in DIR: prints the time of the rounds, in ns
 *   time_world pongs DIR ROUNDS   the same with three threads on each side, which share the context, the domain and the
 *                                 memory
 *   time_world word DIR           the same: one side reports that it is ready to receive, and the other sends at once
 *   time_world NEIGHBOUR          opens the host's HCA, sends itself a message, prints "ready" and acts according to
 *                                 its name
 *   time_world child              a fresh program that does the same and ends; "failed" if verbs do
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/simfab/host_ends.h"

enum { BYTES = 64 };

/* ---- the ping-pong --------------------------------------------------------------------------------------------- */

/* The socket between the two sides; *first: this side was there first. */
static int meet(const char *dir, bool *first)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), peer;

    snprintf(at.sun_path, sizeof at.sun_path, "%s/meet", dir);
    *first = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
    if (*first) {
        if (listen(fd, 1) || (peer = accept(fd, NULL, NULL)) < 0)
            die("accept: %s", strerror(errno));
        close(fd);
        return peer;
    }
    for (int i = 0; connect(fd, (struct sockaddr *)&at, sizeof at); i++) {
        if (i == 10000)
            die("connect: %s", strerror(errno));
        usleep(1000);
    }
    return fd;
}

struct place {
    uint32_t qpn;
    uint16_t lid;
};

static struct place introduce(int peer, struct place mine)
{
    struct place theirs;

    if (write(peer, &mine, sizeof mine) != sizeof mine || read(peer, &theirs, sizeof theirs) != sizeof theirs)
        die("the other side is gone");
    return theirs;
}

struct game {
    struct hca_end e;
    struct ibv_qp *qp;
    unsigned rounds;
    bool first;
    uint64_t took, least, most;
};

static void *play(void *arg)
{
    struct game *g = arg;
    uint64_t began = 0, last = 0;

    g->least = UINT64_MAX;
    for (unsigned i = 0; i < g->rounds; i++) {
        if (!g->first)
            end_post(&g->e, g->qp, &g->e, IBV_WR_SEND, BYTES, 0);
        end_wait(g->e.recv_cq, 1);
        end_post_recv(&g->e, g->qp, 1, BYTES);
        if (g->first)
            end_post(&g->e, g->qp, &g->e, IBV_WR_SEND, BYTES, 0);
        end_wait(g->e.send_cq, 1);
        if (i == 9)
            began = last = clock_ps();
        if (i >= 10) {
            uint64_t now = clock_ps(), took = now - last;

            g->least = took < g->least ? took : g->least;
            g->most = took > g->most ? took : g->most;
            last = now;
        }
    }
    g->took = last - began;
    return NULL;
}

static void game_make(struct game *g, const struct hca_end *e, int peer)
{
    struct place theirs;

    g->e = *e;
    g->e.send_cq = ibv_create_cq(e->ctx, 16, NULL, NULL, 0);
    g->e.recv_cq = ibv_create_cq(e->ctx, 16, NULL, NULL, 0);
    if (!g->e.send_cq || !g->e.recv_cq)
        die("ibv_create_cq: %s", strerror(errno));
    g->qp = end_qp(&g->e, IBV_QPT_RC, false);
    theirs = introduce(peer, (struct place){g->qp->qp_num, e->lid});
    end_connect_to(&g->e, g->qp, theirs.lid, theirs.qpn);
    end_post_recv(&g->e, g->qp, 2, BYTES);
}

static void pong(const char *dir, unsigned rounds, unsigned threads)
{
    struct game games[3] = {0};
    pthread_t thread[3];
    struct hca_end e;
    bool first;
    int peer = meet(dir, &first);

    end_open(&e, 0, BYTES);
    for (unsigned i = 0; i < threads; i++) {
        games[i].rounds = rounds;
        games[i].first = first;
        game_make(&games[i], &e, peer);
    }
    introduce(peer, (struct place){0});
    for (unsigned i = 1; i < threads; i++)
        if (pthread_create(&thread[i], NULL, play, &games[i]))
            die("pthread_create");
    play(&games[0]);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(thread[i], NULL);
    for (unsigned i = 0; i < threads; i++)
        printf("%u rounds: %llu ns, each %llu to %llu\n", rounds, (unsigned long long)games[i].took / 1000,
               (unsigned long long)games[i].least / 1000, (unsigned long long)games[i].most / 1000);
    introduce(peer, (struct place){0});
}

/*
 * The first side prepares, which takes some time, and reports by the socket when ready to receive; the other sends at
 * once, by datagrams, which are lost without a receive request.
 */
static void word(const char *dir)
{
    enum { MESSAGES = 100, GRH = 40, MUCH = 1 << 20 };
    struct hca_end e;
    struct ibv_qp *qp;
    struct place theirs;
    bool first;
    int peer = meet(dir, &first);

    end_open(&e, 0, MUCH);
    qp = end_qp(&e, IBV_QPT_UD, false);
    theirs = introduce(peer, (struct place){qp->qp_num, e.lid});
    end_connect_to(&e, qp, theirs.lid, theirs.qpn);
    if (first) {
        if (!ibv_reg_mr(e.pd, e.buf, MUCH, 0))
            die("ibv_reg_mr: %s", strerror(errno));
        end_post_recv(&e, qp, MESSAGES, GRH + BYTES);
    }
    introduce(peer, theirs);
    if (first) {
        struct timespec enough = {.tv_nsec = 100000000};
        unsigned came = 0;

        nanosleep(&enough, NULL);
        for (struct ibv_wc wc; ibv_poll_cq(e.recv_cq, 1, &wc) == 1;)
            came++;
        printf("%u of %u messages came\n", came, MESSAGES);
    } else {
        struct ibv_ah_attr to = {.dlid = theirs.lid, .port_num = 1};
        struct ibv_ah *ah = ibv_create_ah(e.pd, &to);

        if (!ah)
            die("ibv_create_ah: %s", strerror(errno));
        for (unsigned i = 0; i < MESSAGES; i++)
            end_post_ud(&e, qp, ah, theirs.qpn, BYTES);
        end_wait(e.send_cq, MESSAGES);
    }
    introduce(peer, theirs);
}

/* ---- neighbours ------------------------------------------------------------------------------------------------ */

static struct hca_end end;
static struct ibv_qp *there, *back; /* connected with each other */

static void send_once(void)
{
    end_post_recv(&end, back, 1, BYTES);
    end_post(&end, there, &end, IBV_WR_SEND, BYTES, 0);
    end_wait(end.send_cq, 1);
    end_wait(end.recv_cq, 1);
}

static void open_and_send(void)
{
    end_open(&end, 0, 1 << 20);
    there = end_qp(&end, IBV_QPT_RC, false);
    back = end_qp(&end, IBV_QPT_RC, false);
    end_connect(&end, there, &end, back);
    send_once();
}

static void ready(void)
{
    puts("ready");
    fflush(stdout);
}

static void *poll_for_ever(void *arg)
{
    struct ibv_wc wc;

    while (ibv_poll_cq(end.recv_cq, 1, &wc) == 0)
        ;
    return NULL;
}

static void compute_for_ever(void)
{
    for (volatile unsigned long n = 0;; n++)
        ;
}

static void polls(void)
{
    ready();
    poll_for_ever(NULL);
}

static void computes(void)
{
    ready();
    compute_for_ever();
}

/* All the time full of work: requests under way, completions that nobody has taken. */
static void streams(void)
{
    ready();
    for (;;) {
        end_post_recv(&end, back, 64, 4096);
        for (int i = 0; i < 64; i++)
            end_post(&end, there, &end, IBV_WR_SEND, 4096, 0);
        end_wait(end.recv_cq, 64);
        end_wait(end.send_cq, 60); /* four stay, until there are too many */
        while (end_take(end.send_cq, 16) == 16)
            ;
    }
}

static void sleeps_long(void)
{
    for (ready();;) /* when nobody else has anything to do time gets there at once */
        sleep(10);
}

static void sleeps_often(void)
{
    struct timespec ms = {.tv_nsec = 1000000};

    for (ready();; send_once())
        nanosleep(&ms, NULL);
}

static void selects(void)
{
    ready();
    for (;;) {
        struct timeval tv = {.tv_usec = 700};
        fd_set set;
        int pipes[2];

        if (pipe(pipes))
            die("pipe: %s", strerror(errno));
        FD_ZERO(&set);
        FD_SET(pipes[0], &set);
        if (select(pipes[0] + 1, &set, NULL, NULL, &tv))
            die("something came");
        close(pipes[0]);
        close(pipes[1]);
        send_once();
    }
}

static void on_alarm(int sig)
{
}

static void alarms(void)
{
    signal(SIGALRM, on_alarm);
    for (ready();; send_once()) {
        ualarm(2000, 0);
        pause();
    }
}

static void reads_socket(void)
{
    int pair[2];
    char c;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        die("socketpair: %s", strerror(errno));
    ready();
    if (read(pair[0], &c, 1) != 1)
        die("read: %s", strerror(errno));
}

static void reads_pipe(void)
{
    int pipes[2];
    char c;

    if (pipe(pipes))
        die("pipe: %s", strerror(errno));
    ready();
    if (read(pipes[0], &c, 1) != 1)
        die("read: %s", strerror(errno));
}

static const char *program;

static void wait_for(pid_t pid, const char *what)
{
    int status;

    if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
        die("%s: child ended with %#x", what, pid < 0 ? -1 : status);
}

static pid_t run_child(const char *mode, bool by_vfork)
{
    pid_t pid = by_vfork ? vfork() : fork();

    if (!pid) {
        execl(program, program, mode, (char *)NULL);
        _exit(127);
    }
    return pid;
}

/* Children of all kinds, again and again, some of them at work with verbs of their own. */
static void forks(void)
{
    ready();
    for (;;) {
        pid_t pid = fork();

        if (!pid) {
            open_and_send();
            _exit(0);
        }
        wait_for(pid, "fork, verbs");
        pid = fork();
        if (!pid)
            _exit(0);
        send_once();
        wait_for(pid, "fork, no verbs");
    }
}

/* A child that lives on, computing, while its parent polls. */
static void forks_computing(void)
{
    if (!fork()) {
        alarm(60); /* must not outlive the test for long */
        compute_for_ever();
    }
    polls();
}

static void execs(void)
{
    ready();
    for (;;) {
        wait_for(run_child("child", false), "fork, exec");
        wait_for(run_child("idle", false), "fork, exec, no verbs");
        send_once();
    }
}

static void vforks(void)
{
    for (ready();; send_once()) {
        wait_for(run_child("idle", true), "vfork, exec, no verbs");
        wait_for(run_child("child", true), "vfork, exec");
    }
}

/* Waits as for a page, in uninterruptible sleep: until the child, no process of the fabric, has ended. */
static pid_t wait_for_page(void)
{
    const struct timespec nap = {.tv_nsec = 500000000};
    pid_t pid = vfork();

    if (!pid) {
        syscall(SYS_nanosleep, &nap, NULL);
        _exit(0);
    }
    return pid;
}

/* Prints how long each of such waits has taken, by the clock. */
static void pages(void)
{
    for (ready();; usleep(1000)) {
        struct timespec before, after;
        pid_t pid;

        clock_gettime(CLOCK_MONOTONIC, &before);
        pid = wait_for_page();
        clock_gettime(CLOCK_MONOTONIC, &after);
        wait_for(pid, "vfork");
        printf("%ld ns\n", (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec);
        fflush(stdout);
    }
}

static void popens(void)
{
    char line[64], command[256];

    snprintf(command, sizeof command, "%s child; echo done", program);
    for (ready();; send_once()) {
        FILE *f = popen(command, "r");

        if (!f || !fgets(line, sizeof line, f) || strcmp(line, "done\n") || pclose(f))
            die("popen: %s", strerror(errno));
        if (system("exit 3") != 3 << 8)
            die("system");
    }
}

static void *one_message(void *arg)
{
    send_once();
    return NULL;
}

static void *nothing(void *arg)
{
    return NULL;
}

/* Threads come and go, one at a time, actors and others, while another thread polls an empty queue. */
static void threads(void)
{
    struct ibv_cq *cq = end.recv_cq;
    pthread_t poller, t;

    end.recv_cq = ibv_create_cq(end.ctx, 16, NULL, NULL, 0);
    if (pthread_create(&poller, NULL, poll_for_ever, NULL))
        die("pthread_create");
    usleep(100);
    end.recv_cq = cq;
    for (ready();;) {
        if (pthread_create(&t, NULL, one_message, NULL) || pthread_join(t, NULL) ||
            pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL))
            die("pthread_create");
        usleep(50);
    }
}

/* The first thread ends, the process goes on. */
static void *alone(void *arg)
{
    usleep(20000);
    for (ready();; usleep(200))
        send_once();
    return NULL;
}

static void leader_ends(void)
{
    pthread_t t;

    if (pthread_create(&t, NULL, alone, NULL))
        die("pthread_create");
    pthread_exit(NULL);
}

/* Threads that end in the middle of a poll. */
static void cancels(void)
{
    pthread_t t;

    for (ready();; send_once()) {
        if (pthread_create(&t, NULL, poll_for_ever, NULL))
            die("pthread_create");
        usleep(300);
        pthread_cancel(t);
    }
}

static void *nap_for_ever(void *arg)
{
    struct timespec nap = {.tv_nsec = 7100};

    ibv_poll_cq(end.send_cq, 0, NULL); /* makes the thread an actor */
    for (;;)
        nanosleep(&nap, NULL);
    return NULL;
}

/* Has costs of its own, far beyond a message's, and nothing to do with anybody; a second thread is up ever again
 * meanwhile. */
static void registers(void)
{
    pthread_t t;

    if (pthread_create(&t, NULL, nap_for_ever, NULL))
        die("pthread_create");
    for (ready();;) {
        struct ibv_mr *mr = ibv_reg_mr(end.pd, end.buf, 1 << 20, 0);

        if (!mr || ibv_dereg_mr(mr))
            die("ibv_reg_mr: %s", strerror(errno));
        usleep(10);
    }
}

/* Calls verbs without ever waiting: nobody can know when it will, and time stands still until then. */
static void stops_the_world(void)
{
    struct ibv_port_attr port;

    ready();
    while (!ibv_query_port(end.ctx, 1, &port))
        ;
}

static const struct {
    const char *name;
    void (*run)(void);
} neighbours[] = {
    {"polls", polls},
    {"computes", computes},
    {"streams", streams},
    {"sleeps-long", sleeps_long},
    {"sleeps-often", sleeps_often},
    {"selects", selects},
    {"alarms", alarms},
    {"reads-socket", reads_socket},
    {"reads-pipe", reads_pipe},
    {"forks", forks},
    {"forks-computing", forks_computing},
    {"execs", execs},
    {"vforks", vforks},
    {"pages", pages},
    {"popens", popens},
    {"threads", threads},
    {"leader-ends", leader_ends},
    {"cancels", cancels},
    {"registers", registers},
    {"stops-the-world", stops_the_world},
};

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";

    program = argv[0];
    if (!strcmp(mode, "pong") && argc == 4) {
        pong(argv[2], (unsigned)atoi(argv[3]), 1);
        return 0;
    }
    if (!strcmp(mode, "pongs") && argc == 4) {
        pong(argv[2], (unsigned)atoi(argv[3]), 3);
        return 0;
    }
    if (!strcmp(mode, "word") && argc == 3) {
        word(argv[2]);
        return 0;
    }
    if (!strcmp(mode, "idle"))
        return 0;
    if (!strcmp(mode, "child")) {
        open_and_send();
        return 0;
    }
    for (size_t i = 0; i < sizeof neighbours / sizeof *neighbours; i++)
        if (!strcmp(mode, neighbours[i].name)) {
            open_and_send();
            neighbours[i].run();
            return 0;
        }
    die("no such neighbour: %s", mode);
}
