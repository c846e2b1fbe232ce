/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues and their channels. */
#ifndef SIMFAB_CQ_H
#define SIMFAB_CQ_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/hca/event_pipe.h"
#include "simfab/engine/hca/object.h"
#include "simfab/proto.h"

struct ctx;

struct channel {
    struct object obj;
    struct event_pipe events;
};

enum cq_arm { CQ_UNARMED, CQ_ARMED_ANY, CQ_ARMED_SOLICITED };

struct cq {
    struct object obj;
    struct channel *channel;
    uint64_t cookie;
    uint32_t offset, slots, cqe; /* of the ring in the arena */
    uint64_t produced;
    enum cq_arm armed;
    uint64_t solicited; /* entries produced up to the last that a solicited-only event is for */
    bool overrun;       /* an entry had to be dropped: no more come */
    /* moderation: entries per event, or the longest delay */
    uint32_t event_count, event_period_us, pending;
    uint64_t event_due_ps;
};

int cq_create(struct ctx *ctx, const struct sf_create_cq *r, struct channel *ch, struct cq **out);
int cq_resize(struct cq *cq, uint32_t cqe);
void cq_moderate(struct cq *cq, uint32_t count, uint32_t period_us);
void cq_destroy(struct cq *cq);
void cq_push(struct cq *cq, const struct sf_cqe *cqe, bool solicited);
void cq_arm(struct cq *cq, bool solicited_only);

#endif
