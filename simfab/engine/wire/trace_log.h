/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events on the links, written as trace events in the JSON format of Perfetto and chrome://tracing: a process for each
 * node, a thread for each port and lane, counters for credits and queues; times are virtual. At most one trace at a
 * time, into a regular file whose descriptor comes from the client: the engine opens no path.
 *
 * The file is an array without an end until the trace is stopped. Both viewers accept such a file, so the data is
 * usable even if the engine is killed. Events are written whole, several at a time.
 *
 * The inline functions record events: one branch, not taken, without a trace.
 */
#ifndef SIMFAB_TRACE_LOG_H
#define SIMFAB_TRACE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/packet.h"

struct text;
struct trace_log;

struct trace_request {
    uint64_t limit; /* size limit of the file */
    char links[128];
};

enum { TRACE_LIMIT_MIN = 4096 };

/* "start LIMIT PATTERN": false if it is something else. PATTERN is a shell pattern for "DESCRIPTION PORT" at either end
   of a link; empty: all links. */
bool trace_request_parse(const char *text, struct trace_request *r);

/*
 * Both return 0 or an errno: EBUSY a trace is running, EINVAL not a regular file open for writing, ENXIO no link has
 * this name; ESRCH no trace is running. A started trace owns fd, and empties the file first. stop reports the contents.
 * Before both, the caller lets senders take in their credits (fc_take_all).
 */
int trace_log_start(struct sim *s, int fd, const struct trace_request *r);
int trace_log_stop(struct sim *s, struct text *t);

/* Writes out data that has waited for some time. */
void trace_log_tick(struct sim *s);

void trace_log_packet(struct trace_log *t, const struct link_dir *l, const struct packet *p, uint64_t from_ps,
                      uint64_t to_ps);
/* At t the sender has learnt of credits. */
void trace_log_credits(struct trace_log *t, const struct vl_queue *q, uint64_t t_ps);
void trace_log_lane(struct trace_log *t, const struct link_dir *l, unsigned vl);
void trace_log_wait(struct trace_log *t, const struct link_dir *l, unsigned vl, uint64_t since_ps);
void trace_log_drop(struct trace_log *t, const struct port *at, const struct packet *p, const char *reason);
void trace_log_state(struct trace_log *t, const struct port *p);

#define TRACED(s) __builtin_expect((s)->trace != NULL, 0)

/* The packet is on the wire from from_ps to to_ps. */
static inline void trace_packet(const struct link_dir *l, const struct packet *p, uint64_t from_ps, uint64_t to_ps)
{
    if (TRACED(l->sim))
        trace_log_packet(l->sim->trace, l, p, from_ps, to_ps);
}

/* Credits or queue of the lane have changed, perhaps. */
static inline void trace_lane(const struct link_dir *l, unsigned vl)
{
    if (TRACED(l->sim))
        trace_log_lane(l->sim->trace, l, vl);
}

/* The lane has had something to send and no credits until now. */
static inline void trace_wait(const struct link_dir *l, unsigned vl, uint64_t since_ps)
{
    if (TRACED(l->sim))
        trace_log_wait(l->sim->trace, l, vl, since_ps);
}

/* The packet ends at this port. */
static inline void trace_drop(const struct sim *s, const struct port *at, const struct packet *p, const char *reason)
{
    if (TRACED(s))
        trace_log_drop(s->trace, at, p, reason);
}

#endif
