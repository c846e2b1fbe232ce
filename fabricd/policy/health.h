/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The health of a rail, judged by the error counters of the ports at both ends of its cable. Pure: input is counter
 * readings and the time, output is a state. Nothing here reads a clock, a port or a file.
 *
 * Counters are never cleared here, because other tools read them too. A counter that went back was cleared, or, with 64
 * bits, wrapped. A counter at its maximum shows nothing any more; until the counter is cleared the rail cannot get
 * better by itself.
 *
 * Errors of the last minute are compared with limits for the generation of the link, and with the received packets: a
 * rail that loses one packet in a thousand is bad. A rail gets worse at once. A rail gets better after a hold time
 * without a single error: from bad to a probation with a small weight, from there to healthy, each after a hold time.
 * Every relapse doubles the hold time. Congestion (XmitWait, and XmitDiscards beside it) is no fault of a rail.
 */
#ifndef FABRICD_HEALTH_H
#define FABRICD_HEALTH_H

#include "fabricd/proto/proto_state.h"
#include "fabricd/base/text.h"

enum health_counter {
    HEALTH_SYMBOL,
    HEALTH_RECOVERY,
    HEALTH_DOWNED,
    HEALTH_RCV,
    HEALTH_REMOTE,
    HEALTH_DISCARDS,
    HEALTH_INTEGRITY,
    HEALTH_OVERRUN,
    HEALTH_VL15,
    HEALTH_WAIT,
    HEALTH_PACKETS, /* received */
    HEALTH_COUNTERS
};
/* The specification's name: "SymbolErrorCounter". */
const char *health_counter_name(enum health_counter c);

enum health_end { HEALTH_HERE, HEALTH_FAR, HEALTH_ENDS };

/* The counters of one port. */
struct health_port {
    bool known;
    uint64_t id; /* of the port: counters of different ports are not compared */
    uint64_t value[HEALTH_COUNTERS];
    uint8_t bits[HEALTH_COUNTERS]; /* 4 to 64: the counter stops at its maximum, or wraps; 0: absent */
};

struct health_look {
    uint64_t now_us;
    bool up;                  /* the port is active */
    uint32_t lane_mbps;       /* signalling rate of one lane; 0: not known */
    uint8_t width, width_can; /* lanes in use, lanes that both ends could use; 0: not known */
    struct health_port port[HEALTH_ENDS];
};

/* 0: by the generation of the link. */
struct health_rules {
    uint32_t off;           /* 1: counters are kept and shown, and never judged */
    uint32_t degraded, bad; /* errors a minute */
    uint32_t hold_s;        /* 0: HEALTH_HOLD_S */
    bool suspected;         /* suspected by a hint: any alarming error degrades the rail */
};

#define HEALTH_HOLD_S    10u
#define HEALTH_RELAPSES  6u    /* doublings of the hold time at most */
#define HEALTH_FORGET_S  3600u /* a rail that was healthy for so long has no relapses */
#define HEALTH_WINDOW_S  60u
#define HEALTH_BUCKETS   6u
#define HEALTH_PROBATION 64u  /* weight, of FD_HEALTHY */
#define HEALTH_NARROWED  960u /* weight: small messages leave the rail, large messages use its rate */

enum health_why {
    HEALTH_WELL,
    HEALTH_ERRORS,    /* counter, end, count a minute, limit */
    HEALTH_LOSSY,     /* counter, end, count per minute, limit: packets received meanwhile */
    HEALTH_NARROW,    /* count of limit lanes */
    HEALTH_RETURNING, /* on probation */
    HEALTH_ORDERED,   /* drained by an administrator */
    HEALTH_BEFORE,    /* restored from before the daemon's restart */
};

struct health_reason {
    enum health_why why;
    enum health_counter counter;
    enum health_end end;
    uint64_t count, limit;
};

struct health {
    enum fd_rail_state state;
    uint32_t weight; /* 0..FD_HEALTHY */
    struct health_reason reason;
    uint64_t since_us;
    unsigned flaps;    /* times that the healthy rail got worse */
    unsigned relapses; /* of these, soon after recovery */
    bool drained;
    /* the judgement without the administrator's order */
    enum fd_rail_state own_state;
    uint32_t own_weight;
    struct health_reason own_reason;
    uint64_t own_since_us, quiet_us; /* quiet_us: of the last error, or of the last look at a port that was down */
    bool seen;                       /* there was a look */
    uint8_t width_best;
    struct {
        bool knows_packets;
        bool seen, saturated, was_saturated; /* an alarming counter is at its maximum; at its first reading */
        uint64_t id;
        unsigned cleared; /* times that counters were cleared */
        uint64_t value[HEALTH_COUNTERS], total[HEALTH_COUNTERS];
        uint64_t bucket[HEALTH_COUNTERS][HEALTH_BUCKETS];
    } end[HEALTH_ENDS];
    uint64_t bucket_no;
};

/* Zero-initialised and then this: healthy, nothing seen. */
void health_init(struct health *h, uint64_t now_us);
/* The known state from before, other than FD_RAIL_DRAINED. */
void health_restore(struct health *h, enum fd_rail_state state, bool drained, unsigned flaps, unsigned relapses,
                    uint64_t now_us);
/* True if state, weight or the kind of reason has changed. */
bool health_take(struct health *h, const struct health_rules *r, const struct health_look *l);
/* An administrator's order. An undrained rail is judged anew. True: the rail has changed. */
bool health_drain(struct health *h, bool drained, uint64_t now_us);

const char *health_state_name(enum fd_rail_state s);
/* "SymbolErrorCounter of the far end: 5300 a minute, limit 10". */
void health_reason_text(struct text *out, const struct health_reason *r);

#endif
