/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short writes to windows. The first write is posted at once. While it is under way others are collected, so that many
 * writes are one list, with one doorbell and one completion: until the list is full, its owner wants the post, or the
 * network is polled (the peer is in the backlog meanwhile).
 */
#include "libmrmpi/net/bulk/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "libmrmpi/base/base.h"

static void post_list(struct mr_bulk_writer *w)
{
    struct mr_transfer *transfer = mr_wlist_close(w);

    transfer->stripe[0].tx.wr.done = mr_stripe_done;
    transfer->level = mr_bulk_write_level(w->base.most);
    mr_bulk_begin_list(transfer);
}

/* Checked for each list: all of it may change while a job runs. */
static bool may_write(const struct mr_peer *p)
{
    return !p->error && p->rdma && !p->tracked && !(mr_peers.rules.num && !mr_steer_by_rdma(p, MR_WLIST_MOST)) &&
           !(mr_peers.rationed && !mr_budget_rdma((struct mr_peer *)p));
}

/* It is posted by the next poll of the network at the latest. */
static __attribute__((noinline)) void collect_writer(struct mr_bulk_writer *w)
{
    struct mr_bulk_peer *b = mr_bulk_of(w->peer);

    w->listed = true;
    w->next = b->collecting;
    b->collecting = w;
    mr_peer_backlog(w->peer);
}

/* There is no list, or no room in it. */
int mr_net_writer_begin(struct mr_net_writer *base, uint64_t at, const void *data, size_t len)
{
    struct mr_bulk_writer *w = (struct mr_bulk_writer *)base;
    int err;

    if (len > base->most)
        return -EMSGSIZE;
    if (w->filling)
        post_list(w);
    if (!may_write(w->peer))
        return w->peer->error ? w->peer->error : -EOPNOTSUPP;
    err = mr_wlist_begin(w);
    if (err)
        return err;
    mr_net_writer_add(base, at, data, len);
    if (base->open == 1)
        post_list(w);
    else if (!w->listed)
        collect_writer(w);
    return 0;
}

void mr_net_writer_post(struct mr_net_writer *base)
{
    struct mr_bulk_writer *w = (struct mr_bulk_writer *)base;

    if (w->filling)
        post_list(w);
}

void mr_writers_post(struct mr_peer *p)
{
    struct mr_bulk_writer *w = mr_bulk_of(p)->collecting, *next;

    mr_bulk_of(p)->collecting = NULL;
    for (; w; w = next) {
        next = w->next;
        w->listed = false;
        mr_net_writer_post(&w->base);
    }
}

void mr_writers_end(struct mr_peer *p)
{
    struct mr_bulk_writer *w = mr_bulk_of(p)->collecting, *next;

    mr_bulk_of(p)->collecting = NULL;
    for (; w; w = next) {
        next = w->next;
        w->listed = false;
        if (w->filling)
            mr_wlist_end(mr_wlist_close(w), p->error);
    }
}

/* Collected writes are still posted. */
void mr_net_writer_close(struct mr_net_writer *base)
{
    struct mr_bulk_writer *w = (struct mr_bulk_writer *)base, **at = &mr_bulk_of(w->peer)->collecting;

    mr_net_writer_post(base);
    while (w->listed && *at != w)
        at = &(*at)->next;
    if (w->listed)
        *at = w->next;
    w->listed = false;
    w->closed = true;
    if (!w->base.open)
        free(w);
}

/* Each subchannel has a key. */
static bool has_keys(const struct mr_peer *p, const struct mr_remote *remote)
{
    if (remote->serial || remote->token || remote->num_keys > MR_RAILS_MAX)
        return false;
    for (unsigned i = 0; i < p->num_now; i++)
        if (p->now[i].remote_rail >= remote->num_keys)
            return false;
    return true;
}

bool mr_net_writer_aim(struct mr_net_writer *base, const struct mr_remote *remote, uint32_t serial)
{
    struct mr_bulk_writer *w = (struct mr_bulk_writer *)base;

    if (!has_keys(w->peer, remote))
        return false;
    mr_net_writer_post(base);
    w->remote = *remote;
    base->addr = remote->addr;
    base->serial = serial;
    return true;
}

/* The limit of data that goes with a request, over any open subchannel. */
static uint32_t most_inline(const struct mr_peer *p)
{
    uint32_t most = MR_WLIST_MOST;

    for (unsigned i = 0; i < p->num_now; i++)
        if (p->rdma >> i & 1 && p->now[i].state == MR_SUB_OPEN) {
            const struct mr_link *l = mr_sub_rdma_link(&p->now[i], MR_LEVEL_SMALL);

            most = l->ops->write_list ? (l->qp.max_inline < most ? l->qp.max_inline : most) : 0;
        }
    return most;
}

struct mr_net_writer *mr_net_writer_open(struct mr_vc *vc, const struct mr_remote *remote)
{
    struct mr_peer *p = vc->data;
    uint32_t most = mr_bulk_refuses(vc) ? 0 : most_inline(p);
    struct mr_bulk_writer *w;

    if (!most || !may_write(p) || !has_keys(p, remote))
        return NULL;
    w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->base = (struct mr_net_writer){.most = most, .addr = remote->addr, .end = UINT64_MAX};
    w->peer = p;
    w->remote = *remote;
    return &w->base;
}
