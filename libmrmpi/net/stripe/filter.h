/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completion filter: a message cut over several subchannels is one message to the protocol above. The sender counts
 * the completions of its stripes, the receiver collects the notifications (immediate data of the last write of each
 * stripe). Pure.
 *
 * A notification has 31 bits: a token that names its receive, the number of the stripe, and the number of stripes of
 * the message. (The highest bit is 0: net/stripe/blocks.h has others.) A stripe written a second time, because the
 * path of the first write broke, counts once. The token is an index into the receiver's table and the generation of
 * that entry, so a late notification finds nothing.
 */
#ifndef MRMPI_FILTER_H
#define MRMPI_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#define MR_TOKEN_INDEX_BITS  16
#define MR_TOKEN_BITS        21
#define MR_STRIPE_INDEX_BITS 5
#define MR_STRIPES_MAX       32 /* the range of the other 5 bits */

/* ---- sender ---------------------------------------------------------------------------------------------------- */

struct mr_filter {
    unsigned open; /* stripes without a completion */
    int error;     /* the first error */
};

/* One stripe is done. True for the last. */
static inline bool mr_filter_done(struct mr_filter *f, int error)
{
    if (error && !f->error)
        f->error = error;
    return --f->open == 0;
}

/* ---- receiver -------------------------------------------------------------------------------------------------- */

struct mr_target {
    void *owner; /* NULL: free */
    uint32_t next_free;
    uint8_t generation;
    uint8_t expected; /* stripes; 0: none has arrived yet */
    uint32_t arrived; /* set of stripes */
};

struct mr_targets {
    struct mr_target *entry;
    uint32_t num, first_free; /* first_free == num: none is free */
};

/* Opens a target of owner's. 0; -ENOMEM; -EAGAIN: 65,536 are in use. */
int mr_target_open(struct mr_targets *t, void *owner, uint32_t *token);
void mr_target_close(struct mr_targets *t, uint32_t token);
void mr_targets_free(struct mr_targets *t);

static inline uint32_t mr_target_imm(uint32_t token, unsigned stripe, unsigned stripes)
{
    return (token & ((1u << MR_TOKEN_BITS) - 1)) | stripe << MR_TOKEN_BITS |
           (stripes - 1) << (MR_TOKEN_BITS + MR_STRIPE_INDEX_BITS);
}

/*
 * A notification has arrived. Returns the owner if it was the last of its message, and resets the entry for another
 * message; NULL otherwise. *stray: no target matches, or the notification is a repetition.
 */
void *mr_target_arrived(struct mr_targets *t, uint32_t imm, bool *stray);
/* True if the stripe has yet to arrive. */
bool mr_target_waits(const struct mr_targets *t, uint32_t imm);

#endif
