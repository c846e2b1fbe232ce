/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains, memory regions and address handles: plain handles to the engine's objects. The engine checks
 * keys, bounds and rights; nothing of that is decided here.
 */
#include "simfab/preload/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int destroy(enum sf_op op, struct ibv_context *c, uint32_t handle)
{
    if (sfp_context(c)->generation != sfp_generation)
        return 0; /* inherited by fork: the engine's object is the parent's */
    return sfp_call(op, &handle, sizeof handle, NULL, 0, NULL, NULL);
}

SFP_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd = calloc(1, sizeof *pd);
    int err;

    if (!pd)
        return NULL;
    pd->context = context;
    err = sfp_call(SF_OP_ALLOC_PD, &sfp_context(context)->handle, sizeof(uint32_t), &pd->handle, sizeof pd->handle,
                   NULL, NULL);
    if (err) {
        free(pd);
        errno = err;
        return NULL;
    }
    return pd;
}

SFP_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
    int err = destroy(SF_OP_DEALLOC_PD, pd->context, pd->handle);

    if (!err)
        free(pd);
    return err;
}

/* ---- memory regions -------------------------------------------------------------------------------------------- */

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
    struct sf_reg_mr req = {
        .pd = pd->handle,
        .access = access & ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE,
        .addr = (uintptr_t)addr,
        .length = length,
        .iova = iova,
    };
    uint32_t rep[3];
    struct ibv_mr *mr;
    int err;

    if (access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    mr = calloc(1, sizeof *mr);
    if (!mr)
        return NULL;
    err = sfp_call(SF_OP_REG_MR, &req, sizeof req, rep, sizeof rep, NULL, NULL);
    if (err) {
        free(mr);
        errno = err;
        return NULL;
    }
    *mr = (struct ibv_mr){.context = pd->context,
                          .pd = pd,
                          .addr = addr,
                          .length = length,
                          .handle = rep[0],
                          .lkey = rep[1],
                          .rkey = rep[2]};
    return mr;
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

SFP_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
    int err = destroy(SF_OP_DEREG_MR, mr->context, mr->handle);

    if (!err)
        free(mr);
    return err;
}

/* ---- address handles ------------------------------------------------------------------------------------------- */

SFP_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct {
        uint32_t pd;
        struct ibv_ah_attr attr;
    } req = {.pd = pd->handle, .attr = *attr};
    struct ibv_ah *ah = calloc(1, sizeof *ah);
    int err;

    if (!ah)
        return NULL;
    ah->context = pd->context;
    ah->pd = pd;
    err = sfp_call(SF_OP_CREATE_AH, &req, sizeof req, &ah->handle, sizeof ah->handle, NULL, NULL);
    if (err) {
        free(ah);
        errno = err;
        return NULL;
    }
    return ah;
}

SFP_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
    int err = destroy(SF_OP_DESTROY_AH, ah->context, ah->handle);

    if (!err)
        free(ah);
    return err;
}

static int find_gid(struct ibv_context *c, uint8_t port, const union ibv_gid *gid)
{
    union ibv_gid have;

    for (int i = 0; ibv_query_gid(c, port, i, &have) == 0; i++)
        if (memcmp(&have, gid, sizeof have) == 0)
            return i;
    errno = ENOENT;
    return -1;
}

/* The way back to the sender of a UD message: its LID and service level, and its GID if the message had a route. */
SFP_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc, struct ibv_grh *grh,
                                   struct ibv_ah_attr *attr)
{
    memset(attr, 0, sizeof *attr);
    attr->dlid = wc->slid;
    attr->sl = wc->sl;
    attr->src_path_bits = wc->dlid_path_bits;
    attr->port_num = port;
    if (wc->wc_flags & IBV_WC_GRH) {
        uint32_t flow = be32toh(grh->version_tclass_flow);
        int index = find_gid(context, port, &grh->dgid);

        if (index < 0)
            return index;
        attr->is_global = 1;
        attr->grh.dgid = grh->sgid;
        attr->grh.sgid_index = (uint8_t)index;
        attr->grh.flow_label = flow & 0xfffff;
        attr->grh.hop_limit = grh->hop_limit;
        attr->grh.traffic_class = (flow >> 20) & 0xff;
    }
    return 0;
}

SFP_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port)
{
    struct ibv_ah_attr attr;

    if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
        return NULL;
    return ibv_create_ah(pd, &attr);
}
