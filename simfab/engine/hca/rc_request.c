/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester of a reliable connection (specification 9.7): requests become packets in the order of their PSNs.
 * Packets not acknowledged in time, or refused by a sequence NAK, are sent again from the oldest open PSN. Reads and
 * atomics are acknowledged by their responses only.
 */
#include "simfab/engine/hca/rc_request.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/clock/wake.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/landing.h"
#include "simfab/engine/hca/mem.h"
#include "simfab/engine/hca/mw.h"
#include "simfab/engine/hca/path.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/engine/hca/qp_packet.h"
#include "simfab/engine/hca/qp_table.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/packet.h"
#include "simfab/proto.h"

#define ACK_EVERY   32u /* packets: a long message is acknowledged on its way, to prevent a time-out */
#define MESSAGE_MAX (1u << 31)

static void on_timeout(void *obj, uint64_t arg);
static void on_rnr_timer(void *obj, uint64_t arg);
static void on_glance(void *obj, uint64_t arg);

void rc_requester_init(struct qp *qp)
{
    evtimer_init(&qp->req.timeout, on_timeout, qp);
    evtimer_init(&qp->req.glance, on_glance, qp);
    evtimer_init(&qp->req.rnr, on_rnr_timer, qp);
}

static void stop_timeout(struct requester *r)
{
    evtimer_stop(&r->timeout);
    evtimer_stop(&r->glance);
}

static bool is_read(const struct wqe *w)
{
    return w->opcode == IBV_WR_RDMA_READ;
}

static bool is_atomic(const struct wqe *w)
{
    return w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool is_write(const struct wqe *w)
{
    return w->opcode == IBV_WR_RDMA_WRITE || w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_send(const struct wqe *w)
{
    return w->opcode == IBV_WR_SEND || w->opcode == IBV_WR_SEND_WITH_IMM || w->opcode == IBV_WR_SEND_WITH_INV;
}

/* Done by the adapter itself, in its turn: no packet, no PSN. */
static bool is_local(const struct wqe *w)
{
    return w->opcode == IBV_WR_BIND_MW || w->opcode == IBV_WR_LOCAL_INV;
}

static bool has_imm(const struct wqe *w)
{
    return w->opcode == IBV_WR_SEND_WITH_IMM || w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* ---- packets --------------------------------------------------------------------------------------------------- */

static uint32_t extended_headers(const struct packet *p)
{
    uint32_t bytes = p->flags & (PKT_IMM | PKT_INVALIDATE) ? 4 : 0;

    switch (p->op) {
    case PKT_WRITE:
        return bytes + (p->flags & PKT_FIRST ? 16 : 0);
    case PKT_READ_REQUEST:
        return 16;
    case PKT_ATOMIC:
        return 28;
    case PKT_ATOMIC_ACK:
        return 12;
    case PKT_ACK:
    case PKT_NAK:
    case PKT_RNR_NAK:
    case PKT_READ_RESPONSE:
        return 4;
    }
    return bytes;
}

static void add_headers(struct packet *p)
{
    p->wire_bytes += extended_headers(p);
}

/* The part of the message from offset on that is read from memory at once. */
static struct chunk *read_chunk(struct qp *qp, uint64_t number, uint32_t offset)
{
    struct requester *r = &qp->req;
    struct wqe *w = qp_wqe(qp, number);
    uint32_t whole = CHUNK_MAX / qp->mtu * qp->mtu, len = w->length - offset;

    if (r->chunk && r->chunk_wqe == number && offset >= r->chunk_at && offset < r->chunk_at + r->chunk->len)
        return r->chunk;
    chunk_put(r->chunk);
    r->chunk = chunk_new(len < whole ? len : whole);
    r->chunk_wqe = number;
    r->chunk_at = offset;
    if (mem_gather(qp, w->sge, w->num_sge, offset, r->chunk->data, r->chunk->len))
        return r->chunk;
    chunk_put(r->chunk);
    r->chunk = NULL;
    return NULL;
}

struct packet *request_data_packet(struct qp *qp, uint64_t number, uint32_t index, struct tx_cost *cost)
{
    struct wqe *w = qp_wqe(qp, number);
    uint32_t offset = index * qp->mtu, left = w->length - offset, len = left < qp->mtu ? left : qp->mtu;
    struct chunk *c = len ? w->inline_data ? w->inline_data : read_chunk(qp, number, offset) : NULL;
    struct packet *p;

    if (len && !c) {
        w->status = IBV_WC_LOC_PROT_ERR;
        return NULL;
    }
    p = connected_packet(qp, is_write(w) ? PKT_WRITE : PKT_SEND, w->first_psn + index, len);
    if (c) {
        p->chunk = chunk_get(c);
        p->chunk_off = w->inline_data ? offset : offset - qp->req.chunk_at;
    }
    p->flags |= (index == 0 ? PKT_FIRST : 0) | (index % ACK_EVERY == ACK_EVERY - 1 ? PKT_ACK_REQ : 0);
    if (index == w->packets - 1) {
        p->flags |= PKT_LAST | PKT_ACK_REQ | (w->flags & SF_SEND_SOLICITED ? PKT_SOLICITED : 0) |
                    (has_imm(w) ? PKT_IMM : 0) | (w->opcode == IBV_WR_SEND_WITH_INV ? PKT_INVALIDATE : 0);
        p->imm = w->imm;
    }
    p->raddr = w->remote_addr;
    p->rkey = w->rkey;
    p->dma_len = w->length;
    add_headers(p);
    cost->inlined = w->inline_data || !w->length;
    cost->memory = len;
    return p;
}

/* A read requests the missing data: after a loss, the rest. */
static struct packet *read_request(struct qp *qp, struct wqe *w)
{
    uint32_t done = (uint32_t)psn_diff(qp->req.una_psn, w->first_psn), offset;
    struct packet *p;

    if (done >= w->packets)
        done = 0; /* earlier requests are still open: nothing of this one has come */
    offset = done * qp->mtu;
    p = connected_packet(qp, PKT_READ_REQUEST, w->first_psn + done, 0);
    p->raddr = w->remote_addr + offset;
    p->dma_len = w->length - offset;
    p->rkey = w->rkey;
    p->flags |= PKT_FIRST | PKT_LAST | PKT_ACK_REQ;
    add_headers(p);
    return p;
}

static struct packet *atomic_request(struct qp *qp, struct wqe *w)
{
    struct packet *p = connected_packet(qp, PKT_ATOMIC, w->first_psn, 0);

    p->atomic_op = w->opcode;
    p->raddr = w->remote_addr;
    p->rkey = w->rkey;
    p->compare_add = w->compare_add;
    p->swap = w->swap;
    p->flags |= PKT_FIRST | PKT_LAST | PKT_ACK_REQ;
    add_headers(p);
    return p;
}

/* ---- sending --------------------------------------------------------------------------------------------------- */

static bool outstanding(const struct qp *qp)
{
    return qp->req.una_psn != qp->req.next_psn;
}

/*
 * Time would pass at once to the end of a long time-out. A polling program sees time pass: while an acknowledgement is
 * late, the program looks once in a while.
 */
#define GLANCE_PS   100000000ull
#define GLANCE_PART 16 /* or after such a part of the wait so far */

static void set_glance(struct qp *qp)
{
    uint64_t now = sim_now(qp->hca->sim), next = (now - qp->req.waits_since_ps) / GLANCE_PART;

    next = now + (next > GLANCE_PS ? next : GLANCE_PS);
    if (next < qp->req.timeout.deadline_ps)
        evtimer_set(&qp->hca->sim->q, &qp->req.glance, next);
}

static void on_glance(void *obj, uint64_t arg)
{
    struct qp *qp = obj;
    bool sending = qp->req.cur < qp->req.tail && qp_wqe(qp, qp->req.cur)->started;

    if (!sending)
        sched_glance(qp->obj.proc);
    set_glance(qp);
}

static void set_timeout(struct qp *qp)
{
    uint64_t now = sim_now(qp->hca->sim);

    evtimer_set(&qp->hca->sim->q, &qp->req.timeout, now + (4096000ull << qp->attr.timeout));
    qp->req.waits_since_ps = now;
    evtimer_stop(&qp->req.glance);
    set_glance(qp);
}

static void start_timeout(struct qp *qp)
{
    if (!outstanding(qp) || !qp->attr.timeout || qp->req.rnr_wait)
        stop_timeout(&qp->req);
    else
        set_timeout(qp);
}

bool rc_can_emit(struct qp *qp)
{
    struct requester *r = &qp->req;
    struct wqe *w = qp_wqe(qp, r->cur);

    if (r->rnr_wait || r->halted)
        return false;
    if (w->started)
        return true;
    if ((is_read(w) || is_atomic(w)) && r->reads && r->reads >= qp->attr.max_rd_atomic)
        return false;
    return !((w->flags & SF_SEND_FENCE) && r->reads);
}

void request_start(struct qp *qp, struct wqe *w)
{
    bool local_write = is_read(w) || is_atomic(w);

    w->started = true;
    w->first_psn = qp->req.next_psn;
    w->packets = w->length > qp->mtu && !is_atomic(w) ? (w->length - 1) / qp->mtu + 1 : 1;
    if (is_local(w)) {
        w->packets = 0;
        if (!(w->opcode == IBV_WR_BIND_MW ? mw_bind(qp, &w->bind) : mw_invalidate(qp, w->rkey)))
            w->status = IBV_WC_MW_BIND_ERR;
        return;
    }
    if (!is_read(w) && !is_atomic(w) && !is_write(w) && !is_send(w))
        w->status = IBV_WC_LOC_QP_OP_ERR;
    else if (w->length > MESSAGE_MAX || (is_atomic(w) && w->length < 8))
        w->status = IBV_WC_LOC_LEN_ERR;
    else if (local_write && (!qp->attr.max_rd_atomic || qp->type != IBV_QPT_RC))
        w->status = IBV_WC_LOC_QP_OP_ERR;
    else if (!w->inline_data && !sge_check(qp, qp->pd, w->sge, w->num_sge, local_write ? IBV_ACCESS_LOCAL_WRITE : 0))
        w->status = IBV_WC_LOC_PROT_ERR;
    if (w->status)
        return;
    qp->req.next_psn = (qp->req.next_psn + w->packets) & PSN_MASK;
}

/* The oldest request fails, the others are flushed. */
static void fail(struct qp *qp, enum ibv_wc_status status)
{
    qp_complete_send(qp, status);
    qp_to_error(qp);
}

/* A request that cannot be done fails when all earlier requests are done. */
static void fail_in_turn(struct qp *qp)
{
    struct requester *r = &qp->req;

    r->halted = true;
    if (r->head == r->cur)
        fail(qp, qp_wqe(qp, r->head)->status);
}

/* Requests at the head that the adapter has done by itself. */
static void retire_local(struct qp *qp)
{
    struct requester *r = &qp->req;

    while (r->head < r->cur && is_local(qp_wqe(qp, r->head)) && !qp_wqe(qp, r->head)->status)
        qp_complete_send(qp, IBV_WC_SUCCESS);
}

struct packet *rc_emit(struct qp *qp, struct tx_cost *cost)
{
    struct requester *r = &qp->req;
    struct wqe *w = qp_wqe(qp, r->cur);
    struct packet *p;

    if (!w->started) {
        request_start(qp, w);
        cost->first = true;
        if (!w->status && (is_read(w) || is_atomic(w)))
            r->reads++;
    }
    if (w->status) {
        fail_in_turn(qp);
        return NULL;
    }
    if (is_local(w)) {
        r->cur++;
        retire_local(qp);
        return NULL;
    }
    if (is_read(w) || is_atomic(w)) {
        p = is_read(w) ? read_request(qp, w) : atomic_request(qp, w);
        cost->inlined = true;
        r->cur_packet = w->packets;
    } else {
        p = request_data_packet(qp, r->cur, r->cur_packet, cost);
        if (!p) {
            fail_in_turn(qp);
            return NULL;
        }
        r->cur_packet++;
    }
    if (r->cur_packet == w->packets) {
        r->cur++;
        r->cur_packet = 0;
    }
    if (!evtimer_is_set(&r->timeout))
        start_timeout(qp);
    return p;
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

/* Send again from the oldest open PSN. */
static void go_back(struct qp *qp)
{
    struct requester *r = &qp->req;
    struct wqe *w = qp_wqe(qp, r->head);

    if (r->head == r->tail || !w->started || w->status)
        return;
    r->cur = r->head;
    r->cur_packet = is_read(w) || is_atomic(w) ? 0 : (uint32_t)psn_diff(r->una_psn, w->first_psn);
    /* received data of a read is not sent again, and stays in r->landing until written */
}

static void retry(struct qp *qp)
{
    struct requester *r = &qp->req;

    if (!r->retries && qp->attr.path_mig_state == IBV_MIG_ARMED) {
        r->retries = qp->attr.retry_cnt;
        qp_migrate(qp);
    } else if (!r->retries) {
        fail(qp, IBV_WC_RETRY_EXC_ERR);
        return;
    } else {
        r->retries--;
    }
    r->halted = false; /* if a request behind failed locally, it is met again */
    go_back(qp);
    start_timeout(qp);
    qp_ask_turn(qp);
}

/* An answer to a later request came. All packets under way behind the gap report the same gap, which counts once. */
static void retry_gap(struct qp *qp)
{
    if (qp->req.gap_seen)
        return;
    qp->req.gap_seen = true;
    retry(qp);
}

static void on_timeout(void *obj, uint64_t arg)
{
    struct qp *qp = obj;

    qp->req.gap_seen = false;
    if (outstanding(qp))
        retry(qp);
}

static void on_rnr_timer(void *obj, uint64_t arg)
{
    struct qp *qp = obj;

    qp->req.rnr_wait = false;
    go_back(qp);
    start_timeout(qp);
    qp_ask_turn(qp);
}

/* The oldest request is done. */
static void complete_head(struct qp *qp)
{
    struct wqe *w = qp_wqe(qp, qp->req.head);

    if (is_read(w) || is_atomic(w))
        qp->req.reads--;
    qp->req.una_psn = (w->first_psn + w->packets) & PSN_MASK;
    qp_complete_send(qp, IBV_WC_SUCCESS);
    retire_local(qp);
}

static void progressed(struct qp *qp)
{
    struct requester *r = &qp->req;

    r->gap_seen = false;
    r->retries = qp->attr.retry_cnt;
    r->rnr_retries = qp->attr.rnr_retry;
    if (r->head < r->tail && r->cur == r->head) {
        /* an acknowledge for packets that were about to go again */
        struct wqe *w = qp_wqe(qp, r->head);
        int32_t done =
            w->started && !w->status && !is_read(w) && !is_atomic(w) ? psn_diff(r->una_psn, w->first_psn) : 0;

        if (done > (int32_t)r->cur_packet)
            r->cur_packet = (uint32_t)done;
    }
    start_timeout(qp);
    if (r->halted && r->head == r->cur && r->head < r->tail)
        fail(qp, qp_wqe(qp, r->head)->status);
}

/* All up to psn have arrived. False: a response is missing among them. */
static bool acknowledged(struct qp *qp, uint32_t psn)
{
    struct requester *r = &qp->req;
    bool progress = false, missing = false;

    while (r->head < r->tail && psn_diff(psn, r->una_psn) >= 0) {
        struct wqe *w = qp_wqe(qp, r->head);

        if (!w->started || w->status)
            break;
        if (is_read(w) || is_atomic(w)) {
            missing = true;
            break;
        }
        progress = true;
        if (psn_diff(psn, w->first_psn + w->packets - 1) < 0) {
            r->una_psn = (psn + 1) & PSN_MASK;
            break;
        }
        complete_head(qp);
    }
    if (progress)
        progressed(qp);
    return !missing;
}

/* Writes the received part of the oldest request, a read, to memory. */
static bool flush_landing(struct qp *qp)
{
    struct landing *l = &qp->req.landing;
    struct wqe *w = qp_wqe(qp, qp->req.head);
    bool ok = !l->chunk || mem_scatter(qp, qp->pd, w->sge, w->num_sge, l->at, l->chunk->data + l->off, l->len);

    landing_clear(l);
    return ok;
}

static void read_response(struct qp *qp, struct packet *p)
{
    struct requester *r = &qp->req;
    struct wqe *w = qp_wqe(qp, r->head);
    uint32_t index;
    bool ok = true, last;

    if (r->head == r->tail || !w->started || !is_read(w) || psn_diff(p->psn, r->una_psn) < 0)
        return;
    if (p->psn != r->una_psn) {
        retry_gap(qp); /* an earlier response was lost */
        return;
    }
    index = (uint32_t)psn_diff(p->psn, w->first_psn);
    last = index == w->packets - 1;
    if (p->payload != (last ? w->length - index * qp->mtu : qp->mtu)) {
        fail(qp, IBV_WC_BAD_RESP_ERR);
        return;
    }
    if (p->payload && !landing_add(&r->landing, p, index * qp->mtu)) {
        ok = flush_landing(qp);
        landing_add(&r->landing, p, index * qp->mtu);
    }
    r->una_psn = (r->una_psn + 1) & PSN_MASK;
    if (ok && last)
        ok = flush_landing(qp);
    if (!ok) {
        fail(qp, IBV_WC_LOC_PROT_ERR);
        return;
    }
    if (last)
        complete_head(qp);
    progressed(qp);
}

static void atomic_response(struct qp *qp, struct packet *p)
{
    struct requester *r = &qp->req;
    struct wqe *w = qp_wqe(qp, r->head);

    if (r->head == r->tail || !w->started || !is_atomic(w) || p->psn != r->una_psn)
        return;
    if (!mem_scatter(qp, qp->pd, w->sge, w->num_sge, 0, &p->swap, sizeof p->swap)) {
        fail(qp, IBV_WC_LOC_PROT_ERR);
        return;
    }
    complete_head(qp);
    progressed(qp);
}

static void not_ready(struct qp *qp, struct packet *p)
{
    struct requester *r = &qp->req;

    if (p->psn != r->una_psn || r->rnr_wait)
        return; /* of an earlier attempt */
    if (qp->attr.rnr_retry != 7) {
        if (!r->rnr_retries) {
            fail(qp, IBV_WC_RNR_RETRY_EXC_ERR);
            return;
        }
        r->rnr_retries--;
    }
    r->rnr_wait = true;
    stop_timeout(r);
    evtimer_set(&qp->hca->sim->q, &r->rnr, sim_now(qp->hca->sim) + qp_rnr_delay_ps(p->rnr_timer));
}

static void refused(struct qp *qp, struct packet *p)
{
    static const enum ibv_wc_status status[] = {[NAK_INVALID_REQUEST] = IBV_WC_REM_INV_REQ_ERR,
                                                [NAK_REMOTE_ACCESS] = IBV_WC_REM_ACCESS_ERR,
                                                [NAK_REMOTE_OPERATION] = IBV_WC_REM_OP_ERR};

    if (psn_diff(p->psn, qp->req.una_psn) < 0 || !outstanding(qp))
        return;
    if (p->nak == NAK_SEQUENCE)
        retry(qp);
    else if (p->nak < sizeof status / sizeof *status)
        fail(qp, status[p->nak]);
}

void rc_handle_response(struct qp *qp, struct packet *p)
{
    bool complete;

    if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
        return;
    if (psn_diff(p->psn, qp->req.next_psn) >= 0 || !outstanding(qp))
        return; /* not requested */
    complete = acknowledged(qp, p->op == PKT_ACK ? p->psn : p->psn - 1);
    if (qp->state == IBV_QPS_ERR)
        return;
    if (!complete && p->op != PKT_READ_RESPONSE) {
        retry_gap(qp);
        return;
    }
    switch (p->op) {
    case PKT_READ_RESPONSE:
        read_response(qp, p);
        break;
    case PKT_ATOMIC_ACK:
        atomic_response(qp, p);
        break;
    case PKT_RNR_NAK:
        not_ready(qp, p);
        break;
    case PKT_NAK:
        refused(qp, p);
        break;
    }
    if (qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD)
        qp_ask_turn(qp);
}
