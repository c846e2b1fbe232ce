/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bounce buffer of a large message, at the sender: a copy of its last bytes, in memory that stays registered, from
 * which the receiver reads them. After reading the rest, the receiver sends FRONT, and the send is complete: the
 * program sends on while the copied bytes are on their way. The transfer lives until FIN, with a reference to its
 * request. A peer lost before is reported as for eager messages: by the next send to it.
 *
 * A bounce is the memory for the last bytes of a peer's messages of one batch or more, as long as some are under way.
 * There are few, for any number of peers.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/p2p/rndv/stream.h"

#define BOUNCES     16u
#define BOUNCE_SIZE MR_BATCH_MOST

struct mr_bounce {
    struct mr_bounce *next; /* all of them */
    struct mr_vc *vc;       /* the peer it is advertised to, as that region */
    struct mr_region *region;
    struct mr_remote remote;
    uint32_t used, copies; /* bytes; copies under way in them */
    uint8_t *memory;
};

static struct mr_bounce *make_bounce(void)
{
    struct mr_bounce *b = calloc(1, sizeof *b);

    if (!b || !(b->memory = aligned_alloc(MR_MODEL_PAGE, BOUNCE_SIZE))) {
        free(b);
        return NULL;
    }
    b->next = mr_rndvs.bounces;
    mr_rndvs.bounces = b;
    mr_rndvs.num_bounces++;
    return b;
}

static bool advertise(struct mr_bounce *b, struct mr_vc *vc)
{
    if (b->vc == vc)
        return true;
    if (b->region)
        mr_vc_withdraw(b->region);
    b->vc = NULL;
    b->region = NULL;
    if (mr_vc_advertise(vc, b->memory, BOUNCE_SIZE, MR_VC_READ, &b->region, &b->remote))
        return false;
    b->vc = vc;
    return true;
}

/* Preferably one that this peer had before. */
static struct mr_bounce *idle_bounce(struct mr_vc *vc)
{
    struct mr_bounce *any = NULL;

    for (struct mr_bounce *b = mr_rndvs.bounces; b; b = b->next) {
        if (!b->copies && b->vc == vc)
            return b;
        if (!b->copies)
            any = b;
    }
    if (mr_rndvs.num_bounces < BOUNCES)
        any = make_bounce();
    return any && advertise(any, vc) ? any : NULL;
}

bool mr_bounce_offer(struct mr_rndv *r, size_t bytes, struct mr_remote *out)
{
    struct mr_stream *s = mr_flow_of(r->vc)->stream;
    struct mr_bounce *b = s->bounce;

    if (!b || bytes > BOUNCE_SIZE - b->used) /* the copies of the batch before may still be on their way */
        b = idle_bounce(r->vc);
    if (!b)
        return false;
    memcpy(b->memory + b->used, (const char *)mr_data_at(r->req->send_buf, r->req->type) + r->total - bytes, bytes);
    *out = b->remote;
    out->addr += b->used;
    out->len = bytes;
    b->used += (uint32_t)bytes;
    b->copies++;
    s->bounce = r->offer.bounce = b;
    mr_stat_add(MR_STAT_BOUNCES_COPIED, 1);
    return true;
}

void mr_bounce_release(struct mr_rndv *r)
{
    struct mr_bounce *b = r->offer.bounce;

    r->offer.bounce = NULL;
    if (--b->copies)
        return;
    b->used = 0;
    if (mr_flow_of(r->vc)->stream->bounce == b)
        mr_flow_of(r->vc)->stream->bounce = NULL;
}

void mr_bounce_front(struct mr_rndv *r)
{
    struct mr_request *req = r->req;

    r->offer.sent = true;
    mr_vc_withdraw(r->region);
    r->region = NULL;
    mr_stream_uncount(r);
    mr_request_get(req);
    mr_request_complete(req);
}

void mr_bounce_forget(const struct mr_vc *vc)
{
    for (struct mr_bounce *b = mr_rndvs.bounces; b; b = b->next) {
        if (b->vc != vc)
            continue;
        if (b->region)
            mr_vc_withdraw(b->region);
        b->region = NULL;
        b->vc = NULL;
    }
}

void mr_bounce_free_all(void)
{
    struct mr_bounce *b;

    while ((b = mr_rndvs.bounces)) {
        mr_rndvs.bounces = b->next;
        if (b->region)
            mr_vc_withdraw(b->region);
        free(b->memory);
        free(b);
    }
    mr_rndvs.num_bounces = 0;
}
