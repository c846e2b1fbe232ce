/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs that receive large messages as datagrams, directly into the program's memory (M. Koop, S. Sur, D. Panda,
 * "Zero-Copy Protocol for MPI using InfiniBand Unreliable Datagram", Cluster 2007). Each has a receive queue of its
 * own. A queue pair whose receives have all come back is reused unchanged if each was filled by its own datagram: then
 * nothing is under way. Otherwise it gets another key. The adapter compares keys before it takes a receive, so a late
 * datagram touches no memory.
 */
#include "libmrmpi/verbs/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/verbs/datagram.h"

#define CHAIN    32          /* receives posted at a time */
#define PIECES   3           /* of a receive: the global header, the place, and the excess */
#define KEYS     0x7fffffffu /* the highest bit of a key means something else */
#define GRH_ROOM 64

struct place {
    struct mr_wr wr;
    struct pool_qp *q;
};

struct pool_qp {
    struct mr_ud_pool_qp base;
    struct ibv_qp *qp;
    struct pool_qp *next; /* of the free ones */
    uint16_t pkey_index;  /* at the set-up */
    bool free, stopping;
    struct mr_later later;
    struct place place[]; /* [MRMPI_UD_POOL_DEPTH] */
};

struct mr_ud_pool {
    struct pool_qp **all, *free;
    unsigned num, num_free;
    uint32_t next_key;
    unsigned char *scratch; /* ignored data: global headers, and excess */
    struct ibv_mr *mr;
};

unsigned mr_ud_pool_depth(const struct mr_rail *rail)
{
    unsigned depth = (unsigned)mr_config.ud_pool_depth;

    return rail->dev->max_qp_wr && depth > rail->dev->max_qp_wr ? rail->dev->max_qp_wr : depth;
}

unsigned mr_ud_pool_completions(void)
{
    return (unsigned)(mr_config.ud_pool * mr_config.ud_pool_depth);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static struct mr_ud_pool *make_pool(struct mr_rail *rail)
{
    struct mr_ud_pool *pool = calloc(1, sizeof *pool);
    size_t size = GRH_ROOM + mr_udp_mtu(&rail->addr, &rail->addr);

    if (!pool)
        return NULL;
    pool->all = calloc((unsigned)mr_config.ud_pool, sizeof(struct pool_qp *));
    pool->scratch = aligned_alloc(64, size);
    pool->mr =
        pool->all && pool->scratch ? ibv_reg_mr(rail->dev->pd, pool->scratch, size, IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (getrandom(&pool->next_key, sizeof pool->next_key, GRND_NONBLOCK) != sizeof pool->next_key)
        pool->next_key = (uint32_t)mr_clock_ns();
    if (pool->mr)
        return pool;
    free(pool->scratch);
    free(pool->all);
    free(pool);
    return NULL;
}

static void pool_qp_destroy(struct pool_qp *q)
{
    struct mr_rail *rail = q->base.rail;
    struct mr_ud_pool *pool = rail->pool;

    for (unsigned i = 0; i < pool->num; i++)
        if (pool->all[i] == q) {
            pool->all[i] = pool->all[--pool->num];
            break;
        }
    mr_verbs_forget(&q->later);
    ibv_destroy_qp(q->qp);
    rail->cq_room += mr_ud_pool_depth(rail);
    free(q);
}

/* Of its partition in the port's table. */
static uint16_t pool_pkey_index(const struct pool_qp *q)
{
    const struct mr_rail *rail = q->base.rail;
    const struct mr_rail_partition *p = mr_rail_partition(rail, q->base.pkey);

    return p ? p->now.index : rail->partition[0].now.index;
}

/* Under a new key. */
static int ready_to_receive(struct pool_qp *q)
{
    struct mr_rail *rail = q->base.rail;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = rail->port,
                               .pkey_index = pool_pkey_index(q),
                               .qkey = rail->pool->next_key++ & KEYS};
    int err;

    q->pkey_index = attr.pkey_index;
    q->base.qkey = attr.qkey;
    err = ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    attr.qp_state = IBV_QPS_RTR;
    return err ? -err : -ibv_modify_qp(q->qp, &attr, IBV_QP_STATE);
}

static void place_received(struct mr_wr *wr, const struct mr_wc *wc);

/* Its receives hold room of the completion queue from the beginning; sends keep some. */
static bool has_room_for_one(const struct mr_rail *rail)
{
    return rail->pool->num < (unsigned)mr_config.ud_pool &&
           rail->cq_room >= mr_ud_pool_depth(rail) + rail->cq_room_all / 4;
}

static struct pool_qp *make_qp(struct mr_rail *rail)
{
    unsigned depth = mr_ud_pool_depth(rail);
    struct ibv_qp_init_attr init = {
        .send_cq = rail->cq,
        .recv_cq = rail->cq,
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = depth, .max_recv_sge = PIECES}};
    struct pool_qp *q = calloc(1, sizeof *q + depth * sizeof q->place[0]);

    if (!q)
        return NULL;
    q->base.rail = rail;
    q->base.pkey = rail->partition[0].number;
    q->qp = ibv_create_qp(rail->dev->pd, &init);
    if (!q->qp || ready_to_receive(q)) {
        mr_log(MR_LOG_INFO, "rail %u: no queue pair for large messages as datagrams (%s)", rail->index,
               strerror(errno));
        if (q->qp)
            ibv_destroy_qp(q->qp);
        free(q);
        return NULL;
    }
    q->base.qpn = q->qp->qp_num;
    for (unsigned i = 0; i < depth; i++)
        q->place[i] = (struct place){.wr = {.done = place_received}, .q = q};
    rail->cq_room -= depth;
    rail->pool->all[rail->pool->num++] = q;
    return q;
}

bool mr_ud_pool_in_use(const struct mr_rail *rail)
{
    return rail->pool && rail->pool->num_free < rail->pool->num;
}

void mr_ud_pool_close(struct mr_rail *rail)
{
    struct mr_ud_pool *pool = rail->pool;

    if (!pool)
        return;
    if (mr_config.leaks && pool->num_free < pool->num)
        mr_log_print(MR_LOG_WARN, "leak: rail %u: %u queue pairs for large messages were not given back", rail->index,
                     pool->num - pool->num_free);
    while (pool->num)
        pool_qp_destroy(pool->all[0]);
    ibv_dereg_mr(pool->mr);
    free(pool->scratch);
    free(pool->all);
    free(pool);
    rail->pool = NULL;
}

/* ---- taking and giving ------------------------------------------------------------------------------------------- */

static void put_qp_back(struct pool_qp *q)
{
    struct mr_ud_pool *pool = q->base.rail->pool;

    q->base.owner = NULL;
    q->next = pool->free;
    pool->free = q;
    pool->num_free++;
}

unsigned mr_ud_pool_prepare(struct mr_rail *rail, unsigned n)
{
    struct pool_qp *q;

    if (rail->dev->fatal || rail->dev->max_sge < PIECES || (!rail->pool && !(rail->pool = make_pool(rail))))
        return 0;
    while (rail->pool->num_free < n && has_room_for_one(rail) && (q = make_qp(rail)))
        put_qp_back(q);
    return rail->pool->num_free;
}

unsigned mr_ud_pool_num(const struct mr_rail *rail)
{
    return rail->pool ? rail->pool->num : 0;
}

static int pool_qp_freshen(struct pool_qp *q)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    int err = q->base.rail->dev->fatal ? -EIO : -ibv_modify_qp(q->qp, &attr, IBV_QP_STATE);

    mr_verbs_forget(&q->later);
    q->stopping = false;
    if (!err)
        err = ready_to_receive(q);
    if (err)
        pool_qp_destroy(q);
    return err;
}

int mr_ud_pool_again(struct mr_ud_pool_qp *base, bool clean)
{
    struct pool_qp *q = (struct pool_qp *)base;

    base->posted = base->back = 0;
    return clean && !q->stopping && q->pkey_index == pool_pkey_index(q) ? 0 : pool_qp_freshen(q);
}

/* A queue pair already in the partition, or else any. */
static struct pool_qp *find_free(struct mr_ud_pool *pool, uint16_t pkey)
{
    struct pool_qp **at = &pool->free, *q;

    while (*at && mr_pkey_partition((*at)->base.pkey) != mr_pkey_partition(pkey))
        at = &(*at)->next;
    if (!*at)
        at = &pool->free;
    q = *at;
    if (q) {
        *at = q->next;
        pool->num_free--;
    }
    return q;
}

struct mr_ud_pool_qp *mr_ud_pool_take(struct mr_rail *rail, uint16_t pkey, const struct mr_ud_pool_events *events,
                                      void *owner)
{
    struct pool_qp *q = rail->pool && !rail->dev->fatal ? find_free(rail->pool, pkey) : NULL;

    if (!q)
        return NULL;
    q->base.pkey = pkey;
    if (mr_ud_pool_again(&q->base, true))
        return NULL;
    q->base.events = events;
    q->base.owner = owner;
    return &q->base;
}

void mr_ud_pool_give(struct mr_ud_pool_qp *base, bool clean)
{
    if (!mr_ud_pool_again(base, clean))
        put_qp_back((struct pool_qp *)base);
}

/* ---- receives ---------------------------------------------------------------------------------------------------- */

static void stopped_if_all_is_back(struct pool_qp *q)
{
    if (!q->stopping || q->base.back < q->base.posted)
        return;
    mr_verbs_forget(&q->later);
    q->base.events->stopped(&q->base);
}

static void place_received(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct place *place = container_of(wr, struct place, wr);
    struct pool_qp *q = place->q;

    q->base.back++;
    if (!wc->error) {
        bool whole = wc->raw->wc_flags & IBV_WC_WITH_IMM && wc->raw->byte_len >= MR_GRH_BYTES;

        q->base.events->arrived(&q->base, (unsigned)(place - q->place), be32toh(wc->raw->imm_data),
                                whole ? wc->raw->byte_len - MR_GRH_BYTES : 0);
        return;
    }
    if (!wc->flushed)
        mr_log(MR_LOG_WARN, "rail %u: receiving a large message failed: %s", q->base.rail->index, wc->status);
    q->stopping = true; /* the adapter gives all of them back */
    stopped_if_all_is_back(q);
}

static int post_chain(struct pool_qp *q, unsigned char *at, size_t len, uint32_t size, uint32_t lkey, unsigned n)
{
    struct mr_ud_pool *pool = q->base.rail->pool;
    struct ibv_recv_wr wr[CHAIN], *bad = NULL;
    struct ibv_sge sge[CHAIN][PIECES];
    unsigned posted = 0;
    int err;

    for (unsigned i = 0; i < n; i++) {
        uint32_t place = len < size ? (uint32_t)len : size;

        sge[i][0] = (struct ibv_sge){.addr = (uintptr_t)pool->scratch, .length = MR_GRH_BYTES, .lkey = pool->mr->lkey};
        sge[i][1] = (struct ibv_sge){.addr = (uintptr_t)at, .length = place, .lkey = lkey};
        sge[i][2] = (struct ibv_sge){
            .addr = (uintptr_t)pool->scratch + GRH_ROOM, .length = size - place, .lkey = pool->mr->lkey};
        wr[i] = (struct ibv_recv_wr){.wr_id = mr_wr_id(&q->place[q->base.posted + i].wr),
                                     .next = i + 1 < n ? &wr[i + 1] : NULL,
                                     .sg_list = sge[i],
                                     .num_sge = place < size ? 3 : 2};
        at += place;
        len -= place;
    }
    err = ibv_post_recv(q->qp, wr, &bad);
    while (posted < n && !(err && bad == &wr[posted]))
        posted++;
    q->base.posted += posted;
    return -err;
}

int mr_ud_pool_post(struct mr_ud_pool_qp *base, void *at, size_t len, uint32_t size, uint32_t lkey)
{
    struct pool_qp *q = (struct pool_qp *)base;
    unsigned char *from = at;

    while (len) {
        size_t places = (len + size - 1) / size, most = mr_ud_pool_depth(base->rail) - base->posted, part;
        unsigned n = (unsigned)(places < CHAIN ? places : CHAIN);
        int err;

        if (n > most)
            return -ENOSPC;
        part = (size_t)n * size < len ? (size_t)n * size : len;
        err = post_chain(q, from, part, size, lkey, n);
        if (err)
            return err;
        from += part;
        len -= part;
    }
    return 0;
}

/* Nothing comes back from a lost device. */
static bool later_stopped(struct mr_later *later)
{
    struct pool_qp *q = container_of(later, struct pool_qp, later);

    if (q->base.back < q->base.posted && !q->base.rail->dev->fatal)
        return false;
    q->base.back = q->base.posted;
    stopped_if_all_is_back(q);
    return true;
}

void mr_ud_pool_stop(struct mr_ud_pool_qp *base)
{
    struct pool_qp *q = (struct pool_qp *)base;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    if (q->stopping)
        return;
    q->stopping = true;
    if (!base->rail->dev->fatal)
        ibv_modify_qp(q->qp, &attr, IBV_QP_STATE);
    q->later.done = later_stopped;
    mr_verbs_later(&q->later);
}
