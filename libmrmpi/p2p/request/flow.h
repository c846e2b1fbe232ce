/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow control to a peer: credits for eager messages (credit.h counts them), and nonblocking sends that are held while
 * too many packets to the peer wait for room. A held send has not been copied: its data lies in the program's buffer,
 * and its request is under way. All later sends wait behind it, so that messages keep their order; the packets of begun
 * transfers, and all answers, do not.
 *
 * There is one struct mr_flow for each peer, on any channel: its virtual channel is the first member.
 */
#ifndef MRMPI_REQUEST_FLOW_H
#define MRMPI_REQUEST_FLOW_H

#include "libmrmpi/p2p/choice/credit.h"
#include "libmrmpi/p2p/request/state.h"

struct mr_flow {
    struct mr_vc vc;
    struct mr_credit credit;
    struct mr_request *held, *held_last;
    struct mr_vc *next;        /* with held sends */
    struct mr_message *coming; /* a partly received eager message of several packets (parts.c) */
    struct mr_stream *stream;  /* NULL: no large message has had more than an offer */
    bool listed;
    bool parts, told; /* the peer's program has called MPI_Finalize; the peer was told the same of ours (end.c) */
};

static inline struct mr_flow *mr_flow_of(struct mr_vc *vc)
{
    return container_of(vc, struct mr_flow, vc);
}

/* ---- credits ----------------------------------------------------------------------------------------------------- */

void mr_flow_init(void);
bool mr_flow_free_of_credit(struct mr_vc *vc); /* the own rank: whoever waited for itself would wait for ever */

/* A message of so many bytes may be sent eagerly. */
static inline bool mr_flow_allows(struct mr_vc *vc, size_t len)
{
    return likely(mr_credit_allows(&mr_flow_of(vc)->credit, len, mr_pt2pt.window)) || mr_flow_free_of_credit(vc);
}

/* An eager message of this length has met its receive, or will never need one. */
void mr_flow_check(struct mr_vc *vc);
static inline void mr_flow_consume(struct mr_vc *vc, size_t len)
{
    if (unlikely(mr_credit_consume(&mr_flow_of(vc)->credit, len)))
        mr_flow_check(vc);
}

/* Handles a packet's note, if new, and credit. */
void mr_flow_new_note(struct mr_vc *vc, uint8_t note);
void mr_flow_credited(struct mr_vc *vc, uint64_t consumed);
static inline void mr_flow_note(struct mr_vc *vc, uint8_t note)
{
    if (unlikely(note != mr_flow_of(vc)->credit.noted))
        mr_flow_new_note(vc, note);
}

/* ---- held sends -------------------------------------------------------------------------------------------------- */

bool mr_flow_crowded(struct mr_vc *vc); /* more than MRMPI_UNSENT_MAX packets wait */
bool mr_flow_must_hold(struct mr_vc *vc);
void mr_flow_hold(struct mr_vc *vc, struct mr_request *req);
void mr_flow_withdraw(struct mr_request *req);                /* cancelled */
void mr_flow_refuse(struct mr_request *req, enum mr_err why); /* a held send ends with this error */
/* Begins held sends for which there is room now: each leaves the queue before. Returns their number. */
int mr_flow_release(void (*begin)(struct mr_request *req, struct mr_vc *vc));

#endif
