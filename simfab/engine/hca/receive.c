/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving on a connection: data placed in receive buffers or by RDMA, and, for RC, the responder: PSNs in order,
 * acknowledges and refusals, answers to reads and atomics. A responder's duties leave in the order of their PSNs.
 */
#include "simfab/engine/hca/receive.h"

#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/wake.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/async.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/landing.h"
#include "simfab/engine/hca/mem.h"
#include "simfab/engine/hca/mw.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/engine/hca/qp_packet.h"
#include "simfab/engine/hca/rq.h"
#include "simfab/engine/wire/packet.h"
#include "simfab/proto.h"

/* ---- landing --------------------------------------------------------------------------------------------------- */

bool landing_flush(struct qp *qp)
{
    struct responder *r = &qp->resp;
    struct landing *l = &r->landing;
    bool ok = true;

    if (l->chunk && r->message_op == PKT_SEND) {
        ok = mem_scatter(qp, qp_recv_pd(qp), r->recv.sge, r->recv.num_sge, l->at, l->chunk->data + l->off, l->len);
    } else if (l->chunk) {
        struct mr *mr = mr_check(qp, r->rkey, r->raddr + l->at, l->len, IBV_ACCESS_REMOTE_WRITE);

        ok = mr && mem_write(mr, r->raddr + l->at, l->chunk->data + l->off, l->len);
    }
    landing_clear(l);
    return ok;
}

/* ---- sends and writes ------------------------------------------------------------------------------------------ */

static bool take_recv(struct qp *qp)
{
    struct responder *r = &qp->resp;

    if (!r->has_recv && !qp_take_recv(qp, &r->recv, r->recv_sge))
        return false;
    r->has_recv = true;
    return true;
}

static enum take_result begin_request(struct qp *qp, struct packet *p)
{
    struct responder *r = &qp->resp;
    uint64_t capacity = 0;

    if (p->op == PKT_SEND) {
        if (!take_recv(qp))
            return TAKE_NO_RECV;
        for (uint32_t i = 0; i < r->recv.num_sge; i++)
            capacity += r->recv.sge[i].length;
        r->capacity = (uint32_t)min_u64(capacity, UINT32_MAX);
    } else {
        if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE))
            return TAKE_BAD_REQUEST; /* not set up for atomics: treated as an unsupported operation */
        if (p->dma_len && !mr_check(qp, p->rkey, p->raddr, p->dma_len, IBV_ACCESS_REMOTE_WRITE))
            return TAKE_NO_ACCESS;
        r->raddr = p->raddr;
        r->rkey = p->rkey;
        r->capacity = p->dma_len;
    }
    r->dma_len = p->dma_len;
    r->in_message = true;
    r->message_op = p->op;
    r->offset = 0;
    return TAKE_OK;
}

/* The last packet is in: completes a message that the program hears of. */
static void finish(struct qp *qp, struct packet *p)
{
    struct responder *r = &qp->resp;

    r->in_message = false;
    if (p->op == PKT_SEND || (p->flags & PKT_IMM)) {
        struct sf_cqe cqe = {.wr_id = r->recv.wr_id,
                             .byte_len = r->offset,
                             .src_qp = qp->attr.dest_qp_num,
                             .slid = p->slid,
                             .sl = p->sl,
                             .opcode = p->op == PKT_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM};

        if (p->flags & PKT_IMM) {
            cqe.wc_flags = IBV_WC_WITH_IMM;
            cqe.imm = p->imm;
        }
        if (p->flags & PKT_INVALIDATE) {
            cqe.wc_flags = IBV_WC_WITH_INV;
            cqe.imm = p->rkey;
        }
        if (p->flags & PKT_GRH)
            cqe.wc_flags |= IBV_WC_GRH;
        r->has_recv = false;
        qp_complete_recv(qp, &cqe, p->flags & PKT_SOLICITED);
    } else {
        sched_written(qp->obj.proc);
    }
}

/* All packets but the last are full, and a write has the length announced by its first packet. */
static bool length_fits(const struct qp *qp, const struct packet *p)
{
    if (p->payload > qp->mtu || (!(p->flags & PKT_LAST) && p->payload != qp->mtu))
        return false;
    return p->op != PKT_WRITE || !(p->flags & PKT_LAST) || qp->resp.offset + p->payload == qp->resp.dma_len;
}

enum take_result take_data(struct qp *qp, struct packet *p)
{
    struct responder *r = &qp->resp;
    enum take_result result;

    if (!(p->flags & PKT_FIRST) != r->in_message || (r->in_message && p->op != r->message_op))
        return TAKE_BAD_REQUEST;
    if ((p->flags & PKT_FIRST) && (result = begin_request(qp, p)) != TAKE_OK)
        return result;
    if (r->offset + (uint64_t)p->payload > r->capacity)
        return p->op == PKT_SEND ? TAKE_TOO_LONG : TAKE_BAD_REQUEST;
    if (!length_fits(qp, p))
        return TAKE_BAD_REQUEST;
    if (p->op == PKT_WRITE && (p->flags & PKT_IMM) && !take_recv(qp)) {
        if (p->flags & PKT_FIRST)
            r->in_message = false; /* the message comes again as a whole */
        return TAKE_NO_RECV;
    }
    if (p->payload && !landing_add(&r->landing, p, r->offset)) {
        if (!landing_flush(qp))
            return TAKE_NO_MEMORY;
        landing_add(&r->landing, p, r->offset);
    }
    r->offset += p->payload;
    if (p->flags & PKT_LAST) {
        if (!landing_flush(qp))
            return TAKE_NO_MEMORY;
        if ((p->flags & PKT_INVALIDATE) && !mw_invalidate(qp, p->rkey))
            return TAKE_BAD_KEY;
        finish(qp, p);
    }
    return TAKE_OK;
}

/* ---- the responder's duties ------------------------------------------------------------------------------------ */

static struct duty *add_duty(struct qp *qp, enum duty_kind kind, uint32_t psn)
{
    struct responder *r = &qp->resp;
    struct duty *d = xcalloc(1, sizeof *d);
    struct sim *s = qp->hca->sim;

    d->kind = kind;
    d->psn = psn & PSN_MASK;
    d->msn = r->msn;
    d->ready_ps = sim_now(s) + s->model->ack_ps;
    *r->last = d;
    r->last = &d->next;
    if (r->first == d)
        evtimer_set_earlier(&s->q, &r->ready, d->ready_ps);
    return d;
}

/* An atomic's answer is ready when its memory has been read, as for a request of its own. */
static void answer_atomic(struct qp *qp, uint32_t psn, uint64_t value)
{
    const struct model *m = qp->hca->sim->model;
    struct duty *d = add_duty(qp, DUTY_ATOMIC, psn);

    d->value = value;
    d->ready_ps += m->wqe_ps + m->dma_latency_ps;
    if (qp->resp.first == d)
        evtimer_set(&qp->hca->sim->q, &qp->resp.ready, d->ready_ps);
}

static void acknowledge(struct qp *qp, uint32_t psn)
{
    struct responder *r = &qp->resp;

    /* an acknowledge that has not left yet may as well speak of more */
    for (struct duty *d = r->first; d; d = d->next)
        if (!d->next && d->kind == DUTY_ACK) {
            if (psn_diff(psn, d->psn) > 0)
                d->psn = psn & PSN_MASK;
            return;
        }
    add_duty(qp, DUTY_ACK, psn);
}

static void send_duty(struct qp *qp, const struct duty *d)
{
    static const enum packet_op ops[] = {
        [DUTY_ACK] = PKT_ACK, [DUTY_NAK] = PKT_NAK, [DUTY_RNR_NAK] = PKT_RNR_NAK, [DUTY_ATOMIC] = PKT_ATOMIC_ACK};
    struct packet *p = connected_packet(qp, ops[d->kind], d->psn, 0);

    p->nak = d->nak;
    p->rnr_timer = d->rnr_timer;
    p->swap = d->value;
    p->wire_bytes += d->kind == DUTY_ATOMIC ? 12 : 4;
    hca_send_control(qp, p);
}

/* Does the pending duties; a read at the front waits for its turns at the adapter. */
static void duties_run(void *obj, uint64_t arg)
{
    struct qp *qp = obj;
    struct responder *r = &qp->resp;
    struct sim *s = qp->hca->sim;

    while (r->first && r->first->ready_ps <= sim_now(s)) {
        if (r->first->kind == DUTY_READ) {
            hca_qp_ready(qp);
            return;
        }
        if (r->leaving)
            return; /* rc_response_left goes on */
        send_duty(qp, r->first);
        duty_drop(r);
    }
    if (r->first)
        evtimer_set_earlier(&s->q, &r->ready, r->first->ready_ps);
}

void rc_responder_init(struct qp *qp)
{
    evtimer_init(&qp->resp.ready, duties_run, qp);
}

/*
 * The queue pair goes away at the very time of receiving a message, as a program without computing costs does when
 * ending after the message. A real program takes longer to end than the adapter to acknowledge.
 */
void rc_acknowledge_now(struct qp *qp)
{
    struct responder *r = &qp->resp;

    while (r->first && r->first->kind == DUTY_ACK && !r->leaving) {
        send_duty(qp, r->first);
        duty_drop(r);
    }
}

void rc_response_left(struct qp *qp)
{
    if (qp->resp.leaving && !--qp->resp.leaving)
        duties_run(qp, 0);
}

bool rc_duty_needs_turn(struct qp *qp)
{
    const struct duty *d = qp->resp.first;

    return d && d->kind == DUTY_READ && d->ready_ps <= sim_now(qp->hca->sim);
}

/* The part of a read's data from offset on that is read from memory at once. */
static struct chunk *answer_chunk(struct qp *qp, struct duty *d, uint32_t offset)
{
    struct responder *r = &qp->resp;
    uint32_t whole = CHUNK_MAX / qp->mtu * qp->mtu, left = d->length - offset, len = left < whole ? left : whole;
    struct mr *mr;

    if (d->sent && r->chunk && offset >= r->chunk_at && offset < r->chunk_at + r->chunk->len)
        return r->chunk;
    chunk_put(r->chunk);
    r->chunk = NULL;
    mr = mr_check(qp, d->rkey, d->raddr + offset, len, IBV_ACCESS_REMOTE_READ);
    if (!mr)
        return NULL;
    r->chunk = chunk_new(len);
    r->chunk_at = offset;
    if (mem_read(mr, d->raddr + offset, r->chunk->data, len))
        return r->chunk;
    chunk_put(r->chunk);
    r->chunk = NULL;
    return NULL;
}

struct packet *rc_emit_duty(struct qp *qp, struct tx_cost *cost)
{
    struct responder *r = &qp->resp;
    struct duty *d = r->first;
    uint32_t offset = d->sent * qp->mtu, left = d->length - offset, len = left < qp->mtu ? left : qp->mtu;
    struct chunk *c = len ? answer_chunk(qp, d, offset) : NULL;
    struct packet *p;

    cost->first = d->sent == 0;
    if (len && !c) {
        p = connected_packet(qp, PKT_NAK, d->psn + d->sent, 0);
        p->nak = NAK_REMOTE_ACCESS;
        p->wire_bytes += 4;
        d->sent = d->packets;
    } else {
        p = connected_packet(qp, PKT_READ_RESPONSE, d->psn + d->sent, len);
        p->flags |= (d->sent == 0 ? PKT_FIRST : 0) | (d->sent == d->packets - 1 ? PKT_LAST : 0);
        p->wire_bytes += 4;
        p->chunk = chunk_get(c);
        p->chunk_off = c ? offset - r->chunk_at : 0;
        cost->memory = len;
        d->sent++;
        r->leaving++;
    }
    if (d->sent == d->packets) {
        duty_drop(r);
        chunk_put(r->chunk);
        r->chunk = NULL;
        duties_run(qp, 0);
    }
    return p;
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

/* The request cannot be done: tell the requester, and this queue pair is in error too. */
static void refuse_request(struct qp *qp, struct packet *p, enum nak_code code, enum ibv_wc_status recv_status)
{
    struct responder *r = &qp->resp;
    struct packet *nak = connected_packet(qp, PKT_NAK, p->psn, 0);

    nak->nak = (uint8_t)code;
    nak->wire_bytes += 4;
    hca_send_control(qp, nak);
    if (r->has_recv && recv_status != IBV_WC_SUCCESS) {
        struct sf_cqe cqe = {.wr_id = r->recv.wr_id, .status = recv_status, .opcode = IBV_WC_RECV};

        r->has_recv = false;
        qp_complete_recv(qp, &cqe, true);
    }
    if (code == NAK_REMOTE_ACCESS)
        async_event(qp->obj.ctx, IBV_EVENT_QP_ACCESS_ERR, 0, qp->cookie);
    else if (code == NAK_INVALID_REQUEST && recv_status == IBV_WC_SUCCESS)
        async_event(qp->obj.ctx, IBV_EVENT_QP_REQ_ERR, 0, qp->cookie);
    qp_to_error(qp);
}

static void take_request(struct qp *qp, struct packet *p)
{
    struct responder *r = &qp->resp;
    struct duty *d;

    switch (take_data(qp, p)) {
    case TAKE_OK:
        r->expected_psn = (r->expected_psn + 1) & PSN_MASK;
        if (p->flags & PKT_LAST)
            r->msn++;
        if (p->flags & PKT_ACK_REQ)
            acknowledge(qp, p->psn);
        break;
    case TAKE_NO_RECV:
        d = add_duty(qp, DUTY_RNR_NAK, p->psn);
        d->rnr_timer = qp->attr.min_rnr_timer;
        r->nak_sent = true; /* later packets are out of order, and need no refusal of their own */
        break;
    case TAKE_BAD_REQUEST:
        refuse_request(qp, p, NAK_INVALID_REQUEST, IBV_WC_SUCCESS);
        break;
    case TAKE_NO_ACCESS:
        refuse_request(qp, p, NAK_REMOTE_ACCESS, IBV_WC_SUCCESS);
        break;
    case TAKE_BAD_KEY: /* to invalidate */
        refuse_request(qp, p, NAK_REMOTE_ACCESS, IBV_WC_REM_INV_REQ_ERR);
        break;
    case TAKE_TOO_LONG:
        refuse_request(qp, p, NAK_INVALID_REQUEST, IBV_WC_LOC_LEN_ERR);
        break;
    case TAKE_NO_MEMORY:
        if (qp->obj.proc->dead)
            break; /* no requester is left for an answer */
        if (r->message_op == PKT_WRITE)
            refuse_request(qp, p, NAK_REMOTE_ACCESS, IBV_WC_SUCCESS);
        else
            refuse_request(qp, p, NAK_REMOTE_OPERATION, IBV_WC_LOC_PROT_ERR);
        break;
    }
}

static uint32_t open_reads(const struct responder *r)
{
    uint32_t n = 0;

    for (const struct duty *d = r->first; d; d = d->next)
        n += d->kind == DUTY_READ || d->kind == DUTY_ATOMIC;
    return n;
}

/*
 * A read is requested again, from psn on: later requests of the requester come again too. Answers that have not left
 * are dropped, because wanted answers would otherwise come after all unwanted answers.
 */
static void drop_reads_from(struct qp *qp, uint32_t psn)
{
    struct responder *r = &qp->resp;
    struct duty **at = &r->first, *d;

    while ((d = *at)) {
        if (d->kind != DUTY_READ || psn_diff(d->psn + d->packets - 1, psn) < 0) {
            at = &d->next;
            continue;
        }
        *at = d->next;
        free(d);
    }
    r->last = at;
    chunk_put(r->chunk);
    r->chunk = NULL;
    if (r->first) /* perhaps something else now, that needs no turn of the adapter */
        evtimer_set_earlier(&qp->hca->sim->q, &r->ready, r->first->ready_ps);
}

static void take_read(struct qp *qp, struct packet *p, bool again)
{
    struct responder *r = &qp->resp;
    uint32_t packets = p->dma_len > qp->mtu ? (p->dma_len - 1) / qp->mtu + 1 : 1;
    struct duty *d;

    if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ) ||
        (!again && (r->in_message || open_reads(r) >= qp->attr.max_dest_rd_atomic))) {
        refuse_request(qp, p, NAK_INVALID_REQUEST, IBV_WC_SUCCESS);
        return;
    }
    if (p->dma_len && !mr_check(qp, p->rkey, p->raddr, p->dma_len, IBV_ACCESS_REMOTE_READ)) {
        refuse_request(qp, p, NAK_REMOTE_ACCESS, IBV_WC_SUCCESS);
        return;
    }
    if (again) {
        drop_reads_from(qp, p->psn);
    } else {
        r->expected_psn = (p->psn + packets) & PSN_MASK;
        r->msn++;
    }
    d = add_duty(qp, DUTY_READ, p->psn);
    d->raddr = p->raddr;
    d->rkey = p->rkey;
    d->length = p->dma_len;
    d->packets = packets;
}

static void take_atomic(struct qp *qp, struct packet *p)
{
    struct responder *r = &qp->resp;
    struct mr *mr = mr_check(qp, p->rkey, p->raddr, 8, IBV_ACCESS_REMOTE_ATOMIC);
    uint64_t old, new;

    if (r->in_message || !(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) || (p->raddr & 7) ||
        open_reads(r) >= qp->attr.max_dest_rd_atomic) {
        refuse_request(qp, p, NAK_INVALID_REQUEST, IBV_WC_SUCCESS);
        return;
    }
    if (!mr || !mem_read(mr, p->raddr, &old, sizeof old)) {
        refuse_request(qp, p, NAK_REMOTE_ACCESS, IBV_WC_SUCCESS);
        return;
    }
    new = p->atomic_op == IBV_WR_ATOMIC_FETCH_AND_ADD ? old + p->compare_add : old == p->compare_add ? p->swap : old;
    mem_write(mr, p->raddr, &new, sizeof new);
    sched_written(qp->obj.proc);
    r->expected_psn = (p->psn + 1) & PSN_MASK;
    r->msn++;
    r->replay[r->next_replay].psn = p->psn;
    r->replay[r->next_replay].value = old;
    r->replay[r->next_replay].valid = true;
    r->next_replay = (r->next_replay + 1) % ATOMIC_REPLAYS;
    answer_atomic(qp, p->psn, old);
}

/* A request that was answered before: the answer was lost or late. */
static void take_duplicate(struct qp *qp, struct packet *p)
{
    struct responder *r = &qp->resp;

    if (p->op == PKT_READ_REQUEST) {
        take_read(qp, p, true);
    } else if (p->op == PKT_ATOMIC) {
        for (unsigned i = 0; i < ATOMIC_REPLAYS; i++)
            if (r->replay[i].valid && r->replay[i].psn == p->psn)
                answer_atomic(qp, p->psn, r->replay[i].value);
    } else {
        acknowledge(qp, r->expected_psn - 1);
    }
}

void rc_handle_request(struct qp *qp, struct packet *p)
{
    struct responder *r = &qp->resp;
    int32_t ahead = psn_diff(p->psn, r->expected_psn);

    if (ahead < 0) {
        take_duplicate(qp, p);
        return;
    }
    if (ahead > 0) {
        if (!r->nak_sent) /* once per gap */
            add_duty(qp, DUTY_NAK, r->expected_psn)->nak = NAK_SEQUENCE;
        r->nak_sent = true;
        return;
    }
    r->nak_sent = false;
    if (p->op == PKT_READ_REQUEST)
        take_read(qp, p, false);
    else if (p->op == PKT_ATOMIC)
        take_atomic(qp, p);
    else
        take_request(qp, p);
}
