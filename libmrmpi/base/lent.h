/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lent receive buffers: the payload of a packet stays where the adapter put it for as long as a higher subsystem needs
 * the bytes, without a copy. The owner of the buffers (verbs/rx.c) finds buffers, and bounds the number of loans, so
 * that the adapter always has buffers. Without a loan the caller copies.
 *
 * A buffer may be lent several times at once (refs). The buffer outlasts its queue, port and device until it is
 * returned.
 */
#ifndef MRMPI_BASE_LENT_H
#define MRMPI_BASE_LENT_H

#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"

#define MR_LENT_LEAST 2048u /* to copy a shorter payload takes no longer than a look at another completion queue */

/* The time of the loan: data that waits for the program may wait for ever, and has fewer buffers. */
enum mr_lent_term {
    MR_LENT_UNTIL_TURN,     /* until earlier packets have arrived */
    MR_LENT_UNTIL_RECEIVED, /* until the program asks for the message */
};

struct mr_lent {
    unsigned refs;
    uint32_t len; /* of the payload; these three belong to p2p/, which keeps a buffer for one message only */
    const void *payload;
    struct mr_lent *next;                    /* of the message's buffers */
    void (*give_back)(struct mr_lent *lent); /* nobody needs the buffer any more */
};

/* The buffer that contains this byte, if it may be lent; NULL: it may not. */
extern MR_OWN struct mr_lent *(*mr_lent_find)(const void *payload, enum mr_lent_term term);

/*
 * Keeps a payload of len bytes that has just been handed up. NULL: the payload has to be copied. Ends by
 * mr_lent_return.
 */
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
