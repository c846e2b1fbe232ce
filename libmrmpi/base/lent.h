/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive buffers that are lent: the payload of a packet stays where the adapter has put it for as long as somebody
 * above needs it, and need not be copied. The room that owns the buffers (verbs/rx.c) sets mr_lent_find, and bounds how
 * many are lent, so that there are always buffers for the adapter. Whoever finds none lent copies.
 *
 * A buffer may be lent several times at once (refs). It outlasts its queue, port and device until it is given back.
 */
#ifndef MRMPI_BASE_LENT_H
#define MRMPI_BASE_LENT_H

#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"

#define MR_LENT_LEAST 2048u /* to copy a shorter payload takes no longer than a look at another completion queue */

/* How long it is needed: what waits for the program may wait for ever, and has fewer buffers. */
enum mr_lent_term {
    MR_LENT_UNTIL_TURN,     /* until packets that were sent before have come */
    MR_LENT_UNTIL_RECEIVED, /* until the program asks for the message */
};

struct mr_lent {
    unsigned refs;
    uint32_t len; /* of the payload; these three are pt2pt/'s, which keeps a buffer for one message only */
    const void *payload;
    struct mr_lent *next;                    /* of the message's buffers */
    void (*give_back)(struct mr_lent *lent); /* nobody needs it any more */
};

/* The buffer in which this byte lies, if it may be lent; NULL: it may not. */
extern MR_OWN struct mr_lent *(*mr_lent_find)(const void *payload, enum mr_lent_term term);

/* Keep a payload of len bytes that has just been handed up. NULL: it has to be copied. Ends by mr_lent_return. */
static inline struct mr_lent *mr_lent_take(const void *payload, size_t len, enum mr_lent_term term)
{
    struct mr_lent *lent = len >= MR_LENT_LEAST && mr_lent_find ? mr_lent_find(payload, term) : NULL;

    if (lent)
        lent->refs++;
    return lent;
}

static inline void mr_lent_return(struct mr_lent *lent)
{
    if (!--lent->refs)
        lent->give_back(lent);
}

#endif
