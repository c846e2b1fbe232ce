/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions and memory windows: plain handles to the engine's objects. The engine checks
 * keys, bounds and rights; nothing of that is decided here.
 */
#include "simfab/preload/verbs_mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "simfab/preload/attach.h"
#include "simfab/preload/call.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/verbs.h"
#include "simfab/preload/verbs_post.h"

/* Of an object that a child has inherited by fork: nothing, as the engine's object is the parent's. */
int sfp_destroy_handle(enum sf_op op, struct ibv_context *c, uint32_t handle)
{
    if (sfp_context(c)->generation != sfp_generation)
        return 0;
    return sfp_call(op, &handle, sizeof handle, NULL, 0, NULL, NULL);
}

/* ---- memory regions -------------------------------------------------------------------------------------------- */

/* True if the whole range is mapped. The kernel would pin the memory; here only the mapping is checked. */
static bool mapped(const void *addr, size_t length)
{
    uintptr_t page = (uintptr_t)addr & ~(uintptr_t)4095;

    return !sfp_syscall(SYS_msync, page, (uintptr_t)addr + length - page, MS_ASYNC);
}

static int range_error(const void *addr, size_t length)
{
    if (!length || (uintptr_t)addr + length < (uintptr_t)addr)
        return EINVAL;
    return mapped(addr, length) ? 0 : EFAULT;
}

/* A region that the engine has made, or changed: its handle and keys. */
static struct ibv_mr *fill_mr(struct ibv_mr *mr, struct ibv_pd *pd, void *addr, size_t length, const uint32_t rep[3])
{
    *mr = (struct ibv_mr){.context = pd->context,
                          .pd = pd,
                          .addr = addr,
                          .length = length,
                          .handle = rep[0],
                          .lkey = rep[1],
                          .rkey = rep[2]};
    return mr;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
    struct sf_reg_mr req = {
        .pd = pd->handle,
        .access = access & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE,
        .addr = (uintptr_t)addr,
        .length = length,
        .iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
    };
    uint32_t rep[3];
    struct ibv_mr *mr;
    int err = access & IBV_ACCESS_ON_DEMAND ? 0 : range_error(addr, length);

    mr = err ? NULL : calloc(1, sizeof *mr);
    if (!err && !mr)
        err = ENOMEM;
    if (!err)
        err = sfp_call(SF_OP_REG_MR, &req, sizeof req, rep, sizeof rep, NULL, NULL);
    if (err) {
        free(mr);
        errno = err;
        return NULL;
    }
    return fill_mr(mr, pd, addr, length, rep);
}

SFP_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return reg_mr(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

SFP_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
    return reg_mr(pd, addr, length, iova, (unsigned)access);
}

SFP_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                           unsigned int access)
{
    return reg_mr(pd, addr, length, iova, access);
}

struct ibv_mr *sfp_alloc_null_mr(struct ibv_pd *pd)
{
    struct ibv_mr *mr = calloc(1, sizeof *mr);
    uint32_t rep[3];
    int err;

    if (!mr)
        return NULL;
    err = sfp_call(SF_OP_NULL_MR, &pd->handle, sizeof pd->handle, rep, sizeof rep, NULL, NULL);
    if (err) {
        free(mr);
        errno = err;
        return NULL;
    }
    return fill_mr(mr, pd, NULL, SIZE_MAX, rep);
}

static int rereg_error(const struct ibv_mr *mr, int flags, const struct ibv_pd *pd, const void *addr, size_t length,
                       int access)
{
    if (flags <= 0 || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED || (flags & IBV_REREG_MR_CHANGE_PD && !pd))
        return EINVAL;
    if (flags & IBV_REREG_MR_CHANGE_ACCESS && access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_ZERO_BASED))
        return EOPNOTSUPP;
    if (sfp_context(mr->context)->generation != sfp_generation)
        return EIO;
    return flags & IBV_REREG_MR_CHANGE_TRANSLATION ? range_error(addr, length) : 0;
}

SFP_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
    struct sf_rereg_mr req = {
        .mr = mr->handle,
        .flags = (uint32_t)flags,
        .to = {.pd = pd ? pd->handle : 0,
               .access = (uint32_t)access & ~(uint32_t)IBV_ACCESS_OPTIONAL_RANGE,
               .addr = (uintptr_t)addr,
               .length = length,
               .iova = (uintptr_t)addr},
    };
    bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
    uint32_t rep[3];
    int err = rereg_error(mr, flags, pd, addr, length, access);

    if (err) {
        errno = err;
        return IBV_REREG_MR_ERR_INPUT;
    }
    err = sfp_call(SF_OP_REREG_MR, &req, sizeof req, rep, sizeof rep, NULL, NULL);
    if (err) { /* the region is unchanged */
        errno = err;
        return IBV_REREG_MR_ERR_CMD;
    }
    fill_mr(mr, flags & IBV_REREG_MR_CHANGE_PD ? pd : mr->pd, moves ? addr : mr->addr, moves ? length : mr->length,
            rep);
    return 0;
}

SFP_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
    int err = sfp_destroy_handle(SF_OP_DEREG_MR, mr->context, mr->handle);

    if (!err)
        free(mr);
    return err;
}

/* ---- memory windows -------------------------------------------------------------------------------------------- */

struct ibv_mw *sfp_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    uint32_t req[2] = {pd->handle, type}, rep[2];
    struct ibv_mw *mw = calloc(1, sizeof *mw);
    int err;

    if (!mw)
        return NULL;
    err = sfp_call(SF_OP_ALLOC_MW, req, sizeof req, rep, sizeof rep, NULL, NULL);
    if (err) {
        free(mw);
        errno = err;
        return NULL;
    }
    *mw = (struct ibv_mw){.context = pd->context, .pd = pd, .handle = rep[0], .rkey = rep[1], .type = type};
    return mw;
}

int sfp_dealloc_mw(struct ibv_mw *mw)
{
    int err = sfp_destroy_handle(SF_OP_DEALLOC_MW, mw->context, mw->handle);

    if (!err)
        free(mw);
    return err;
}

/* Windows of type 1 get their next key by themselves. */
int sfp_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    struct ibv_send_wr wr = {.wr_id = bind->wr_id, .opcode = IBV_WR_BIND_MW, .send_flags = bind->send_flags}, *bad;
    int err;

    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    wr.bind_mw.bind_info = bind->bind_info;
    err = sfp_post_send(qp, &wr, &bad);
    if (!err)
        mw->rkey = wr.bind_mw.rkey;
    return err;
}
