/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that breaks the rules of the attach protocol, in all the ways that chance finds: requests with random
 * bodies, command rings full of noise, impossible indexes and states. Run against a live engine (hostile.sh), which
 * must detach it and go on. usage: test_hostile DIR HOST SEED
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "simfab/proto.h"

static uint64_t seed;

static uint64_t chance(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static int attach(const char *dir, const char *host, struct sf_welcome *w, int fds[2])
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct sf_hello hello = {.magic = SF_MAGIC, .version = SF_VERSION, .kind = SF_CONN_PROC};
    char control[CMSG_SPACE(2 * sizeof(int))];
    struct iovec iov = {w, sizeof *w};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct timeval patience = {.tv_sec = 5};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    snprintf(addr.sun_path, sizeof addr.sun_path, "%s/engine.sock", dir);
    snprintf(hello.host, sizeof hello.host, "%s", host);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&addr, sizeof addr) || send(fd, &hello, sizeof hello, 0) < 0 ||
        recvmsg(fd, &msg, 0) != sizeof *w || w->error || !CMSG_FIRSTHDR(&msg))
        return -1;
    memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)), 2 * sizeof(int));
    return fd;
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

/* A real device, PD, CQ and QP, so that the noise meets objects. */
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

int main(int argc, char **argv)
{
    struct sf_welcome w;
    struct sf_arena *a;
    uint64_t one = 1;
    int fds[2], fd;

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
                return 0; /* detached: as it should be */
        }
        if (write(fds[1], &one, sizeof one) < 0)
            return 0;
    }
    return 0;
}
