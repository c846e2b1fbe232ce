/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs objects of libsimfab.so. Each begins with the public structure of <infiniband/verbs.h>, to which the
 * program holds a pointer; private members follow. Handles name the engine's objects. Control verbs are one request
 * each (sfp_call); posting and polling touch only the arena.
 *
 * Objects belong to the attachment (sfp_generation) that made them: after fork() the child's inherited objects answer
 * EIO.
 */
#ifndef SIMFAB_PRELOAD_VERBS_H
#define SIMFAB_PRELOAD_VERBS_H

#include <infiniband/verbs.h>
#include <pthread.h>

#include "simfab/preload/preload.h"

/* verbs.h wraps these in macros and inline functions; here they are defined */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define SFP_CORE_CLOCK_KHZ 1000000u /* time stamps of completions count nanoseconds of virtual time */

struct sfp_device {
    struct ibv_device dev;
    char provider_area[128]; /* zeros: provider libraries look behind ibv_device for their own operations */
    uint64_t guid;           /* network order */
    uint32_t index;
    int refs;
};

struct sfp_context {
    struct verbs_context v; /* the program holds &v.context */
    uint32_t handle;
    unsigned generation;
    struct sfp_device *device;
    bool fatal_told;
    uint64_t cookie; /* unique among all contexts of this process, past ones included */
};

struct sfp_srq {
    struct ibv_srq srq;
    uint64_t cookie;
    unsigned generation;
    uint32_t max_wr, max_sge;
    uint32_t posted, done;
    uint32_t async_reported;
    struct sfp_srq *next;
};

struct sfp_cq {
    union {
        struct ibv_cq cq;
        struct ibv_cq_ex ex;
    };
    struct sf_cq_ring *ring;
    uint64_t cookie;
    unsigned generation;
    pthread_mutex_t lock; /* consuming end of the ring */
    uint64_t noticed;     /* entries that another queue's empty poll has stepped aside for */
    uint32_t notices;
    uint32_t events_reported; /* completion events handed to the program; under cq.mutex */
    uint32_t async_reported;
    struct sf_cqe now; /* extended polling: the entry being read */
    struct sfp_cq *next;
};

struct sfp_qp {
    union {
        struct ibv_qp qp;
        struct ibv_qp_ex ex;
    };
    uint64_t cookie;
    unsigned generation;
    struct ibv_qp_cap cap;
    bool sig_all;
    uint32_t sq_posted, sq_done; /* counts of send requests, mod 2^32 */
    uint32_t rq_posted, rq_done;
    uint32_t async_reported;
    struct sfp_qp *next;
    struct sfp_wr_batch *batch;           /* ibv_wr_*: the list being built, */
    void (*free_batch)(struct sfp_qp *q); /* and its end; NULL: there is none */
};

struct sfp_pd {
    struct ibv_pd pd;
    unsigned generation;
    uint32_t parents;    /* parent domains of this domain; under the context's mutex */
    struct sfp_pd *base; /* of a parent domain: the owner of the handle */
    struct sfp_td *td;
};

struct sfp_td {
    struct ibv_td td;
    uint32_t users; /* under the context's mutex */
};

struct sfp_ah {
    struct ibv_ah ah;
};

/* Compares domains by handle: a parent domain equals its base domain. */
static inline bool sfp_same_pd(const struct ibv_pd *a, const struct ibv_pd *b)
{
    return a->handle == b->handle;
}

#define sfp_container(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static inline struct sfp_context *sfp_context(struct ibv_context *c)
{
    return sfp_container(c, struct sfp_context, v.context);
}

static inline struct sfp_cq *sfp_cq(struct ibv_cq *c)
{
    return sfp_container(c, struct sfp_cq, cq);
}

static inline struct sfp_qp *sfp_qp(struct ibv_qp *q)
{
    return sfp_container(q, struct sfp_qp, qp);
}

static inline struct sfp_srq *sfp_srq(struct ibv_srq *s)
{
    return sfp_container(s, struct sfp_srq, srq);
}

#endif
