/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of short writes: their memory, which is used again and again, and how they are posted. */
#include "libmrmpi/net/stripe/wlist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/net/view/view.h"
#include "libmrmpi/net/stripe/keys.h"

/* A put with one stripe, and its list. */
struct whole {
    struct mr_put put;
    struct mr_stripe_op stripe;
    struct mr_wlist list;
};
_Static_assert(offsetof(struct whole, stripe) == offsetof(struct mr_put, stripe), "the stripe is that of the put");

static struct mr_put *take(void)
{
    struct mr_put *put = mr_bulk.free_lists;

    if (put)
        mr_bulk.free_lists = put->next;
    return put ? put : malloc(sizeof(struct whole));
}

int mr_wlist_begin(struct mr_bulk_writer *w)
{
    struct mr_put *put = take();
    struct whole *all = (struct whole *)put;
    struct mr_wlist *list;

    if (!put)
        return -ENOMEM;
    memset(put, 0, offsetof(struct whole, list));
    put->peer = w->peer;
    put->remote = w->remote;
    put->list = list = &all->list;
    put->num = put->filter.open = 1;
    all->stripe.put = put;
    list->writer = w;
    list->serial = w->base.serial;
    list->attached = w->base.withdrawn != NULL;
    w->filling = put;
    w->base.open++;
    w->base.left = MR_WLIST_WRITES;
    w->base.last = list->write - 1; /* not looked at, since no write ends at end */
    w->base.end = UINT64_MAX;
    w->base.to = list->data;
    return 0;
}

struct mr_put *mr_wlist_close(struct mr_bulk_writer *w)
{
    struct mr_put *put = w->filling;
    struct mr_stripe_op *s = &put->stripe[0];

    put->list->num = MR_WLIST_WRITES - w->base.left;
    s->len = s->left = (uint64_t)(w->base.to - put->list->data);
    w->filling = NULL;
    w->base.left = 0;
    w->base.end = UINT64_MAX;
    return put;
}

/* The first write behind so many bytes. */
static unsigned write_at(const struct mr_wlist *b, uint64_t bytes)
{
    unsigned i = 0;

    while (bytes && i < b->num)
        bytes -= b->write[i++].len;
    return i;
}

/* What is not known to have arrived goes back to the owner, if that wants to know. */
static __attribute__((noinline)) void give_back(struct mr_bulk_writer *w, const struct mr_put *put)
{
    const struct mr_wlist *b = put->list;
    unsigned first = write_at(b, put->stripe[0].there);

    if (!w->closed)
        w->base.withdrawn(&w->base, b->write + first, b->num - first, b->serial);
}

void mr_wlist_end(struct mr_put *put, int error)
{
    struct mr_bulk_writer *w = put->list->writer;

    if (error == -EACCES && put->list->attached) {
        give_back(w, put);
        error = 0;
    }
    put->next = mr_bulk.free_lists;
    mr_bulk.free_lists = put;
    if (error)
        w->base.error = error;
    if (!--w->base.open && w->closed)
        free(w);
}

void mr_wlists_free(void)
{
    while (mr_bulk.free_lists) {
        struct mr_put *put = mr_bulk.free_lists;

        mr_bulk.free_lists = put->next;
        free(put);
    }
}

/* Adapters of one host may take data of different lengths with their requests. 0 or a negative errno. */
static __attribute__((noinline)) int register_data(struct mr_put *put, const struct mr_rail *rail)
{
    if (put->reg) /* it may have been opened anew since */
        return mr_memory_is_on(&put->reg->memory, rail)
                   ? 0
                   : mr_regcache_extend(&mr_regs.cache, put->reg, (struct mr_reg_wish){.devices = mr_regs_devices()});
    return mr_regs_get(put->list->data, sizeof put->list->data, MR_ACCESS_SOURCE, false, &put->reg);
}

int mr_wlist_post(struct mr_stripe_op *s, struct mr_link *l)
{
    struct mr_put *put = s->put;
    struct mr_wlist *b = put->list;
    unsigned first = write_at(b, s->len - s->left), posted;
    struct mr_link_list list = {
        .one = b->write + first, .num = b->num - first, .rkey = mr_bulk_key(put, s->sub->remote_rail)};
    uint64_t bytes = 0;
    int err;

    if (__builtin_expect(b->writer->base.most > l->qp.max_inline, 0)) {
        if (register_data(put, l->rail))
            return -EAGAIN; /* that was logged; there may be memory later */
        list.lkey = mr_memory_lkey(&put->reg->memory, l->rail);
    }
    err = l->ops->write_list(l, &list, &s->tx, &posted);
    if (posted) {
        for (unsigned i = 0; i < posted; i++)
            bytes += list.one[i].len;
        mr_rail_add(l->rail, MR_RAIL_BYTES_WRITTEN, bytes);
        mr_view_moved(s->sub, bytes, false);
        if (s->state != MR_STRIPE_POSTED) {
            mr_rail_add(l->rail, MR_RAIL_STRIPES_WRITTEN, 1);
            s->begun_ns = mr_view_begin();
        }
        s->state = MR_STRIPE_POSTED;
        s->left -= bytes; /* the rest follows when these have arrived (mr_stripe_done) */
    }
    return err;
}
