/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection state machine; see connect.h for the exchange. */
#include "libmrmpi/verbs/connect.h"

#include <errno.h>
#include <string.h>

void mr_cm_init(struct mr_cm_conn *c, const struct mr_cm_ops *ops, uint32_t job, uint32_t self, uint32_t peer,
                uint64_t timeout_ns, unsigned attempts_max)
{
    memset(c, 0, sizeof *c);
    c->ops = ops;
    c->job = job;
    c->self = self;
    c->peer = peer;
    c->timeout_ns = timeout_ns;
    c->timeout_max_ns = 16 * timeout_ns;
    c->attempts_max = attempts_max;
}

bool mr_cm_check(const void *data, size_t len, uint32_t job, uint32_t self, uint32_t world, struct mr_cm_msg *out)
{
    memset(out, 0, sizeof *out);
    if (len < MR_CM_LENGTH(0) || len > sizeof *out)
        return false;
    memcpy(out, data, len);
    return out->magic == MR_CM_MAGIC && out->version == MR_CM_VERSION && out->job == job && out->to == self &&
           out->from < world && out->from != self && out->type >= MR_CM_REQ && out->type <= MR_CM_RTU &&
           out->num_subs <= MR_CM_SUBS_MAX && len == MR_CM_LENGTH(out->num_subs) &&
           (out->num_subs > 0 || out->type == MR_CM_RTU);
}

static void fail(struct mr_cm_conn *c, int error)
{
    if (c->state == MR_CM_FAILED)
        return;
    c->state = MR_CM_FAILED;
    c->ops->failed(c, error);
}

static void arm(struct mr_cm_conn *c, uint64_t now_ns)
{
    uint64_t wait = c->timeout_ns << (c->attempts < 8 ? c->attempts : 8);

    c->deadline_ns = now_ns + (wait < c->timeout_max_ns ? wait : c->timeout_max_ns);
}

static void transmit(struct mr_cm_conn *c, enum mr_cm_type type)
{
    struct mr_cm_msg m = c->local;

    m.magic = MR_CM_MAGIC;
    m.version = MR_CM_VERSION;
    m.type = (uint8_t)type;
    m.job = c->job;
    m.id = c->id;
    if (type == MR_CM_RTU)
        m.num_subs = 0;
    c->ops->transmit(c, &m, c->attempts);
}

static int prepare(struct mr_cm_conn *c, const struct mr_cm_msg *req)
{
    int err;

    memset(&c->local, 0, sizeof c->local);
    c->local.from = c->self;
    c->local.to = c->peer;
    err = c->ops->prepare(c, req, &c->local);
    if (!err && (!c->local.num_subs || c->local.num_subs > MR_CM_SUBS_MAX))
        err = -EHOSTUNREACH;
    return err;
}

/* The request, if there is something to ask for already; until then it is tried again at each time-out. */
static void request(struct mr_cm_conn *c, uint64_t now_ns)
{
    int err = prepare(c, NULL);

    if (err && err != -EAGAIN) {
        fail(c, err);
        return;
    }
    arm(c, now_ns);
    if (!err)
        transmit(c, MR_CM_REQ);
}

void mr_cm_start(struct mr_cm_conn *c, uint32_t id, uint64_t now_ns)
{
    if (c->state != MR_CM_IDLE)
        return;
    c->begun_ns = now_ns;
    c->initiator = true;
    c->id = id;
    c->state = MR_CM_REQ_SENT;
    c->attempts = 0;
    request(c, now_ns);
}

/* Nothing could be asked for when we began. */
static bool is_held(const struct mr_cm_conn *c)
{
    return c->state == MR_CM_REQ_SENT && !c->local.num_subs;
}

void mr_cm_resume(struct mr_cm_conn *c, uint64_t now_ns)
{
    if (is_held(c))
        request(c, now_ns);
}

void mr_cm_again(struct mr_cm_conn *c, unsigned attempts_max)
{
    if (c->state != MR_CM_CONNECTED && c->state != MR_CM_FAILED)
        return;
    c->state = MR_CM_IDLE;
    c->attempts_max = attempts_max;
}

static void established(struct mr_cm_conn *c)
{
    c->state = MR_CM_CONNECTED;
    c->ops->established(c);
}

static void respond(struct mr_cm_conn *c, const struct mr_cm_msg *req, uint64_t now_ns)
{
    int err = prepare(c, req);

    if (err == -EAGAIN)
        return;
    if (c->state != MR_CM_REQ_SENT)
        c->begun_ns = now_ns;
    c->initiator = false;
    c->heard = true;
    c->id = c->heard_id = req->id;
    c->state = MR_CM_REP_SENT;
    if (!err)
        err = c->ops->connect(c, req, req);
    if (err) {
        fail(c, err);
        return;
    }
    c->attempts = 0;
    arm(c, now_ns);
    transmit(c, MR_CM_REP);
}

static void receive_req(struct mr_cm_conn *c, const struct mr_cm_msg *m, uint64_t now_ns)
{
    bool answered = c->heard && m->id == c->heard_id, stale = c->heard && (int32_t)(m->id - c->heard_id) < 0;

    if (stale)
        return;
    if (answered) {
        if (!c->initiator && (c->state == MR_CM_REP_SENT || c->state == MR_CM_CONNECTED))
            transmit(c, MR_CM_REP); /* our answer was lost */
        return;
    }
    if (c->state == MR_CM_REQ_SENT && c->self < c->peer &&
        !is_held(c)) { /* both began: the lower rank's request counts */
        c->heard = true;
        c->heard_id = m->id;
        return;
    }
    respond(c, m, now_ns);
}

static void receive_rep(struct mr_cm_conn *c, const struct mr_cm_msg *m)
{
    int err;

    if (!c->initiator || m->id != c->id)
        return;
    if (c->state == MR_CM_REQ_SENT) {
        err = c->ops->connect(c, m, &c->local);
        if (err) {
            fail(c, err);
            return;
        }
        transmit(c, MR_CM_RTU);
        established(c);
    } else if (c->state == MR_CM_CONNECTED) {
        transmit(c, MR_CM_RTU); /* the first one was lost */
    }
}

void mr_cm_receive(struct mr_cm_conn *c, const struct mr_cm_msg *m, uint64_t now_ns)
{
    if (m->type == MR_CM_REQ)
        receive_req(c, m, now_ns);
    else if (m->type == MR_CM_REP)
        receive_rep(c, m);
    else if (!c->initiator && m->id == c->id)
        mr_cm_traffic(c);
}

void mr_cm_traffic(struct mr_cm_conn *c)
{
    if (c->state == MR_CM_REP_SENT)
        established(c);
}

void mr_cm_tick(struct mr_cm_conn *c, uint64_t now_ns)
{
    if (!mr_cm_waiting(c) || now_ns < c->deadline_ns)
        return;
    if (is_held(c)) {
        request(c, now_ns);
        return;
    }
    if (++c->attempts >= c->attempts_max) {
        fail(c, -ETIMEDOUT);
        return;
    }
    arm(c, now_ns);
    transmit(c, c->state == MR_CM_REQ_SENT ? MR_CM_REQ : MR_CM_REP);
}
