/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys of memory attached to dynamic windows. A region is registered by itself when the first peer requests its keys,
 * until it is detached: then peers with the keys are told, and its registration ends, so that nothing reaches memory
 * that is not attached.
 *
 * Detaching is local (MPI-4.1 section 12.2.4). A peer may learn by other means that memory has been attached again, at
 * the same address, before the news that the old keys are gone. Then the adapter refuses them, and the operation is
 * done by other means (direct.c). This costs a connection; so the network is polled before keys are used, unless this
 * has just been done to the end of all requests to the peer.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/rma/internal.h"

/* ---- the origin: a peer's known regions -------------------------------------------------------------------------- */

struct mr_rma_known {
    uint64_t start, end;
    uint32_t serial;
    struct mr_remote *remote; /* NULL: not reachable by RDMA */
};

/* The first one that ends behind addr. */
static size_t known_at(const struct mr_rma_peer *p, uint64_t addr)
{
    size_t lo = 0, hi = p->num_known;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (p->known[mid].end <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void ask_for_keys(struct mr_rma_peer *p, uint64_t addr)
{
    if (!p->keys_asked)
        p->keys_asked = !mr_rma_tell(p, MR_RMA_KEYS, (struct mr_hdr){.sreq = addr});
}

/* NULL: there are no keys of that, or none are known, and have been asked for. */
static const struct mr_rma_known *look_up_keys(struct mr_rma_peer *p, uint64_t addr, size_t len)
{
    const struct mr_rma_known *k;
    size_t i;

    if (!mr_rma_is_busy(p) && p->num_known && p->polled != mr_progress_polls)
        mr_progress_some();
    i = known_at(p, addr);
    if (i == p->num_known || p->known[i].start > addr) {
        ask_for_keys(p, addr);
        return NULL;
    }
    k = &p->known[i];
    return k->remote && len <= k->end - addr ? k : NULL;
}

bool mr_attached_find(struct mr_rma_peer *p, uint64_t addr, size_t len, struct mr_remote *there, uint32_t *serial)
{
    const struct mr_rma_known *k = look_up_keys(p, addr, len);

    if (!k)
        return false;
    *there = *k->remote;
    there->addr = addr;
    there->len = len;
    *serial = k->serial;
    return true;
}

bool mr_attached_aim(struct mr_rma_peer *p, uint64_t addr, size_t len, uint64_t *at)
{
    const struct mr_rma_known *k = look_up_keys(p, addr, len);

    if (!k || (k->serial != p->aimed && !mr_net_writer_aim(p->writer, k->remote, k->serial)))
        return false;
    p->aimed = k->serial;
    *at = addr - k->start;
    return true;
}

static void forget_known(struct mr_rma_peer *p, size_t i)
{
    if (p->known[i].serial == p->aimed)
        p->aimed = 0;
    free(p->known[i].remote);
    p->num_known--;
    memmove(&p->known[i], &p->known[i + 1], (p->num_known - i) * sizeof(p->known[0]));
}

static bool room_for_known(struct mr_rma_peer *p)
{
    size_t room = p->room_known ? 2 * p->room_known : 4;
    struct mr_rma_known *more;

    if (p->num_known < p->room_known)
        return true;
    more = realloc(p->known, room * sizeof(*more));
    if (!more)
        return false;
    p->known = more;
    p->room_known = room;
    return true;
}

uint32_t mr_attached_are(struct mr_rma_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_rma_known k = {.start = hdr->sreq, .end = hdr->rreq};
    size_t i = known_at(p, k.start);

    p->keys_asked = false;
    if (k.start >= k.end || (i < p->num_known && p->known[i].start < k.end) || !room_for_known(p))
        return 0;
    if (len == sizeof(*k.remote) && (k.remote = malloc(sizeof(*k.remote))))
        memcpy(k.remote, payload, sizeof(*k.remote));
    if (k.remote && (k.remote->addr != k.start || k.remote->len != k.end - k.start)) {
        mr_log(MR_LOG_ERROR, "rank %d of a window has told keys of other memory than it says", p->rank);
        free(k.remote);
        k.remote = NULL;
    }
    if (!++p->next_known)
        p->next_known++;
    k.serial = p->next_known;
    memmove(&p->known[i + 1], &p->known[i], (p->num_known - i) * sizeof(k));
    p->known[i] = k;
    p->num_known++;
    return k.remote ? k.serial : 0;
}

void mr_attached_gone(struct mr_rma_peer *p, const struct mr_hdr *hdr)
{
    size_t i = known_at(p, hdr->sreq);

    if (i < p->num_known && p->known[i].start == hdr->sreq)
        forget_known(p, i);
}

void mr_attached_refused(struct mr_rma_peer *p, uint32_t serial)
{
    for (size_t i = 0; i < p->num_known; i++)
        if (p->known[i].serial == serial) {
            free(p->known[i].remote);
            p->known[i].remote = NULL;
        }
}

void mr_attached_forget(struct mr_rma_peer *p)
{
    while (p->num_known)
        forget_known(p, p->num_known - 1);
    free(p->known);
    p->known = NULL;
    p->room_known = 0;
}

/* ---- the target: peers with its keys ----------------------------------------------------------------------------- */

struct mr_rma_exposed {
    struct mr_region *region; /* NULL: could not be registered */
    struct mr_remote remote;
    size_t num, room;
    struct mr_rma_peer *peer[]; /* peers already told */
};

/* It has been told, or is told now. False: no memory. */
static bool note_told(struct mr_win_region *r, struct mr_rma_peer *p)
{
    struct mr_rma_exposed *e = r->exposed;
    size_t room = e ? 2 * e->room : 2;

    for (size_t i = 0; e && i < e->num; i++)
        if (e->peer[i] == p)
            return true;
    if (!e || e->num == e->room) {
        e = realloc(e, sizeof(*e) + room * sizeof(e->peer[0]));
        if (!e)
            return false;
        if (!r->exposed)
            memset(e, 0, sizeof(*e));
        e->room = room;
        r->exposed = e;
    }
    e->peer[e->num++] = p;
    return true;
}

void mr_attached_asked(struct mr_rma_peer *p, uint64_t addr)
{
    struct mr_win_state *s = p->win->in;
    struct mr_hdr hdr = {
        .kind = MR_PKT_ABOVE, .tag = MR_RMA_KEYS_ARE, .rank = p->win->comm->rank, .ctx = p->win->comm->context};
    struct mr_vc *vc = mr_rma_vc(p->win, p->rank);
    size_t i = mr_win_region_at(s, addr);
    struct mr_win_region *r = i < s->num_regions && s->region[i].start <= addr ? &s->region[i] : NULL;
    bool first = r && !r->exposed;

    if (!r || !note_told(r, p)) {
        mr_vc_send(vc, &hdr, NULL, 0);
        return;
    }
    if (first && mr_vc_advertise(vc, (void *)r->start, r->end - r->start, MR_VC_ATTACHED, &r->exposed->region,
                                 &r->exposed->remote))
        r->exposed->region = NULL;
    hdr.sreq = r->start;
    hdr.rreq = r->end;
    hdr.len = r->exposed->region ? sizeof(r->exposed->remote) : 0;
    mr_vc_send(vc, &hdr, &r->exposed->remote, hdr.len);
}

void mr_attached_withdraw(struct mr_win_region *r, bool tell)
{
    struct mr_rma_exposed *e = r->exposed;

    for (size_t i = 0; e && tell && i < e->num; i++)
        if (!e->peer[i]->error)
            mr_rma_tell(e->peer[i], MR_RMA_KEYS_GONE, (struct mr_hdr){.sreq = r->start, .rreq = r->end});
    if (e && e->region)
        mr_vc_withdraw(e->region);
    free(e);
    r->exposed = NULL;
}
