/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of transfers, the list of those served by progress, and the steps common to all protocols. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/p2p/rndv/protocols.h"
#include "libmrmpi/p2p/rndv/stream.h"

struct mr_rndvs mr_rndvs;

static int grow_table(void)
{
    uint32_t size = mr_rndvs.size ? mr_rndvs.size * 2 : 64;
    struct mr_rndv **table = realloc(mr_rndvs.table, size * sizeof(*table));
    uint32_t *spare;

    if (!table)
        return -ENOMEM;
    mr_rndvs.table = table;
    spare = realloc(mr_rndvs.free, size * sizeof(*spare));
    if (!spare)
        return -ENOMEM;
    mr_rndvs.free = spare;
    mr_rndvs.size = size;
    return 0;
}

static struct mr_rndv *take_slot(void)
{
    struct mr_rndv *r;

    if (mr_rndvs.num_free)
        return mr_rndvs.table[mr_rndvs.free[--mr_rndvs.num_free]];
    if (mr_rndvs.used == mr_rndvs.size && grow_table())
        return NULL;
    r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->index = mr_rndvs.used;
    r->generation = 1;
    mr_rndvs.table[mr_rndvs.used++] = r;
    return r;
}

struct mr_rndv *mr_rndv_new(struct mr_request *req, struct mr_vc *vc, enum mr_rndv_state state)
{
    struct mr_rndv *r = take_slot();

    if (!r)
        return NULL;
    *r = (struct mr_rndv){.index = r->index, .generation = r->generation, .state = state, .req = req, .vc = vc};
    req->proto = r;
    mr_rndvs.pending++;
    return r;
}

void mr_rndv_begin(struct mr_rndv *r, const struct mr_protocol *by)
{
    _Static_assert(sizeof(r->packets) <= sizeof(r->read) && sizeof(r->split) <= sizeof(r->read) &&
                       sizeof(r->landing) <= sizeof(r->read),
                   "the largest of the union");
    r->state = MR_RNDV_MOVING;
    r->by = by;
    memset(&r->read, 0, sizeof(r->read));
}

void mr_rndv_reopen(struct mr_rndv *r)
{
    r->state = MR_RNDV_OFFERED;
    r->by = NULL;
}

/* The oldest first: transfers end in the order of their beginning. */
void mr_rndv_activate(struct mr_rndv *r)
{
    r->next = NULL;
    r->prev = mr_rndvs.active_last;
    if (r->prev)
        r->prev->next = r;
    else
        mr_rndvs.active = r;
    mr_rndvs.active_last = r;
}

bool mr_rndv_is_active(const struct mr_rndv *r)
{
    return r->prev || mr_rndvs.active == r;
}

void mr_rndv_deactivate(struct mr_rndv *r)
{
    if (!mr_rndv_is_active(r))
        return;
    if (r->prev)
        r->prev->next = r->next;
    else
        mr_rndvs.active = r->next;
    if (r->next)
        r->next->prev = r->prev;
    else
        mr_rndvs.active_last = r->prev;
    r->next = r->prev = NULL;
}

void mr_rndv_queue(struct mr_stream *s, struct mr_rndv *r)
{
    r->near.queued = true;
    r->behind = NULL;
    if (s->queued)
        s->queued_last->behind = r;
    else
        s->queued = r;
    s->queued_last = r;
    if (s->queued == r)
        mr_rndv_activate(r);
}

struct mr_rndv *mr_rndv_unqueue(struct mr_stream *s)
{
    struct mr_rndv *r = s->queued;

    s->queued = r->behind;
    r->near.queued = false;
    mr_rndv_deactivate(r);
    if (s->queued)
        mr_rndv_activate(s->queued);
    return r;
}

static void leave_queue(struct mr_stream *s, struct mr_rndv *r)
{
    struct mr_rndv *before = s->queued;

    if (before == r) {
        mr_rndv_unqueue(s);
        return;
    }
    while (before->behind != r)
        before = before->behind;
    before->behind = r->behind;
    if (s->queued_last == r)
        s->queued_last = before;
}

static void leave_near(struct mr_rndv *r)
{
    struct mr_near *n = &mr_rndvs.near;

    --*(mr_rndv_sends(r) ? &n->sends : &n->receives);
    n->claims &= ~r->near.claim_bit;
    if (r->near.queued)
        leave_queue(mr_flow_of(r->vc)->stream, r);
    else if (r->near.started)
        mr_flow_of(r->vc)->stream->started--;
}

static void leave_offers(struct mr_rndv *r)
{
    struct mr_rndv **at = &mr_flow_of(r->vc)->stream->offers;

    while (*at != r)
        at = &(*at)->behind;
    *at = r->behind;
}

void mr_rndv_drop(struct mr_rndv *r)
{
    mr_rndv_deactivate(r);
    mr_stream_uncount(r);
    if (r->offer.awaits)
        leave_offers(r);
    if (r->near.counted)
        leave_near(r);
    if (r->region)
        mr_vc_withdraw(r->region);
    r->region = NULL;
    if (r->offer.bounce)
        mr_bounce_release(r);
    r->req->proto = NULL;
    r->req = NULL;
    r->state = MR_RNDV_FREE;
    r->generation++;
    mr_rndvs.free[mr_rndvs.num_free++] = r->index;
    mr_rndvs.pending--;
}

void mr_rndv_table_free(void)
{
    for (uint32_t i = 0; i < mr_rndvs.used; i++)
        free(mr_rndvs.table[i]);
    free(mr_rndvs.table);
    free(mr_rndvs.free);
}

struct mr_rndv *mr_rndv_find(struct mr_vc *vc, uint64_t id)
{
    uint32_t index = (uint32_t)id;
    struct mr_rndv *r = index < mr_rndvs.used ? mr_rndvs.table[index] : NULL;

    if (!r || r->state == MR_RNDV_FREE || r->generation != id >> 32 || r->vc != vc)
        return NULL;
    return r;
}

void mr_rndv_finish(struct mr_rndv *r, enum mr_err error)
{
    struct mr_request *req = r->req;

    if (r->offer.sent) {
        mr_rndv_drop(r);
        mr_request_put(req);
        return;
    }
    if (error && !req->status.error)
        req->status.error = error;
    if (r->by && r->by->ended)
        r->by->ended(r);
    if (r->by && !error && !mr_rndv_sends(r))
        mr_stat_add(r->by->stat, 1);
    mr_rndv_drop(r);
    mr_request_complete(req);
}

struct mr_hdr mr_rndv_header(const struct mr_rndv *r, enum mr_packet kind, uint64_t len)
{
    struct mr_hdr hdr = {.kind = kind, .len = len};
    bool sender = mr_rndv_sends(r);

    hdr.sreq = sender ? mr_rndv_id(r) : r->peer_id;
    hdr.rreq = sender ? r->peer_id : mr_rndv_id(r);
    return hdr;
}

int mr_rndv_tell(struct mr_rndv *r, enum mr_packet kind, uint64_t len, const void *payload, size_t payload_len)
{
    struct mr_hdr hdr = mr_rndv_header(r, kind, len);

    return mr_vc_send(r->vc, &hdr, payload, payload_len);
}

void mr_rndv_received(struct mr_rndv *r, bool fin)
{
    int err = fin ? mr_rndv_tell(r, MR_PKT_FIN, 0, NULL, 0) : 0;

    if (r->near.timed)
        mr_copy_mode_ended(&mr_rndvs.near.modes, &r->near.choice, mr_clock_ns());
    mr_rndv_finish(r, err ? MR_ERR_PROC_FAILED : MR_SUCCESS);
}
