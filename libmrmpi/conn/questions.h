/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of the questions to a peer over each way: written by keepalive.c, judged by silence.c. */
#ifndef MRMPI_PEER_QUESTIONS_H
#define MRMPI_PEER_QUESTIONS_H

#include "libmrmpi/conn/internal.h"
#include "libmrmpi/conn/route/trip.h"

#define MR_QUESTIONS_KEPT 64u

/* Of a subchannel of a peer whose ways have been asked (silence.c). */
struct mr_questions {
    uint8_t missed;       /* rounds answered by other ways, but not by this way: its way is in doubt, */
    uint8_t own;          /* and the rounds among them asked by this process about this peer */
    bool asked, answered; /* in the present round */
    bool proven;          /* in an earlier round */
    uint8_t held_link;    /* 1 and the place of the link that is stuck though its way answers; 0: none */
    uint8_t held;         /* rounds answered on its service level since */
    bool on_level;        /* the last question, of the first subchannel of a way, went on such a level, */
    uint8_t sl;           /* which is this level */
    bool level_missed;    /* a question on such a level was unanswered, and no question on another level since */
    uint64_t since_ns;    /* end of the first missed round */
    uint64_t stood_bytes; /* under way over its rail when the link was first found stuck, */
    uint8_t stood;        /* and the polls since then */
    uint64_t held_ns;     /* beginning of the first held round, */
    uint64_t held_bytes;  /* and the least bytes that its way has carried since, over a moving link */
    struct mr_trip trip;  /* how long answers take */
    uint32_t heard;       /* the number of the last question that was answered; 0: none was, */
    uint64_t prompt_ns;   /* when it was asked, if the answer came before the next round; else 0, */
    uint16_t unsent;      /* and how many answers had no room to go until then (mr_cm_msg.unsent) */
    uint64_t asked_ns[MR_QUESTIONS_KEPT]; /* times of the last questions, by number */
};

/* NULL: none of the peer's was ever asked. */
static inline struct mr_questions *mr_questions_of(const struct mr_sub *sub)
{
    struct mr_questions *all = sub->peer->connect->questions;

    return all ? &all[sub - sub->peer->sub] : NULL;
}

#define MR_ROUNDS_DOUBT 2          /* rounds without an answer, until others that use the way are told to ask as well */
#define MR_CHECK_NS     1000000ull /* between two polls for silent ways, and the shortest pause between two rounds */

/* A way has come that brings answers, perhaps: the pause before the next round is short again. */
static inline void mr_questions_soon(struct mr_connect_peer *c)
{
    if (c->round_pause_ns > MR_CHECK_NS)
        c->round_pause_ns = MR_CHECK_NS;
}

/* keepalive.c: as mr_keepalive_ask, question and answer on this service level. */
void mr_keepalive_ask_on(struct mr_sub *sub, uint8_t sl, uint64_t now_ns);

#endif
