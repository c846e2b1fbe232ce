/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pace of reads among this host's processes: pace.h divides a bus slower than its cable; readers sends each client
 * its part in an FD_PACE, and hears its reads by FD_READS. Nothing here frees a client: an unreachable client is marked
 * to be dropped.
 */
#ifndef FABRICD_READERS_H
#define FABRICD_READERS_H

#include "fabricd/proto/proto.h"
#include "fabricd/base/text.h"

#include <systemd/sd-event.h>

struct client;
struct daemon;

/* Of a client. */
struct reader {
    bool paces;          /* understands FD_PACE */
    uint32_t want_kb;    /* its reads, as reported */
    struct fd_pace pace; /* the last message sent; all 0: none */
};

/* Of the daemon. */
struct readers {
    uint64_t divided_us;    /* when the bus was divided last */
    sd_event_source *timer; /* the time of the next division; NULL: none is due */
};

/* Clients, their classes, rails or the policy have changed: divide anew, at once if that was not done just now. */
void readers_divide_soon(struct daemon *d);
void readers_stop(struct daemon *d);
void readers_on_reads(struct daemon *d, struct client *c, const struct fd_reads *m);

/* Classes that read over a slow bus, and their rates, as YAML; nothing without such a bus. */
void readers_text(const struct daemon *d, struct text *out);

#endif
