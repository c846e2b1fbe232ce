/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports of this host's adapters, read from sysfs whenever asked. */
#ifndef FABRICD_RAILS_H
#define FABRICD_RAILS_H

#include "fabricd/proto/proto_state.h"
#include "fabricd/base/text.h"

/* The judgement of its health (rail_health.h fills it in). */
struct rail_judgement {
    bool known;
    uint8_t state;   /* enum fd_rail_state */
    uint16_t weight; /* of FD_HEALTHY */
    unsigned flaps;
    uint64_t since_us; /* CLOCK_MONOTONIC */
    char why[128];
};

struct rails {
    unsigned n;
    struct fd_rail rail[FD_RAILS_MAX]; /* by device name, then port */
    unsigned data_mbps[FD_RAILS_MAX];  /* the rate without the line code: 4X DDR is 16000 */
    struct rail_judgement judgement[FD_RAILS_MAX];
    unsigned bus_mbytes[FD_RAILS_MAX]; /* 10^6 bytes of data a second that the adapter's bus carries; 0: not known */
};

/* Names and kinds of links only. */
void rails_list(struct rails *r);
/* All but their health. */
void rails_read(struct rails *r);
/* Are ports, states and weights the same? */
bool rails_equal(const struct rails *a, const struct rails *b);
/* "down", "init", "armed", "active", by fd_rail.state. */
const char *rails_state_name(unsigned state);
/* "healthy", "degraded", "bad", "drained", by enum fd_rail_state. */
const char *rails_health_name(unsigned state);
/* One line of YAML per rail. */
void rails_text(struct text *out, const struct rails *r, const char *indent);
/* The bandwidth of the bus of rail i for one port, in 10^3 bytes a second; 0: the bus is at least as fast as the cable.
 */
uint32_t rails_bus_room(const struct rails *r, unsigned i);
/* The changes from a to b, one line each, for the log. */
void rails_changes_text(struct text *out, const struct rails *a, const struct rails *b);

#endif
