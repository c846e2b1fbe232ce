/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The health of this host's rails: readings of counters (watch.h) go to the judgement (health.h); orders of
 * administrators and hints of users are kept beside it; what became of rails is remembered, on disk, too. A change is
 * logged here and returned, so that the caller tells subscribers.
 *
 * Hints. A library that sees a rail break or lose packets says so. A hint is believed only of the user who gave it:
 * while it lasts (RAIL_HINT_S), processes of that user are told a small weight, so that a user's next job is spared the
 * discovery. Other users' processes are told what the counters say, with one exception: while a hint lasts, any
 * alarming error of the rail's counters makes it degraded for all, below the limits too. So no user can take a rail
 * from others: without errors of the hardware a lie changes nothing for them, and a rail with errors that is suspected
 * loses a part of its weight, never all of it (unless its errors are beyond the limits anyhow). When counters have
 * seen a fault begin and end the hints on it are forgotten. Hints take no memory but a table of fixed size for each
 * rail, and each user has a budget of them.
 *
 * Everything belongs to the main thread.
 */
#ifndef FABRICD_RAIL_HEALTH_H
#define FABRICD_RAIL_HEALTH_H

#include "fabricd/proto/proto_state.h"
#include "fabricd/base/quota.h"
#include "fabricd/fabric/rails.h"
#include "fabricd/fabric/watch.h"

#define RAIL_EVENTS 32u /* of each rail that are remembered */
#define RAIL_HINTS  16u /* users whose hints on a rail are remembered at a time */
#define RAIL_HINT_S 120u

struct rail_event {
    int64_t at; /* seconds since 1970 */
    enum fd_rail_state state;
    uint32_t weight;
    char why[128];
};

struct rail_hint {
    uint64_t until_us; /* 0: none */
    uint32_t uid;
};

/* A rail that is or was there. */
struct ward {
    char device[FD_DEV_MAX];
    unsigned port;
    struct health health;
    char far_name[96];
    unsigned num_events; /* all that there were; the last RAIL_EVENTS are kept, in a ring */
    struct rail_event event[RAIL_EVENTS];
    struct rail_hint hint[RAIL_HINTS];
    uint64_t told_broken, told_resent; /* by hints, since the daemon was started */
};

struct rail_health {
    struct watch *watch;
    unsigned n;
    struct ward ward[FD_RAILS_MAX];
    struct quota hints; /* of users */
};

/* Reads what was kept in the state directory, and begins to watch. 0 or a negative errno. */
int rail_health_start(struct rail_health *r, const char *state_dir, unsigned interval_ms);
void rail_health_stop(struct rail_health *r);

/* New readings. True: some rail's health has changed. */
bool rail_health_take(struct rail_health *r, const struct health_rules *rules);
/* An order. -ENOENT: there is no such rail among these. *changed as above. */
int rail_health_drain(struct rail_health *r, const struct rails *rails, const struct fd_rail_order *o, bool drain,
                      bool *changed);
/* A hint of a user on a rail of this host; what is beyond the user's budget is dropped. True: something has changed. */
bool rail_health_hint(struct rail_health *r, const struct rails *rails, const struct fd_seen *m, uint32_t uid);

/* Beside what rails_read found, their health. */
void rail_health_fill(const struct rail_health *r, struct rails *rails);
/* What a user's processes are told of rail i of these. */
struct fd_rail_health rail_health_for(const struct rail_health *r, const struct rails *rails, unsigned i, uint32_t uid);
/* NULL: the rail has not been looked at yet. */
const struct ward *rail_health_ward(const struct rail_health *r, const char *device, unsigned port);
/* All that is known of a rail, as YAML. -ENOENT: there is none. */
int rail_health_show(const struct rail_health *r, const struct rails *rails, const struct fd_rail_order *o,
                     struct text *out);

#endif
