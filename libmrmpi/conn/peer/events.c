/* SPDX-License-Identifier: BSD-3-Clause */
/* The subscribers to events of peers and subchannels (events.h), and delivery to them. */
#include "libmrmpi/conn/peer/events.h"

static const struct mr_peer_events *subscribed[MR_PEER_SUBSCRIBERS];
static unsigned num_subscribed;

void mr_peer_subscribe(const struct mr_peer_events *events)
{
    for (unsigned i = 0; i < num_subscribed; i++)
        if (subscribed[i] == events)
            return; /* since the library was initialised before */
    subscribed[num_subscribed++] = events;
}

#define TELL(event, ...)                                                                                               \
    do {                                                                                                               \
        for (unsigned i_ = 0; i_ < num_subscribed; i_++)                                                               \
            if (subscribed[i_]->event)                                                                                 \
                subscribed[i_]->event(__VA_ARGS__);                                                                    \
    } while (0)

int mr_peer_tell_made(struct mr_peer *p)
{
    int err = 0;

    for (unsigned i = 0; i < num_subscribed && !err; i++)
        if (subscribed[i]->made)
            err = subscribed[i]->made(p);
    return err;
}

void mr_peer_tell_opened(struct mr_sub *sub)
{
    TELL(opened, sub);
}

void mr_peer_tell_established(struct mr_peer *p)
{
    TELL(established, p);
}

void mr_peer_tell_lossy(struct mr_peer *p)
{
    if (!p->has_lossy_link)
        TELL(lossy, p);
}

void mr_peer_tell_preferred(struct mr_peer *p)
{
    TELL(preferred, p);
}

void mr_peer_tell_broken(struct mr_sub *sub)
{
    TELL(broken, sub);
}

void mr_peer_tell_drained(struct mr_sub *sub)
{
    TELL(drained, sub);
}

bool mr_peer_tell_due(struct mr_sub *sub)
{
    bool more = false;

    for (unsigned i = 0; i < num_subscribed; i++)
        if (subscribed[i]->due)
            more |= subscribed[i]->due(sub);
    return more;
}

void mr_peer_tell_moved(struct mr_peer *p)
{
    TELL(moved, p);
}

bool mr_peer_ask_uses(const struct mr_sub *sub)
{
    for (unsigned i = 0; i < num_subscribed; i++)
        if (subscribed[i]->uses && subscribed[i]->uses(sub))
            return true;
    return false;
}

uint64_t mr_peer_ask_queued(const struct mr_sub *sub)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < num_subscribed; i++)
        if (subscribed[i]->queued)
            bytes += subscribed[i]->queued(sub);
    return bytes;
}

void mr_peer_tell_reweighed(struct mr_peer *p)
{
    TELL(reweighed, p);
}

void mr_peer_tell_lost(struct mr_peer *p)
{
    TELL(lost, p);
}

void mr_peer_tell_ended(struct mr_peer *p)
{
    TELL(ended, p);
}

void mr_peer_tell_freed(struct mr_peer *p)
{
    TELL(freed, p);
}

void mr_peer_tell_noted(struct mr_sub *sub, enum mr_record_kind kind, uint64_t a)
{
    TELL(noted, sub, kind, a);
}

void mr_peer_tell_doubted(struct mr_peer *p)
{
    TELL(doubted, p);
}

void mr_peer_tell_answered(struct mr_peer *p)
{
    TELL(answered, p);
}
