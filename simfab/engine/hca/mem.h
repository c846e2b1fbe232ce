/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions: protection keys, bounds, and copying between memory of processes. */
#ifndef SIMFAB_MEM_H
#define SIMFAB_MEM_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/hca/object.h"
#include "simfab/proto.h"

struct hca;
struct pd;
struct qp;

/* The object of a key: a memory region, or a memory window (mw.c), which is part of a region once bound. */
struct mr {
    struct object obj;
    struct pd *pd;
    uint64_t addr, length, iova;
    uint32_t access, key;
    bool null; /* reads as zeros, ignores writes */
    /* windows */
    enum ibv_mw_type window; /* 0: a region */
    struct mr *region;       /* the bound region; NULL: not bound */
    struct qp *qp;           /* type 2: only packets of this queue pair may use the window */
    struct mr *next_of_qp;
};

struct mr *mr_register(struct pd *pd, const struct sf_reg_mr *r, int *err);
struct mr *mr_null(struct pd *pd, int *err);
int mr_reregister(struct mr *mr, struct pd *pd, const struct sf_rereg_mr *r);
void mr_deregister(struct mr *mr);
struct mr *mr_add_key(struct pd *pd, int *err); /* a zeroed object with a key of its own, mw.c */
struct mr *mr_of_key(const struct hca *h, uint32_t key);
/* Time of the two calls for the caller: pages are pinned and entered into the adapter's tables one by one. */
uint64_t mr_register_ps(const struct mr *mr);
uint64_t mr_deregister_ps(const struct mr *mr);
/* Checks a peer's key: the region or window if [addr, addr + len) is inside, with all of the access. */
struct mr *mr_check(const struct qp *qp, uint32_t key, uint64_t addr, uint64_t len, uint32_t access);
/* Are all parts of a list in regions of the domain, with the access (0: reading)? */
bool sge_check(const struct qp *qp, const struct pd *pd, const struct sf_sge *sge, uint32_t n, uint32_t access);
/*
 * len bytes of the message described by the list, from offset on; keys and bounds of the parts that are touched are
 * checked. False: the memory is not there or not ours.
 */
bool mem_gather(const struct qp *qp, const struct sf_sge *sge, uint32_t n, uint32_t offset, void *to, uint32_t len);
bool mem_scatter(const struct qp *qp, const struct pd *pd, const struct sf_sge *sge, uint32_t n, uint32_t offset,
                 const void *from, uint32_t len);
bool mem_read(const struct mr *mr, uint64_t addr, void *to, uint32_t len);
bool mem_write(const struct mr *mr, uint64_t addr, const void *from, uint32_t len);

#endif
