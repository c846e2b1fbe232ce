/* SPDX-License-Identifier: BSD-3-Clause */
/* When messages that follow each other are read: see burst.h. */
#include "libmrmpi/pt2pt/burst.h"

#define PAGE_SHIFT 12

/*
 * The registration is worth it. Each page has one place, whatever the distance of buffers: of two that want the same,
 * none is remembered while they take turns.
 */
static bool used(struct mr_burst_buffer *table, const void *buf, size_t len)
{
    uintptr_t page = (uintptr_t)buf >> PAGE_SHIFT;
    struct mr_burst_buffer *at = &table[(page ^ page / MR_BURST_BUFFERS) % MR_BURST_BUFFERS];

    if (at->page != page)
        *at = (struct mr_burst_buffer){.page = page};
    if (at->bytes >= MR_BURST_WORTH)
        return true;
    at->bytes += len < MR_BURST_WORTH ? (uint32_t)len : MR_BURST_WORTH;
    return false;
}

bool mr_burst_join(struct mr_burst *b, const void *buf, size_t len)
{
    if (!b->open++) {
        b->before = b->now;
        b->now = 0;
        b->asked = false; /* its send is complete */
    }
    b->now += len;
    if (b->now <= MR_BURST_BYTES && b->before < MR_BURST_BYTES)
        return false;
    if (!used(b->sent, buf, len))
        return false;
    if (b->rest) {
        b->rest--;
        return false;
    }
    if (!b->trusted && b->asked)
        return false;
    b->asked = true;
    return true;
}

bool mr_burst_filled(struct mr_burst *b, const void *buf, size_t len)
{
    return used(b->filled, buf, len);
}

void mr_burst_taken(struct mr_burst *b, bool read)
{
    b->trusted = read;
    b->asked = false;
    if (read) {
        b->rests = MR_BURST_REST;
    } else if (!b->rest) {
        b->rest = b->rests < MR_BURST_REST ? MR_BURST_REST : b->rests;
        b->rests = b->rest < MR_BURST_RESTS ? b->rest * 2 : b->rest;
    }
}
