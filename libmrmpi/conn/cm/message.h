/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages of connection management between two processes of a job: one datagram each, in the layout of memory.
 * Messages of all versions begin alike, up to id, so that a peer of another version gets an error. Pure.
 */
#ifndef MRMPI_CM_MESSAGE_H
#define MRMPI_CM_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_CM_MAGIC      0x6d72636du /* "mrcm" */
#define MR_CM_VERSION    15
#define MR_CM_SUBS_MAX   32
#define MR_CM_LEVELS     5 /* of one subchannel, by the size of messages: from small to large */
#define MR_CM_PORTS_MAX  8 /* up to 16: a subchannel has four bits for each of its rails */
#define MR_CM_LMC_MAX    7
#define MR_CM_DOUBTS_MAX 4    /* ways in doubt named by a question */
#define MR_CM_DETAIL_MAX 4095 /* the highest errno */

enum mr_cm_type { MR_CM_REQ = 1, MR_CM_REP, MR_CM_RTU, MR_CM_REJ, MR_CM_ASK, MR_CM_HERE };

/* Why a side does not connect. */
enum mr_cm_reason {
    MR_CM_NO_REASON,
    MR_CM_LATER,       /* the requested subchannels are still being closed */
    MR_CM_NO_RAIL,     /* no rails are in common */
    MR_CM_NO_ROOM,     /* no memory, or no queue pairs */
    MR_CM_PORT_DOWN,   /* the ports of the requested subchannels are down */
    MR_CM_GIVEN_UP,    /* the sender has already lost this peer */
    MR_CM_BAD_VERSION, /* detail: its own version */
    MR_CM_OTHER,
    MR_CM_ENOUGH,  /* the sender is at its limit of connections */
    MR_CM_NO_PKEY, /* the sender is in none of the requested partitions */
    MR_CM_REASONS
};

struct mr_cm_sub {
    uint8_t rail : 4, remote : 4; /* the sender's rail and the receiver's, by their numbers in their addresses */
    uint8_t path;                 /* LID path, the same on both sides */
    uint8_t kind;                 /* of link, and its copy: 8 bits of the caller's */
    uint8_t generation; /* of the queue pairs, by the sender's count; ASK, from sub[1] on, ways in doubt: how many
                           rounds of questions were not answered */
    uint8_t epoch;      /* the caller's */
    uint8_t own : 6;    /* set of the levels with a link of their own; the others use that of the next level */
    uint8_t needed : 1; /* promised transfers wait for it: not to be refused without need */
    uint8_t loses : 1;  /* ASK, HERE: it broke since packets were lost on its way */
    uint16_t pkey;      /* of the sender's rail: its queue pairs are in this partition. The initiator chooses it */
    /* The queue pair and service level of each level; the initiator's service levels count for both directions. */
    struct mr_cm_level {
        uint32_t qpn : 24, sl : 8;
    } level[MR_CM_LEVELS];
};
_Static_assert(sizeof(struct mr_cm_level) == 4, "on the wire");

/* Where a rail of the sender is at present, by its number in the sender's address. lid 0: nothing is said of it. */
struct mr_cm_port {
    uint16_t lid;
    uint8_t lmc : 3, life : 4; /* life: how often the adapter was opened anew; wraps */
    uint8_t ud_qpn[3]; /* for datagrams in the message's partition: of another queue pair when the adapter was opened
                          anew; 0: the rail is not in that partition */
};

/* REQ, REP: a queue pair on a rail of the sender without traffic, to ask its adapter. 0: none. */
struct mr_cm_guard {
    uint32_t qpn;
};

struct mr_cm_msg {
    uint32_t magic;
    uint8_t version, type;
    uint16_t num_subs;
    uint32_t job;                            /* of this run of the job: a stranger's datagram is not listened to */
    uint32_t from, to;                       /* world ranks */
    uint32_t id;                             /* the initiator's number of this handshake; ASK, HERE: of the question */
    uint32_t psn;                            /* first packet of the sender's queue pairs */
    uint32_t done;                           /* REQ: the sender's last answered handshake; 0: none */
    uint8_t reason;                          /* REJ: enum mr_cm_reason; HERE: MR_CM_GIVEN_UP or none */
    uint8_t by_initiator;                    /* REJ: the handshake is the sender's own */
    uint16_t detail;                         /* REJ: an errno, or a value defined by the reason; 0: none */
    uint8_t rail : 4, remote : 4;            /* the way that this copy takes: the sender's rail, the receiver's, */
    uint8_t path;                            /* and the LID path */
    uint16_t moves;                          /* of the sender's ports so far, wraps: later messages know better */
    uint16_t partition;                      /* the ports' queue pairs are for this partition */
    uint16_t unsent;                         /* HERE: answers over this way so far that found no room; wraps */
    struct mr_cm_port port[MR_CM_PORTS_MAX]; /* in all messages */
    struct mr_cm_guard guard[MR_CM_PORTS_MAX];
    struct mr_cm_sub sub[MR_CM_SUBS_MAX];
};
_Static_assert(sizeof(struct mr_cm_msg) == 44 + 10 * MR_CM_PORTS_MAX + 28 * MR_CM_SUBS_MAX, "on the wire");

/* Bytes sent: unused subchannels are left out. */
#define MR_CM_LENGTH(n) (offsetof(struct mr_cm_msg, sub) + (n) * sizeof(struct mr_cm_sub))

/* The common part of all types; the rest is zero. */
struct mr_cm_msg mr_cm_message(enum mr_cm_type type, uint32_t job, uint32_t from, uint32_t to, uint32_t id);
/* The rank that a message says to come from; false: too short for one. Nothing else of the message is checked. */
bool mr_cm_sender(const void *data, size_t len, uint32_t *from);
/* Is this a whole, sane message for rank self of this job? Copies it to *out, unused parts zero. */
bool mr_cm_check(const void *data, size_t len, uint32_t job, uint32_t self, uint32_t world, struct mr_cm_msg *out);
/* True if only the version makes the message unreadable. Copies the common part of all versions to *out. */
bool mr_cm_check_foreign(const void *data, size_t len, uint32_t job, uint32_t self, uint32_t world,
                         struct mr_cm_msg *out);
/* A question of that number about a subchannel, or its answer; the caller adds ports, if any. */
void mr_cm_make_question(struct mr_cm_msg *out, enum mr_cm_type type, uint32_t job, uint32_t self, uint32_t peer,
                         uint32_t id, const struct mr_cm_sub *sub);
/* In words, about the sender: "it ...". */
const char *mr_cm_reason_text(unsigned reason);

#endif
