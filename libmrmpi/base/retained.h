/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Retained receive buffers: the payload of a packet stays where the adapter put it for as long as a higher subsystem
 * needs the bytes, without a copy. The owner of the buffers (verbs/rx.c) finds buffers, and bounds their number, so
 * that the adapter always has buffers. Without such a buffer the caller copies.
 *
 * A buffer may be retained several times at once (refs). The buffer outlasts its queue, port and device until it is
 * returned.
 */
#ifndef MRMPI_BASE_RETAINED_H
#define MRMPI_BASE_RETAINED_H

#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"

#define MR_RETAINED_LEAST 2048u /* to copy a shorter payload takes no longer than a poll of another queue */

/* The time of retention: data that waits for the program may wait for ever, and has fewer buffers. */
enum mr_retained_term {
    MR_RETAINED_UNTIL_TURN,     /* until earlier packets have arrived */
    MR_RETAINED_UNTIL_RECEIVED, /* until the program asks for the message */
};

struct mr_retained {
    unsigned refs;
    uint32_t len; /* of the payload; these three belong to p2p/, which keeps a buffer for one message only */
    const void *payload;
    struct mr_retained *next;                        /* of the message's buffers */
    void (*give_back)(struct mr_retained *retained); /* nobody needs the buffer any more */
};

/* The buffer that contains this byte, if it may be retained; NULL: it may not. */
extern MR_OWN struct mr_retained *(*mr_retained_find)(const void *payload, enum mr_retained_term term);

/*
 * Keeps a payload of len bytes that has just been handed up. NULL: the payload has to be copied. Ends by
 * mr_retained_return.
 */
static inline struct mr_retained *mr_retained_take(const void *payload, size_t len, enum mr_retained_term term)
{
    struct mr_retained *retained =
        len >= MR_RETAINED_LEAST && mr_retained_find ? mr_retained_find(payload, term) : NULL;

    if (retained)
        retained->refs++;
    return retained;
}

static inline void mr_retained_return(struct mr_retained *retained)
{
    if (!--retained->refs)
        retained->give_back(retained);
}

#endif
