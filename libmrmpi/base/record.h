/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's record: a file with the figures of its rails and the last events there, for mrrun, which makes tables and
 * timelines from it. The rank maps the file and writes as it goes, so the record survives any end of the rank. The
 * format is between a library and the mrrun of the same build.
 *
 * The file: struct mr_record, then for each rank of the job the bytes that this rank moved to and from its rails by
 * RDMA, then a ring of events. One thread writes, the holder of the library's lock.
 */
#ifndef MRMPI_RECORD_H
#define MRMPI_RECORD_H

#include "libmrmpi/base/base.h"

#define MR_RECORD_MAGIC   0x6d727264u /* "mrrd" */
#define MR_RECORD_VERSION 1
#define MR_RECORD_RAILS   8

enum mr_record_kind {
    MR_RECORD_BYTES,  /* of a rail so far, a: out, b: in; with packets and large messages of this rank's own */
    MR_RECORD_WEIGHT, /* of a path, a; at first, and when weights have changed */
    MR_RECORD_OPEN,
    MR_RECORD_BREAK,
    MR_RECORD_CLOSE,
    MR_RECORD_PORT_DOWN,
    MR_RECORD_PORT_UP,
    MR_RECORD_WRITE, /* a stripe, done or given up: ns is its beginning, lasted_ns, a: its length, b: the message's */
    MR_RECORD_READ,
    MR_RECORD_RESENT, /* a: packets to be sent again, because their path broke */
    MR_RECORD_TIMEOUT,
    MR_RECORD_KINDS
};

#define MR_RECORD_FAILED 0x80 /* in detail, of a stripe: its path broke, and another path repeats the stripe */

struct mr_record_event {
    uint64_t ns, lasted_ns;
    uint64_t a, b;
    uint32_t peer;        /* rank */
    uint8_t kind;         /* enum mr_record_kind */
    uint8_t rail, remote; /* rail: MR_RECORD_RAILS if unknown */
    uint8_t link;         /* enum mr_link_kind */
    uint8_t path;         /* LID path */
    uint8_t sl;           /* of large messages */
    uint8_t detail;
    uint8_t variant; /* parity of the epoch, and twice the copy: distinguishes paths of the same rails */
    uint32_t pad;
};
_Static_assert(sizeof(struct mr_record_event) == 48, "as MRMPI_RECORD_EVENTS says");

struct mr_record_rail {
    char device[64];
    uint32_t port, rate_mbps;
    uint32_t share_ppm; /* rail_share; all bits set: the rail leads to no peer */
    uint32_t is_down;
    uint64_t count[MR_RAIL_STAT_COUNT];
};

/* Bytes that this rank read from a rail of another rank, and wrote to it. */
struct mr_record_tally {
    uint64_t read, written;
};

struct mr_record {
    uint32_t magic, version;
    uint32_t size; /* of this structure */
    uint32_t rank, num_ranks, num_rails;
    uint64_t tally_at, events_at, num_events; /* num_events: room of the ring */
    uint64_t written;                         /* events so far; events before the last num_events are gone */
    uint64_t began_ns, updated_ns;            /* mr_clock_ns() */
    uint32_t ended, pad;                      /* ended: by MPI_Finalize */
    char host[64];
    struct mr_record_rail rail[MR_RECORD_RAILS];
    uint64_t stat[MR_STAT_COUNT];
};

extern struct mr_record *mr_record; /* NULL: nothing is recorded */
extern bool mr_record_events;       /* events are recorded, too */

/* MRMPI_RECORD, if set. A failure is logged, and nothing is recorded then. */
void mr_record_open(unsigned rank, unsigned num_ranks, const char *host);
void mr_record_close(void);

void mr_record_put(const struct mr_record_event *event);
/* Only while mr_record. */
struct mr_record_tally *mr_record_tally(unsigned rank, unsigned rail);

/* Packets to a rank were not acknowledged in time, over an unknown rail. */
static inline void mr_record_timeout(uint32_t peer, uint64_t now_ns)
{
    struct mr_record_event e = {.ns = now_ns, .kind = MR_RECORD_TIMEOUT, .rail = MR_RECORD_RAILS, .peer = peer};

    if (unlikely(mr_record_events))
        mr_record_put(&e);
}

static inline uint64_t mr_record_size(const struct mr_record *r)
{
    return r->events_at + r->num_events * sizeof(struct mr_record_event);
}

#endif
