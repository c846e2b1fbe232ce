/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for the attach protocol: a whole engine in this process, and clients driven by the input: hellos,
 * requests, records of the command ring, states of actors, indexes, questions, and hang-ups in between. Two
 * well-behaved processes with connected queue pairs come first, so that the noise meets objects and packets. No input
 * may crash the engine, and no object may be left after the clients.
 *
 * The adapters see only one piece of this process as memory.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/client/events.h"
#include "simfab/engine/client/server.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/sched.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/fault/fault.h"
#include "simfab/engine/fault/flow.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/engine/hca/object.h"
#include "simfab/engine/mgmt/mad.h"
#include "simfab/engine/mgmt/subnet.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/switch.h"
#include "simfab/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CLIENTS 6

static uint8_t memory[65536];
static char dir[64];

/* ---- processes as seen by the adapters --------------------------------------------------------------------------- */

static bool ours(const void *at, size_t len)
{
    uintptr_t a = (uintptr_t)at, m = (uintptr_t)memory;

    return a >= m && a - m <= sizeof memory && len <= sizeof memory - (a - m);
}

static ssize_t move(const struct iovec *local, const struct iovec *remote, unsigned long n, bool read)
{
    uint8_t *at = local->iov_base;
    ssize_t done = 0;

    for (unsigned long i = 0; i < n; i++) {
        if (!ours(remote[i].iov_base, remote[i].iov_len)) {
            errno = EFAULT;
            return done ? done : -1;
        }
        if (read)
            memcpy(at, remote[i].iov_base, remote[i].iov_len);
        else
            memcpy(remote[i].iov_base, at, remote[i].iov_len);
        at += remote[i].iov_len;
        done += (ssize_t)remote[i].iov_len;
    }
    return done;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long ln, const struct iovec *remote,
                         unsigned long rn, unsigned long flags)
{
    return move(local, remote, rn, true);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long ln, const struct iovec *remote,
                          unsigned long rn, unsigned long flags)
{
    return move(local, remote, rn, false);
}

/* ---- the input --------------------------------------------------------------------------------------------------- */

static const uint8_t *in, *in_end;

static uint8_t byte(void)
{
    return in < in_end ? *in++ : 0;
}

/* Mostly small numbers, which are existing handles and sizes; then addresses, then edges. */
static uint64_t number(void)
{
    static const uint64_t edges[] = {0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, UINT64_MAX, 65535, 65536, 4096};
    uint8_t b = byte();

    if (b < 200)
        return b;
    if (b < 230)
        return (uintptr_t)memory + 64u * byte();
    if (b < 240)
        return (uint64_t)byte() << 8 | byte();
    return edges[b % (sizeof edges / sizeof *edges)];
}

/* ---- clients ----------------------------------------------------------------------------------------------------- */

struct client {
    int fd, bell;
    struct sf_arena *arena;
};

static struct sim sim;
static struct server *server;
static struct client clients[CLIENTS];
static int questioner;
static uint8_t reply[SF_MSG_MAX];

static int dial(void)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

    snprintf(addr.sun_path, sizeof addr.sun_path, "%s/engine.sock", dir);
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof addr))
        abort();
    return fd;
}

/* A question ends the engine's wait. */
static void turn(unsigned n)
{
    struct {
        struct sf_req req;
        char path[2];
    } ask = {{.op = SF_OP_SYSFS, .body_bytes = 2}, "x"};

    while (n--) {
        send(questioner, &ask, sizeof ask.req + 1, MSG_NOSIGNAL);
        server_turn(server);
        while (recv(questioner, reply, sizeof reply, 0) > 0)
            ;
    }
}

static void hang_up(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    if (c->bell >= 0)
        close(c->bell);
    if (c->arena)
        munmap(c->arena, ARENA_BYTES);
    *c = (struct client){.fd = -1, .bell = -1};
}

/* Takes the engine's messages: drops answers, keeps the welcome's descriptors. */
static ssize_t hear(struct client *c)
{
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {reply, sizeof reply};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(c->fd, &msg, MSG_DONTWAIT);
    struct cmsghdr *m = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
    size_t num = m ? (m->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
    int fds[2] = {-1, -1};

    if (m)
        memcpy(fds, CMSG_DATA(m), num * sizeof(int));
    if (num == 2 && !c->arena) {
        c->arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
        if (c->arena == MAP_FAILED)
            abort();
        close(fds[0]);
        c->bell = fds[1];
    } else {
        for (size_t i = 0; i < num; i++)
            close(fds[i]);
    }
    return n;
}

static void greet(struct client *c, const struct sf_hello *h)
{
    hang_up(c);
    c->fd = dial();
    send(c->fd, h, sizeof *h, MSG_NOSIGNAL);
    turn(2);
    hear(c);
}

static void ask(struct client *c, uint32_t op, const void *body, size_t bytes)
{
    uint8_t msg[sizeof(struct sf_req) + 1024];
    struct sf_req req = {.op = op, .body_bytes = (uint32_t)bytes};

    memcpy(msg, &req, sizeof req);
    memcpy(msg + sizeof req, body, bytes);
    send(c->fd, msg, sizeof req + bytes, MSG_NOSIGNAL);
    turn(1);
    while (hear(c) > 0)
        ;
}

static void ring(struct client *c)
{
    uint64_t one = 1;

    if (c->bell >= 0)
        (void)!write(c->bell, &one, sizeof one);
    turn(1);
}

/* ---- a good beginning: handles are 1 context, 2 domain, 3 completion queue, 4 region, 5 RC, 6 UD, 7 address, 8 SRQ
 * --- */

static void modify(struct client *c, uint32_t qp, struct ibv_qp_attr a, int mask)
{
    struct {
        uint32_t qp;
        int32_t mask;
        struct ibv_qp_attr a;
    } m = {qp, mask, a};

    ask(c, SF_OP_MODIFY_QP, &m, sizeof m);
}

static void bring_up(struct client *c, uint32_t qp, bool rc, uint16_t peer)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = 1,
                            .qp_access_flags = 15,
                            .path_mtu = IBV_MTU_1024,
                            .dest_qp_num = HCA_FIRST_QPN,
                            .max_dest_rd_atomic = 4,
                            .max_rd_atomic = 4,
                            .min_rnr_timer = 1,
                            .timeout = 4,
                            .retry_cnt = 2,
                            .rnr_retry = 2,
                            .ah_attr = {.dlid = peer, .port_num = 1}};
    int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT, rtr = IBV_QP_STATE, rts = IBV_QP_STATE | IBV_QP_SQ_PSN;

    if (rc) {
        rtr |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
               IBV_QP_MIN_RNR_TIMER;
        rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    modify(c, qp, a, init | (rc ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY));
    a.qp_state = IBV_QPS_RTR;
    modify(c, qp, a, rtr);
    a.qp_state = IBV_QPS_RTS;
    modify(c, qp, a, rts);
}

static void settle_in(struct client *c, const char *host, uint16_t peer)
{
    struct sf_hello h = {.magic = SF_MAGIC, .version = SF_VERSION, .kind = SF_CONN_PROC};
    struct sf_create_qp qp = {.pd = 2,
                              .qp_type = IBV_QPT_RC,
                              .send_cq = 3,
                              .recv_cq = 3,
                              .max_send_wr = 16,
                              .max_recv_wr = 16,
                              .max_send_sge = 2,
                              .max_recv_sge = 2,
                              .max_inline = 64};
    struct sf_create_cq cq = {.ctx = 1, .cqe = 16};
    struct sf_reg_mr mr = {
        .pd = 2, .access = 15, .addr = (uintptr_t)memory, .length = 32768, .iova = (uintptr_t)memory};
    struct sf_create_srq srq = {.pd = 2, .max_wr = 8, .max_sge = 2};
    struct {
        uint32_t pd, pad;
        struct ibv_ah_attr a;
    } ah = {.pd = 2, .a = {.dlid = peer, .port_num = 1}};
    struct {
        uint32_t qp;
        uint16_t lid;
        uint8_t gid[16];
    } __attribute__((packed)) group = {6, 0xc001, {0xff, 0x12}};

    memcpy(h.host, host, strlen(host));
    greet(c, &h);
    ask(c, SF_OP_OPEN, &(uint32_t){0}, 4);
    ask(c, SF_OP_ALLOC_PD, &(uint32_t){1}, 4);
    ask(c, SF_OP_CREATE_CQ, &cq, sizeof cq);
    ask(c, SF_OP_REG_MR, &mr, sizeof mr);
    ask(c, SF_OP_CREATE_QP, &qp, sizeof qp);
    qp.qp_type = IBV_QPT_UD;
    ask(c, SF_OP_CREATE_QP, &qp, sizeof qp);
    ask(c, SF_OP_CREATE_AH, &ah, sizeof ah);
    ask(c, SF_OP_CREATE_SRQ, &srq, sizeof srq);
    ask(c, SF_OP_ATTACH_MCAST, &group, sizeof group);
    bring_up(c, 5, true, peer);
    bring_up(c, 6, false, peer);
}

/* ---- actions chosen by the input --------------------------------------------------------------------------------- */

static void say_hello(struct client *c)
{
    static const char *const hosts[] = {"h1", "h2", "", "nobody"};
    struct sf_hello h = {.magic = SF_MAGIC, .version = SF_VERSION, .kind = 1 + byte() % 6, .arg = (uint32_t)number()};
    uint8_t how = byte();

    snprintf(h.host, sizeof h.host, "%s", hosts[how & 3]);
    if ((how & 0xf0) == 0xf0)
        ((uint8_t *)&h)[byte() % sizeof h] ^= byte();
    if ((how & 0x0c) == 0x0c)
        memset(h.host, 'x', sizeof h.host);
    greet(c, &h);
}

static void request(struct client *c)
{
    uint32_t body[64] = {0};
    uint32_t op = byte(), words = byte() % 64;

    for (uint32_t i = 0; i < words; i++) {
        uint64_t n = number();

        body[i] = (uint32_t)n;
        if (n >> 32 && i + 1 < words)
            body[++i] = (uint32_t)(n >> 32);
    }
    ask(c, op % 64 ? op % 64 : op, body, 4 * words + (op >> 6 == 3 ? 2 : 0));
}

static void record(struct client *c)
{
    struct sf_arena *a = c->arena;
    struct {
        struct sf_cmd cmd;
        struct sf_send send;
        struct sf_sge sge[4];
    } r = {0};
    uint32_t at;

    if (!a)
        return;
    r.cmd.op = byte() % 6;
    r.cmd.num_sge = byte() % 5;
    r.cmd.object = (uint32_t)number();
    r.cmd.flags = byte();
    r.cmd.stamp_ps = byte() & 1 ? number() : a->now_ps;
    r.send = (struct sf_send){.opcode = byte() % 16,
                              .inline_bytes = r.cmd.flags & SF_SEND_INLINE ? (uint32_t)number() : 0,
                              .rkey = byte() & 1 ? (uint32_t)number() : 0x101,
                              .remote_addr = number(),
                              .compare_add = byte(),
                              .ah = (uint32_t)number(),
                              .remote_qpn = HCA_FIRST_QPN + byte() % 4};
    for (unsigned i = 0; i < 4; i++)
        r.sge[i] = (struct sf_sge){number(), (uint32_t)number(), byte() & 1 ? (uint32_t)number() : 0x101};
    r.cmd.bytes = (uint32_t)(sizeof r.cmd + (r.cmd.op == SF_CMD_POST_SEND ? sizeof r.send : 0) +
                             (r.cmd.flags & SF_SEND_INLINE ? 64 : r.cmd.num_sge * sizeof *r.sge));
    if (byte() > 240)
        r.cmd.bytes = (uint32_t)number();
    if (r.cmd.op == SF_CMD_POST_RECV || r.cmd.op == SF_CMD_POST_SRQ)
        memmove(&r.send, r.sge, sizeof r.sge);
    at = (uint32_t)(a->cmd_head & (CMD_BYTES - 1));
    if (at + sizeof r <= CMD_BYTES)
        memcpy((uint8_t *)a + 0 + a->cmd_offset % (ARENA_BYTES - CMD_BYTES) + at, &r, sizeof r);
    __atomic_store_n(&a->cmd_head, a->cmd_head + r.cmd.bytes, __ATOMIC_RELEASE);
}

static void actor(struct client *c)
{
    struct sf_actor *a = c->arena ? &c->arena->actor[byte() % 3] : NULL;

    if (!a)
        return;
    a->tid = byte() & 1 ? (uint32_t)getpid() : (uint32_t)number();
    a->clock_ps = number();
    a->wake_ps = number() * (byte() & 1 ? 1000000 : 1);
    __atomic_store_n(&a->state, byte() % 7, __ATOMIC_SEQ_CST);
}

static void scribble(struct client *c)
{
    static const size_t places[] = {offsetof(struct sf_arena, cmd_head),   offsetof(struct sf_arena, cmd_tail),
                                    offsetof(struct sf_arena, now_ps),     offsetof(struct sf_arena, engine_asleep),
                                    offsetof(struct sf_arena, cmd_offset), offsetof(struct sf_arena, free_run)};
    uint64_t v = number(), where = number();

    if (!c->arena)
        return;
    if (where < 200)
        memcpy((uint8_t *)c->arena + places[where % (sizeof places / sizeof *places)], &v, sizeof v);
    else
        memcpy((uint8_t *)c->arena + where % (4u << 20), &v, sizeof v);
}

static void question(struct client *c)
{
    uint8_t msg[sizeof(struct sf_req) + 256];
    struct sf_req req = {.op = 100 + byte() % 24};
    size_t n = byte();

    if (req.op == SF_OP_STOP)
        return;
    for (size_t i = 0; i < n; i++)
        msg[sizeof req + i] = byte();
    /* would kill this process, which is on every host */
    if (req.op == SF_OP_FAULT && memmem(msg + sizeof req, n, "host", 4))
        return;
    req.body_bytes = (uint32_t)n;
    memcpy(msg, &req, sizeof req);
    send(c->fd, msg, sizeof req + n, MSG_NOSIGNAL);
    turn(1);
    while (hear(c) > 0)
        ;
}

static void raw(struct client *c)
{
    uint8_t msg[256];
    size_t n = byte();

    for (size_t i = 0; i < n; i++)
        msg[i] = byte();
    send(c->fd, msg, n, MSG_NOSIGNAL);
    turn(1);
    while (hear(c) > 0)
        ;
}

static void step(void)
{
    uint8_t what = byte();
    struct client *c = &clients[what % CLIENTS];

    switch (what / CLIENTS % 10) {
    case 0:
        say_hello(c);
        break;
    case 1:
    case 2:
        request(c);
        break;
    case 3:
    case 4:
        record(c);
        break;
    case 5:
        actor(c);
        ring(c);
        break;
    case 6:
        scribble(c);
        break;
    case 7:
        question(c);
        break;
    case 8:
        raw(c);
        break;
    default:
        if (byte() & 1)
            hang_up(c);
        else
            ring(c);
    }
}

/* ---- an engine ------------------------------------------------------------------------------------------------------
 */

static void start(void)
{
    struct parse_error err;
    sigset_t none;

    if (!*dir) {
        snprintf(dir, sizeof dir, "/tmp/simfab-fuzz.XXXXXX");
        if (!mkdtemp(dir))
            abort();
        signal(SIGPIPE, SIG_IGN);
    }
    memset(&sim, 0, sizeof sim);
    sim.model = model_load(NULL, &err);
    sim.fabric = fabric_load("etc/topologies/two-hosts-two-rails.net", sim.model, &err);
    evq_init(&sim.q);
    events_init(&sim);
    wire_init(&sim);
    hcas_init(&sim);
    sched_init(&sim);
    sim.mad = mad_new(sim.fabric);
    sim.dir = dir;
    sim.static_subnet = true;
    subnet_configure(sim.fabric, 0);
    if (faults_init(&sim, &err) || flows_init(&sim, &err))
        abort();
    server = server_open(&sim, dir);
    if (!server)
        abort();
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (unsigned i = 0; i < CLIENTS; i++)
        clients[i] = (struct client){.fd = -1, .bell = -1};
    questioner = dial();
    send(questioner, &(struct sf_hello){.magic = SF_MAGIC, .version = SF_VERSION, .kind = SF_CONN_QUERY, .host = "h1"},
         sizeof(struct sf_hello), 0);
    server_turn(server);
    turn(1);
}

/* Everybody is gone: nothing of theirs may be left. */
static void finish(void)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        hang_up(&clients[i]);
    for (unsigned i = 0; i < 8 && sim.num_procs; i++)
        turn(1);
    if (sim.num_procs)
        abort();
    for (uint32_t i = 0; i < sim.fabric->num_nodes; i++) {
        const struct hca *h = sim.fabric->nodes[i]->hca;

        if (h && (h->contexts || h->num_mcast_groups))
            abort();
        for (uint32_t k = 0; h && k < h->qp_table_size; k++)
            if (h->qp_table[k] && h->qp_table[k]->obj.proc)
                abort();
    }
    close(questioner);
    faults_fini(&sim);
    flows_fini(&sim);
    mad_free(sim.mad);
    sched_fini(&sim);
    hcas_fini(&sim);
    links_fini(&sim);
    server_close(server);
    fabric_free(sim.fabric);
    evq_fini(&sim.q);
    free(sim.procs);
    free(sim.proc_by_id);
    model_free(sim.model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    in = data;
    in_end = data + size;
    start();
    settle_in(&clients[0], "h1", sim.fabric->hosts[1]->cas[0]->ports[1].lid);
    settle_in(&clients[1], "h2", sim.fabric->hosts[0]->cas[0]->ports[1].lid);
    while (in < in_end)
        step();
    finish();
    return 0;
}
