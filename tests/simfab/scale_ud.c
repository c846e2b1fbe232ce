/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every process of many sends eight bytes to every other, by datagrams. `scale_ud HOST...` starts a process on each
 * host, introduces them to each other and prints the time of the exchange: the latest end, on the simulated clock.
 * `scale_ud --queue-pairs N` makes N queue pairs in one process and waits for the end of its input.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define QKEY  0x11111111u
#define GRH   40u
#define LINK  3 /* the child's descriptor */
#define BATCH 64

struct name {
    uint32_t lid, qpn;
};

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "scale_ud: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void move(int fd, void *buf, size_t bytes, int out)
{
    for (size_t done = 0; done < bytes;) {
        char *at = (char *)buf + done;
        ssize_t n = out ? send(fd, at, bytes - done, MSG_NOSIGNAL) : recv(fd, at, bytes - done, 0);

        if (n <= 0)
            die(out ? "send" : "receive");
        done += (size_t)n;
    }
}

/* ---- a process of the exchange ----------------------------------------------------------------------------------- */

struct self {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct ibv_ah **ah;
    uint8_t *memory; /* received: a header and a number for each sender; then the sent datagrams */
    uint32_t n, me;
};

static void bring_up(struct ibv_qp *qp)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

    if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
        die("to INIT");
    a.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(qp, &a, IBV_QP_STATE))
        die("to RTR");
    a.qp_state = IBV_QPS_RTS;
    if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN))
        die("to RTS");
}

static void open_all(struct self *s, struct name *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_UD};
    struct ibv_port_attr port;

    s->ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    if (!s->ctx || ibv_query_port(s->ctx, 1, &port) || !(s->pd = ibv_alloc_pd(s->ctx)))
        die("no adapter");
    s->send_cq = ibv_create_cq(s->ctx, 2 * BATCH, NULL, NULL, 0);
    s->recv_cq = ibv_create_cq(s->ctx, (int)s->n + 1, NULL, NULL, 0);
    init.send_cq = s->send_cq;
    init.recv_cq = s->recv_cq;
    init.cap = (struct ibv_qp_cap){.max_send_wr = BATCH, .max_recv_wr = s->n, .max_send_sge = 1, .max_recv_sge = 1};
    s->memory = calloc(s->n + 1, GRH + 8);
    s->mr = ibv_reg_mr(s->pd, s->memory, (s->n + 1) * (GRH + 8), IBV_ACCESS_LOCAL_WRITE);
    s->qp = s->send_cq && s->recv_cq && s->mr ? ibv_create_qp(s->pd, &init) : NULL;
    if (!s->qp)
        die("queue pair");
    bring_up(s->qp);
    *name = (struct name){port.lid, s->qp->qp_num};
    ibv_free_device_list(list);
}

static void post_receives(struct self *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct ibv_sge sge = {(uintptr_t)s->memory + i * (GRH + 8), GRH + 8, s->mr->lkey};
        struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

        if (ibv_post_recv(s->qp, &wr, &bad))
            die("post a receive");
    }
}

static void make_addresses(struct self *s, const struct name *names)
{
    s->ah = calloc(s->n, sizeof(struct ibv_ah *));
    for (uint32_t i = 0; i < s->n; i++) {
        struct ibv_ah_attr a = {.dlid = (uint16_t)names[i].lid, .port_num = 1};

        if (!(s->ah[i] = ibv_create_ah(s->pd, &a)))
            die("address");
    }
}

static uint32_t reap(struct ibv_cq *cq)
{
    struct ibv_wc wc[16];
    int n = ibv_poll_cq(cq, 16, wc);

    for (int i = 0; i < n; i++)
        if (wc[i].status)
            die(ibv_wc_status_str(wc[i].status));
    if (n < 0)
        die("poll");
    return (uint32_t)n;
}

static void exchange(struct self *s, const struct name *names)
{
    uint64_t *out = (uint64_t *)(s->memory + s->n * (GRH + 8));
    uint32_t posted = 0, sent = 0, got = 0;

    *out = s->me;
    while (sent < s->n || got < s->n) {
        for (; posted < s->n && posted - sent < BATCH; posted++) {
            uint32_t to = (s->me + posted) % s->n;
            struct ibv_sge sge = {(uintptr_t)out, 8, s->mr->lkey};
            struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

            wr.send_flags = IBV_SEND_SIGNALED;
            wr.wr.ud.ah = s->ah[to];
            wr.wr.ud.remote_qpn = names[to].qpn;
            wr.wr.ud.remote_qkey = QKEY;
            if (ibv_post_send(s->qp, &wr, &bad))
                die("post a send");
        }
        if (sent < s->n)
            sent += reap(s->send_cq);
        if (got < s->n)
            got += reap(s->recv_cq);
    }
}

/* Checks for exactly one datagram from each process. */
static void check(const struct self *s)
{
    uint8_t *seen = calloc(s->n, 1);

    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t from;

        memcpy(&from, s->memory + i * (GRH + 8) + GRH, 8);
        if (from >= s->n || seen[from]++) {
            fprintf(stderr, "scale_ud: process %u: the message from %llu came twice, or is none\n", s->me,
                    (unsigned long long)from);
            exit(1);
        }
    }
    free(seen);
}

static int child(uint32_t me, uint32_t n)
{
    struct self s = {.n = n, .me = me};
    struct name *names = calloc(n, sizeof *names), mine;
    struct timespec from, to;
    double us;

    open_all(&s, &mine);
    post_receives(&s);
    move(LINK, &mine, sizeof mine, 1);
    move(LINK, names, n * sizeof *names, 0);
    make_addresses(&s, names);
    clock_gettime(CLOCK_MONOTONIC, &from);
    exchange(&s, names);
    clock_gettime(CLOCK_MONOTONIC, &to);
    check(&s);
    us = (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
    move(LINK, &us, sizeof us, 1);
    return 0;
}

/* Makes only queue pairs, until the input ends, for a measurement of their cost. */
static int only_queue_pairs(uint32_t n)
{
    struct self s = {.n = 1};
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1}};
    struct name name;

    open_all(&s, &name);
    init.send_cq = init.recv_cq = s.send_cq;
    for (uint32_t i = 0; i < n; i++)
        if (!ibv_create_qp(s.pd, &init))
            die("queue pair");
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}

/* ---- the starter ------------------------------------------------------------------------------------------------- */

static int start(const char *program, const char *host, uint32_t me, uint32_t n)
{
    char number[16], total[16];
    int ends[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        die("socketpair");
    snprintf(number, sizeof number, "%u", me);
    snprintf(total, sizeof total, "%u", n);
    pid = fork();
    if (pid < 0)
        die("fork");
    if (!pid) {
        if (dup2(ends[1], LINK) == LINK)
            execlp("simfab", "simfab", "exec", host, "--", program, "--child", number, total, NULL);
        die("simfab exec");
    }
    close(ends[1]);
    return ends[0];
}

static int parent(const char *program, char **hosts, uint32_t n)
{
    struct name *names = calloc(n, sizeof *names);
    int *link = calloc(n, sizeof *link), status, bad = 0;
    double us, latest = 0;

    for (uint32_t i = 0; i < n; i++)
        link[i] = start(program, hosts[i], i, n);
    for (uint32_t i = 0; i < n; i++)
        move(link[i], &names[i], sizeof *names, 0);
    for (uint32_t i = 0; i < n; i++)
        move(link[i], names, n * sizeof *names, 1);
    for (uint32_t i = 0; i < n; i++) {
        move(link[i], &us, sizeof us, 0);
        latest = us > latest ? us : latest;
    }
    for (uint32_t i = 0; i < n; i++)
        bad |= wait(&status) < 0 || status;
    if (!bad)
        printf("%u processes, %u messages: %.3f us (simulated)\n", n, n * n, latest);
    free(link);
    free(names);
    return bad;
}

int main(int argc, char **argv)
{
    struct rlimit files;

    if (argc == 4 && !strcmp(argv[1], "--child"))
        return child((uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]));
    if (argc == 3 && !strcmp(argv[1], "--queue-pairs"))
        return only_queue_pairs((uint32_t)atoi(argv[2]));
    if (argc < 2) {
        fputs("usage: scale_ud HOST...\n", stderr);
        return 2;
    }
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    return parent(argv[0], argv + 1, (uint32_t)argc - 1);
}
