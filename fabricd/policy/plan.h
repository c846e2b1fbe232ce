/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Predictions from a policy's tables before the policy is applied: each class's share at the bottleneck, and the
 * longest wait of its small messages, under a named load. Pure: policy, tables, facts of the fabric, load -> figures.
 *
 * The bottleneck is the narrowest of three: the bus of the sending host, the cable, the bus of the receiving host.
 * - Sender's bus and cable: the port has packets of every lane and its arbiter decides. The arbiter is run (arbiter.h),
 *   each lane with the packets of its messages.
 * - Receiver's bus: the library's processes divide the bus by share (pace.h), unless links are so slow that large
 *   messages arrive by writes. Then the receive buffers are full, and a lane may send as much as has left its buffer.
 *   All lanes have equal buffers and packets leave in the order of arrival, so all lanes get the same, whatever the
 *   tables say. A class that wants less, because its sending hosts cannot give more, leaves the rest to the others.
 *
 * Every stream is taken to send as much as it gets. Small messages, and messages between small and bulk, go ahead of
 * the bulk within the class's budget (ahead.h); further messages go on the class's lanes for bulk.
 */
#ifndef FABRICD_PLAN_H
#define FABRICD_PLAN_H

#include "fabricd/policy/arbiter.h"
#include "fabricd/policy/wait.h"

#define PLAN_SIZES_MAX   8
#define PLAN_STREAMS_MAX 32
#define PLAN_JOBS_MAX    1000
#define PLAN_NAME_MAX    64
#define PLAN_BULK_BYTES  (1024u * 1024)
#define PLAN_LOAD_MAX    65536 /* bytes of a file */

/* Facts of the fabric; 0: unknown. */
struct plan_fabric {
    unsigned mtu;                               /* of the largest packets */
    unsigned rate_mbps;                         /* data rate of the slowest link: 4X DDR is 16000 */
    unsigned hops;                              /* links of the longest path */
    unsigned bus_read_mbytes, bus_write_mbytes; /* 10^6 bytes of data a second from memory to the adapter, and back */
};

/* Jobs of one class with equal traffic. */
struct plan_stream {
    unsigned class_index, jobs, num_sizes;
    uint32_t size[PLAN_SIZES_MAX]; /* of messages, in turn */
    bool many_to_one;              /* each job on a host of its own; else all jobs on one host */
};

struct plan_load {
    char name[PLAN_NAME_MAX];
    unsigned num_streams;
    struct plan_stream stream[PLAN_STREAMS_MAX];
};

enum plan_limit { PLAN_NOTHING, PLAN_SENDER, PLAN_CABLE, PLAN_RECEIVER };

struct plan_class {
    bool sends;
    double share;       /* percent of the traffic */
    double mbytes;      /* 10^6 bytes a second, with headers; 0: the rate is not known */
    bool ahead;         /* small messages have a lane other than the bulk's */
    uint64_t wait_ns;   /* of a small message on that lane for others, at most, on all links and on both buses;
                           WAIT_UNBOUNDED; 0: not known, as where the receiver's bus is the narrow place */
    double ahead_per_s; /* messages of 8 bytes ahead of bulk, for all processes of the class on a host and rail
                           together; further messages wait with the bulk. 0: no limit, or the rate is unknown */
};

struct plan_result {
    enum plan_limit limit;
    bool paced;    /* a receiver's bus divided by share */
    double mbytes; /* capacity; 0: unknown */
    struct plan_class classes[POLICY_CLASSES_MAX];
};

/*
 * The load with this name: "bulk" (1 MiB from all classes), "small" (their largest small messages), "many-to-one"
 * (bulk, each class from a host of its own), "aggressor CLASS/SIZE" (one class sends messages of SIZE, the others
 * bulk). False with an error in d.
 */
bool plan_load_named(struct plan_load *load, const struct policy *p, const char *name, struct diag *d);
/* From YAML: a list of {class, sizes, jobs, pattern}. */
bool plan_load_parse(struct plan_load *load, const struct policy *p, const char *text, size_t len, struct diag *d);

/* The library holds to shares where the receiver's bus is the narrow place. */
bool plan_is_paced(const struct qos_tables *t, const struct plan_fabric *f);

void plan_predict(const struct policy *p, const struct qos_tables *t, const struct plan_fabric *f,
                  const struct plan_load *load, struct plan_result *out);

/* Warnings: places where shares cannot act, their limits, classes that can be starved. */
void plan_warn(const struct policy *p, const struct qos_tables *t, const struct plan_fabric *f, struct diag *d);

/* The result as YAML under `loads:`, and as an object of JSON. */
void plan_text(struct text *out, const struct policy *p, const struct plan_load *load, const struct plan_result *r);
void plan_json(struct text *out, const struct policy *p, const struct plan_load *load, const struct plan_result *r);

#endif
