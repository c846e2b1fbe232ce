/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unsupported functions of simulated HCAs. Every function of libibverbs with an object argument must be defined in this
 * library: the real library would take simulated objects for its own.
 */
#include "simfab/preload/preload.h"

#include <errno.h>

#include "simfab/preload/verbs.h"

struct ibv_kern_path_rec;

static void *refuse(void)
{
    errno = EOPNOTSUPP;
    return NULL;
}

SFP_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                            int access)
{
    return refuse();
}

SFP_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
    return refuse();
}

SFP_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
    return refuse();
}

SFP_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
}

SFP_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
    return refuse();
}

SFP_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
}

SFP_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
    return refuse();
}

SFP_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
}

/* Enhanced connection establishment: nothing to agree on, as for an HCA without options. */
SFP_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    *ece = (struct ibv_ece){0};
    return 0;
}

SFP_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    return ece->comp_mask ? EINVAL : EOPNOTSUPP;
}

SFP_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    return 0; /* nothing is promised */
}

SFP_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
                                           uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
    errno = EOPNOTSUPP; /* InfiniBand link layer */
    return -1;
}

/* No memory of ours is pinned: forked children need no care. */
SFP_EXPORT int ibv_fork_init(void)
{
    return 0;
}

SFP_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

SFP_EXPORT int ibv_dontfork_range(void *base, size_t size);
SFP_EXPORT int ibv_dofork_range(void *base, size_t size);

SFP_EXPORT int ibv_dontfork_range(void *base, size_t size)
{
    return 0;
}

SFP_EXPORT int ibv_dofork_range(void *base, size_t size)
{
    return 0;
}
