/* SPDX-License-Identifier: BSD-3-Clause */
/* What all large messages have, however they move: their memory, the end of each, control messages about them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/rail/bulk.h"
#include "libmrmpi/verbs/odp.h"

int mr_bulk_enroll(void *buf, size_t len, enum mr_access access, bool pinned, struct mr_reg **out)
{
    int err;

    *out = pinned ? NULL : mr_odp_get(buf, len, access, false);
    if (*out)
        return 0;
    err = mr_regcache_get(&mr_net.regs, buf, len, access, out);
    if (err == -ENOMEM && !pinned && (*out = mr_odp_get(buf, len, access, true)))
        return 0;
    if (err)
        mr_log(MR_LOG_ERROR,
               "%zu bytes at %p cannot be registered for %s: %s; is the limit of locked memory too low (ulimit -l)?",
               len, buf, access == MR_ACCESS_TARGET ? "receiving" : "sending", strerror(-err));
    return err;
}

void mr_bulk_release(struct mr_reg *r)
{
    if (!mr_odp_owns(r))
        mr_regcache_put(&mr_net.regs, r);
}

void mr_bulk_say(struct mr_peer *p, struct mr_hdr *hdr, const void *payload, size_t len)
{
    int err = p->error ? 0 : mr_channel_up.send(p->vc, hdr, payload, len);

    if (err)
        mr_peer_lost(p, err);
}

void mr_stripe_queue_on(struct mr_stripe_op *s, struct mr_sub *sub)
{
    if (s->queued)
        s->queued->queued -= s->len;
    if (sub)
        sub->queued += s->len;
    s->queued = sub;
}

void mr_bulk_finish(struct mr_put *put)
{
    struct mr_peer *p = put->peer;
    void (*tell)(void *cookie, int error) = put->read ? mr_channel_up.read_done : mr_channel_up.put_sent;
    void *cookie = put->cookie;
    int error = put->filter.error;

    *(put->prev ? &put->prev->next : &p->puts) = put->next;
    if (put->next)
        put->next->prev = put->prev;
    p->num_puts--;
    mr_net.open_puts--;
    if (put->track)
        put->track->ops->end(put);
    mr_bulk_release(put->reg);
    for (unsigned i = 0; i < put->num; i++)
        mr_stripe_queue_on(&put->stripe[i], NULL);
    free(put);
    tell(cookie, error);
}
