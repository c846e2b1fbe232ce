/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory advertised to a peer, and the notifications of the peer's writes there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/net/bulk/bulk.h"
#include "libmrmpi/net/zcopy/zcopy.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/net/stripe/keys.h"
#include "libmrmpi/net/stripe/renew.h"

static uint32_t rails_unregistered(const struct mr_memory *m)
{
    uint32_t set = 0;

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        set |= (uint32_t)!mr_memory_is_on(m, &mr_verbs.rail[i]) << i;
    return set;
}

static void release_region(struct mr_bulk_region *r)
{
    if (r->alone)
        mr_regs_end_alone(r->reg);
    else
        mr_regs_release(r->reg);
}

int mr_bulk_advertise(struct mr_peer *p, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                      struct mr_remote *out)
{
    bool datagrams = how == MR_VC_DATAGRAMS || how == MR_VC_DATAGRAMS_STAY;
    struct mr_bulk_region *r;
    int err;

    if (datagrams && !mr_zcopy_can(p, len))
        return -EAGAIN;
    if (how == MR_VC_WRITE_BACK && !mr_regs_has(buf, len))
        return -EAGAIN;
    r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    r->rank = p->rank;
    r->addr = buf;
    r->len = len;
    r->is_target = how == MR_VC_PUT || how == MR_VC_WRITE_BACK || datagrams;
    r->stays = how == MR_VC_DATAGRAMS_STAY;
    r->alone = how == MR_VC_ATTACHED || how == MR_VC_ATOMIC;
    if (r->alone)
        err = mr_regs_get_alone(buf, len, how == MR_VC_ATOMIC ? MR_ACCESS_ATOMIC : MR_ACCESS_TARGET, &r->reg);
    else if (how == MR_VC_READ_ONCE)
        err = mr_bulk_register_source(p, buf, len, &r->reg);
    else
        err = mr_regs_get(buf, len, r->is_target || how == MR_VC_WINDOW ? MR_ACCESS_TARGET : MR_ACCESS_SOURCE,
                          datagrams, &r->reg);
    if (err)
        goto free_region;
    memset(out, 0, sizeof *out);
    if (datagrams)
        err = mr_zcopy_open(r, p, out);
    else if (r->is_target && p->tracked)
        err = mr_track_open(r, len, out);
    else if (r->is_target)
        err = mr_target_open(&mr_bulk.targets, r, &out->token);
    if (err)
        goto release;
    out->addr = (uintptr_t)buf;
    out->len = len;
    out->lives = mr_verbs.lives;
    out->num_keys = r->dgrams ? 0 : mr_verbs.num_rails;
    for (unsigned i = 0; i < out->num_keys; i++)
        out->rkey[i] = mr_memory_rkey(&r->reg->memory, &mr_verbs.rail[i]);
    if (how == MR_VC_READ_ONCE || how == MR_VC_ATOMIC)
        out->token = rails_unregistered(&r->reg->memory);
    r->token = out->token;
    r->offered = how == MR_VC_READ_ONCE || (r->is_target && !datagrams);
    mr_peers.offered += r->offered ? len : 0;
    mr_renew_add(r, out, how == MR_VC_ATOMIC ? MR_ACCESS_ATOMIC : MR_ACCESS_TARGET,
                 how == MR_VC_READ_ONCE || how == MR_VC_ATOMIC);
    *region = &r->base;
    return 0;

release:
    release_region(r);
free_region:
    free(r);
    return err;
}

void mr_bulk_withdraw(struct mr_region *region)
{
    struct mr_bulk_region *r = (struct mr_bulk_region *)region;

    if (r->dgrams)
        mr_zcopy_close(r);
    else if (r->tracked)
        mr_track_close(r);
    else if (r->is_target)
        mr_target_close(&mr_bulk.targets, r->token);
    mr_peers.offered -= r->offered ? r->len : 0;
    mr_renew_remove(r);
    release_region(r);
    free(r);
}

void mr_bulk_landed(uint32_t imm)
{
    bool stray;
    struct mr_bulk_region *r;

    if (mr_imm_is_run(imm)) {
        mr_track_landed(imm);
        return;
    }
    r = mr_target_arrived(&mr_bulk.targets, imm, &stray);
    if (stray)
        mr_log(MR_LOG_DEBUG, "a notification for a receive that is over was dropped (%08x)", imm);
    if (r)
        mr_vc_up.put_landed(r->rank, r->base.rreq, 0);
}
