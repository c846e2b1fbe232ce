/* SPDX-License-Identifier: BSD-3-Clause */
/* When messages that follow each other are read: see burst.h. */
#include "libmrmpi/pt2pt/burst.h"

#define PAGE_SHIFT 12

/*
 * Each page has one place, whatever the distance of buffers: of two that want the same, none is remembered while they
 * take turns.
 */
static bool worth(struct mr_burst_buffers *b, const void *buf, size_t len)
{
    uintptr_t page = (uintptr_t)buf >> PAGE_SHIFT;
    unsigned at = (page ^ page / MR_BURST_BUFFERS) % MR_BURST_BUFFERS;

    b->bytes += len;
    if (b->of[at].page != page) {
        b->of[at].page = page;
        b->of[at].bytes = 0;
        b->of[at].registered = false;
    }
    if (b->of[at].registered)
        return true;
    if (b->of[at].bytes >= MR_BURST_WORTH && b->bytes >= b->next) {
        b->next = b->bytes + MR_BURST_PACE;
        return b->of[at].registered = true;
    }
    if (b->of[at].bytes < MR_BURST_WORTH)
        b->of[at].bytes += (uint32_t)len;
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
    if (!worth(&b->sent, buf, len))
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
    return worth(&b->filled, buf, len);
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
