/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The health of this host's rails. Readings of counters (watch.h) go to the judgement (health.h); orders of
 * administrators and hints of users are kept beside; the history is kept in memory and on disk. A change is logged here
 * and returned, so that the caller informs subscribers.
 *
 * Hints. A library that sees a rail break or lose packets sends a hint. A hint counts only for the user who gave it:
 * while the hint lasts (RAIL_HINT_S), processes of the user that come after the hint get no weight, so the user's next
 * job is spared the discovery; earlier processes know the rail themselves. Other users' processes get the weight by the
 * counters, with one exception: while a hint lasts, any alarming error of the rail's counters degrades the rail for all
 * users, below the limits too. No user can therefore take a rail from others: without errors of the hardware a false
 * hint changes nothing for others, and a suspected rail with errors loses a part of its weight, never all (unless its
 * errors exceed the limits anyhow). When counters have seen a fault begin and end, the hints on the rail are forgotten.
 * Hints use a table of fixed size per rail, and each user has a budget of hints.
 *
 * The main thread owns everything.
 */
#ifndef FABRICD_RAIL_HEALTH_H
#define FABRICD_RAIL_HEALTH_H

#include "fabricd/proto/proto_state.h"
#include "fabricd/base/quota.h"
#include "fabricd/fabric/rails.h"
#include "fabricd/fabric/watch.h"

#define RAIL_EVENTS 32u /* remembered per rail */
#define RAIL_HINTS  16u /* users with remembered hints on a rail at a time */
#define RAIL_HINT_S 120u

struct rail_event {
    int64_t at; /* seconds since 1970 */
    enum fd_rail_state state;
    uint32_t weight;
    char why[128];
};

struct rail_hint {
    uint64_t since_us, until_us; /* until_us 0: none */
    uint32_t uid;
};

/* A present or former rail. */
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

/* Reads the history from the state directory, and begins to watch. 0 or a negative errno. */
int rail_health_start(struct rail_health *r, const char *state_dir, unsigned interval_ms);
void rail_health_stop(struct rail_health *r);

/* New readings. True: some rail's health has changed. */
bool rail_health_take(struct rail_health *r, const struct health_rules *rules);
/* An order. -ENOENT: there is no such rail among these. *changed as above. */
int rail_health_drain(struct rail_health *r, const struct rails *rails, const struct fd_rail_order *o, bool drain,
                      bool *changed);
/* A hint of a user on a rail of this host; hints beyond the user's budget are dropped. True: a rail has changed. */
bool rail_health_hint(struct rail_health *r, const struct rails *rails, const struct fd_seen *m, uint32_t uid);

/* Adds the health of rails to the result of rails_read. */
void rail_health_fill(const struct rail_health *r, struct rails *rails);
/* The health of rail i for a user's process that came at since_us (CLOCK_MONOTONIC). */
struct fd_rail_health rail_health_for(const struct rail_health *r, const struct rails *rails, unsigned i, uint32_t uid,
                                      uint64_t since_us);
/* NULL: the rail has not been looked at yet. */
const struct ward *rail_health_ward(const struct rail_health *r, const char *device, unsigned port);
/* All that is known of a rail, as YAML. -ENOENT: there is none. */
int rail_health_show(const struct rail_health *r, const struct rails *rails, const struct fd_rail_order *o,
                     struct text *out);

#endif
