/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ways of datagrams, the rules for agents, time-outs, RMPP and traps: a program's side of two umad connections is
 * played here, and the engine's side runs in between.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/ib_user_mad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/fabric/pkey.h"
#include "simfab/engine/mgmt/agents.h"
#include "simfab/engine/mgmt/mad.h"
#include "simfab/engine/mgmt/mad_wire.h"
#include "simfab/engine/mgmt/route.h"
#include "simfab/engine/mgmt/trap.h"
#include "simfab/proto.h"
#include "simfab/umad_proto.h"
#include "tests/check.h"

static struct parse_error err;
static struct model *model;
static struct fabric *fabric;
static struct mad *mad;
static struct port *p1, *p2; /* of h1 and h2 */
static struct node *leaf1, *leaf2;
static int u1, u2; /* their umads, with the pkey header */

static const struct fabric_upcalls fabric_up = {.port_changed = mad_port_event, .bad_key = mad_bad_key};

/* ---- a program ---------------------------------------------------------------------------------------------- */

/* *page: its page, or NULL. */
static int open_with_page(const char *host, enum sf_conn_kind kind, uint32_t n, int *error, struct umad_page **page)
{
    struct sf_hello hello = {.magic = SF_MAGIC, .version = SF_VERSION, .kind = kind, .arg = n};
    struct sf_welcome w;
    struct iovec iov = {&w, sizeof w};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    int pair[2], fd;

    *page = NULL;
    snprintf(hello.host, sizeof hello.host, "%s", host);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
    mad_accept(mad, pair[1], &hello);
    if (recvmsg(pair[0], &msg, MSG_CMSG_CLOEXEC) != sizeof w) {
        *error = -1; /* no answer yet */
        return pair[0];
    }
    ck_assert_uint_eq(w.magic, SF_MAGIC);
    *error = w.error;
    if (!CMSG_FIRSTHDR(&msg))
        return pair[0];
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof fd);
    ck_assert_int_eq(ftruncate(fd, 0), -1); /* the engine writes there: the size must stay fixed */
    *page = mmap(NULL, sizeof **page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert(*page != MAP_FAILED);
    close(fd);
    return pair[0];
}

static int open_umad(const char *host, enum sf_conn_kind kind, uint32_t n, int *error)
{
    struct umad_page *page;
    int u = open_with_page(host, kind, n, error, &page);

    if (page)
        munmap(page, sizeof *page);
    return u;
}

static int ask(int u, uint32_t op, const void *body, size_t bytes, struct umad_rep *rep)
{
    struct umad_req req = {.op = op, .bytes = bytes};
    struct iovec iov[2] = {{&req, sizeof req}, {(void *)body, bytes}};
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2, .msg_control = &control};
    int pair[2], fds[2], n = 1;
    struct cmsghdr *c;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    fds[0] = pair[1];
    if (bytes > UMAD_INLINE) {
        fds[n++] = memfd_create("x", 0);
        ck_assert_int_eq(write(fds[1], body, bytes), (ssize_t)bytes);
        req.flags = UMAD_REQ_MEMFD;
        iov[1].iov_len = 0;
    }
    memset(&control, 0, sizeof control);
    msg.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
    c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
    memcpy(CMSG_DATA(c), fds, (size_t)n * sizeof(int));
    ck_assert_int_ge(sendmsg(u, &msg, 0), 0);
    for (int i = 0; i < n; i++)
        close(fds[i]);
    mad_run(mad);
    ck_assert_int_eq(recv(pair[0], rep, sizeof *rep, MSG_DONTWAIT), sizeof *rep);
    close(pair[0]);
    return rep->error;
}

static int reg(int u, unsigned qpn, unsigned class, unsigned version, unsigned methods, unsigned rmpp, uint32_t *id)
{
    struct ib_user_mad_reg_req2 r = {.qpn = qpn,
                                     .mgmt_class = (uint8_t) class,
                                     .mgmt_class_version = (uint8_t)version,
                                     .rmpp_version = (uint8_t)rmpp};
    struct umad_rep rep;
    int e;

    r.method_mask[0] = methods;
    e = ask(u, UMAD_OP_REGISTER2, &r, sizeof r, &rep);
    if (id)
        *id = rep.id;
    return e;
}

struct message {
    struct ib_user_mad_hdr hdr;
    uint8_t mad[20000];
};
static struct message out, in;

static void request(uint32_t id, uint16_t lid, unsigned class, unsigned method, unsigned attr, uint32_t mod)
{
    memset(&out, 0, sizeof out);
    out.hdr.id = id;
    out.hdr.lid = htons(lid);
    out.hdr.qpn = htonl(class != CLASS_SMP_LID && class != CLASS_SMP_DR);
    out.hdr.qkey = htonl(MAD_QKEY);
    wire_put(out.mad, MAD_BASE_VERSION, 1);
    wire_put(out.mad, MAD_CLASS, class);
    wire_put(out.mad, MAD_CLASS_VERSION, class == CLASS_SA ? 2 : 1);
    wire_put(out.mad, MAD_METHOD, method);
    wire_put(out.mad, MAD_TID, 0xaabbccdd00000001ull);
    wire_put(out.mad, MAD_ATTR, attr);
    wire_put(out.mad, MAD_MODIFIER, mod);
}

static void directed(uint32_t id, unsigned hops, const uint8_t *path)
{
    request(id, 0xffff, CLASS_SMP_DR, METHOD_GET, 0x11, 0);
    wire_put(out.mad, SMP_HOP_CNT, hops);
    wire_put(out.mad, SMP_DR_SLID, 0xffff);
    wire_put(out.mad, SMP_DR_DLID, 0xffff);
    if (hops)
        memcpy(out.mad + SMP_INITIAL_PATH + 1, path, hops);
}

static int write_mad(int u, size_t bytes)
{
    struct umad_rep rep;

    return ask(u, UMAD_OP_WRITE, &out, sizeof out.hdr + bytes, &rep);
}

/* The result of the next read: bytes with the header, 0: nothing to read */
static size_t next(int u)
{
    struct umad_rx rx;
    struct iovec iov[2] = {{&rx, sizeof rx}, {&in, sizeof in}};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n;

    mad_run(mad);
    n = recvmsg(u, &msg, MSG_DONTWAIT);
    if (n < 0)
        return 0;
    ck_assert_uint_ge((size_t)n, sizeof rx);
    if (rx.flags & UMAD_RX_MEMFD) {
        int fd;

        ck_assert_uint_eq((size_t)n - sizeof rx, UMAD_HDR + 256);
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof fd);
        ck_assert_int_eq(pread(fd, &in, sizeof in, 0), (ssize_t)rx.bytes);
        close(fd);
    } else {
        ck_assert_uint_eq((size_t)n - sizeof rx, rx.bytes);
    }
    return rx.bytes;
}

static size_t next_within(int u, int ms)
{
    struct pollfd p[2] = {{.fd = u, .events = POLLIN}, {.fd = mad_fd(mad), .events = POLLIN}};
    struct timespec a, b;
    size_t n;

    clock_gettime(CLOCK_MONOTONIC, &a);
    for (;;) {
        n = next(u);
        clock_gettime(CLOCK_MONOTONIC, &b);
        if (n || (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >= ms)
            return n;
        poll(p, 2, 10);
    }
}

static void setup(void)
{
    int e;

    model = model_load(NULL, &err);
    fabric = fabric_load("etc/topologies/two-switches-two-paths.net", model, &err);
    ck_assert_msg(fabric != NULL, "%s", err.text);
    fabric->up = &fabric_up;
    mad = mad_new(fabric);
    ck_assert_ptr_nonnull(mad);
    leaf1 = fabric->nodes[0];
    leaf2 = fabric->nodes[1];
    p1 = &fabric->hosts[0]->cas[0]->ports[1];
    p2 = &fabric->hosts[1]->cas[0]->ports[1];
    u1 = open_umad("h1", SF_CONN_UMAD, 0, &e);
    ck_assert_int_eq(e, 0);
    u2 = open_umad("h2", SF_CONN_UMAD, 0, &e);
    ck_assert_int_eq(e, 0);
}

static void teardown(void)
{
    close(u1);
    close(u2);
    mad_free(mad);
    fabric_free(fabric);
    model_free(model);
}

/* Settings of a subnet manager: h1 is LIDs 4-5, h2 8-9, the switches 1 and 2; the odd LIDs go by port 5. */
static void configure(void)
{
    static const unsigned lids[] = {4, 5, 8, 9};

    leaf1->ports[0].lid = 1;
    leaf2->ports[0].lid = 2;
    p1->lid = 4;
    p2->lid = 8;
    p1->lmc = p2->lmc = 1;
    leaf1->ports[0].sm_lid = leaf2->ports[0].sm_lid = p1->sm_lid = p2->sm_lid = 4;
    leaf1->lft_top = leaf2->lft_top = 9;
    leaf1->lft[2] = leaf2->lft[1] = 3;
    for (unsigned i = 0; i < 4; i++) {
        leaf1->lft[lids[i]] = i < 2 ? 1 : 3 + 2 * (i & 1);
        leaf2->lft[lids[i]] = i < 2 ? 3 + 2 * (i & 1) : 1;
    }
    for (uint32_t i = 0; i < fabric->num_nodes; i++)
        for (unsigned k = 1; k <= fabric->nodes[i]->num_ports; k++)
            if (fabric->nodes[i]->ports[k].peer)
                fabric->nodes[i]->ports[k].state = PORT_ACTIVE;
}

/* ---- tests -------------------------------------------------------------------------------------------------- */

START_TEST(directed_routes)
{
    uint32_t id;

    ck_assert_int_eq(reg(u1, 0, CLASS_SMP_DR, 1, 0, 0, &id), 0);
    directed(id, 0, (const uint8_t[]){0});
    out.hdr.timeout_ms = 1000;
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next(u1), 320);
    ck_assert_uint_eq(wire_get(in.mad + SMP_DATA, 96, 64), p1->node->node_guid);
    ck_assert_uint_eq(in.hdr.lid, 0xffff);
    ck_assert_uint_eq(in.hdr.qpn, 0);
    ck_assert_uint_eq(in.hdr.length, 320);

    directed(id, 3, (const uint8_t[]){1, 5, 1}); /* through both switches to h2 */
    out.hdr.timeout_ms = 1000;
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next(u1), 320);
    ck_assert_uint_eq(wire_get(in.mad + SMP_DATA, 96, 64), p2->node->node_guid);
    ck_assert_uint_eq(wire_get(in.mad, SMP_D), 1);
    ck_assert_uint_eq(wire_get(in.mad, SMP_STATUS), 0);
    ck_assert_uint_eq(wire_get(in.mad, SMP_HOP_PTR), 0);
    ck_assert_uint_eq(in.mad[SMP_RETURN_PATH + 1], 1);
    ck_assert_uint_eq(in.mad[SMP_RETURN_PATH + 2], 5);
    ck_assert_uint_eq(in.mad[SMP_RETURN_PATH + 3], 1);
    ck_assert_uint_eq((uint32_t)wire_get(in.mad, MAD_TID), 1);
    ck_assert_uint_ne(wire_get(in.mad, MAD_TID) >> 32, 0xaabbccdd); /* the upper half is the engine's */

    directed(id, 1, (const uint8_t[]){2}); /* not this port */
    out.hdr.timeout_ms = 1000;
    ck_assert_int_eq(write_mad(u1, 256), EINVAL);
    directed(id, 4, (const uint8_t[]){1, 5, 1, 1}); /* an HCA in mid-path */
    out.hdr.timeout_ms = 20;
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next(u1), 0);
    ck_assert_uint_eq(next_within(u1, 500), UMAD_HDR + MAD_HDR);
    ck_assert_uint_eq(in.hdr.status, ETIMEDOUT);
}
END_TEST

START_TEST(lid_then_directed)
{
    uint32_t id;

    configure();
    ck_assert_int_eq(reg(u1, 0, CLASS_SMP_DR, 1, 0, 0, &id), 0);
    directed(id, 1, (const uint8_t[]){1});
    out.hdr.lid = htons(2); /* to leaf2, and out of its port 1 */
    out.hdr.timeout_ms = 1000;
    wire_put(out.mad, SMP_DR_SLID, 4);
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next(u1), 320);
    ck_assert_uint_eq(wire_get(in.mad + SMP_DATA, 96, 64), p2->node->node_guid);
}
END_TEST

START_TEST(lid_routes)
{
    uint32_t smi, gsi;

    configure();
    ck_assert_int_eq(reg(u1, 0, CLASS_SMP_LID, 1, 0, 0, &smi), 0);
    ck_assert_int_eq(reg(u1, 1, CLASS_PERF, 1, 0, 0, &gsi), 0);
    request(smi, 9, CLASS_SMP_LID, METHOD_GET, 0x10, 0);
    out.hdr.timeout_ms = 1000;
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next(u1), 320);
    ck_assert_str_eq((char *)in.mad + SMP_DATA, "h2 mlx5_0");
    ck_assert_uint_eq(ntohs(in.hdr.lid), 9);
    request(smi, 5, CLASS_SMP_LID, METHOD_GET, 0x10, 0); /* one's own LID loops back */
    out.hdr.timeout_ms = 1000;
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next(u1), 320);
    ck_assert_str_eq((char *)in.mad + SMP_DATA, "h1 mlx5_0");
    request(gsi, 2, CLASS_PERF, METHOD_GET, 0x12, 0);
    out.mad[GMP_DATA + 1] = 3;
    out.hdr.timeout_ms = 1000;
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next(u1), 320);
    ck_assert_uint_eq(wire_get(in.mad, MAD_STATUS), 0);
    ck_assert_uint_eq(ntohl(in.hdr.qpn), 1);
    /* a link that is not active carries management of the subnet, and nothing else; the other path is not concerned */
    leaf1->ports[5].state = PORT_ARMED;
    request(gsi, 9, CLASS_PERF, METHOD_GET, 0x01, 0);
    out.hdr.timeout_ms = 20;
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next_within(u1, 500), UMAD_HDR + MAD_HDR);
    request(gsi, 8, CLASS_PERF, METHOD_GET, 0x01, 0);
    out.hdr.timeout_ms = 1000;
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next(u1), 320);
    request(smi, 9, CLASS_SMP_LID, METHOD_GET, 0x10, 0);
    out.hdr.timeout_ms = 1000;
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next(u1), 320);
    /* a loop in the forwarding tables ends */
    leaf1->lft[9] = 3;
    leaf2->lft[9] = 3;
    request(smi, 9, CLASS_SMP_LID, METHOD_GET, 0x10, 0);
    out.hdr.timeout_ms = 20;
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next_within(u1, 500), UMAD_HDR + MAD_HDR);
}
END_TEST

/* A link that a request takes down carries the answer still. */
START_TEST(sawing_off_the_branch)
{
    uint32_t id;

    configure();
    ck_assert_int_eq(reg(u1, 0, CLASS_SMP_LID, 1, 0, 0, &id), 0);
    request(id, 2, CLASS_SMP_LID, METHOD_GET, 0x15, 3); /* leaf2's port towards leaf1 */
    out.hdr.timeout_ms = 1000;
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next(u1), 320);
    memcpy(out.mad + SMP_DATA, in.mad + SMP_DATA, SMP_DATA_BYTES);
    wire_put(out.mad, MAD_METHOD, METHOD_SET);
    wire_put(out.mad + SMP_DATA, 260, 4, PORT_DOWN);
    wire_put(out.mad + SMP_DATA, 264, 4, PHYS_DISABLED);
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next(u1), 320);
    ck_assert_uint_eq(wire_get(in.mad, MAD_STATUS), 0);
    ck_assert_uint_eq(wire_get(in.mad + SMP_DATA, 264, 4), PHYS_DISABLED);
    ck_assert_int_eq(leaf2->ports[3].phys_state, PHYS_DISABLED);
    ck_assert_int_eq(leaf1->ports[3].state, PORT_DOWN);
}
END_TEST

/* Milliseconds until an unanswered request has failed; the request stays in `in`. */
static long time_unanswered(void)
{
    struct timespec a, b;

    clock_gettime(CLOCK_MONOTONIC, &a);
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_int_eq(write_mad(u1, 256), EINVAL); /* the same transaction is under way */
    ck_assert_uint_eq(next_within(u1, 20000), 88);
    clock_gettime(CLOCK_MONOTONIC, &b);
    return (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000;
}

START_TEST(time_out_and_retries)
{
    uint32_t id;
    long ms = 0;

    configure();
    ck_assert_int_eq(reg(u1, 0, CLASS_SMP_LID, 1, 0, 0, &id), 0);
    request(id, 77, CLASS_SMP_LID, METHOD_GET, 0x11, 5);
    out.hdr.timeout_ms = 60;
    out.hdr.retries = 1;
    /* never too soon; the delay depends on the timer of a busy machine */
    for (int i = 0; i < 20 && (!i || ms > 600); i++) {
        ms = time_unanswered();
        ck_assert_int_ge(ms, 120);
    }
    ck_assert_int_le(ms, 600);
    ck_assert_uint_eq(in.hdr.status, 110);
    ck_assert_uint_eq(wire_get(in.mad, MAD_MODIFIER), 5);
    /* a retry gets through when the way is there by then */
    out.hdr.retries = 3;
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next(u1), 0);
    leaf1->lft[77] = 1;
    leaf1->lft_top = 77;
    p1->lid = 77;
    p1->lmc = 0;
    ck_assert_uint_eq(next_within(u1, 2000), 320);
    ck_assert_uint_eq(in.hdr.status, 0);
}
END_TEST

START_TEST(registration)
{
    struct ib_user_mad_reg_req2 r = {.flags = 6};
    struct umad_rep rep;
    uint32_t id;
    int other, e;

    ck_assert_int_eq(reg(u1, 0, CLASS_SMP_LID, 1, 0xa6, 0, &id), 0);
    ck_assert_uint_eq(id, 0);
    other = open_umad("h1", SF_CONN_UMAD, 0, &e);
    ck_assert_int_eq(reg(other, 0, CLASS_SMP_LID, 1, 0x20, 0, NULL), EINVAL);
    ck_assert_int_eq(reg(other, 0, CLASS_SMP_LID, 1, 0, 0, NULL), 0);
    ck_assert_int_eq(reg(other, 0, CLASS_SMP_DR, 1, 0x20, 0, NULL), 0);
    ck_assert_int_eq(reg(u2, 0, CLASS_SMP_LID, 1, 0xa6, 0, NULL), 0); /* another port */
    ck_assert_int_eq(reg(u1, 1, CLASS_SMP_LID, 1, 0, 0, NULL), EINVAL);
    ck_assert_int_eq(reg(u1, 0, CLASS_SA, 2, 0, 0, NULL), EINVAL);
    ck_assert_int_eq(reg(u1, 2, CLASS_SA, 2, 0, 0, NULL), EINVAL);
    ck_assert_int_eq(reg(u1, 1, CLASS_SA, 8, 0, 0, NULL), EINVAL);
    ck_assert_int_eq(reg(u1, 0, CLASS_SMP_LID, 1, 0, 1, NULL), EINVAL); /* RMPP on a class without RMPP */
    ck_assert_int_eq(reg(u1, 1, CLASS_SA, 2, 0, 2, NULL), EINVAL);
    ck_assert_int_eq(reg(u1, 1, 0x50, 1, 0, 0, NULL), EINVAL);
    ck_assert_int_eq(reg(u1, 1, 0x32, 1, 0, 0, NULL), EINVAL); /* no OUI */
    ck_assert_int_eq(ask(u1, UMAD_OP_REGISTER2, &r, sizeof r, &rep), EINVAL);
    ck_assert_uint_eq(rep.flags, 1);
    ck_assert_int_eq(ask(u1, UMAD_OP_ENABLE_PKEY, NULL, 0, &rep), EINVAL);
    for (unsigned i = 1; i < 32; i++)
        ck_assert_int_eq(reg(u1, 1, CLASS_SA, 2, 0, 1, NULL), 0);
    ck_assert_int_eq(reg(u1, 1, CLASS_SA, 2, 0, 1, NULL), ENOMEM);
    id = 5;
    ck_assert_int_eq(ask(u1, UMAD_OP_UNREGISTER, &id, sizeof id, &rep), 0);
    ck_assert_int_eq(ask(u1, UMAD_OP_UNREGISTER, &id, sizeof id, &rep), EINVAL);
    ck_assert_int_eq(reg(u1, 1, CLASS_SA, 2, 0, 1, &id), 0);
    ck_assert_uint_eq(id, 5);
    /* closing gives everything back */
    close(u1);
    mad_run(mad);
    ck_assert_int_eq(reg(other, 0, CLASS_SMP_LID, 1, 0x20, 0, NULL), 0);
    u1 = other;
}
END_TEST

START_TEST(bad_writes)
{
    struct umad_rep rep;
    uint32_t id, sa;

    ck_assert_int_eq(reg(u1, 0, CLASS_SMP_LID, 1, 0, 0, &id), 0);
    ck_assert_int_eq(reg(u1, 1, CLASS_SA, 2, 0, 1, &sa), 0);
    request(id, 1, CLASS_SMP_LID, METHOD_GET, 0x11, 0);
    ck_assert_int_eq(write_mad(u1, 35), EINVAL);
    ck_assert_int_eq(write_mad(u1, 36), 0);
    ck_assert_int_eq(write_mad(u1, 257), EINVAL);
    out.hdr.id = 32;
    ck_assert_int_eq(write_mad(u1, 256), EINVAL);
    out.hdr.id = 9;
    ck_assert_int_eq(write_mad(u1, 256), EIO);
    out.hdr.id = sa; /* an agent with RMPP, a class without */
    ck_assert_int_eq(write_mad(u1, 256), EINVAL);
    ck_assert_int_eq(ask(u1, 99, NULL, 0, &rep), EINVAL);
}
END_TEST

START_TEST(requests_between_programs)
{
    uint32_t a, b;

    configure();
    ck_assert_int_eq(reg(u1, 1, CLASS_SA, 2, 0, 1, &a), 0);
    request(a, 8, CLASS_SA, METHOD_GET, 0x35, 0);
    out.hdr.timeout_ms = 1000;
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next(u1), 320); /* nobody there: the kernel refuses */
    ck_assert_uint_eq(wire_get(in.mad, MAD_STATUS), STATUS_BAD_ATTR);
    ck_assert_int_eq(reg(u2, 1, CLASS_SA, 2, 1 << METHOD_GET, 1, &b), 0);
    out.hdr.path_bits = 1;
    out.hdr.lid = htons(9);
    out.hdr.sl = 3;
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next(u1), 0);
    ck_assert_uint_eq(next(u2), 320);
    ck_assert_uint_eq(in.hdr.id, b);
    ck_assert_uint_eq(ntohs(in.hdr.lid), 5);
    ck_assert_uint_eq(in.hdr.path_bits, 1);
    ck_assert_uint_eq(in.hdr.sl, 3);
    ck_assert_uint_eq(ntohl(in.hdr.qpn), 1);
    /* the answer, of several segments: 56 + 15000 bytes, first inline-sized then as it travels in a memfd */
    for (size_t data = 1000; data <= 18000; data += 17000) {
        size_t segments = (data + 199) / 200;

        if (data > 1000) {
            ck_assert_int_eq(
                (request(a, 8, CLASS_SA, METHOD_GET, 0x35, 0), out.hdr.timeout_ms = 1000, write_mad(u1, 256)), 0);
            ck_assert_uint_eq(next(u2), 320);
        }
        memcpy(&out, &in, sizeof in.hdr + 256);
        out.hdr.id = b;
        out.hdr.qkey = htonl(MAD_QKEY);
        wire_put(out.mad, MAD_METHOD, METHOD_GET_RESP);
        wire_put(out.mad, RMPP_FLAGS, RMPP_ACTIVE);
        memset(out.mad + 56, 0x5a, data);
        ck_assert_int_eq(write_mad(u2, 56 + data), 0);
        ck_assert_uint_eq(next(u1), UMAD_HDR + 56 + data);
        ck_assert_uint_eq(in.hdr.length, UMAD_HDR + 56 + data);
        ck_assert_uint_eq(wire_get(in.mad, RMPP_TYPE), 1);
        ck_assert_uint_eq(wire_get(in.mad, RMPP_FLAGS), RMPP_ACTIVE | RMPP_FIRST);
        ck_assert_uint_eq(wire_get(in.mad, RMPP_SEGMENT), 1);
        ck_assert_uint_eq(wire_get(in.mad, RMPP_PAYLEN), segments * 220 - (segments * 200 - data));
        ck_assert_uint_eq(in.mad[56 + data - 1], 0x5a);
    }
    /* a second answer finds no request */
    ck_assert_int_eq(write_mad(u2, 256), 0);
    ck_assert_uint_eq(next(u1), 0);
}
END_TEST

START_TEST(traps)
{
    uint32_t id;
    uint64_t tid;

    configure();
    ck_assert_int_eq(reg(u1, 0, CLASS_SMP_LID, 1, 0xa6, 0, &id), 0);
    port_set_phys(&leaf2->ports[5], PHYS_DISABLED);
    /* one trap from each switch */
    ck_assert_uint_eq(next(u1), 320);
    ck_assert_uint_eq(wire_get(in.mad, MAD_METHOD), METHOD_TRAP);
    ck_assert_uint_eq(wire_get(in.mad + SMP_DATA, 32, 16), 128);
    ck_assert_uint_eq(wire_get(in.mad + SMP_DATA, 8, 24), 2);
    ck_assert_uint_eq(ntohs(in.hdr.lid), 2);
    ck_assert_uint_eq(wire_get(in.mad + SMP_DATA, 80, 16), 2);
    tid = wire_get(in.mad, MAD_TID);
    memcpy(&out, &in, sizeof in.hdr + 256);
    out.hdr.id = id;
    wire_put(out.mad, MAD_METHOD, METHOD_TRAP_REPRESS);
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next(u1), 320);
    ck_assert_uint_eq(ntohs(in.hdr.lid), 1);
    ck_assert_uint_ne(wire_get(in.mad, MAD_TID), tid);
    tid = wire_get(in.mad, MAD_TID);
    ck_assert_uint_eq(next(u1), 0);
    /* the second is repeated, because it was not repressed; the first is not */
    ck_assert_uint_eq(next_within(u1, 1000), 320);
    ck_assert_uint_eq(wire_get(in.mad, MAD_TID), tid);
    memcpy(&out, &in, sizeof in.hdr + 256);
    out.hdr.id = id;
    wire_put(out.mad, MAD_METHOD, METHOD_TRAP_REPRESS);
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next_within(u1, 600), 0);
}
END_TEST

/* Answers the trap in "in", for the agent id. */
static void repress(uint32_t id)
{
    memcpy(&out, &in, sizeof in.hdr + 256);
    out.hdr.id = id;
    wire_put(out.mad, MAD_METHOD, METHOD_TRAP_REPRESS);
    ck_assert_int_eq(write_mad(u1, 256), 0);
}

static const uint8_t *trap_details(unsigned number, unsigned issuer)
{
    ck_assert_uint_eq(next_within(u1, 5000), 320);
    ck_assert_uint_eq(wire_get(in.mad, MAD_METHOD), METHOD_TRAP);
    ck_assert_uint_eq(wire_get(in.mad + SMP_DATA, 1, 7), 2); /* security */
    ck_assert_uint_eq(wire_get(in.mad + SMP_DATA, 32, 16), number);
    ck_assert_uint_eq(wire_get(in.mad + SMP_DATA, 48, 16), issuer);
    return in.mad + SMP_DATA + 10;
}

/* An unanswered request from h1 to h2. */
static void unheard(uint32_t gsi, uint32_t qkey)
{
    request(gsi, 8, CLASS_PERF, METHOD_GET, 0x01, 0);
    out.hdr.qkey = htonl(qkey);
    ck_assert_int_eq(write_mad(u1, 256), 0);
}

static void answered(uint32_t gsi)
{
    request(gsi, 8, CLASS_PERF, METHOD_GET, 0x01, 0);
    out.hdr.timeout_ms = 1000;
    ck_assert_int_eq(write_mad(u1, 256), 0);
    ck_assert_uint_eq(next(u1), 320);
    ck_assert_uint_eq(wire_get(in.mad, MAD_METHOD), METHOD_GET_RESP);
}

static void is_from_h1_to_h2(const uint8_t *lids, const uint8_t *qps)
{
    ck_assert_uint_eq(wire_get(lids, 0, 16), 4);
    ck_assert_uint_eq(wire_get(lids, 16, 16), 8);
    ck_assert_uint_eq(wire_get(qps, 8, 24), 1);
    ck_assert_uint_eq(wire_get(qps, 40, 24), 1);
}

START_TEST(bad_keys)
{
    struct port *out_port = &leaf2->ports[1], *in_port = &leaf1->ports[1];
    const uint8_t *d;
    uint32_t smi, gsi;

    configure();
    p2->sm_lid = 4;
    ck_assert_int_eq(reg(u1, 0, CLASS_SMP_LID, 1, 0xa6, 0, &smi), 0);
    ck_assert_int_eq(reg(u1, 1, CLASS_PERF, 1, 0, 0, &gsi), 0);
    /* limited members do not talk to each other; the manager hears of it once within its time-out */
    p1->pkeys[0] = p2->pkeys[0] = 0x7fff;
    unheard(gsi, MAD_QKEY);
    d = trap_details(257, 8);
    is_from_h1_to_h2(d + 2, d + 10);
    ck_assert_uint_eq(wire_get(d, 48, 32), 0x7fff);
    repress(smi);
    unheard(gsi, MAD_QKEY);
    unheard(gsi, MAD_QKEY);
    ck_assert_uint_eq(next_within(u1, 300), 0);
    ck_assert_uint_eq(p2->pkey_violations, 3);
    trap_details(257, 8); /* the news since, when the time is over */
    repress(smi);
    ck_assert_uint_eq(next_within(u1, 300), 0);
    /* a full member may talk to a limited member; any entry of the table counts */
    p2->pkeys[0] = 0;
    p2->pkeys[5] = 0xffff;
    answered(gsi);
    /* the queue key */
    unheard(gsi, 0x1234);
    d = trap_details(258, 8);
    is_from_h1_to_h2(d + 2, d + 10);
    ck_assert_uint_eq(wire_get(d, 48, 32), 0x1234);
    ck_assert_uint_eq(p2->qkey_violations, 1);
    repress(smi);
    /* switches: out go only keys accepted by the other end */
    out_port->partition_enforce = PKEY_ENFORCE_OUT;
    out_port->pkeys[0] = 0x7fff;
    unheard(gsi, MAD_QKEY);
    d = trap_details(259, 2);
    is_from_h1_to_h2(d + 2, d + 8);
    ck_assert_uint_eq(wire_get(d, 0, 16), 0x3f);
    ck_assert_uint_eq(wire_get(d, 48, 16), 0x7fff);
    ck_assert_uint_eq(wire_get(d, 48 * 8, 16), 2);
    ck_assert_uint_eq(d[50], 1);
    ck_assert_uint_eq(out_port->count.xmit_constraint, 1);
    repress(smi);
    out_port->pkeys[0] = 0xffff;
    answered(gsi);
    /* and in come only keys allowed at the other end */
    in_port->partition_enforce = PKEY_ENFORCE_IN;
    in_port->pkeys[0] = 0x7fff;
    answered(gsi);
    p1->pkeys[0] = 0xffff;
    unheard(gsi, MAD_QKEY);
    d = trap_details(259, 1);
    ck_assert_uint_eq(in_port->count.rcv_constraint, 1);
    repress(smi);
}
END_TEST

START_TEST(bad_mkey)
{
    const uint8_t *d;
    uint32_t smi;

    configure();
    p2->sm_lid = 4;
    p2->mkey = 0x1234;
    ck_assert_int_eq(reg(u1, 0, CLASS_SMP_LID, 1, 0xa6, 0, &smi), 0);
    request(smi, 8, CLASS_SMP_LID, METHOD_SET, 0x15, 1);
    wire_put(out.mad, SMP_MKEY, 0x5678);
    ck_assert_int_eq(write_mad(u1, 256), 0);
    d = trap_details(256, 8);
    ck_assert_uint_eq(wire_get(d, 16, 16), 4);
    ck_assert_uint_eq(wire_get(d, 48, 8), METHOD_SET);
    ck_assert_uint_eq(wire_get(d, 64, 16), 0x15);
    ck_assert_uint_eq(wire_get(d, 80, 32), 1);
    ck_assert_uint_eq(wire_get(d, 112, 64), 0x5678);
    ck_assert_uint_eq(d[23], 0);
    repress(smi);
}
END_TEST

START_TEST(issm)
{
    uint32_t id;
    int a, b, c, e;
    struct sf_welcome w;

    configure();
    ck_assert_int_eq(reg(u2, 0, CLASS_SMP_LID, 1, 1 << METHOD_TRAP, 0, &id), 0);
    p1->sm_lid = 8;
    a = open_umad("h1", SF_CONN_ISSM, 0, &e);
    ck_assert_int_eq(e, 0);
    ck_assert(p1->cap_mask & 2);
    ck_assert_uint_eq(next(u2), 320);
    ck_assert_uint_eq(wire_get(in.mad + SMP_DATA, 32, 16), 144);
    ck_assert_uint_eq(wire_get(in.mad + SMP_DATA + 10, 48, 32), p1->cap_mask);
    close(open_umad("h1", SF_CONN_ISSM, SF_UMAD_NONBLOCK, &e));
    ck_assert_int_eq(e, EAGAIN);
    b = open_umad("h1", SF_CONN_ISSM, 0, &e);
    ck_assert_int_eq(e, -1); /* waits */
    c = open_umad("h1", SF_CONN_ISSM, 0, &e);
    ck_assert_int_eq(e, -1);
    close(b);
    mad_run(mad);
    close(a);
    mad_run(mad);
    ck_assert_int_eq(recv(c, &w, sizeof w, MSG_DONTWAIT), sizeof w);
    ck_assert_int_eq(w.error, 0);
    ck_assert(p1->cap_mask & 2);
    close(c);
    mad_run(mad);
    ck_assert(!(p1->cap_mask & 2));
    close(open_umad("h1", SF_CONN_ISSM, 1, &e));
    ck_assert_int_eq(e, ENODEV);
    close(open_umad("h9", SF_CONN_UMAD, 0, &e));
    ck_assert_int_eq(e, ENODEV);
}
END_TEST

/* A program that does not read delays no other program, loses nothing, and gets all data when reading again. */
START_TEST(slow_reader)
{
    uint32_t a, b;
    unsigned n = 0;

    configure();
    ck_assert_int_eq(reg(u1, 1, 0x0a, 1, 0, 0, &a), 0);
    ck_assert_int_eq(reg(u2, 1, 0x0a, 1, 1 << 3, 0, &b), 0);
    request(a, 8, 0x0a, 3, 1, 0);
    for (unsigned i = 0; i < 5000; i++) {
        wire_put(out.mad, MAD_MODIFIER, i);
        ck_assert_int_eq(write_mad(u1, 256), 0);
    }
    while (next(u2)) {
        ck_assert_uint_eq(wire_get(in.mad, MAD_MODIFIER), n);
        n++;
    }
    ck_assert_uint_eq(n, 5000);
}
END_TEST

/* Send out without waiting for an answer; counted: as the library does with a request. */
static void send_unasked(int u, struct umad_page *page, bool counted)
{
    struct umad_req req = {.op = UMAD_OP_WRITE, .bytes = 320, .flags = counted ? UMAD_REQ_COUNTED : 0};
    struct iovec iov[2] = {{&req, sizeof req}, {&out, 320}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

    if (counted)
        page->under_way[umad_under_way(out.hdr.id, out.mad)]++;
    ck_assert_int_eq(sendmsg(u, &msg, MSG_DONTWAIT), sizeof req + 320);
}

static unsigned sum_under_way(const struct umad_page *page)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < UMAD_UNDER_WAY; i++)
        sum += page->under_way[i];
    return sum;
}

/* A turn of the engine serves many datagrams, in order; the page shows the requests waiting for a response. */
START_TEST(without_answers)
{
    struct umad_page *page;
    int e, u = open_with_page("h1", SF_CONN_UMAD, 0, &e, &page);
    uint32_t smi, sa;

    ck_assert_ptr_nonnull(page);
    ck_assert_uint_eq(page->port, 1);
    ck_assert_uint_eq(page->hdr_bytes, UMAD_HDR_OLD);
    ck_assert_int_eq(reg(u, 0, CLASS_SMP_DR, 1, 0, 0, &smi), 0);
    ck_assert_int_eq(reg(u, 1, CLASS_SA, 2, 0, 1, &sa), 0);
    ck_assert_uint_eq(page->hdr_bytes, UMAD_HDR);
    ck_assert_uint_eq(page->agent[smi], UMAD_AGENT_PLAIN);
    ck_assert_uint_eq(page->agent[sa], UMAD_AGENT_RMPP);
    ck_assert_uint_eq(page->agent[2], UMAD_AGENT_NONE);
    directed(smi, 0, NULL);
    out.hdr.timeout_ms = 60000;
    for (unsigned i = 0; i < 100; i++) {
        wire_put(out.mad, MAD_TID, i);
        send_unasked(u, page, true);
    }
    ck_assert_uint_eq(sum_under_way(page), 100);
    for (unsigned i = 0; i < 100; i++) {
        ck_assert_uint_eq(next_within(u, 2000), 320);
        ck_assert_uint_eq(wire_get(in.mad, MAD_TID) & 0xffffffff, i);
        ck_assert_uint_eq(wire_get(in.mad, MAD_METHOD), METHOD_GET_RESP);
    }
    ck_assert_uint_eq(sum_under_way(page), 0);
    /* nobody answers these: each is counted, by whom ever, until the agent is gone */
    directed(smi, 1, (uint8_t[]){1});
    p1->phys_state = PHYS_POLLING;
    out.hdr.timeout_ms = 60000;
    wire_put(out.mad, MAD_TID, 7);
    send_unasked(u, page, true);
    mad_run(mad);
    ck_assert_uint_eq(sum_under_way(page), 1);
    ck_assert_uint_eq(page->under_way[umad_under_way(smi, out.mad)], 1);
    ck_assert_int_eq(write_mad(u, 256), EINVAL); /* the same again */
    ck_assert_uint_eq(sum_under_way(page), 1);
    wire_put(out.mad, MAD_TID, 8);
    ck_assert_int_eq(write_mad(u, 256), 0);
    ck_assert_uint_eq(sum_under_way(page), 2);
    /* a datagram refused by the engine, or without a response, is not counted for long */
    out.hdr.id = 31;
    send_unasked(u, page, true);
    out.hdr.id = smi;
    out.hdr.timeout_ms = 0;
    wire_put(out.mad, MAD_TID, 9);
    send_unasked(u, page, true);
    send_unasked(u, page, false);
    mad_run(mad);
    ck_assert_uint_eq(sum_under_way(page), 2);
    /* writes of a program to the page change nothing for the engine */
    memset(page, 0xa5, sizeof *page);
    ck_assert_int_eq(write_mad(u, 256), 0);
    ck_assert_int_eq(ask(u, UMAD_OP_UNREGISTER, &smi, sizeof smi, &(struct umad_rep){0}), 0);
    ck_assert_int_eq(write_mad(u, 256), EIO);
    ck_assert_uint_eq(page->agent[smi], UMAD_AGENT_NONE);
    close(u);
    mad_run(mad);
    ck_assert_uint_eq(page->closed, 1);
    munmap(page, sizeof *page);
}
END_TEST

/* Messages of a broken program: its connection ends, the engine lives. */
START_TEST(nonsense)
{
    struct umad_req req = {.op = UMAD_OP_WRITE, .bytes = 1u << 30};
    char byte;
    int e, u = open_umad("h1", SF_CONN_UMAD, 0, &e);

    ck_assert_int_eq(send(u, &req, sizeof req, 0), sizeof req);
    mad_run(mad);
    ck_assert_int_eq(recv(u, &byte, 1, MSG_DONTWAIT), 0);
    close(u);
    u = open_umad("h1", SF_CONN_UMAD, 0, &e);
    ck_assert_int_eq(send(u, "x", 1, 0), 1);
    mad_run(mad);
    ck_assert_int_eq(recv(u, &byte, 1, MSG_DONTWAIT), 0);
    close(u);
    u = open_umad("h1", SF_CONN_UMAD, 0, &e);
    req.flags = UMAD_REQ_MEMFD; /* without a memfd */
    ck_assert_int_eq(send(u, &req, sizeof req, 0), sizeof req);
    mad_run(mad);
    ck_assert_int_eq(recv(u, &byte, 1, MSG_DONTWAIT), 0);
    close(u);
    ck_assert_int_eq(reg(u1, 0, CLASS_SMP_LID, 1, 0, 0, NULL), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("mad");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, directed_routes);
    tcase_add_test(t, lid_then_directed);
    tcase_add_test(t, lid_routes);
    tcase_add_test(t, sawing_off_the_branch);
    tcase_add_test(t, time_out_and_retries);
    tcase_add_test(t, registration);
    tcase_add_test(t, bad_writes);
    tcase_add_test(t, requests_between_programs);
    tcase_add_test(t, traps);
    tcase_add_test(t, bad_keys);
    tcase_add_test(t, bad_mkey);
    tcase_add_test(t, issm);
    tcase_add_test(t, slow_reader);
    tcase_add_test(t, without_answers);
    tcase_add_test(t, nonsense);
    return check_run(t, NULL);
}
