/* SPDX-License-Identifier: BSD-3-Clause */
/* Control verbs: one handler per request, in a table with the least size of the body. */
#include "simfab/engine/client/request.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/client/command.h"
#include "simfab/engine/client/destroy.h"
#include "simfab/engine/client/request_mem.h"
#include "simfab/engine/clock/alarm.h"
#include "simfab/engine/clock/call.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/tsc.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/cq.h"
#include "simfab/engine/hca/event_pipe.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/mcast_group.h"
#include "simfab/engine/hca/object.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/engine/hca/qp_make.h"
#include "simfab/engine/hca/qp_state.h"
#include "simfab/engine/hca/rq.h"
#include "simfab/proto.h"

static struct port *port_of(struct ctx *ctx, uint32_t num)
{
    return num >= 1 && num <= ctx->hca->node->num_ports ? &ctx->hca->node->ports[num] : NULL;
}

/* ---- devices --------------------------------------------------------------------------------------------------- */

static int do_devices(struct call *c)
{
    struct host *h = c->p->host;

    call_put32(c, h->num_cas);
    for (uint32_t i = 0; i < h->num_cas; i++) {
        struct node *n = h->cas[i];
        struct sf_device d = {.node_guid = n->node_guid, .sys_guid = n->sys_guid, .ports = n->num_ports, .index = i};

        snprintf(d.name, sizeof d.name, "%s", n->dev_name);
        call_put(c, &d, sizeof d);
    }
    return 0;
}

static int do_open(struct call *c)
{
    struct host *h = c->p->host;
    uint32_t i = call_arg(c, 0);
    struct ctx *ctx;
    int err;

    if (i >= h->num_cas)
        return ENODEV;
    ctx = xcalloc(1, sizeof *ctx);
    err = event_pipe_make(&ctx->events, &c->fd);
    if (err) {
        free(ctx);
        return err;
    }
    ctx->hca = h->cas[i]->hca;
    object_add(c->p, NULL, OBJ_CTX, &ctx->obj);
    ctx->obj.ctx = ctx;
    ctx->next = ctx->hca->contexts;
    ctx->hca->contexts = ctx;
    call_put32(c, ctx->obj.handle);
    return 0;
}

static int do_query_device(struct call *c)
{
    struct ctx *ctx = object_find(c->p, call_arg(c, 0), OBJ_CTX);
    const struct model *m = c->p->sim->model;
    struct node *n;
    struct ibv_device_attr a = {0};
    struct ibv_odp_caps odp = {0};

    if (!ctx)
        return EINVAL;
    n = ctx->hca->node;
    snprintf(a.fw_ver, sizeof a.fw_ver, "%s", m->fw_ver);
    a.node_guid = htobe64(n->node_guid);
    a.sys_image_guid = htobe64(n->sys_guid);
    a.max_mr_size = UINT64_MAX;
    a.page_size_cap = 0xfffffffffffff000ull;
    a.vendor_id = n->vendor;
    a.vendor_part_id = m->vendor_part_id;
    a.hw_ver = n->revision;
    a.max_qp = (int)m->max_qp;
    a.max_qp_wr = (int)m->max_qp_wr;
    a.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_AUTO_PATH_MIG | IBV_DEVICE_PORT_ACTIVE_EVENT |
                         IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
                         IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_MEM_WINDOW |
                         IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
    a.max_sge = (int)m->max_sge;
    a.max_sge_rd = (int)m->max_sge;
    a.max_cq = (int)m->max_cq;
    a.max_cqe = (int)m->max_cqe;
    a.max_mr = a.max_mw = (int)m->max_mr;
    a.max_pd = 1 << 16;
    a.max_qp_rd_atom = a.max_qp_init_rd_atom = (int)m->max_rd_atomic;
    a.max_res_rd_atom = (int)m->max_rd_atomic << 16;
    a.atomic_cap = IBV_ATOMIC_HCA;
    a.max_ah = 1 << 20;
    a.max_srq = 1 << 16;
    a.max_srq_wr = (int)m->max_srq_wr;
    a.max_srq_sge = (int)m->max_sge;
    a.max_mcast_grp = MCAST_GROUPS_MAX;
    a.max_mcast_qp_attach = MCAST_QPS_MAX;
    a.max_total_mcast_qp_attach = MCAST_GROUPS_MAX * MCAST_QPS_MAX;
    a.max_pkeys = FABRIC_PKEYS;
    a.local_ca_ack_delay = 15;
    a.phys_port_cnt = (uint8_t)n->num_ports;
    if (m->odp) {
        odp.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
        odp.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
                                             IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
        odp.per_transport_caps.ud_odp_caps = IBV_ODP_SUPPORT_SEND;
    }
    call_put(c, &a, sizeof a);
    call_put(c, &odp, sizeof odp);
    return 0;
}

/* The speed as ibv_port_attr has it: 1 SDR, 2 DDR, 4 QDR, 8 FDR10, 16 FDR, 32 EDR, 64 HDR, 128 NDR. */
static uint8_t verbs_speed(const struct port *p)
{
    if (p->fdr10_active)
        return 8;
    return p->ext_speed_active ? (uint8_t)(p->ext_speed_active << 4) : p->speed_active;
}

static int do_query_port(struct call *c)
{
    struct ctx *ctx = object_find(c->p, call_arg(c, 0), OBJ_CTX);
    struct port *p = ctx ? port_of(ctx, call_arg(c, 1)) : NULL;
    struct ibv_port_attr a = {0};

    if (!p)
        return EINVAL;
    a.state = (enum ibv_port_state)p->state;
    a.max_mtu = (enum ibv_mtu)p->mtu_cap;
    a.active_mtu = (enum ibv_mtu)(p->mtu_neighbor ? p->mtu_neighbor : p->mtu_cap);
    a.gid_tbl_len = FABRIC_GUIDS;
    a.port_cap_flags = p->cap_mask;
    a.max_msg_sz = 1u << 31;
    a.bad_pkey_cntr = p->pkey_violations;
    a.qkey_viol_cntr = p->qkey_violations;
    a.pkey_tbl_len = FABRIC_PKEYS;
    a.lid = p->lid;
    a.sm_lid = p->sm_lid;
    a.lmc = p->lmc;
    a.max_vl_num = p->vl_cap;
    a.sm_sl = p->sm_sl;
    a.subnet_timeout = p->subnet_timeout;
    a.active_width = p->width_active;
    a.active_speed = verbs_speed(p);
    a.phys_state = p->phys_state;
    a.link_layer = IBV_LINK_LAYER_INFINIBAND;
    call_put(c, &a, sizeof a);
    return 0;
}

static int do_query_gid(struct call *c)
{
    struct ctx *ctx = object_find(c->p, call_arg(c, 0), OBJ_CTX);
    struct port *p = ctx ? port_of(ctx, call_arg(c, 1)) : NULL;
    uint32_t i = call_arg(c, 2);
    uint64_t gid[2];

    if (!p || i >= FABRIC_GUIDS)
        return EINVAL;
    gid[0] = htobe64(p->gid_prefix);
    gid[1] = htobe64(i ? p->guids[i] : p->guid);
    call_put(c, gid, sizeof gid);
    return 0;
}

static int do_query_pkeys(struct call *c)
{
    struct ctx *ctx = object_find(c->p, call_arg(c, 0), OBJ_CTX);
    struct port *p = ctx ? port_of(ctx, call_arg(c, 1)) : NULL;
    uint16_t pkey[SF_PKEYS];

    _Static_assert(SF_PKEYS == FABRIC_PKEYS, "the table is told as it is");
    if (!p)
        return EINVAL;
    for (uint32_t i = 0; i < SF_PKEYS; i++)
        pkey[i] = htobe16(p->pkeys[i]);
    call_put(c, pkey, sizeof pkey);
    return 0;
}

/* ---- completion queues ----------------------------------------------------------------------------------------- */

static int do_create_channel(struct call *c)
{
    struct ctx *ctx = object_find(c->p, call_arg(c, 0), OBJ_CTX);
    struct channel *ch;
    int err;

    if (!ctx)
        return EINVAL;
    ch = xcalloc(1, sizeof *ch);
    err = event_pipe_make(&ch->events, &c->fd);
    if (err) {
        free(ch);
        return err;
    }
    call_put32(c, object_add(c->p, ctx, OBJ_CHANNEL, &ch->obj));
    return 0;
}

static void put_cq(struct call *c, const struct cq *cq)
{
    call_put32(c, cq->obj.handle);
    call_put32(c, cq->offset);
    call_put32(c, cq->cqe);
}

static int do_create_cq(struct call *c)
{
    struct sf_create_cq r;
    struct ctx *ctx;
    struct channel *ch = NULL;
    struct cq *cq;
    int err;

    memcpy(&r, c->body, sizeof r);
    ctx = object_find(c->p, r.ctx, OBJ_CTX);
    if (!ctx || (r.channel && !(ch = object_find(c->p, r.channel, OBJ_CHANNEL))))
        return EINVAL;
    err = cq_create(ctx, &r, ch, &cq);
    if (!err)
        put_cq(c, cq);
    return err;
}

static int do_resize_cq(struct call *c)
{
    struct cq *cq = object_find(c->p, call_arg(c, 0), OBJ_CQ);
    int err = cq ? cq_resize(cq, call_arg(c, 1)) : EINVAL;

    if (!err)
        put_cq(c, cq);
    return err;
}

static int do_modify_cq(struct call *c)
{
    struct cq *cq = object_find(c->p, call_arg(c, 0), OBJ_CQ);

    if (!cq || call_arg(c, 1) > UINT16_MAX || call_arg(c, 2) > UINT16_MAX)
        return EINVAL;
    cq_moderate(cq, call_arg(c, 1), call_arg(c, 2));
    return 0;
}

/* ---- receive queues -------------------------------------------------------------------------------------------- */

static int do_create_srq(struct call *c)
{
    const struct model *m = c->p->sim->model;
    struct sf_create_srq r;
    struct pd *pd;
    struct srq *srq;

    memcpy(&r, c->body, sizeof r);
    pd = object_find(c->p, r.pd, OBJ_PD);
    if (!pd || !r.max_wr || r.max_wr > m->max_srq_wr || r.max_sge > m->max_sge)
        return EINVAL;
    srq = xcalloc(1, sizeof *srq);
    srq->pd = pd;
    srq->cookie = r.cookie;
    rq_init(&srq->rq, r.max_wr, r.max_sge ? r.max_sge : 1);
    pd->obj.uses++;
    call_put32(c, object_add(c->p, pd->obj.ctx, OBJ_SRQ, &srq->obj));
    call_put32(c, srq->rq.cap);
    call_put32(c, srq->rq.max_sge);
    return 0;
}

static int do_modify_srq(struct call *c)
{
    struct srq *srq = object_find(c->p, call_arg(c, 0), OBJ_SRQ);
    int mask = (int)call_arg(c, 1);
    struct ibv_srq_attr a;

    memcpy(&a, c->body + 8, sizeof a);
    if (!srq || (mask & ~(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR)))
        return EINVAL;
    if ((mask & IBV_SRQ_LIMIT) && a.srq_limit > (mask & IBV_SRQ_MAX_WR ? a.max_wr : srq->rq.cap))
        return EINVAL;
    if (mask & IBV_SRQ_MAX_WR) {
        int err = rq_resize(&srq->rq, a.max_wr, c->p->sim->model->max_srq_wr);

        if (err)
            return err;
    }
    if (mask & IBV_SRQ_LIMIT) {
        srq->limit = a.srq_limit;
        srq_check_limit(srq);
    }
    return 0;
}

static int do_query_srq(struct call *c)
{
    struct srq *srq = object_find(c->p, call_arg(c, 0), OBJ_SRQ);
    struct ibv_srq_attr a;

    if (!srq)
        return EINVAL;
    a = (struct ibv_srq_attr){srq->rq.cap, srq->rq.max_sge, srq->limit};
    call_put(c, &a, sizeof a);
    return 0;
}

/* ---- queue pairs ----------------------------------------------------------------------------------------------- */

static int do_create_qp(struct call *c)
{
    struct sf_create_qp r;
    struct pd *pd;
    struct cq *scq, *rcq;
    struct srq *srq = NULL;
    struct qp *qp;
    struct sf_created_qp rep = {0};
    int err;

    memcpy(&r, c->body, sizeof r);
    pd = object_find(c->p, r.pd, OBJ_PD);
    scq = object_find(c->p, r.send_cq, OBJ_CQ);
    rcq = object_find(c->p, r.recv_cq, OBJ_CQ);
    if (r.srq)
        srq = object_find(c->p, r.srq, OBJ_SRQ);
    if (!pd || !scq || !rcq || (r.srq && !srq) || scq->obj.ctx != pd->obj.ctx || rcq->obj.ctx != pd->obj.ctx ||
        (srq && srq->obj.ctx != pd->obj.ctx))
        return EINVAL;
    err = qp_create(pd->obj.ctx, &r, pd, scq, rcq, srq, &qp);
    if (err)
        return err;
    rep.qp = qp->obj.handle;
    rep.qpn = qp->qpn;
    rep.max_send_wr = qp->cap.max_send_wr;
    rep.max_recv_wr = qp->cap.max_recv_wr;
    rep.max_send_sge = qp->cap.max_send_sge;
    rep.max_recv_sge = qp->cap.max_recv_sge;
    rep.max_inline = qp->cap.max_inline_data;
    call_put(c, &rep, sizeof rep);
    return 0;
}

static int do_modify_qp(struct call *c)
{
    struct qp *qp = object_find(c->p, call_arg(c, 0), OBJ_QP);
    struct ibv_qp_attr a;

    memcpy(&a, c->body + 8, sizeof a);
    return qp ? qp_modify(qp, (int)call_arg(c, 1), &a) : EINVAL;
}

static int do_query_qp(struct call *c)
{
    struct qp *qp = object_find(c->p, call_arg(c, 0), OBJ_QP);
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr init;

    if (!qp)
        return EINVAL;
    qp_query(qp, &a, &init);
    call_put(c, &a, sizeof a);
    call_put(c, &init, sizeof init);
    return 0;
}

static int do_create_ah(struct call *c)
{
    struct pd *pd = object_find(c->p, call_arg(c, 0), OBJ_PD);
    struct ibv_ah_attr attr;
    struct ah *ah;

    if (!pd)
        return EINVAL;
    memcpy(&attr, c->body + 8, sizeof attr); /* aligned, as a C structure */
    if (!ah_attr_valid(pd->obj.ctx->hca, &attr))
        return EINVAL;
    ah = xcalloc(1, sizeof *ah);
    ah->attr = attr;
    ah->pd = pd;
    pd->obj.uses++;
    call_put32(c, object_add(c->p, pd->obj.ctx, OBJ_AH, &ah->obj));
    return 0;
}

#define MCAST_BODY 22 /* queue pair, LID, GID */

static int do_mcast(struct call *c, int (*change)(struct qp *qp, const uint8_t gid[16], uint16_t lid))
{
    struct qp *qp = object_find(c->p, call_arg(c, 0), OBJ_QP);
    uint16_t lid;

    memcpy(&lid, c->body + 4, sizeof lid);
    return qp ? change(qp, c->body + 6, lid) : EINVAL;
}

static int do_attach_mcast(struct call *c)
{
    return do_mcast(c, mcast_attach);
}

static int do_detach_mcast(struct call *c)
{
    return do_mcast(c, mcast_detach);
}

/* ---- destroying ------------------------------------------------------------------------------------------------ */

#define DESTROYER(name, kind)                                                                                          \
    static int name(struct call *c)                                                                                    \
    {                                                                                                                  \
        return call_destroy(c, kind);                                                                                  \
    }

/* Whatever the program has left goes with the context, as it does when a descriptor is closed. */
static int do_close(struct call *c)
{
    struct ctx *ctx = object_find(c->p, call_arg(c, 0), OBJ_CTX);

    if (!ctx)
        return EINVAL;
    objects_destroy(c->p, ctx);
    object_destroy(&ctx->obj);
    return 0;
}
DESTROYER(do_dealloc_pd, OBJ_PD)
DESTROYER(do_destroy_channel, OBJ_CHANNEL)
DESTROYER(do_destroy_cq, OBJ_CQ)
DESTROYER(do_destroy_srq, OBJ_SRQ)
DESTROYER(do_destroy_qp, OBJ_QP)
DESTROYER(do_destroy_ah, OBJ_AH)

/* ---- dispatch -------------------------------------------------------------------------------------------------- */

static const struct handler {
    int (*run)(struct call *c);
    size_t body; /* bytes at least */
} handlers[] = {
    [SF_OP_DEVICES] = {do_devices, 0},
    [SF_OP_OPEN] = {do_open, 4},
    [SF_OP_CLOSE] = {do_close, 4},
    [SF_OP_QUERY_DEVICE] = {do_query_device, 4},
    [SF_OP_QUERY_PORT] = {do_query_port, 8},
    [SF_OP_QUERY_GID] = {do_query_gid, 12},
    [SF_OP_QUERY_PKEYS] = {do_query_pkeys, 8},
    [SF_OP_ALLOC_PD] = {call_alloc_pd, 4},
    [SF_OP_DEALLOC_PD] = {do_dealloc_pd, 4},
    [SF_OP_REG_MR] = {call_reg_mr, sizeof(struct sf_reg_mr)},
    [SF_OP_DEREG_MR] = {call_dereg_mr, 4},
    [SF_OP_CREATE_CHANNEL] = {do_create_channel, 4},
    [SF_OP_DESTROY_CHANNEL] = {do_destroy_channel, 4},
    [SF_OP_CREATE_CQ] = {do_create_cq, sizeof(struct sf_create_cq)},
    [SF_OP_RESIZE_CQ] = {do_resize_cq, 8},
    [SF_OP_DESTROY_CQ] = {do_destroy_cq, 4},
    [SF_OP_CREATE_SRQ] = {do_create_srq, sizeof(struct sf_create_srq)},
    [SF_OP_MODIFY_SRQ] = {do_modify_srq, 8 + sizeof(struct ibv_srq_attr)},
    [SF_OP_QUERY_SRQ] = {do_query_srq, 4},
    [SF_OP_DESTROY_SRQ] = {do_destroy_srq, 4},
    [SF_OP_CREATE_QP] = {do_create_qp, sizeof(struct sf_create_qp)},
    [SF_OP_MODIFY_QP] = {do_modify_qp, 8 + sizeof(struct ibv_qp_attr)},
    [SF_OP_QUERY_QP] = {do_query_qp, 4},
    [SF_OP_DESTROY_QP] = {do_destroy_qp, 4},
    [SF_OP_CREATE_AH] = {do_create_ah, 8 + sizeof(struct ibv_ah_attr)},
    [SF_OP_DESTROY_AH] = {do_destroy_ah, 4},
    [SF_OP_ATTACH_MCAST] = {do_attach_mcast, MCAST_BODY},
    [SF_OP_DETACH_MCAST] = {do_detach_mcast, MCAST_BODY},
    [SF_OP_REREG_MR] = {call_rereg_mr, sizeof(struct sf_rereg_mr)},
    [SF_OP_NULL_MR] = {call_null_mr, 4},
    [SF_OP_ALLOC_MW] = {call_alloc_mw, 8},
    [SF_OP_DEALLOC_MW] = {call_dealloc_mw, 4},
    [SF_OP_TIMER_NEW] = {alarm_new_call, sizeof(struct sf_timer_new)},
    [SF_OP_TIMER_SET] = {alarm_set_call, sizeof(struct sf_timer_set)},
    [SF_OP_TIMER_DROP] = {alarm_drop_call, 4},
    [SF_OP_MODIFY_CQ] = {do_modify_cq, 12},
};

size_t request_handle(struct proc *p, const void *msg, size_t len, void *rep, size_t cap, int *fd)
{
    struct sf_req req;
    struct sf_rep head = {0};
    struct call c = {.p = p,
                     .body = (const uint8_t *)msg + sizeof req,
                     .out = (uint8_t *)rep + sizeof head,
                     .cap = cap - sizeof head,
                     .fd = -1};
    const struct handler *h;

    if (len < sizeof req)
        return 0;
    memcpy(&req, msg, sizeof req);
    c.len = len - sizeof req;
    h = req.op < sizeof handlers / sizeof *handlers ? &handlers[req.op] : NULL;
    commands_drain_one(p); /* earlier posts come first */
    tsc_note(p);
    evq_source(&p->sim->q, p->place);
    if (!h || !h->run)
        head.error = EOPNOTSUPP;
    else if (req.body_bytes != c.len || c.len < h->body)
        head.error = EPROTO;
    else
        head.error = h->run(&c);
    evq_source(&p->sim->q, 0);
    if (c.cost_ps && req.actor < SF_ACTORS_MAX) /* the caller waits for the answer: its clock is ours to move */
        __atomic_add_fetch(&p->arena->actor[req.actor].clock_ps, c.cost_ps, __ATOMIC_RELAXED);
    head.op = req.op;
    head.seq = req.seq;
    head.body_bytes = head.error ? 0 : (uint32_t)c.used;
    memcpy(rep, &head, sizeof head);
    *fd = c.fd;
    return sizeof head + head.body_bytes;
}
