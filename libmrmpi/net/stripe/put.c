/* SPDX-License-Identifier: BSD-3-Clause */
/* Common to all large messages: their end, their control messages, the queued bytes of a subchannel. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/net/stripe/wlist.h"
#include "libmrmpi/net/stripe/track.h"
#include "libmrmpi/net/stripe/keys.h"

struct mr_bulk mr_bulk;

void mr_bulk_send_control(struct mr_peer *p, struct mr_hdr *hdr, const void *payload, size_t len)
{
    int err = p->error ? 0 : mr_vc_send_control(p->vc, hdr, payload, len);

    if (err)
        mr_peer_lost(p, err);
}

void mr_stripe_queue_on(struct mr_stripe_op *s, struct mr_sub *sub)
{
    if (s->queued)
        mr_bulk_sub_of(s->queued)->queued -= s->len;
    if (sub)
        mr_bulk_sub_of(sub)->queued += s->len;
    s->queued = sub;
}

void mr_bulk_finish(struct mr_put *put)
{
    struct mr_peer *p = put->peer;
    void (*tell)(void *cookie, int error) = put->read ? mr_vc_up.read_done : mr_vc_up.put_sent;
    struct mr_vc_move *move = put->move;
    void *cookie = put->cookie;
    int error = put->filter.error;

    *(put->prev ? &put->prev->next : &mr_bulk_of(p)->puts) = put->next;
    if (put->next)
        put->next->prev = put->prev;
    p->num_large--;
    mr_bulk.open_puts--;
    if (put->track)
        put->track->ops->free(put);
    if (put->reg)
        mr_regs_release(put->reg);
    for (unsigned i = 0; i < put->num; i++)
        mr_stripe_queue_on(&put->stripe[i], NULL);
    if (put->list) {
        mr_wlist_end(put, error);
        return;
    }
    free(put);
    if (move)
        move->done(move, error);
    else
        tell(cookie, error);
}
