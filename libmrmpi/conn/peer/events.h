/* SPDX-License-Identifier: BSD-3-Clause */
/* The delivery of events to subscribers (conn.h). For conn/ only. */
#ifndef MRMPI_PEER_EVENTS_H
#define MRMPI_PEER_EVENTS_H

#include "libmrmpi/conn/conn.h"

int mr_peer_tell_made(
    struct mr_peer *p); /* the first error of a subscriber; later subscribers do not hear of the peer */
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
