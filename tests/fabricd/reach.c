/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests whether a datagram reaches a queue pair of another partition.
 *
 *   reach listen KEY              a UD queue pair in the partition; prints "LID QPN", then the sender's numbers as they
 *                                 come, until it is killed
 *   reach send LID QPN KEY N      one datagram there, with the number N, from a queue pair in this partition
 *
 * At the first port of the first adapter. Exit status 3: the port is not in the partition.
 */
#include <infiniband/verbs.h>

#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRH = 40, ROOM = 16, QKEY = 0x1234 };

static struct {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint32_t data[ROOM][64];
} s;

static void need(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "reach: %s failed\n", what);
    exit(1);
}

static int index_of(unsigned key)
{
    struct ibv_device_attr a;
    need(!ibv_query_device(s.context, &a), "ibv_query_device");
    for (int i = 0; i < a.max_pkeys; i++) {
        __be16 found;
        if (!ibv_query_pkey(s.context, 1, i, &found) && be16toh(found) == key)
            return i;
    }
    fprintf(stderr, "reach: the port is not in the partition 0x%04x\n", key);
    exit(3);
}

static void open_queue_pair(unsigned key)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    need(list && *list && (s.context = ibv_open_device(*list)), "ibv_open_device");
    need((s.channel = ibv_create_comp_channel(s.context)) != NULL, "ibv_create_comp_channel");
    need((s.pd = ibv_alloc_pd(s.context)) && (s.cq = ibv_create_cq(s.context, ROOM, NULL, s.channel, 0)),
         "ibv_create_cq");
    need((s.mr = ibv_reg_mr(s.pd, s.data, sizeof(s.data), IBV_ACCESS_LOCAL_WRITE)) != NULL, "ibv_reg_mr");
    struct ibv_qp_init_attr init = {
        .send_cq = s.cq,
        .recv_cq = s.cq,
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = 1, .max_recv_wr = ROOM, .max_send_sge = 1, .max_recv_sge = 1}};
    need((s.qp = ibv_create_qp(s.pd, &init)) != NULL, "ibv_create_qp");
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY, .pkey_index = (uint16_t)index_of(key)};
    need(!ibv_modify_qp(s.qp, &a, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_PKEY_INDEX), "INIT");
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR};
    need(!ibv_modify_qp(s.qp, &a, IBV_QP_STATE), "RTR");
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS};
    need(!ibv_modify_qp(s.qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
}

/* Sleeps until an event comes: naps between polls would end at once on a simulated host, again and again. */
static struct ibv_wc completion(void)
{
    struct ibv_wc wc;
    struct ibv_cq *cq;
    void *context;
    while (!ibv_poll_cq(s.cq, 1, &wc)) {
        need(!ibv_req_notify_cq(s.cq, 0), "ibv_req_notify_cq");
        if (ibv_poll_cq(s.cq, 1, &wc))
            break;
        need(!ibv_get_cq_event(s.channel, &cq, &context), "ibv_get_cq_event");
        ibv_ack_cq_events(cq, 1);
    }
    need(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
    return wc;
}

static void listen_for_all(void)
{
    struct ibv_port_attr port;
    struct ibv_recv_wr *bad;
    for (uint64_t i = 0; i < ROOM; i++) {
        struct ibv_sge to = {(uintptr_t)s.data[i], sizeof(s.data[i]), s.mr->lkey};
        need(!ibv_post_recv(s.qp, &(struct ibv_recv_wr){.wr_id = i, .sg_list = &to, .num_sge = 1}, &bad),
             "ibv_post_recv");
    }
    need(!ibv_query_port(s.context, 1, &port), "ibv_query_port");
    printf("%u %u\n", port.lid, s.qp->qp_num);
    fflush(stdout);
    for (unsigned i = 0; i < ROOM; i++) {
        struct ibv_wc wc = completion();
        printf("%u\n", s.data[wc.wr_id][GRH / 4]);
        fflush(stdout);
    }
}

static void send_one(uint16_t lid, uint32_t qpn, uint32_t number)
{
    struct ibv_ah_attr to = {.dlid = lid, .port_num = 1};
    struct ibv_sge from = {(uintptr_t)s.data, 4, s.mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &from, .num_sge = 1};
    struct ibv_send_wr *bad;
    s.data[0][0] = number;
    wr.wr.ud.ah = ibv_create_ah(s.pd, &to);
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = QKEY;
    need(wr.wr.ud.ah && !ibv_post_send(s.qp, &wr, &bad), "ibv_post_send");
    completion();
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "listen")) {
        open_queue_pair((unsigned)strtoul(argv[2], NULL, 0));
        listen_for_all();
    } else if (argc == 6 && !strcmp(argv[1], "send")) {
        open_queue_pair((unsigned)strtoul(argv[4], NULL, 0));
        send_one((uint16_t)atoi(argv[2]), (uint32_t)strtoul(argv[3], NULL, 0), (uint32_t)strtoul(argv[5], NULL, 0));
    } else {
        fprintf(stderr, "usage: reach listen KEY | reach send LID QPN KEY N\n");
        return 2;
    }
    return 0;
}
