/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command rings: requests posted by processes. A record is copied out of shared memory before it is checked; an
 * invalid ring ends its process's attachment.
 */
#include "simfab/engine/client/command.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/hca/cq.h"
#include "simfab/engine/hca/object.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/engine/hca/qp_make.h"
#include "simfab/engine/hca/rq.h"
#include "simfab/proto.h"

union record {
    struct sf_cmd cmd;
    uint8_t bytes[16384];
    uint64_t align;
};

static void post_send(struct proc *p, const union record *r)
{
    const struct sf_cmd *c = &r->cmd;
    const struct sf_send *s = (const struct sf_send *)(c + 1);
    struct qp *qp = object_find(p, c->object, OBJ_QP);
    struct ah *ah = NULL;
    size_t data = c->flags & SF_SEND_INLINE     ? s->inline_bytes
                  : s->opcode == IBV_WR_BIND_MW ? sizeof(struct sf_bind)
                                                : c->num_sge * sizeof(struct sf_sge);

    if (!qp)
        return; /* destroyed meanwhile */
    if (c->bytes < sizeof *c + sizeof *s || data > c->bytes - sizeof *c - sizeof *s)
        goto broken;
    if (qp->type == IBV_QPT_UD) {
        ah = object_find(p, s->ah, OBJ_AH);
        if (!ah)
            goto broken;
    }
    if (!qp_post_send(qp, c, s, s + 1, ah))
        return;
broken:
    engine_log("process %u (pid %d): bad send request; detached", p->id, (int)p->pid);
    p->dead = true;
}

static void post_recv(struct proc *p, const union record *r)
{
    const struct sf_cmd *c = &r->cmd;
    const struct sf_sge *sge = (const struct sf_sge *)(c + 1);
    struct qp *qp = c->op == SF_CMD_POST_RECV ? object_find(p, c->object, OBJ_QP) : NULL;
    struct srq *srq = c->op == SF_CMD_POST_SRQ ? object_find(p, c->object, OBJ_SRQ) : NULL;

    if (!qp && !srq)
        return;
    if (c->num_sge * sizeof *sge > c->bytes - sizeof *c || rq_post(qp ? &qp->rq : &srq->rq, c, sge)) {
        engine_log("process %u (pid %d): bad receive request; detached", p->id, (int)p->pid);
        p->dead = true;
        return;
    }
    if (qp && qp->state == IBV_QPS_ERR)
        qp_flush_recv(qp);
}

static void execute(struct proc *p, const union record *r)
{
    struct cq *cq;

    switch (r->cmd.op) {
    case SF_CMD_POST_SEND:
        post_send(p, r);
        break;
    case SF_CMD_POST_RECV:
    case SF_CMD_POST_SRQ:
        post_recv(p, r);
        break;
    case SF_CMD_REQ_NOTIFY:
        cq = object_find(p, r->cmd.object, OBJ_CQ);
        if (cq)
            cq_arm(cq, r->cmd.flags & 1);
        break;
    }
}

/* Copy the record at the ring's tail. False: nothing there (or the ring is broken: p->dead). */
static bool next_record(struct proc *p, union record *r, uint64_t *after)
{
    const uint8_t *ring = (uint8_t *)p->arena + p->ring_offset;
    uint64_t head = __atomic_load_n(&p->arena->cmd_head, __ATOMIC_ACQUIRE);

    for (;;) {
        uint64_t used = head - p->cmd_tail;
        uint32_t at = (uint32_t)(p->cmd_tail & (CMD_BYTES - 1)), bytes;
        uint16_t op;

        if (!used || p->dead)
            return false;
        /* a filler may be as short as 8 bytes: only the size and the kind are looked at first */
        memcpy(&bytes, ring + at, sizeof bytes);
        memcpy(&op, ring + at + offsetof(struct sf_cmd, op), sizeof op);
        if (used > CMD_BYTES || bytes < 8 || bytes % 8 || bytes > used || bytes > CMD_BYTES - at ||
            (op != SF_CMD_SKIP && (bytes < sizeof r->cmd || bytes > sizeof *r))) {
            engine_log("process %u (pid %d): broken command ring; detached", p->id, (int)p->pid);
            p->dead = true;
            return false;
        }
        if (op == SF_CMD_SKIP) {
            p->cmd_tail += bytes;
            __atomic_store_n(&p->arena->cmd_tail, p->cmd_tail, __ATOMIC_RELEASE);
            continue;
        }
        memcpy(r, ring + at, bytes);
        r->cmd.bytes = bytes;
        r->cmd.op = op;
        r->cmd.stamp_ps = proc_time(p->sim, r->cmd.stamp_ps);
        *after = p->cmd_tail + bytes;
        return true;
    }
}

static void consumed(struct proc *p, uint64_t after)
{
    p->cmd_tail = after;
    __atomic_store_n(&p->arena->cmd_tail, after, __ATOMIC_RELEASE);
}

bool commands_drain_one(struct proc *p)
{
    union record r;
    uint64_t after;
    bool any = false;

    evq_source(&p->sim->q, p->place);
    while (next_record(p, &r, &after)) {
        execute(p, &r);
        consumed(p, after);
        any = true;
    }
    evq_source(&p->sim->q, 0);
    return any;
}

/*
 * Processes are independent here: a post affects others only by events at its own time. Simultaneous events run in the
 * order of processes (event.h), so the moment of draining does not matter.
 */
void commands_drain(struct sim *s)
{
    for (uint32_t i = 0; i < s->num_procs; i++)
        commands_drain_one(s->procs[i]);
}
