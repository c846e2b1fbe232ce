/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: plain handles to the engine's objects. */
#include "simfab/preload/preload.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/preload/call.h"
#include "simfab/preload/verbs.h"
#include "simfab/preload/verbs_mem.h"

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
    int err = sfp_destroy_handle(SF_OP_DESTROY_AH, ah->context, ah->handle);

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
