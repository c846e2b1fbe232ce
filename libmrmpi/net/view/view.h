/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Observation of working rails: each rail's part of large messages, and the record of this rank (base/record.h). verbs/
 * and net/stripe/ count by themselves; here the counters are gathered. Subchannels are observed by the events of
 * conn/peer/. All functions except mr_view_share() (net.h) need the library's lock. Without a record each call is a
 * branch; none is on the path of a short message.
 */
#ifndef MRMPI_VIEW_H
#define MRMPI_VIEW_H

#include "libmrmpi/base/record.h"
#include "libmrmpi/net/net.h"
#include "libmrmpi/verbs/verbs.h"

struct mr_peer;
struct mr_rail;
struct mr_sub;

/* A part of a large message that was posted, and is now done or given up in its place. */
struct mr_view_part {
    uint64_t begun_ns; /* 0: not recorded */
    uint64_t len, of;  /* of: of the message */
    bool read, failed;
};

/* Subscribes to the events of peers, before the first peer is made. */
void mr_view_init(void);
/* Bring the record up to date: now and then, and before the process ends. */
void mr_view_update(uint64_t now_ns);
void mr_view_rails(void); /* the rails have been opened after mr_view_open() */

/* The weights of the paths to a peer have changed. */
void mr_view_weights(struct mr_peer *p);

/* Events. */
void mr_view_record_port(const struct mr_rail *rail);
void mr_view_record_part(const struct mr_sub *sub, const struct mr_view_part *part);
void mr_view_record_moved(const struct mr_sub *sub, uint64_t len, bool read);

static inline void mr_view_port(const struct mr_rail *rail)
{
    if (unlikely(mr_record_events))
        mr_view_record_port(rail);
}
/* When a part begins. */
static inline uint64_t mr_view_begin(void)
{
    return unlikely(mr_record_events) ? mr_clock_ns() : 0;
}
static inline void mr_view_part(const struct mr_sub *sub, struct mr_view_part part)
{
    if (unlikely(mr_record_events))
        mr_view_record_part(sub, &part);
}
/* So many bytes of large messages were posted to be written to the peer, or to be read there. */
static inline void mr_view_moved(const struct mr_sub *sub, uint64_t len, bool read)
{
    if (unlikely(mr_record != NULL))
        mr_view_record_moved(sub, len, read);
}

#endif
