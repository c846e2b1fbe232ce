/* SPDX-License-Identifier: BSD-3-Clause */
/* A device refuses, without harm, operations beyond its reported capabilities, and impossible operations. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "tests/verbs/suite.h"

static bool refused(int err)
{
    return err == EOPNOTSUPP || err == ENOSYS || err == EINVAL || err == EPERM;
}
/* A constructor that must fail. */
#define REFUSED(call, what)                                                                                            \
    do {                                                                                                               \
        errno = 0;                                                                                                     \
        CHECK(!(call), "%s was made", what);                                                                           \
        CHECK(refused(errno), "%s: errno %d", what, errno);                                                            \
    } while (0)

static void by_capability(struct side *s)
{
    struct ibv_device_attr_ex ex = {0};
    struct ibv_alloc_dm_attr dm = {.length = 4096};
    struct ibv_xrcd_init_attr xrcd = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
    uint8_t page[64];

    CHECK(!ibv_query_device_ex(s->ctx, NULL, &ex), "ibv_query_device_ex");
    CHECK_IS(ex.orig_attr.max_qp, s->attr.max_qp, "two ways to ask for max_qp");
    if (!ex.max_dm_size)
        REFUSED(ibv_alloc_dm(s->ctx, &dm), "device memory");
    if (!(s->attr.device_cap_flags & IBV_DEVICE_XRC))
        REFUSED(ibv_open_xrcd(s->ctx, &xrcd), "a domain of extended connections");
    if (!(ex.odp_caps.general_caps & IBV_ODP_SUPPORT)) {
        REFUSED(ibv_reg_mr(s->pd, page, sizeof page, IBV_ACCESS_ON_DEMAND), "a region on demand");
        REFUSED(ibv_reg_mr(s->pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND), "all memory on demand");
    }
    if (!ex.rss_caps.max_rwq_indirection_tables) {
        struct ibv_rwq_ind_table_init_attr t = {0};

        REFUSED(ibv_create_rwq_ind_table(s->ctx, &t), "a table of work queues");
    }
    if (!(s->attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING) && s->ctx->num_comp_vectors) {
        struct ibv_flow_attr flow = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof flow, .port = 1};
        struct end e;

        end_make(&e, s, NULL);
        REFUSED(ibv_create_flow(e.qp, &flow), "a flow");
    }
    if (!ex.raw_packet_caps) {
        struct ibv_cq *cq = ibv_create_cq(s->ctx, 4, NULL, NULL, 0);
        struct ibv_qp_init_attr init = {
            .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RAW_PACKET};

        REFUSED(ibv_create_qp(s->pd, &init), "a queue pair of raw packets");
    }
}

/* More than the device has. */
static void beyond_limits(struct side *s)
{
    struct ibv_cq *cq = ibv_create_cq(s->ctx, 4, NULL, NULL, 0);
    const struct ibv_qp_init_attr good = {.send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_qp_init_attr init = good;

    init.cap.max_send_wr = (uint32_t)s->attr.max_qp_wr + 1;
    CHECK(!ibv_create_qp(s->pd, &init), "too many requests");
    init = good;
    init.cap.max_recv_wr = (uint32_t)s->attr.max_qp_wr + 1;
    CHECK(!ibv_create_qp(s->pd, &init), "too many receive requests");
    init = good;
    init.cap.max_send_sge = (uint32_t)s->attr.max_sge + 1;
    CHECK(!ibv_create_qp(s->pd, &init), "too many elements");
    init = good;
    init.cap.max_inline_data = 1 << 20;
    CHECK(!ibv_create_qp(s->pd, &init), "a MiB of inline data");
    if (s->attr.max_srq) {
        struct ibv_srq_init_attr srq = {.attr = {.max_wr = (uint32_t)s->attr.max_srq_wr + 1, .max_sge = 1}};

        CHECK(!ibv_create_srq(s->pd, &srq), "too many requests to share");
    }
}

static void port_and_tables(struct side *s)
{
    struct ibv_port_attr port;
    union ibv_gid gid;
    __be16 pkey;

    CHECK(ibv_query_port(s->ctx, 0, &port), "port 0");
    CHECK(ibv_query_port(s->ctx, (uint8_t)(s->attr.phys_port_cnt + 1), &port), "a port too many");
    CHECK(ibv_query_gid(s->ctx, s->port_num, s->port.gid_tbl_len, &gid), "a GID too many");
    CHECK(ibv_query_pkey(s->ctx, s->port_num, s->port.pkey_tbl_len, &pkey), "a P_Key too many");
    CHECK(!ibv_query_pkey(s->ctx, s->port_num, 0, &pkey) && (be16toh(pkey) & 0x7fff), "the first P_Key is %#x",
          be16toh(pkey));
    CHECK(!ibv_query_gid(s->ctx, s->port_num, 0, &gid), "the first GID");
}

static const struct test_case cases[] = {
    {"by capability", by_capability, false},
    {"beyond the limits", beyond_limits, false},
    {"ports and tables", port_and_tables, false},
};
const struct theme theme_refusals = {"refusals", cases, COUNT(cases)};
