/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Setting up the queue pairs to one peer by datagrams that may be lost, doubled or late. Pure: a state machine that
 * takes events and calls back, without verbs or clock.
 *
 *   initiator: REQ  ->            carries its queue pairs (one or two per pair of rails and path)
 *              <-  REP            the other side has made and connected its own
 *              RTU  ->            the initiator is connected too; traffic says the same
 *              <-  REJ            or: the other side cannot connect, and says why; either side says so at any time
 *
 * REQ and REP are repeated by timer, every message may come twice. A side's description of itself is kept only during
 * its handshake: for the responder, until the initiator is known to have it. If both sides start at once, the lower
 * rank's REQ counts: the higher rank turns into the responder and may use the queue pairs it has made already. A higher
 * rank that repeats its REQ has not received the lower one's, whose way may be dead: if the lower rank yields, the
 * higher one's counts then.
 *
 * Each such exchange is a handshake. After the first handshake, either side may start others, to open subchannels
 * closed meanwhile. Handshakes of one initiator have ascending ids; a late message of an earlier one is ignored.
 *
 * Outside of all handshakes: ASK is answered by HERE as soon as the process at the other end polls. Each names one
 * subchannel, whose way it takes.
 *
 * A rejection is final for its handshake, but for MR_CM_LATER: then the request comes again after a short pause, which
 * counts as no attempt.
 */
#ifndef MRMPI_CM_CONN_H
#define MRMPI_CM_CONN_H

#include "libmrmpi/conn/cm/message.h"

/* IDLE: no handshake was begun. CONNECTED, FAILED: how the last one has ended. */
enum mr_cm_state { MR_CM_IDLE, MR_CM_REQ_SENT, MR_CM_REP_SENT, MR_CM_CONNECTED, MR_CM_FAILED };

struct mr_cm_conn;

struct mr_cm_ops {
    /*
     * Makes our queue pairs and describes them: sub, num_subs, psn. req: the peer's request to answer, NULL: we begin.
     * Queue pairs of an earlier call in the same handshake may be used again. An error for a request goes to the peer
     * as a reason; -EAGAIN: not yet possible, the request will be repeated. -EAGAIN when we begin: not now, call again
     * later.
     */
    int (*prepare)(struct mr_cm_conn *c, const struct mr_cm_msg *req, struct mr_cm_msg *out);
    /* Connects them to the peer's. sls: the message whose service levels count. Called once per handshake. */
    int (*connect)(struct mr_cm_conn *c, const struct mr_cm_msg *remote, const struct mr_cm_msg *sls);
    /*
     * attempt: 0, 1, ...: may choose another rail each time. The datagram may be lost. -EAGAIN: no room to send now;
     * tried again at the next tick. Other results are ignored.
     */
    int (*transmit)(struct mr_cm_conn *c, const struct mr_cm_msg *msg, unsigned attempt);
    /* Both sides can send now. */
    void (*established)(struct mr_cm_conn *c);
    /* The handshake is over, without success. Another may be started after mr_cm_again(). */
    void (*failed)(struct mr_cm_conn *c, int error);
};

struct mr_cm_conn {
    const struct mr_cm_ops *ops;
    enum mr_cm_state state;
    bool first;            /* our request counts if both begin: the lower rank's. The caller may change it */
    bool initiator, heard; /* heard: the peer has begun a handshake before, heard_id */
    uint32_t job, self, peer, id, heard_id;
    uint32_t done; /* our last established handshake; 0: none */
    bool yields;   /* a request of the peer counts, if ours has had no answer for a while, or that comes again */
    bool rival;    /* heard_id is that of a request received while ours was under way */
    bool again;    /* the next tick repeats the last message, which is no further attempt */
    bool smooth;   /* nothing was repeated in this handshake: its time is that of a round trip */
    bool rejected; /* FAILED: reported by the peer, with the reason */
    uint16_t reason, detail; /* FAILED: the peer's, or ours for it; MR_CM_NO_REASON: there was none */
    unsigned attempts, pauses;
    unsigned attempts_max; /* 0: no bound */
    uint64_t asked_ns;     /* our last REQ or REP */
    uint64_t begun_ns;     /* our first REQ, or the peer's if earlier */
    uint64_t deadline_ns;  /* valid in REQ_SENT and REP_SENT */
    uint64_t timeout_ns, timeout_max_ns;
    struct mr_cm_msg *local; /* in a handshake: our description of ourselves, MR_CM_LENGTH bytes; NULL: nothing yet */
};

void mr_cm_init(struct mr_cm_conn *c, const struct mr_cm_ops *ops, uint32_t job, uint32_t self, uint32_t peer,
                uint64_t timeout_ns, unsigned attempts_max);
/* At the end. */
void mr_cm_free(struct mr_cm_conn *c);
/* Begins a handshake if none was begun. id: higher than those of earlier handshakes with this peer. */
void mr_cm_start(struct mr_cm_conn *c, uint32_t id, uint64_t now_ns);
/* After the end of a handshake: allows another, with this number of attempts. */
void mr_cm_again(struct mr_cm_conn *c, unsigned attempts_max);
/* A message from this peer that mr_cm_check() has accepted, of a handshake. */
void mr_cm_receive(struct mr_cm_conn *c, const struct mr_cm_msg *msg, uint64_t now_ns);
/* True if the message belongs to an earlier handshake: its data on ports may be old. */
bool mr_cm_is_late(const struct mr_cm_conn *c, const struct mr_cm_msg *msg);
/* The last message was lost: repeats it at the next tick, not counted as an attempt. */
void mr_cm_repeat(struct mr_cm_conn *c);
/* A packet of the peer came through the queue pairs: it is connected. */
void mr_cm_traffic(struct mr_cm_conn *c);
/* Gives up our request, if one is under way, without telling the peer. */
void mr_cm_abandon(struct mr_cm_conn *c);
/* The same of an answer of ours: its way is dead, and others live. */
void mr_cm_abandon_answer(struct mr_cm_conn *c);
void mr_cm_tick(struct mr_cm_conn *c, uint64_t now_ns);
/* Now it may go on, if prepare() has said -EAGAIN when we began. */
void mr_cm_resume(struct mr_cm_conn *c, uint64_t now_ns);

static inline bool mr_cm_waiting(const struct mr_cm_conn *c)
{
    return c->state == MR_CM_REQ_SENT || c->state == MR_CM_REP_SENT;
}

/* This peer sent a message accepted by mr_cm_check_foreign(): there will be no connection. */
void mr_cm_receive_foreign(struct mr_cm_conn *c, const struct mr_cm_msg *msg);

#endif
