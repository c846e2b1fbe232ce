/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guests on other hosts as peers: conn/ connects them as it connects ranks, and then their packets go over rails. Both
 * ends tell each other by the channel stream (channel/stream.c) where they are, and how they number each other: an
 * offer. A job on one node opens its devices when it meets such a guest.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/net/internal.h"
#include "libmrmpi/net/view/view.h"

struct offer {
    uint32_t number;              /* of the receiver, here: its packets to us have it as their source */
    uint32_t run;                 /* in connection messages to us */
    struct mr_address_long place; /* as long as its rails and partitions */
};
_Static_assert(sizeof(struct offer) <= MR_OFFER_MAX, "fits");

static int guests_begin(const struct mr_launch *launch)
{
    int err = mr_verbs_present() ? mr_net_init(launch) : -ENODEV;

    if (!err)
        mr_view_rails();
    return err;
}

static size_t guests_offer(int number, uint32_t run, void *out)
{
    struct offer offer = {.number = (uint32_t)number, .run = run};
    size_t len = offsetof(struct offer, place) + mr_address_describe(&offer.place);

    memcpy(out, &offer, len);
    return len;
}

static int guests_meet(struct mr_vc *vc, uint32_t run, const void *data, size_t len, bool begins)
{
    struct mr_guest_terms terms = {.run = run};
    struct offer offer = {0};
    struct mr_peer *p;
    int err;

    if (len <= offsetof(struct offer, place) || len > sizeof offer)
        return -EPROTO;
    memcpy(&offer, data, len);
    err = mr_address_check(&offer.place.address, len - offsetof(struct offer, place));
    if (err)
        return err;
    terms.run_there = offer.run;
    terms.number_there = offer.number;
    p = mr_peer_meet(mr_vc_world_rank(vc), &terms, &offer.place.address);
    if (!p)
        return -ENOMEM;
    if (begins)
        mr_peer_connect(p);
    return 0;
}

/* Packets are numbered on: those before went another way. */
static void guests_carry(struct mr_vc *vc)
{
    struct mr_peer *p = vc->data;

    mr_vc_change(vc, &mr_channel_net);
    mr_window_start(&p->out, mr_vc_packets(vc));
    mr_net_renew_short(p);
}

static bool guests_idle(struct mr_vc *vc)
{
    struct mr_peer *p = vc->data;

    return !p || p->error || (mr_keepalive_confirm(p) && !p->num_pending && !p->num_large);
}

static void guests_part(struct mr_vc *vc, int error)
{
    struct mr_peer *p = vc->data;

    if (p)
        mr_peer_part(p, error);
    else if (mr_stream_unrailed(vc, error) == MR_UNRAILED_LOST)
        mr_stream_lose(vc, error);
}

const struct mr_guest_rails mr_net_guests = {.begin = guests_begin,
                                             .offer = guests_offer,
                                             .meet = guests_meet,
                                             .carry = guests_carry,
                                             .idle = guests_idle,
                                             .part = guests_part,
                                             .forget = mr_peer_forget};
