/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that breaks the rules of the attach protocol, in all the ways that chance finds: requests with random
 * bodies, command rings full of noise, impossible indexes and states. Run against a live engine (hostile.sh), which
 * must detach it and go on. usage: test_hostile DIR HOST SEED
 * Or one that is killed at a given point of its life: test_hostile DIR HOST die STAGE, up to the last stage (exit 3).
 * Or one that writes into the page by which others of its host pass turns on: test_hostile DIR HOST relay SEED, until
 * it is told to end.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "simfab/proto.h"
#include "simfab/umad_proto.h"

#include <rdma/ib_user_mad.h>

static uint64_t seed;

static uint64_t chance(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static int dial(const char *dir)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 5};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    snprintf(addr.sun_path, sizeof addr.sun_path, "%s/engine.sock", dir);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return connect(fd, (struct sockaddr *)&addr, sizeof addr) ? -1 : fd;
}

static struct sf_hello hello_of(const char *host, uint32_t kind)
{
    struct sf_hello hello = {.magic = SF_MAGIC, .version = SF_VERSION, .kind = kind};

    snprintf(hello.host, sizeof hello.host, "%s", host);
    return hello;
}

/* *relay, if not NULL: the descriptor of the relay's page. */
static int attach_all(const char *dir, const char *host, struct sf_welcome *w, int fds[2], int *relay)
{
    struct sf_hello hello = hello_of(host, SF_CONN_PROC);
    char control[CMSG_SPACE(3 * sizeof(int))];
    struct iovec iov = {w, sizeof *w};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    int fd = dial(dir);

    if (fd < 0 || send(fd, &hello, sizeof hello, 0) < 0 || recvmsg(fd, &msg, 0) != sizeof *w || w->error ||
        !CMSG_FIRSTHDR(&msg))
        return -1;
    memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)), 2 * sizeof(int));
    if (relay)
        memcpy(relay, CMSG_DATA(CMSG_FIRSTHDR(&msg)) + 2 * sizeof(int), sizeof *relay);
    return fd;
}

static int attach(const char *dir, const char *host, struct sf_welcome *w, int fds[2])
{
    return attach_all(dir, host, w, fds, NULL);
}

/* Small numbers are handles that exist, big ones are nonsense. */
static uint32_t some_number(void)
{
    return chance() % 3 ? (uint32_t)(chance() % 12) : (uint32_t)chance();
}

static int random_request(int fd, uint32_t seq)
{
    char msg[sizeof(struct sf_req) + 512], rep[SF_MSG_MAX];
    struct sf_req *req = (struct sf_req *)msg;
    uint32_t len = (uint32_t)(chance() % 400);

    for (uint32_t i = 0; i + 4 <= sizeof msg; i += 4) {
        uint32_t n = some_number();

        memcpy(msg + i, &n, 4);
    }
    req->op = chance() % 20 ? (uint32_t)(1 + chance() % SF_OP_DETACH_MCAST) : (uint32_t)chance();
    req->seq = seq;
    req->actor = some_number();
    req->body_bytes = chance() % 20 ? len : some_number();
    if (send(fd, msg, sizeof *req + len, MSG_NOSIGNAL) < 0)
        return -1;
    return recv(fd, rep, sizeof rep, 0) > 0 ? 0 : -1;
}

/* A real device, PD, CQ and QP, for the noise. */
static void some_objects(int fd)
{
    static const uint32_t steps[][8] = {
        {SF_OP_OPEN, 1, 0},
        {SF_OP_ALLOC_PD, 1, 1},
        {SF_OP_CREATE_CQ, 6, 1, 64, 0, 0, 0, 0},
    };
    struct {
        struct sf_req req;
        struct sf_create_qp qp;
    } m = {.req = {.op = SF_OP_CREATE_QP, .body_bytes = sizeof m.qp},
           .qp = {.pd = 2,
                  .qp_type = 2,
                  .send_cq = 3,
                  .recv_cq = 3,
                  .max_send_wr = 16,
                  .max_recv_wr = 16,
                  .max_send_sge = 2,
                  .max_recv_sge = 2}};
    char rep[4096];

    for (unsigned i = 0; i < 3; i++) {
        struct {
            struct sf_req req;
            uint32_t body[6];
        } s = {.req = {.op = steps[i][0], .body_bytes = 4 * steps[i][1]}};

        memcpy(s.body, &steps[i][2], 4 * steps[i][1]);
        send(fd, &s, sizeof s.req + s.req.body_bytes, MSG_NOSIGNAL);
        recv(fd, rep, sizeof rep, 0);
    }
    send(fd, &m, sizeof m, MSG_NOSIGNAL);
    recv(fd, rep, sizeof rep, 0);
}

static void noise_in_the_ring(struct sf_arena *a)
{
    uint8_t *ring = (uint8_t *)a + a->cmd_offset;
    uint64_t head = a->cmd_head;

    for (unsigned n = 0; n < 20; n++) {
        struct sf_cmd c = {.bytes = (uint32_t)(chance() % 40) * 8,
                           .op = (uint16_t)(chance() % 6),
                           .num_sge = (uint16_t)(chance() % 4),
                           .object = some_number(),
                           .flags = (uint32_t)(chance() % 32),
                           .stamp_ps = chance() >> (chance() % 64)};
        struct sf_send s = {
            .opcode = some_number(), .inline_bytes = some_number(), .ah = some_number(), .remote_qpn = some_number()};
        uint32_t at = (uint32_t)(head & (a->cmd_bytes - 1));

        if (at + 4096 > a->cmd_bytes)
            break;
        memcpy(ring + at, &c, sizeof c);
        memcpy(ring + at + sizeof c, &s, sizeof s);
        for (unsigned i = 0; i < 16; i++) {
            uint64_t x = chance();

            memcpy(ring + at + sizeof c + sizeof s + 8 * i, &x, 8);
        }
        head += c.bytes;
    }
    if (chance() % 10 == 0)
        head = chance();
    __atomic_store_n(&a->cmd_head, head, __ATOMIC_RELEASE);
}

static void noise_among_the_actors(struct sf_arena *a)
{
    unsigned i = (unsigned)(chance() % 4);

    a->actor[i].tid = some_number();
    a->actor[i].clock_ps = chance() % 4 ? a->now_ps : chance();
    a->actor[i].wake_ps = chance() % 2 ? 0 : chance();
    __atomic_store_n(&a->actor[i].state, chance() % 50 ? (uint32_t)(chance() % 6) : (uint32_t)chance(),
                     __ATOMIC_SEQ_CST);
}

/* A turn passed on too early, twice, or to another actor, a turn taken back, or nonsense; calls that come or do not. */
static int noise_in_the_relay(const char *dir, const char *host)
{
    struct sf_welcome w;
    struct sf_relay *r;
    int fds[2], relay;

    if (attach_all(dir, host, &w, fds, &relay) < 0 || !w.seat || ftruncate(relay, 0) == 0)
        return 1;
    r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED, relay, 0);
    if (r == MAP_FAILED)
        return 1;
    puts("ready");
    fflush(stdout);
    for (;;) {
        uint32_t turn = __atomic_load_n(&r->turn, __ATOMIC_SEQ_CST);
        uint32_t seats[] = {0, 255, r->seat[turn & 255], (uint32_t)chance()};
        uint32_t turns[] = {0, turn + 1, turn - 1, turn + 256, (uint32_t)chance()};

        if (turn && chance() % 4 == 0)
            __atomic_store_n(&r->turn, turns[chance() % 5], __ATOMIC_SEQ_CST);
        r->seat[chance() % 8] = (uint8_t)seats[chance() % 4];
        __atomic_store_n(&r->call[chance() % 16], (uint32_t)(chance() % 2), __ATOMIC_SEQ_CST);
        usleep(100);
    }
}

/* ---- dying --------------------------------------------------------------------------------------------------- */

static void die(void)
{
    kill(getpid(), SIGKILL);
}

static void die_as_process(const char *dir, const char *host, int stage)
{
    struct sf_req req = {.op = SF_OP_DEVICES};
    struct sf_welcome w;
    struct sf_arena *a;
    int fds[2], fd = attach(dir, host, &w, fds);

    if (fd < 0)
        exit(1);
    if (stage == 4)
        die(); /* attached, nothing more */
    a = mmap(NULL, w.arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    a->actor[0].tid = (uint32_t)getpid();
    __atomic_store_n(&a->actor[0].state, SF_ACTOR_RUNNING, __ATOMIC_SEQ_CST);
    send(fd, &req, sizeof req, 0);
    if (stage == 5)
        die(); /* running, and does not take its answer */
    some_objects(fd);
    if (stage == 6)
        die();
    noise_in_the_ring(a);
    if (stage == 7)
        die(); /* without the doorbell */
    __atomic_store_n(&a->actor[0].state, SF_ACTOR_IDLE, __ATOMIC_SEQ_CST);
    (void)!write(fds[1], &(uint64_t){1}, 8);
    die(); /* 8: idle */
}

static void die_as_manager(const char *dir, const char *host, int stage)
{
    struct sf_hello hello = hello_of(host, stage < 12 ? SF_CONN_UMAD : SF_CONN_ISSM);
    struct umad_req req = {.op = UMAD_OP_REGISTER2, .bytes = sizeof(struct ib_user_mad_reg_req2)};
    uint8_t msg[sizeof req + 64 + 256] = {0};
    struct sf_welcome w;
    int fd = dial(dir);

    send(fd, &hello, sizeof hello, 0);
    if (stage == 9)
        die(); /* before the welcome */
    recv(fd, &w, sizeof w, 0);
    if (stage == 10)
        die();
    if (stage == 12) { /* holds an issm, with another process waiting for it */
        int second = dial(dir);

        send(second, &hello, sizeof hello, 0);
        die();
    }
    memcpy(msg, &req, sizeof req);
    memcpy(msg + sizeof req, &(struct ib_user_mad_reg_req2){.mgmt_class = 0x81, .mgmt_class_version = 1}, req.bytes);
    send(fd, msg, sizeof req + req.bytes, 0);
    /* a request without answer */
    req = (struct umad_req){.op = UMAD_OP_WRITE, .bytes = 64 + 256};
    memset(msg, 0, sizeof msg);
    memcpy(msg, &req, sizeof req);
    memcpy(msg + sizeof req, &(struct ib_user_mad_hdr){.timeout_ms = 60000, .retries = 3, .lid = 0xffff}, 64);
    memcpy(msg + sizeof req + 64, "\1\201\1\1\0\0\0\1", 8);
    memset(msg + sizeof req + 64 + 32, 0xff, 4);
    msg[sizeof req + 64 + 128 + 1] = 1;
    send(fd, msg, sizeof msg, 0);
    die(); /* 11 */
}

static void *sleeps(void *arg)
{
    *(volatile uint32_t *)arg = (uint32_t)syscall(SYS_gettid);
    for (;;)
        pause();
    return arg;
}

/* A child that shares nothing with the engine kills this process. */
static void killed_after(unsigned ms, int fd, const int fds[2])
{
    pid_t us = getpid();

    if (fork())
        return;
    close(fd);
    close(fds[0]);
    close(fds[1]);
    usleep(ms * 1000);
    kill(us, SIGKILL);
    _exit(0);
}

/*
 * One thread is in the given state while the first thread computes: at first time waits for the first thread, later the
 * first thread is excluded.
 */
static void die_in_state(const char *dir, const char *host, uint32_t state, unsigned after_ms, bool stopped)
{
    struct sf_req req = {.op = SF_OP_DEVICES};
    char rep[SF_MSG_MAX];
    struct sf_welcome w;
    struct sf_arena *a;
    pthread_t thread;
    volatile uint32_t tid = 0;
    int fds[2], fd = attach(dir, host, &w, fds);

    if (fd < 0 || pthread_create(&thread, NULL, sleeps, (void *)&tid))
        exit(1);
    while (!tid)
        usleep(100);
    a = mmap(NULL, w.arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    some_objects(fd);
    a->actor[0].tid = (uint32_t)getpid();
    a->actor[1].tid = tid;
    a->actor[1].wake_ps = state == SF_ACTOR_READY ? 0 : a->now_ps + 5000000000000;
    __atomic_store_n(&a->actor[0].state, SF_ACTOR_RUNNING, __ATOMIC_SEQ_CST);
    __atomic_store_n(&a->actor[1].state, state, __ATOMIC_SEQ_CST);
    (void)!write(fds[1], &(uint64_t){1}, 8);
    if (!after_ms)
        die();
    killed_after(after_ms, fd, fds);
    send(fd, &req, sizeof req, 0);
    recv(fd, rep, sizeof rep, 0);
    if (stopped)
        raise(SIGSTOP);
    for (;;)
        ;
}

#define STATES_FROM 13 /* stages: each state, seen or not, and when the thread that computes has been left out */
static const uint32_t states[] = {SF_ACTOR_IDLE,  SF_ACTOR_BLOCKED, SF_ACTOR_SLEEP,
                                  SF_ACTOR_DRAIN, SF_ACTOR_READY,   SF_ACTOR_RUNNING};
static const unsigned delays_ms[] = {0, 20, 150};
#define NUM_STATES (sizeof states / sizeof *states)
#define NUM_DELAYS (sizeof delays_ms / sizeof *delays_ms)

static int die_at(const char *dir, const char *host, int stage)
{
    unsigned n = stage >= STATES_FROM ? (unsigned)stage - STATES_FROM : 0;
    struct sf_hello hello = hello_of(host, SF_CONN_PROC);
    int fd;

    if (n > NUM_STATES * NUM_DELAYS)
        return 3;
    if (n == NUM_STATES * NUM_DELAYS)
        die_in_state(dir, host, SF_ACTOR_IDLE, 20, true);
    if (stage >= STATES_FROM)
        die_in_state(dir, host, states[n / NUM_DELAYS], delays_ms[n % NUM_DELAYS], false);
    if (stage >= 9)
        die_as_manager(dir, host, stage);
    if (stage >= 4)
        die_as_process(dir, host, stage);
    fd = dial(dir);
    if (stage == 1)
        die(); /* said nothing */
    send(fd, &hello, stage == 2 ? sizeof hello / 2 : sizeof hello, 0);
    die(); /* 3: does not take the welcome */
    return 1;
}

int main(int argc, char **argv)
{
    struct sf_welcome w;
    struct sf_arena *a;
    uint64_t one = 1;
    int fds[2], fd;

    if (argc == 5 && !strcmp(argv[3], "die"))
        return die_at(argv[1], argv[2], atoi(argv[4]));
    if (argc == 5 && !strcmp(argv[3], "relay")) {
        seed = strtoull(argv[4], NULL, 0) * 0x9e3779b97f4a7c15u + 1;
        return noise_in_the_relay(argv[1], argv[2]);
    }
    if (argc != 4)
        return 2;
    seed = strtoull(argv[3], NULL, 0) * 0x9e3779b97f4a7c15u + 1;
    fd = attach(argv[1], argv[2], &w, fds);
    if (fd < 0) {
        fprintf(stderr, "cannot attach: %s\n", strerror(errno));
        return 1;
    }
    a = mmap(NULL, w.arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    if (a == MAP_FAILED || ftruncate(fds[0], 0) == 0) {
        fprintf(stderr, "the arena could be taken away from the engine\n");
        return 1;
    }
    some_objects(fd);
    for (uint32_t n = 0; n < 300; n++) {
        switch (chance() % 4) {
        case 0:
            noise_in_the_ring(a);
            break;
        case 1:
            noise_among_the_actors(a);
            break;
        default:
            if (random_request(fd, n))
                return 0; /* detached, as expected */
        }
        if (write(fds[1], &one, sizeof one) < 0)
            return 0;
    }
    return 0;
}
