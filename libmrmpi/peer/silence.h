/* SPDX-License-Identifier: BSD-3-Clause */
/* What is kept of the ways to a peer that have been asked: keepalive.c writes it, silence.c judges by it. */
#ifndef MRMPI_PEER_SILENCE_H
#define MRMPI_PEER_SILENCE_H

#include "libmrmpi/peer/internal.h"

#define MR_QUESTIONS_KEPT 16u

/* Of a subchannel of a peer whose ways have been asked (silence.c). */
struct mr_silence {
    uint8_t missed;       /* rounds without an answer over its way that others have answered */
    bool asked, answered; /* in the present round */
    uint64_t since_ns;    /* the first of those ended */
    uint64_t trip_ns;     /* the longest that an answer took lately */
    uint64_t asked_ns[MR_QUESTIONS_KEPT]; /* when it was asked last, by number */
};

/* NULL: none of the peer's was ever asked. */
static inline struct mr_silence *mr_silence_of(const struct mr_sub *sub)
{
    struct mr_silence *all = sub->peer->own->silence;

    return all ? &all[sub - sub->peer->sub] : NULL;
}

#endif
