/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens to peers and subchannels, for the rooms above: they subscribe before the first peer is made, and stay
 * subscribed while the process lives. Each event is delivered to all subscribers, in the order of their subscription.
 */
#ifndef MRMPI_PEER_EVENTS_H
#define MRMPI_PEER_EVENTS_H

#include "libmrmpi/base/record.h"

struct mr_peer;
struct mr_sub;

/* NULL: the event does not matter to the subscriber. */
struct mr_peer_events {
    int (*made)(struct mr_peer *p); /* its subchannels have been listed; 0 or a negative errno: it is lost */
    void (*opened)(struct mr_sub *sub);
    void (*established)(struct mr_peer *p);       /* a handshake has opened subchannels, which were delivered before */
    void (*lossy)(struct mr_peer *p);             /* packets go over links that lose them, from now on */
    void (*preferred)(struct mr_peer *p);         /* the subchannels that carry packets were chosen anew */
    void (*broken)(struct mr_sub *sub);           /* its links are being drained: nothing new may be posted */
    void (*drained)(struct mr_sub *sub);          /* all that was posted on it has come back; its generation ends */
    bool (*due)(struct mr_sub *sub);              /* its peer is looked after, and is again later if this is true */
    void (*moved)(struct mr_peer *p);             /* what waits for room on subchannels that retire goes over others */
    bool (*uses)(const struct mr_sub *sub);       /* something is under way over it, or waits for it */
    uint64_t (*queued)(const struct mr_sub *sub); /* bytes of large messages that are under way over it */
    void (*reweighed)(struct mr_peer *p);         /* its weights begin anew */
    void (*lost)(struct mr_peer *p);     /* nothing is sent to it any more, nor comes; links are being drained */
    void (*ended)(struct mr_peer *p);    /* after that: all links have drained */
    void (*freed)(struct mr_peer *p);    /* at the end, of each peer */
    void (*doubted)(struct mr_peer *p);  /* mr_sub.doubt of some subchannel has changed */
    void (*answered)(struct mr_peer *p); /* nothing is open, and its adapter has answered a probe */
    /* For the record: it was opened, broken or closed, or a packets are sent again that it has not confirmed. */
    void (*noted)(struct mr_sub *sub, enum mr_record_kind kind, uint64_t a);
};
#define MR_PEER_SUBSCRIBERS 4
void mr_peer_subscribe(const struct mr_peer_events *events);

/* For conn/peer/ and conn/ only. */
int mr_peer_tell_made(struct mr_peer *p); /* the first error of a subscriber; those after it do not hear of the peer */
void mr_peer_tell_opened(struct mr_sub *sub);
void mr_peer_tell_established(struct mr_peer *p);
void mr_peer_tell_lossy(struct mr_peer *p); /* unless mr_peer.has_lossy_link */
void mr_peer_tell_preferred(struct mr_peer *p);
void mr_peer_tell_broken(struct mr_sub *sub);
void mr_peer_tell_drained(struct mr_sub *sub);
bool mr_peer_tell_due(struct mr_sub *sub);
void mr_peer_tell_moved(struct mr_peer *p);
bool mr_peer_ask_uses(const struct mr_sub *sub);
uint64_t mr_peer_ask_queued(const struct mr_sub *sub);
void mr_peer_tell_reweighed(struct mr_peer *p);
void mr_peer_tell_lost(struct mr_peer *p);
void mr_peer_tell_ended(struct mr_peer *p);
void mr_peer_tell_freed(struct mr_peer *p);
void mr_peer_tell_doubted(struct mr_peer *p);
void mr_peer_tell_answered(struct mr_peer *p);
void mr_peer_tell_noted(struct mr_sub *sub, enum mr_record_kind kind, uint64_t a);

#endif
