/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member of a multicast group on a simulated host, run by multicast.sh. It joins through the subnet administrator
 * (an MCMemberRecord by libibumad), attaches queue pairs, says that it is ready, sends if told to, and counts what each
 * queue pair gets until it is told to stop.
 *
 *   test_mcast DIR NAME [-j JOINSTATE] [-m MLID] [-k MGID] [-q QPS] [-d] [-n COUNT] [-p PKEY_INDEX] [-Q QKEY]
 *     -j  JoinState: 1 full member, 4 sends only; 0: does not ask, sends to MLID
 *     -d  detaches again before it says that it is ready
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEPTH     64
#define BUF       256
#define GRH_BYTES 40
#define QPS_MAX   8

struct member {
    const char *dir, *name;
    unsigned join, mlid, mgid, qps, count, pkey_index;
    uint32_t qkey;
    bool detach;
    union ibv_gid gid;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct ibv_cq *cq;
    struct ibv_qp *qp[QPS_MAX];
    uint8_t *mem;
    unsigned got[QPS_MAX], bad, sent;
};

static void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static void check(int err, const char *what)
{
    if (!err)
        return;
    errno = err < 0 ? errno : err;
    die(what);
}

/* ---- the subnet administrator ---------------------------------------------------------------------------------- */

#define SA_DATA 56
#define JOIN_COMPONENTS                                                                                                \
    (1ull << 0 | 1ull << 1 | 1ull << 2 | 1ull << 6 | 1ull << 7 | 1ull << 12 | 1ull << 13 | 1ull << 16)

static void put_be(uint8_t *at, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
}

static void fill_join(struct member *m, uint8_t *mad, uint16_t pkey)
{
    union ibv_gid own;

    check(ibv_query_gid(m->ctx, 1, 0, &own), "ibv_query_gid");
    put_be(mad, 0x01030202, 4); /* base version 1, class SA, version 2, Set */
    put_be(mad + 8, (uint64_t)getpid(), 8);
    put_be(mad + 16, 0x38, 2); /* MCMemberRecord */
    put_be(mad + 48, JOIN_COMPONENTS, 8);
    memcpy(mad + SA_DATA, m->gid.raw, 16);
    memcpy(mad + SA_DATA + 16, own.raw, 16);
    put_be(mad + SA_DATA + 32, m->qkey, 4);
    put_be(mad + SA_DATA + 40, pkey, 2);
    mad[SA_DATA + 48] = (uint8_t)m->join;
}

/* Join, and take the group's LID from the answer. */
static void join_group(struct member *m)
{
    struct ibv_port_attr port;
    uint16_t pkey;
    uint8_t *umad, *mad;
    int fd, agent, len = 256;

    check(ibv_query_port(m->ctx, 1, &port), "ibv_query_port");
    check(ibv_query_pkey(m->ctx, 1, (int)m->pkey_index, &pkey), "ibv_query_pkey");
    umad_init();
    fd = umad_open_port(ibv_get_device_name(m->ctx->device), 1);
    agent = fd < 0 ? -1 : umad_register(fd, 3, 2, 0, NULL);
    if (agent < 0)
        die("umad");
    umad = calloc(1, umad_size() + 256); /* opening decides about the size of the header */
    mad = umad_get_mad(umad);
    fill_join(m, mad, be16toh(pkey));
    umad_set_addr(umad, port.sm_lid, 1, port.sm_sl, 0x80010000);
    check(umad_send(fd, agent, umad, 256, 1000, 3), "umad_send");
    errno = 0;
    if (umad_recv(fd, umad, &len, 10000) < 0 || (errno = umad_status(umad)))
        die("no answer from the subnet administrator");
    if (mad[4] || mad[5]) {
        fprintf(stderr, "join refused: MAD status 0x%02x%02x\n", mad[4], mad[5]);
        exit(1);
    }
    m->mlid = (unsigned)mad[SA_DATA + 36] << 8 | mad[SA_DATA + 37];
    umad_close_port(fd);
    free(umad);
}

/* ---- verbs ----------------------------------------------------------------------------------------------------- */

static void post_receive(struct member *m, unsigned q, unsigned slot)
{
    struct ibv_sge sge = {(uintptr_t)(m->mem + (q * DEPTH + slot) * BUF), BUF, m->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = q * DEPTH + slot, .sg_list = &sge, .num_sge = 1}, *bad;

    check(ibv_post_recv(m->qp[q], &wr, &bad), "ibv_post_recv");
}

static void make_qp(struct member *m, unsigned q)
{
    struct ibv_qp_init_attr init = {
        .send_cq = m->cq, .recv_cq = m->cq, .qp_type = IBV_QPT_UD, .cap = {DEPTH, DEPTH, 1, 1, 0}};
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .pkey_index = (uint16_t)m->pkey_index, .port_num = 1, .qkey = m->qkey};

    m->qp[q] = ibv_create_qp(m->pd, &init);
    if (!m->qp[q])
        die("ibv_create_qp");
    check(ibv_modify_qp(m->qp[q], &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), "INIT");
    a.qp_state = IBV_QPS_RTR;
    check(ibv_modify_qp(m->qp[q], &a, IBV_QP_STATE), "RTR");
    a.qp_state = IBV_QPS_RTS;
    check(ibv_modify_qp(m->qp[q], &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
    for (unsigned i = 0; i < DEPTH; i++)
        post_receive(m, q, i);
}

static void open_device(struct member *m)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    size_t bytes = QPS_MAX * DEPTH * BUF + BUF;

    m->ctx = list && *list ? ibv_open_device(*list) : NULL;
    if (!m->ctx)
        die("no device");
    ibv_free_device_list(list);
    m->pd = ibv_alloc_pd(m->ctx);
    m->cq = ibv_create_cq(m->ctx, QPS_MAX * DEPTH + DEPTH, NULL, NULL, 0);
    m->mem = calloc(1, bytes);
    m->mr = m->pd ? ibv_reg_mr(m->pd, m->mem, bytes, IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (!m->mr || !m->cq)
        die("verbs");
}

/* To attach twice is to attach once; what is attached cannot be destroyed, what is not cannot be detached. */
static void attach(struct member *m)
{
    union ibv_gid other = m->gid;

    other.raw[14] ^= 1;
    for (unsigned q = 0; q < m->qps; q++) {
        check(ibv_attach_mcast(m->qp[q], &m->gid, (uint16_t)m->mlid), "ibv_attach_mcast");
        check(ibv_attach_mcast(m->qp[q], &m->gid, (uint16_t)m->mlid), "ibv_attach_mcast again");
        if (ibv_destroy_qp(m->qp[q]) != EBUSY || ibv_detach_mcast(m->qp[q], &other, (uint16_t)m->mlid) != EINVAL ||
            ibv_attach_mcast(m->qp[q], &m->gid, 0xffff) != EINVAL || ibv_attach_mcast(m->qp[q], &m->gid, 1) != EINVAL) {
            fprintf(stderr, "wrong errors of attaching\n");
            exit(1);
        }
        if (!m->detach)
            continue;
        check(ibv_detach_mcast(m->qp[q], &m->gid, (uint16_t)m->mlid), "ibv_detach_mcast");
        if (ibv_detach_mcast(m->qp[q], &m->gid, (uint16_t)m->mlid) != EINVAL) {
            fprintf(stderr, "detached twice\n");
            exit(1);
        }
    }
}

static void take(struct member *m, const struct ibv_wc *wc)
{
    unsigned q = (unsigned)wc->wr_id / DEPTH;
    const uint8_t *buf = m->mem + wc->wr_id * BUF;

    if (wc->status) {
        fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc->status));
        exit(1);
    }
    if (wc->opcode == IBV_WC_SEND) {
        m->sent++;
        return;
    }
    /* the group's address in the GRH, messages in order, whole */
    if (!(wc->wc_flags & IBV_WC_GRH) || memcmp(buf + 24, m->gid.raw, 16) || buf[GRH_BYTES] != (uint8_t)m->got[q] ||
        wc->byte_len != GRH_BYTES + 100)
        m->bad++;
    m->got[q]++;
    post_receive(m, q, (unsigned)wc->wr_id % DEPTH);
}

static bool exists(const struct member *m, const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", m->dir, name);
    return access(path, F_OK) == 0;
}

static void say(const struct member *m, const char *what)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s.%s", m->dir, m->name, what);
    close(open(path, O_CREAT | O_WRONLY, 0600));
}

static void poll_once(struct member *m)
{
    struct ibv_wc wc[16];
    int n = ibv_poll_cq(m->cq, 16, wc);

    for (int i = 0; i < n; i++)
        take(m, &wc[i]);
}

static void send_all(struct member *m)
{
    uint8_t *buf = m->mem + QPS_MAX * DEPTH * BUF;
    struct ibv_ah_attr attr = {
        .dlid = (uint16_t)m->mlid, .is_global = 1, .port_num = 1, .grh = {.dgid = m->gid, .hop_limit = 1}};
    struct ibv_ah *ah = ibv_create_ah(m->pd, &attr);
    struct ibv_sge sge = {(uintptr_t)buf, 100, m->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;

    if (!ah)
        die("ibv_create_ah");
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = 0xffffff;
    wr.wr.ud.remote_qkey = m->qkey;
    for (unsigned i = 0; i < m->count; i++) {
        buf[0] = (uint8_t)i;
        check(ibv_post_send(m->qp[0], &wr, &bad), "ibv_post_send");
        while (m->sent <= i)
            poll_once(m);
    }
    say(m, "sent");
}

static uint64_t now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000;
}

static void options(struct member *m, int argc, char **argv)
{
    int o;

    *m = (struct member){.qps = 1, .join = 1, .mgid = 1, .qkey = 0x1ee7, .dir = argv[1], .name = argv[2]};
    optind = 3;
    while ((o = getopt(argc, argv, "j:m:k:q:n:p:Q:d")) != -1) {
        unsigned v = optarg ? (unsigned)strtoul(optarg, NULL, 0) : 0;

        switch (o) {
        case 'j':
            m->join = v;
            break;
        case 'm':
            m->mlid = v;
            break;
        case 'k':
            m->mgid = v;
            break;
        case 'q':
            m->qps = v < QPS_MAX ? v : QPS_MAX;
            break;
        case 'n':
            m->count = v;
            break;
        case 'p':
            m->pkey_index = v;
            break;
        case 'Q':
            m->qkey = v;
            break;
        case 'd':
            m->detach = true;
            break;
        default:
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    struct member m;
    uint64_t end;

    if (argc < 3) {
        fprintf(stderr, "usage: test_mcast DIR NAME [OPTION...]\n");
        return 2;
    }
    options(&m, argc, argv);
    m.gid.raw[0] = 0xff;
    m.gid.raw[1] = 0x12; /* transient, of this subnet */
    m.gid.raw[15] = (uint8_t)m.mgid;
    open_device(&m);
    if (m.join)
        join_group(&m);
    for (unsigned q = 0; q < m.qps || q == 0; q++)
        make_qp(&m, q);
    attach(&m);
    say(&m, "ready");
    while (m.count && !exists(&m, "go"))
        usleep(1000);
    if (m.count)
        send_all(&m);
    while (!exists(&m, "stop"))
        poll_once(&m);
    for (end = now_us() + 1000; now_us() < end;) /* what is under way arrives */
        poll_once(&m);
    printf("%s mlid 0x%x sent %u bad %u got", m.name, m.mlid, m.sent, m.bad);
    for (unsigned q = 0; q < m.qps; q++)
        printf(" %u", m.got[q]);
    printf("\n");
    return m.bad != 0; /* leaves with everything attached: the engine cleans up */
}
