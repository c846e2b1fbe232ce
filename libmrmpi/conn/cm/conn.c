/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection state machine; see conn.h for the exchange. */
#include "libmrmpi/conn/cm/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ASK_ANEW 16 /* that part of a time-out must have gone by before a request is repeated early */

#define PAUSE_NS   1000000ull /* after MR_CM_LATER; doubles */
#define PAUSES_MAX 6u         /* times */
#define PAUSES_END 24u        /* the end of a bounded handshake */

void mr_cm_init(struct mr_cm_conn *c, const struct mr_cm_ops *ops, uint32_t job, uint32_t self, uint32_t peer,
                uint64_t timeout_ns, unsigned attempts_max)
{
    memset(c, 0, sizeof *c);
    c->ops = ops;
    c->job = job;
    c->self = self;
    c->peer = peer;
    c->first = self < peer;
    c->timeout_ns = timeout_ns;
    c->timeout_max_ns = 16 * timeout_ns;
    c->attempts_max = attempts_max;
}

/* An error of ours, for the peer. */
static enum mr_cm_reason reason_of(int error)
{
    switch (error) {
    case -EAGAIN:
        return MR_CM_LATER;
    case -EHOSTUNREACH:
        return MR_CM_NO_RAIL;
    case -ENETDOWN:
        return MR_CM_PORT_DOWN;
    case -ENOKEY:
        return MR_CM_NO_PKEY;
    case -ECONNREFUSED:
        return MR_CM_GIVEN_UP;
    case -ENOMEM:
    case -ENOSPC:
    case -ENFILE:
    case -EMFILE:
        return MR_CM_NO_ROOM;
    case -EDQUOT:
        return MR_CM_ENOUGH;
    default:
        return MR_CM_OTHER;
    }
}

/* The peer's reason, as an error of ours. */
static int error_of(unsigned reason)
{
    static const int errors[MR_CM_REASONS] = {
        [MR_CM_NO_RAIL] = -EHOSTUNREACH,
        [MR_CM_NO_ROOM] = -ENOMEM,
        [MR_CM_PORT_DOWN] = -ENETDOWN,
        [MR_CM_GIVEN_UP] = -ECONNREFUSED,
        [MR_CM_BAD_VERSION] = -EPROTONOSUPPORT,
        [MR_CM_OTHER] = -ECONNREFUSED,
        [MR_CM_ENOUGH] = -EDQUOT,
        [MR_CM_NO_PKEY] = -ENOKEY,
    };

    return errors[reason];
}

static void forget_local(struct mr_cm_conn *c)
{
    free(c->local);
    c->local = NULL;
}

void mr_cm_free(struct mr_cm_conn *c)
{
    forget_local(c);
}

static void conn_fail(struct mr_cm_conn *c, int error)
{
    if (c->state == MR_CM_FAILED)
        return;
    forget_local(c);
    c->state = MR_CM_FAILED;
    c->ops->failed(c, error);
}

static void conn_arm(struct mr_cm_conn *c, uint64_t now_ns)
{
    uint64_t wait = c->timeout_ns << (c->attempts < 8 ? c->attempts : 8);

    c->deadline_ns = now_ns + (wait < c->timeout_max_ns ? wait : c->timeout_max_ns);
}

static void conn_transmit(struct mr_cm_conn *c, enum mr_cm_type type)
{
    struct mr_cm_msg m = mr_cm_message(type, c->job, c->self, c->peer, c->id);

    if (type == MR_CM_REQ)
        m.done = c->done;
    if (type != MR_CM_RTU) {
        m.num_subs = c->local->num_subs;
        m.psn = c->local->psn;
        memcpy(m.guard, c->local->guard, sizeof m.guard);
        memcpy(m.sub, c->local->sub, m.num_subs * sizeof *m.sub);
    }
    c->again = c->ops->transmit(c, &m, c->attempts) == -EAGAIN;
    if (c->again)
        c->deadline_ns = 0;
    c->smooth &= !c->again;
}

/* Rejects the handshake of that id. If the rejection is lost, a repeated request of the peer repeats it. */
static void conn_reject(struct mr_cm_conn *c, uint32_t id, bool ours, unsigned reason, unsigned detail)
{
    struct mr_cm_msg m = mr_cm_message(MR_CM_REJ, c->job, c->self, c->peer, id);

    m.reason = (uint8_t)reason;
    m.by_initiator = ours;
    m.detail = (uint16_t)(detail <= MR_CM_DETAIL_MAX ? detail : 0);
    c->ops->transmit(c, &m, 0);
}

/* We end the handshake, and the peer hears why. */
static void conn_refuse(struct mr_cm_conn *c, int error)
{
    c->reason = (uint16_t)reason_of(error);
    c->detail = (uint16_t)-error;
    conn_reject(c, c->id, c->initiator, c->reason, c->detail);
    conn_fail(c, error);
}

static int keep_local(struct mr_cm_conn *c, const struct mr_cm_msg *m)
{
    struct mr_cm_msg *kept = malloc(MR_CM_LENGTH(m->num_subs));

    if (!kept)
        return -ENOMEM;
    memcpy(kept, m, MR_CM_LENGTH(m->num_subs));
    free(c->local);
    c->local = kept;
    return 0;
}

/* On an error c->local is as before. */
static int conn_prepare(struct mr_cm_conn *c, const struct mr_cm_msg *req)
{
    struct mr_cm_msg m = {.from = c->self, .to = c->peer};
    int err = c->ops->prepare(c, req, &m);

    if (!err && (!m.num_subs || m.num_subs > MR_CM_SUBS_MAX))
        err = -EHOSTUNREACH;
    return err ? err : keep_local(c, &m);
}

/* The request, if there is something to ask for already; until then it is tried again at each time-out. */
static void conn_request(struct mr_cm_conn *c, uint64_t now_ns)
{
    int err = conn_prepare(c, NULL);

    if (err && err != -EAGAIN) {
        conn_fail(c, err);
        return;
    }
    conn_arm(c, now_ns);
    c->asked_ns = now_ns;
    if (!err)
        conn_transmit(c, MR_CM_REQ);
}

void mr_cm_start(struct mr_cm_conn *c, uint32_t id, uint64_t now_ns)
{
    if (c->state != MR_CM_IDLE)
        return;
    c->begun_ns = now_ns;
    c->initiator = c->smooth = true;
    c->id = id;
    c->state = MR_CM_REQ_SENT;
    c->attempts = c->pauses = 0;
    c->rival = false;
    conn_request(c, now_ns);
}

/* Nothing could be asked for when we began. */
static bool req_is_held(const struct mr_cm_conn *c)
{
    return c->state == MR_CM_REQ_SENT && !c->local;
}

void mr_cm_resume(struct mr_cm_conn *c, uint64_t now_ns)
{
    if (req_is_held(c))
        conn_request(c, now_ns);
}

void mr_cm_again(struct mr_cm_conn *c, unsigned attempts_max)
{
    if (c->state != MR_CM_CONNECTED && c->state != MR_CM_FAILED)
        return;
    c->state = MR_CM_IDLE;
    c->reason = c->detail = MR_CM_NO_REASON;
    c->rejected = false;
    c->attempts_max = attempts_max;
}

static void conn_establish(struct mr_cm_conn *c)
{
    forget_local(c);
    if (c->initiator)
        c->done = c->id;
    c->state = MR_CM_CONNECTED;
    c->ops->established(c);
}

static void conn_respond(struct mr_cm_conn *c, const struct mr_cm_msg *req, uint64_t now_ns)
{
    int err = conn_prepare(c, req);

    if (err == -EAGAIN) { /* a handshake of ours may be under way */
        conn_reject(c, req->id, false, MR_CM_LATER, 0);
        return;
    }
    if (c->state != MR_CM_REQ_SENT)
        c->begun_ns = now_ns;
    c->initiator = c->smooth = false;
    c->heard = true;
    c->id = c->heard_id = req->id;
    c->state = MR_CM_REP_SENT;
    if (!err)
        err = c->ops->connect(c, req, req);
    if (err) {
        conn_refuse(c, err);
        return;
    }
    c->attempts = 0;
    conn_arm(c, now_ns);
    conn_transmit(c, MR_CM_REP);
}

/*
 * A new handshake after one that the peer has seen established: our answer has come, and its RTU was lost, or is late.
 * Otherwise the peer has given up that handshake, and the queue pairs made for it are of no use.
 */
static bool shows_established(const struct mr_cm_conn *c, const struct mr_cm_msg *req)
{
    return c->state == MR_CM_REP_SENT && req->done == c->id;
}

/* True for a number of the peer's before its last handshake. */
static bool is_stale(const struct mr_cm_conn *c, uint32_t id)
{
    return c->heard && (int32_t)(id - c->heard_id) < 0;
}

bool mr_cm_is_late(const struct mr_cm_conn *c, const struct mr_cm_msg *m)
{
    if (m->type == MR_CM_ASK || m->type == MR_CM_HERE)
        return false;
    if (m->type == MR_CM_REQ || m->type == MR_CM_RTU || (m->type == MR_CM_REJ && m->by_initiator))
        return is_stale(c, m->id);
    return !c->initiator || m->id != c->id;
}

/* If ways may be dead, our request may have taken a dead way, and the peer's a live way. */
static bool yields_now(const struct mr_cm_conn *c, uint64_t now_ns)
{
    return c->yields && now_ns - c->asked_ns > c->timeout_ns / ASK_ANEW;
}

static void receive_req(struct mr_cm_conn *c, const struct mr_cm_msg *m, uint64_t now_ns)
{
    bool answered = c->heard && m->id == c->heard_id;

    if (is_stale(c, m->id))
        return;
    if (answered && !(c->state == MR_CM_REQ_SENT && c->rival && c->yields)) {
        if (c->initiator)
            return;
        if (c->state == MR_CM_REP_SENT)
            conn_transmit(c, MR_CM_REP); /* our answer was lost */
        else if (c->state == MR_CM_FAILED && c->reason)
            conn_reject(c, c->id, false, c->reason, c->detail);
        return;
    }
    if (c->state == MR_CM_REQ_SENT && c->first && !req_is_held(c) && !answered &&
        !yields_now(c, now_ns)) { /* both began: the lower rank's request counts */
        c->heard = c->rival = true;
        c->heard_id = m->id;
        if (now_ns - c->asked_ns > c->timeout_ns / ASK_ANEW) { /* it has only just come to live: ours was lost */
            c->asked_ns = now_ns;
            conn_transmit(c, MR_CM_REQ);
        }
        return;
    }
    if (shows_established(c, m))
        conn_establish(c);
    conn_respond(c, m, now_ns);
}

static void receive_rep(struct mr_cm_conn *c, const struct mr_cm_msg *m)
{
    int err;

    if ((!c->initiator || m->id != c->id) && c->done && m->id == c->done) { /* the RTU of the one before was lost */
        struct mr_cm_msg rtu = mr_cm_message(MR_CM_RTU, c->job, c->self, c->peer, m->id);

        c->ops->transmit(c, &rtu, 0);
        return;
    }
    if (!c->initiator || m->id != c->id) { /* an earlier handshake: no answer will come */
        conn_reject(c, m->id, true, MR_CM_OTHER, 0);
        return;
    }
    if (c->state == MR_CM_REQ_SENT) {
        err = c->ops->connect(c, m, c->local);
        if (err) {
            conn_refuse(c, err);
            return;
        }
        conn_transmit(c, MR_CM_RTU);
        conn_establish(c);
    } else if (c->state == MR_CM_CONNECTED) {
        conn_transmit(c, MR_CM_RTU); /* the first one was lost */
    } else if (c->state == MR_CM_FAILED) {
        conn_reject(c, c->id, true, c->reason ? c->reason : MR_CM_OTHER, c->detail);
    }
}

static void receive_rej(struct mr_cm_conn *c, const struct mr_cm_msg *m, uint64_t now_ns)
{
    if (!mr_cm_waiting(c) || m->id != c->id || m->by_initiator == c->initiator)
        return;
    if (m->reason == MR_CM_LATER) {
        if (c->state != MR_CM_REQ_SENT)
            return;
        if (c->attempts_max && c->pauses == PAUSES_END) {
            conn_fail(c, -ETIMEDOUT);
            return;
        }
        c->deadline_ns = now_ns + (PAUSE_NS << (c->pauses < PAUSES_MAX ? c->pauses : PAUSES_MAX));
        c->pauses++;
        c->again = true;
        c->smooth = false;
        return;
    }
    c->rejected = true;
    c->reason = m->reason;
    c->detail = m->detail;
    conn_fail(c, error_of(m->reason));
}

void mr_cm_receive_foreign(struct mr_cm_conn *c, const struct mr_cm_msg *m)
{
    if (m->type == MR_CM_REQ)
        conn_reject(c, m->id, false, MR_CM_BAD_VERSION, MR_CM_VERSION);
    if (c->state == MR_CM_CONNECTED || c->state == MR_CM_FAILED)
        return;
    c->rejected = true;
    c->reason = MR_CM_BAD_VERSION;
    c->detail = m->version;
    conn_fail(c, -EPROTONOSUPPORT);
}

void mr_cm_receive(struct mr_cm_conn *c, const struct mr_cm_msg *m, uint64_t now_ns)
{
    if (m->type == MR_CM_REQ)
        receive_req(c, m, now_ns);
    else if (m->type == MR_CM_REP)
        receive_rep(c, m);
    else if (m->type == MR_CM_REJ)
        receive_rej(c, m, now_ns);
    else if (m->type == MR_CM_RTU && !c->initiator && m->id == c->id)
        mr_cm_traffic(c);
}

void mr_cm_traffic(struct mr_cm_conn *c)
{
    if (c->state == MR_CM_REP_SENT)
        conn_establish(c);
}

void mr_cm_repeat(struct mr_cm_conn *c)
{
    if (!mr_cm_waiting(c))
        return;
    c->again = true;
    c->smooth = false;
    c->deadline_ns = 0;
}

void mr_cm_abandon(struct mr_cm_conn *c)
{
    if (c->state == MR_CM_REQ_SENT)
        conn_fail(c, -ECANCELED);
}

void mr_cm_abandon_answer(struct mr_cm_conn *c)
{
    if (c->state == MR_CM_REP_SENT)
        conn_fail(c, -ECANCELED);
}

void mr_cm_tick(struct mr_cm_conn *c, uint64_t now_ns)
{
    if (!mr_cm_waiting(c) || now_ns < c->deadline_ns)
        return;
    if (req_is_held(c)) {
        conn_request(c, now_ns);
        return;
    }
    if (!c->again) {
        c->smooth = false;
        if (++c->attempts == c->attempts_max) {
            conn_fail(c, -ETIMEDOUT);
            return;
        }
    }
    conn_arm(c, now_ns);
    c->asked_ns = now_ns;
    conn_transmit(c, c->state == MR_CM_REQ_SENT ? MR_CM_REQ : MR_CM_REP);
}
