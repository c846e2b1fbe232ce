/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Setting up the queue pairs to one peer by datagrams that may be lost, doubled or late. Pure: a state machine that is
 * told what happened and calls back; it knows no verbs and reads no clock.
 *
 *   initiator: REQ  ->            carries its queue pairs (one or two per pair of rails and path)
 *              <-  REP            the other side has made and connected its own
 *              RTU  ->            the initiator is connected too; traffic says the same
 *              <-  REJ            or: the other side cannot connect, and says why; either side says so at any time
 *
 * REQ and REP are repeated by timer, every message may come twice. What a side says of itself is kept while its round
 * lasts, and no longer: for the responder that is until it knows that the initiator has got it. If both sides start at
 * once, the lower rank's REQ counts: the higher rank turns into the responder and may use the queue pairs it has made
 * already.
 *
 * Each such exchange is a round. After the first one, either side may start others, to open what was closed meanwhile.
 * Rounds of one initiator have ascending ids; a late message of an earlier round is ignored.
 *
 * Outside of all rounds: ASK is answered by HERE as soon as the process at the other end looks at the network. Each
 * names one subchannel, whose way it takes.
 *
 * A rejection is final for its round, but for MR_CM_LATER: then the request comes again after a short pause, which
 * counts as no attempt. Messages of all versions begin alike, up to id, so that a peer of another version is told.
 */
#ifndef MRMPI_CONNECT_H
#define MRMPI_CONNECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_CM_MAGIC     0x6d72636du /* "mrcm" */
#define MR_CM_VERSION   9
#define MR_CM_SUBS_MAX  32
#define MR_CM_LEVELS    5 /* of one subchannel, by the size of messages: from small to large */
#define MR_CM_PORTS_MAX 8
#define MR_CM_LMC_MAX   7

enum mr_cm_type { MR_CM_REQ = 1, MR_CM_REP, MR_CM_RTU, MR_CM_REJ, MR_CM_ASK, MR_CM_HERE };

/* Why a side does not connect. */
enum mr_cm_reason {
    MR_CM_NO_REASON,
    MR_CM_LATER,       /* what is asked for is still being closed */
    MR_CM_NO_RAIL,     /* no rails are in common */
    MR_CM_NO_ROOM,     /* no memory, or no queue pairs */
    MR_CM_PORT_DOWN,   /* its ports of what is asked for are down */
    MR_CM_GIVEN_UP,    /* it has lost this peer before */
    MR_CM_BAD_VERSION, /* detail: its own version */
    MR_CM_OTHER,
    MR_CM_ENOUGH, /* it has as many connections as it may */
    MR_CM_REASONS
};

struct mr_cm_sub {
    uint8_t rail, remote; /* the sender's rail and the receiver's, by their numbers in the cards of these */
    uint8_t path;         /* LID path, the same on both sides */
    uint8_t kind;         /* of link, and which of those alike: 8 bits of the caller's */
    uint8_t generation;   /* of the queue pairs, by the sender's count */
    uint8_t epoch;         /* the caller's */
    uint8_t own;          /* set of the levels that have a link of their own; the others use that of the next one */
    uint8_t needed;       /* what was promised waits for it: not to be refused without need */
    /* The queue pair of each level, and its service level, of which the initiator's counts for both directions. */
    struct mr_cm_level {
        uint32_t qpn : 24, sl : 8;
    } level[MR_CM_LEVELS];
};
_Static_assert(sizeof(struct mr_cm_level) == 4, "on the wire");

/* Where a rail of the sender is at present, by its number in the sender's card. lid 0: nothing is said of it. */
struct mr_cm_port {
    uint16_t lid;
    uint8_t lmc, pad;
};

struct mr_cm_msg {
    uint32_t magic;
    uint8_t version, type;
    uint16_t num_subs;
    uint32_t job;                            /* of this run of the job: a stranger's datagram is not listened to */
    uint32_t from, to;                       /* world ranks */
    uint32_t id;                             /* the initiator's number of this round; ASK, HERE: of the question */
    uint32_t psn;                            /* first packet of the sender's queue pairs */
    uint8_t reason;                          /* REJ: enum mr_cm_reason */
    uint8_t by_initiator;                    /* REJ: the round is the sender's own */
    uint16_t detail;                         /* REJ: an errno, or what the reason says; 0: none */
    struct mr_cm_port port[MR_CM_PORTS_MAX]; /* in all messages */
    struct mr_cm_sub sub[MR_CM_SUBS_MAX];
};
_Static_assert(sizeof(struct mr_cm_msg) == 32 + 4 * MR_CM_PORTS_MAX + 28 * MR_CM_SUBS_MAX, "on the wire");

/* Bytes that travel: the subchannels that are not used stay at home. */
#define MR_CM_LENGTH(n) (offsetof(struct mr_cm_msg, sub) + (n) * sizeof(struct mr_cm_sub))

/* IDLE: no round was begun. CONNECTED, FAILED: how the last one has ended. */
enum mr_cm_state { MR_CM_IDLE, MR_CM_REQ_SENT, MR_CM_REP_SENT, MR_CM_CONNECTED, MR_CM_FAILED };

struct mr_cm_conn;

struct mr_cm_ops {
    /*
     * Make our queue pairs and describe them: sub, num_subs, psn. req: the peer's request that is to be answered, NULL:
     * we begin. What an earlier call of the same round has made may be used again. An error for a request goes to the
     * peer as a reason; -EAGAIN: it cannot be answered yet, and will be repeated. -EAGAIN when we begin: not now, ask
     * again later.
     */
    int (*prepare)(struct mr_cm_conn *c, const struct mr_cm_msg *req, struct mr_cm_msg *out);
    /* Connect them to the peer's. sls: the message whose service levels count. Called once in a round. */
    int (*connect)(struct mr_cm_conn *c, const struct mr_cm_msg *remote, const struct mr_cm_msg *sls);
    /*
     * attempt: 0, 1, ...: may choose another rail each time. Losing the datagram is allowed. -EAGAIN: there is no room
     * to send now; it is tried again at the next tick. What else is returned does not matter.
     */
    int (*transmit)(struct mr_cm_conn *c, const struct mr_cm_msg *msg, unsigned attempt);
    /* Both sides can send now. */
    void (*established)(struct mr_cm_conn *c);
    /* The round is over, without success. Another may be started after mr_cm_again(). */
    void (*failed)(struct mr_cm_conn *c, int error);
};

struct mr_cm_conn {
    const struct mr_cm_ops *ops;
    enum mr_cm_state state;
    bool initiator, heard; /* heard: the peer has begun a round before, heard_id */
    uint32_t job, self, peer, id, heard_id;
    bool again;              /* the next tick sends what it sent before, which is no further attempt */
    bool smooth;             /* nothing was repeated in this round: its time is that of a round trip */
    bool rejected;           /* FAILED: the peer said so, and why */
    uint16_t reason, detail; /* FAILED: the peer's word, or ours to it; MR_CM_NO_REASON: there was none */
    unsigned attempts, pauses;
    uint64_t asked_ns;    /* our last REQ or REP */
    uint64_t begun_ns;    /* our first REQ, or the peer's when it came before that */
    uint64_t deadline_ns; /* valid in REQ_SENT and REP_SENT */
    uint64_t timeout_ns, timeout_max_ns;
    unsigned attempts_max;   /* 0: no bound */
    struct mr_cm_msg *local; /* during a round: what we say about ourselves, MR_CM_LENGTH bytes; NULL: nothing yet */
};

void mr_cm_init(struct mr_cm_conn *c, const struct mr_cm_ops *ops, uint32_t job, uint32_t self, uint32_t peer,
                uint64_t timeout_ns, unsigned attempts_max);
/* At the end. */
void mr_cm_free(struct mr_cm_conn *c);
/* Begin a round if none was begun. id: higher than in our rounds with this peer before. */
void mr_cm_start(struct mr_cm_conn *c, uint32_t id, uint64_t now_ns);
/* After a round that is over: allow for another one, of so many attempts. */
void mr_cm_again(struct mr_cm_conn *c, unsigned attempts_max);
/* A message from this peer that mr_cm_check() has accepted, of a round. */
void mr_cm_receive(struct mr_cm_conn *c, const struct mr_cm_msg *msg, uint64_t now_ns);
/* What was sent last has gone astray: it goes again at the next tick, and counts as no attempt. */
void mr_cm_repeat(struct mr_cm_conn *c);
/* A packet of the peer came through the queue pairs: it is connected. */
void mr_cm_traffic(struct mr_cm_conn *c);
void mr_cm_tick(struct mr_cm_conn *c, uint64_t now_ns);
/* Now it may go on, if prepare() has said -EAGAIN when we began. */
void mr_cm_resume(struct mr_cm_conn *c, uint64_t now_ns);

static inline bool mr_cm_waiting(const struct mr_cm_conn *c)
{
    return c->state == MR_CM_REQ_SENT || c->state == MR_CM_REP_SENT;
}

/* Is this a whole, sane message for rank self of this job? Copies it to *out, unused parts zero. */
bool mr_cm_check(const void *data, size_t len, uint32_t job, uint32_t self, uint32_t world, struct mr_cm_msg *out);
/* Is it one that only its version makes unreadable? Copies what all versions have to *out. */
bool mr_cm_check_foreign(const void *data, size_t len, uint32_t job, uint32_t self, uint32_t world,
                         struct mr_cm_msg *out);
/* This peer sent such a one: there will be no connection. */
void mr_cm_receive_foreign(struct mr_cm_conn *c, const struct mr_cm_msg *msg);
/* A question of that number about a subchannel, or its answer; the caller adds ports, if any. */
void mr_cm_make_question(struct mr_cm_msg *out, enum mr_cm_type type, uint32_t job, uint32_t self, uint32_t peer,
                         uint32_t id, const struct mr_cm_sub *sub);
/* In words, of who says it: "it ...". */
const char *mr_cm_reason_text(unsigned reason);

#endif
