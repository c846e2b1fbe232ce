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

/* verbs_registry.c: the live objects, for events and completions. Cookies are never used twice. */
extern pthread_mutex_t sfp_registry_lock;
uint64_t sfp_new_cookie(void);
int sfp_register_qp(struct sfp_qp *qp); /* ENOMEM */
void sfp_unregister_qp(struct sfp_qp *qp);
struct sfp_qp *sfp_qp_by_handle(uint32_t handle); /* NULL if there is none; lock-free */
void sfp_register_cq(struct sfp_cq *cq);
void sfp_unregister_cq(struct sfp_cq *cq);
void sfp_register_srq(struct sfp_srq *srq);
void sfp_unregister_srq(struct sfp_srq *srq);
/* The object of an event, with its count of reported events raised under the lock; NULL if it is gone. */
struct sfp_cq *sfp_cq_of_event(uint64_t cookie, bool async);
struct sfp_qp *sfp_qp_of_event(uint64_t cookie);
struct sfp_srq *sfp_srq_of_event(uint64_t cookie);
/* True if a queue other than cq has a completion that a is able to see and nobody was told of yet. */
bool sfp_news_elsewhere(const struct sfp_cq *cq, const struct sf_actor *a);

/* verbs_mem.c: the end of a plain object of the engine's. 0 or an errno. */
int sfp_destroy_handle(enum sf_op op, struct ibv_context *c, uint32_t handle);

/* verbs_mem.c, verbs_domain.c: functions in the tables of operations */
struct ibv_mr *sfp_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mw *sfp_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int sfp_dealloc_mw(struct ibv_mw *mw);
int sfp_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
struct ibv_td *sfp_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr);
int sfp_dealloc_td(struct ibv_td *td);
struct ibv_pd *sfp_alloc_parent_domain(struct ibv_context *c, struct ibv_parent_domain_init_attr *attr);

/* verbs_cq.c */
int sfp_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int sfp_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int sfp_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *sfp_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *attr);
/* Forget the completions of a queue pair that is destroyed or reset. */
void sfp_purge_cq(struct sfp_cq *cq, struct sfp_qp *qp);
/* Wait until a next empty look makes sense: the common end of empty polls. False: the engine died. */
bool sfp_idle(struct sf_actor *a);
/* Takes the next entry visible at the actor's clock into *e; false: none. Frees the entry's slots. */
bool sfp_take_cqe(struct sfp_cq *cq, struct sf_actor *a, struct sf_cqe *e);

/* verbs_events.c */
uint32_t sfp_channel_handle(const struct ibv_comp_channel *chan);
/* Read one record of bytes from a pipe of the engine; 0, or -1 with errno (EAGAIN when the descriptor does not block).
 */
int sfp_read_record(int fd, void *record, size_t bytes);

/* verbs_qp.c */
struct ibv_qp *sfp_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);

/* verbs_wr.c */
struct ibv_qp *sfp_create_qp_ex(struct ibv_context *c, struct ibv_qp_init_attr_ex *attr);

/* verbs_post.c */
int sfp_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int sfp_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int sfp_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Put a command without a body into the ring. 0 or an errno. */
int sfp_post_simple(struct sf_actor *a, enum sf_cmd_op op, uint32_t object, uint32_t flags);

#endif
