/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The out-of-order queue. A sorted list: with few rails, an early packet nearly always belongs at the tail, which is
 * tried first.
 */
#include "libmrmpi/channel/reorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int mr_reorder_hold(struct mr_reorder *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    uint32_t ahead = hdr->seq - r->expected;
    struct mr_held **at = &r->head, *h;
    struct mr_retained *retained;

    if (r->tail && r->tail->hdr.seq - r->expected < ahead)
        at = &r->tail->next;
    else
        while (*at && (*at)->hdr.seq - r->expected < ahead)
            at = &(*at)->next;
    if (*at && (*at)->hdr.seq == hdr->seq)
        return 0;

    retained = mr_retained_take(payload, len, MR_RETAINED_UNTIL_TURN);
    h = malloc(sizeof *h + (retained ? 0 : len));
    if (!h) {
        if (retained)
            mr_retained_return(retained);
        return -ENOMEM;
    }
    h->hdr = *hdr;
    h->len = len;
    h->retained = retained;
    h->payload = retained ? payload : h->copy;
    if (len && !retained)
        memcpy(h->copy, payload, len);
    h->next = *at;
    *at = h;
    if (!h->next)
        r->tail = h;
    r->num_held++;
    return 1;
}

struct mr_held *mr_reorder_pop(struct mr_reorder *r)
{
    struct mr_held *h = r->head;

    if (!h || h->hdr.seq != r->expected)
        return NULL;
    r->head = h->next;
    if (!r->head)
        r->tail = NULL;
    r->num_held--;
    h->next = NULL;
    return h;
}

void mr_reorder_free(struct mr_held *held)
{
    if (held->retained)
        mr_retained_return(held->retained);
    free(held);
}

void mr_reorder_clear(struct mr_reorder *r)
{
    struct mr_held *h;

    while ((h = r->head)) {
        r->head = h->next;
        mr_reorder_free(h);
    }
    r->tail = NULL;
    r->num_held = 0;
}
