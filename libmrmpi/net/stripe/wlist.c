/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of short writes: their memory, which is reused, and their posts. */
#include "libmrmpi/net/stripe/wlist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/net/view/view.h"
#include "libmrmpi/net/stripe/keys.h"

/* A transfer with one stripe, and its list. */
struct whole {
    struct mr_transfer transfer;
    struct mr_stripe_op stripe;
    struct mr_wlist list;
};
_Static_assert(offsetof(struct whole, stripe) == offsetof(struct mr_transfer, stripe),
               "the stripe is that of the transfer");

static struct mr_transfer *take_list(void)
{
    struct mr_transfer *transfer = mr_bulk.free_lists;

    if (transfer)
        mr_bulk.free_lists = transfer->next;
    return transfer ? transfer : malloc(sizeof(struct whole));
}

int mr_wlist_begin(struct mr_bulk_writer *w)
{
    struct mr_transfer *transfer = take_list();
    struct whole *all = (struct whole *)transfer;
    struct mr_wlist *list;

    if (!transfer)
        return -ENOMEM;
    memset(transfer, 0, offsetof(struct whole, list));
    transfer->peer = w->peer;
    transfer->remote = w->remote;
    transfer->list = list = &all->list;
    transfer->num = transfer->filter.open = 1;
    all->stripe.transfer = transfer;
    list->writer = w;
    list->serial = w->base.serial;
    list->attached = w->base.withdrawn != NULL;
    w->filling = transfer;
    w->base.open++;
    w->base.left = MR_WLIST_WRITES;
    w->base.last = list->write - 1; /* not checked, since no write ends at end */
    w->base.end = UINT64_MAX;
    w->base.to = list->data;
    return 0;
}

struct mr_transfer *mr_wlist_close(struct mr_bulk_writer *w)
{
    struct mr_transfer *transfer = w->filling;
    struct mr_stripe_op *s = &transfer->stripe[0];

    transfer->list->num = MR_WLIST_WRITES - w->base.left;
    s->len = s->left = (uint64_t)(w->base.to - transfer->list->data);
    w->filling = NULL;
    w->base.left = 0;
    w->base.end = UINT64_MAX;
    return transfer;
}

/* The first write behind a number of bytes. */
static unsigned write_at(const struct mr_wlist *b, uint64_t bytes)
{
    unsigned i = 0;

    while (bytes && i < b->num)
        bytes -= b->write[i++].len;
    return i;
}

/* Writes not known to have arrived go back to the owner, if the owner wants them. */
static __attribute__((noinline)) void return_writes(struct mr_bulk_writer *w, const struct mr_transfer *transfer)
{
    const struct mr_wlist *b = transfer->list;
    unsigned first = write_at(b, transfer->stripe[0].there);

    if (!w->closed)
        w->base.withdrawn(&w->base, b->write + first, b->num - first, b->serial);
}

void mr_wlist_end(struct mr_transfer *transfer, int error)
{
    struct mr_bulk_writer *w = transfer->list->writer;

    if (error == -EACCES && transfer->list->attached) {
        return_writes(w, transfer);
        error = 0;
    }
    transfer->next = mr_bulk.free_lists;
    mr_bulk.free_lists = transfer;
    if (error)
        w->base.error = error;
    if (!--w->base.open && w->closed)
        free(w);
}

void mr_wlists_free(void)
{
    while (mr_bulk.free_lists) {
        struct mr_transfer *transfer = mr_bulk.free_lists;

        mr_bulk.free_lists = transfer->next;
        free(transfer);
    }
}

/* Adapters of one host may take data of different lengths with their requests. 0 or a negative errno. */
static __attribute__((noinline)) int register_data(struct mr_transfer *transfer, const struct mr_rail *rail)
{
    if (transfer->reg) /* may have been opened anew since */
        return mr_memory_is_on(&transfer->reg->memory, rail)
                   ? 0
                   : mr_regs_extend(transfer->reg, (struct mr_reg_wish){.devices = mr_regs_devices()});
    return mr_regs_get(transfer->list->data, sizeof transfer->list->data, MR_ACCESS_SOURCE, false, &transfer->reg);
}

int mr_wlist_post(struct mr_stripe_op *s, struct mr_link *l)
{
    struct mr_transfer *transfer = s->transfer;
    struct mr_wlist *b = transfer->list;
    unsigned first = write_at(b, s->len - s->left), posted;
    struct mr_link_list list = {
        .one = b->write + first, .num = b->num - first, .rkey = mr_bulk_key(transfer, s->sub->remote_rail)};
    uint64_t bytes = 0;
    int err;

    if (unlikely(b->writer->base.most > l->qp.max_inline)) {
        if (register_data(transfer, l->rail))
            return -EAGAIN; /* already logged; there may be memory later */
        list.lkey = mr_memory_lkey(&transfer->reg->memory, l->rail);
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
