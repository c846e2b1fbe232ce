/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits for a completion that never comes, until the engine is killed; then prints the results of verbs. For
 * lifecycle.sh.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    struct ibv_cq *cq = ctx ? ibv_create_cq(ctx, 10, NULL, NULL, 0) : NULL;
    struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
    struct ibv_qp_init_attr init = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_UD,
                                    .cap = {.max_recv_wr = 4, .max_recv_sge = 1, .max_send_wr = 1, .max_send_sge = 1}};
    struct ibv_qp *qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
    struct ibv_qp_attr to_init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_recv_wr wr = {0}, *bad;
    struct ibv_async_event ev;
    struct ibv_wc wc;
    int n;

    if (!qp || ibv_modify_qp(qp, &to_init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY))
        return 1;
    setvbuf(stdout, NULL, _IONBF, 0);
    puts("waiting");
    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    printf("poll: %s\n", n < 0 ? "failed" : "a completion from nowhere");
    printf("post: %s\n", strerror(ibv_post_recv(qp, &wr, &bad)));
    printf("event: %s\n", ibv_get_async_event(ctx, &ev) ? "none" : ibv_event_type_str(ev.event_type));
    return 0;
}
