/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages as datagrams, the receiver's side: the datagrams of a batch are moved to their places. */
#include "libmrmpi/net/zcopy/zcopy.h"

#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/net/zcopy/repair.h"

/* A subchannel is given up after this number of consecutive sent batches of which nothing arrived. */
#define FRUITLESS_MAX 20

static void move_datagram(const struct mr_dgram_batch *batch, const struct mr_move *m, unsigned char *aside)
{
    const struct mr_dgram_recv *recv = batch->recv;
    unsigned char *from = m->from == MR_REPAIR_ASIDE ? aside : mr_dgram_recv_address(recv, batch->block[m->from]);
    unsigned char *to = m->to == MR_REPAIR_ASIDE ? aside : mr_dgram_recv_address(recv, batch->block[m->to]);
    /* a datagram is as long as its destination; none is longer than its present place */
    uint32_t len = m->to == MR_REPAIR_ASIDE ? mr_zcopy_bytes(recv->len, recv->size, batch->block[m->from])
                                            : mr_zcopy_bytes(recv->len, recv->size, batch->block[m->to]);

    memcpy(to, from, len);
}

/* Moves all that has arrived to its place. False: no memory for the plan; no block counts as arrived. */
static bool repair_order(struct mr_dgram_batch *batch)
{
    struct mr_move *out = malloc(((size_t)batch->num + batch->num / 2 + 1) * sizeof *out);
    uint16_t *work = malloc(batch->num * sizeof *work);
    unsigned char aside[MR_ZCOPY_SIZE_MAX];
    unsigned moves = 0;

    if (out && work)
        moves = mr_repair_plan(batch->lies, batch->num, work, out);
    for (unsigned i = 0; i < moves; i++)
        move_datagram(batch, &out[i], aside);
    mr_stat_add(MR_STAT_UD_MISPLACED, moves);
    free(out);
    free(work);
    return out && work;
}

/* A block in a wrong place may have been overwritten by the owners of that place: it counts as missing. */
static void leave_misplaced(struct mr_dgram_batch *batch)
{
    for (unsigned i = 0; i < batch->num; i++)
        if (batch->lies[i] != i)
            batch->lies[i] = MR_REPAIR_NONE;
}

bool mr_dgram_batch_settle(struct mr_dgram_batch *batch)
{
    struct mr_dgram_recv *recv = batch->recv;
    bool ordered = batch->came == batch->num;
    unsigned missing = 0;

    for (unsigned i = 0; ordered && i < batch->num; i++)
        ordered = batch->lies[i] == i;
    if (recv->region->stays)
        leave_misplaced(batch);
    else if (!ordered && !repair_order(batch))
        memset(batch->lies, 0xff, batch->num * sizeof batch->lies[0]);
    for (unsigned i = 0; i < batch->num; i++) {
        bool there = batch->lies[i] == i;

        mr_blocks_add(there ? &recv->have : &recv->todo, (struct mr_block_run){batch->block[i], 1});
        missing += !there;
    }
    mr_stat_add(MR_STAT_UD_MISSING, missing);
    return !missing;
}

/* Nothing has arrived over this path for many batches, though the adapters report no error. */
void mr_dgram_batch_judge(struct mr_dgram_batch *batch)
{
    struct mr_sub *sub = batch->sub;
    struct mr_peer *p = batch->peer;
    char name[MR_SUB_NAME];

    if (batch->came) {
        mr_bulk_sub_of(sub)->fruitless = mr_bulk_of(p)->spurious = 0;
        return;
    }
    if (!batch->written)
        return;
    mr_bulk_of(p)->spurious += mr_bulk_of(p)->spurious < 8;
    if (++mr_bulk_sub_of(sub)->fruitless < FRUITLESS_MAX)
        return;
    mr_bulk_sub_of(sub)->fruitless = 0;
    mr_log(MR_LOG_WARN, "rank %d on %s, %s: what is sent does not come any more", p->rank, p->address->host,
           mr_sub_name(sub, name));
    mr_sub_break(sub);
}
