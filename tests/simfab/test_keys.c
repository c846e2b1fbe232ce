/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One message between two simulated hosts with keys of their choice, run by partitions.sh: the program shows whether
 * the message arrives.
 *
 *   test_keys DIR listen TYPE PKEY_INDEX QKEY    TYPE: rc uc ud; prints "got N" when DIR/done is there
 *   test_keys DIR send TYPE PKEY_INDEX QKEY      prints the status of its completion
 *
 * The two find each other through files in DIR.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BYTES     64
#define GRH_BYTES 40

struct side {
    const char *dir;
    bool sends;
    enum ibv_qp_type type;
    uint16_t pkey_index;
    uint32_t qkey;
    unsigned peer_lid, peer_qpn;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char buf[BYTES + GRH_BYTES];
};

static void check(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static void make(struct side *s)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_qp_init_attr init = {.qp_type = s->type, .cap = {4, 4, 1, 1, 0}, .sq_sig_all = 1};
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .pkey_index = s->pkey_index, .port_num = 1, .qkey = s->qkey};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

    check(list && *list && (s->ctx = ibv_open_device(*list)), "device");
    ibv_free_device_list(list);
    s->pd = ibv_alloc_pd(s->ctx);
    init.send_cq = init.recv_cq = s->cq = ibv_create_cq(s->ctx, 16, NULL, NULL, 0);
    s->qp = ibv_create_qp(s->pd, &init);
    s->mr = ibv_reg_mr(s->pd, s->buf, sizeof s->buf, IBV_ACCESS_LOCAL_WRITE);
    check(s->qp && s->mr, "verbs");
    check(ibv_modify_qp(s->qp, &a, mask | (s->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) == 0, "INIT");
}

/* Write one's own address, wait for the other's. */
static void meet(struct side *s)
{
    struct ibv_port_attr port;
    char own[512], other[512], temp[600];
    FILE *f;

    check(ibv_query_port(s->ctx, 1, &port) == 0, "ibv_query_port");
    snprintf(own, sizeof own, "%s/%s", s->dir, s->sends ? "send" : "listen");
    snprintf(other, sizeof other, "%s/%s", s->dir, s->sends ? "listen" : "send");
    snprintf(temp, sizeof temp, "%s.new", own);
    f = fopen(temp, "w");
    check(f != NULL, temp);
    fprintf(f, "%u %u\n", port.lid, s->qp->qp_num);
    fclose(f);
    check(rename(temp, own) == 0, own);
    while (!(f = fopen(other, "r")))
        usleep(1000);
    check(fscanf(f, "%u %u", &s->peer_lid, &s->peer_qpn) == 2, other);
    fclose(f);
}

static void connect_qp(struct side *s)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = IBV_MTU_1024,
                            .dest_qp_num = s->peer_qpn,
                            .max_dest_rd_atomic = 1,
                            .min_rnr_timer = 1,
                            .ah_attr = {.dlid = (uint16_t)s->peer_lid, .port_num = 1},
                            .timeout = 8,
                            .retry_cnt = 1,
                            .max_rd_atomic = 1};
    int rtr = IBV_QP_STATE, rts = IBV_QP_STATE | IBV_QP_SQ_PSN;

    if (s->type != IBV_QPT_UD)
        rtr |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (s->type == IBV_QPT_RC) {
        rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    check(ibv_modify_qp(s->qp, &a, rtr) == 0, "RTR");
    a.qp_state = IBV_QPS_RTS;
    check(ibv_modify_qp(s->qp, &a, rts) == 0, "RTS");
}

static void wait_for(const struct side *s, const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    while (access(path, F_OK))
        usleep(1000);
}

static void say(const struct side *s, const char *name)
{
    char path[512];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", s->dir, name);
    f = fopen(path, "w");
    check(f != NULL, path);
    fclose(f);
}

static void send_one(struct side *s)
{
    struct ibv_ah_attr attr = {.dlid = (uint16_t)s->peer_lid, .port_num = 1};
    struct ibv_sge sge = {(uintptr_t)s->buf, BYTES, s->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    struct ibv_wc wc;

    if (s->type == IBV_QPT_UD) {
        wr.wr.ud.ah = ibv_create_ah(s->pd, &attr);
        wr.wr.ud.remote_qpn = s->peer_qpn;
        wr.wr.ud.remote_qkey = s->qkey;
        check(wr.wr.ud.ah != NULL, "ibv_create_ah");
    }
    wait_for(s, "ready");
    check(ibv_post_send(s->qp, &wr, &bad) == 0, "ibv_post_send");
    while (ibv_poll_cq(s->cq, 1, &wc) == 0)
        ;
    printf("sent: %s\n", ibv_wc_status_str(wc.status));
    say(s, "done");
}

static void receive(struct side *s)
{
    struct ibv_sge sge = {(uintptr_t)s->buf, sizeof s->buf, s->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_wc wc;
    unsigned got = 0;

    check(ibv_post_recv(s->qp, &wr, &bad) == 0, "ibv_post_recv");
    say(s, "ready");
    wait_for(s, "done");
    usleep(10000); /* packets under way arrive */
    while (ibv_poll_cq(s->cq, 1, &wc) == 1)
        got += wc.status == IBV_WC_SUCCESS;
    printf("got %u\n", got);
}

int main(int argc, char **argv)
{
    struct side s = {0};

    if (argc != 6) {
        fprintf(stderr, "usage: test_keys DIR listen|send rc|uc|ud PKEY_INDEX QKEY\n");
        return 2;
    }
    s.dir = argv[1];
    s.sends = !strcmp(argv[2], "send");
    s.type = !strcmp(argv[3], "rc") ? IBV_QPT_RC : !strcmp(argv[3], "uc") ? IBV_QPT_UC : IBV_QPT_UD;
    s.pkey_index = (uint16_t)strtoul(argv[4], NULL, 0);
    s.qkey = (uint32_t)strtoul(argv[5], NULL, 0);
    make(&s);
    meet(&s);
    connect_qp(&s);
    if (s.sends)
        send_one(&s);
    else
        receive(&s);
    return 0;
}
