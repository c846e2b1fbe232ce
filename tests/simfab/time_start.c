/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two programs started by hand, one after the other; the second is still starting while the first already polls. The
 * second computes, attaches to the fabric, and then is busy in the kernel. Then both write small pieces of one message,
 * and poll for the other's a millisecond at a time. None of this takes virtual time. The first prints the time taken.
 * time_start PORTFILE: the first, which writes its port there; time_start PORT -: the second.
 */
#include <arpa/inet.h>
#include <err.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { COMPUTE_MS = 300, KERNEL_MS = 150, ROUNDS = 8, PIECE = 40 };

static double now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* The real processor time of this thread. */
static long cpu_ms(void)
{
    struct timespec ts;

    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static struct ibv_cq *open_cq(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    struct ibv_cq *cq = ctx ? ibv_create_cq(ctx, 16, NULL, NULL, 0) : NULL;

    if (!cq)
        err(2, "no adapter");
    ibv_free_device_list(list);
    return cq;
}

/* A program that makes progress while waiting for its peer. */
static void receive(int fd, struct ibv_cq *cq, size_t bytes)
{
    char buf[PIECE * 4];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct ibv_wc wc;

    while (bytes) {
        ssize_t n;

        ibv_poll_cq(cq, 1, &wc);
        if (poll(&p, 1, 1) <= 0)
            continue;
        n = recv(fd, buf, bytes < sizeof buf ? bytes : sizeof buf, 0);
        if (n <= 0)
            errx(2, "the peer is gone");
        bytes -= (size_t)n;
    }
}

static void send_pieces(int fd)
{
    static const char piece[PIECE];

    for (int i = 0; i < 3; i++)
        if (send(fd, piece, sizeof piece, MSG_NOSIGNAL) != (ssize_t)sizeof piece)
            err(2, "send");
}

static void exchange(int fd, struct ibv_cq *cq)
{
    for (int i = 0; i < ROUNDS; i++) {
        send_pieces(fd);
        receive(fd, cq, 3 * (size_t)PIECE);
    }
}

static int listen_in(const char *file)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    FILE *f;

    if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a) || listen(fd, 1) ||
        getsockname(fd, (struct sockaddr *)&a, &len))
        err(2, "a socket to listen on");
    f = fopen(file, "w");
    if (!f || fprintf(f, "%d\n", ntohs(a.sin_port)) < 0 || fclose(f))
        err(2, "%s", file);
    return fd;
}

static int first(const char *file)
{
    int fd = accept(listen_in(file), NULL, NULL);
    struct ibv_cq *cq;
    double start, started;

    if (fd < 0)
        err(2, "accept");
    cq = open_cq();
    start = now_us();
    receive(fd, cq, 1); /* the other is on the fabric, and has done its work */
    started = now_us();
    exchange(fd, cq);
    printf("start: %.3f us exchange: %.3f us\n", started - start, now_us() - started);
    return 0;
}

static int second(int port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    static char noise[1 << 18];
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct ibv_cq *cq;

    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a))
        err(2, "connect");
    while (cpu_ms() < COMPUTE_MS)
        ;
    cq = open_cq();
    memset(noise, 1, sizeof noise);
    for (long end = cpu_ms() + KERNEL_MS; cpu_ms() < end;)
        if (getrandom(noise, sizeof noise, 0) < 0)
            err(2, "getrandom");
    if (send(fd, "!", 1, MSG_NOSIGNAL) != 1)
        err(2, "send");
    exchange(fd, cq);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        errx(2, "usage: time_start PORTFILE | time_start PORT -");
    return argc == 2 ? first(argv[1]) : second(atoi(argv[1]));
}
