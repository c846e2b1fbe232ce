/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages as datagrams, the receiver's side: what a queue pair brought comes to its place. */
#include "libmrmpi/bulk/zcopy.h"

#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/bulk/repair.h"

/* Intakes in a row of a subchannel to which nothing came though all was sent, until it is given up. */
#define FRUITLESS_MAX 20

static void move(const struct mr_intake *in, const struct mr_move *m, unsigned char *aside)
{
    const struct mr_inflow *f = in->inflow;
    unsigned char *from = m->from == MR_REPAIR_ASIDE ? aside : mr_inflow_address(f, in->block[m->from]);
    unsigned char *to = m->to == MR_REPAIR_ASIDE ? aside : mr_inflow_address(f, in->block[m->to]);
    /* what lies aside, or in a place, is as long as the place that it goes to; none is too long for where it lies */
    uint32_t len = m->to == MR_REPAIR_ASIDE ? mr_zcopy_bytes(f->len, f->size, in->block[m->from])
                                            : mr_zcopy_bytes(f->len, f->size, in->block[m->to]);

    memcpy(to, from, len);
}

/* All that came comes to its place. False: no memory for that, and so nothing is where it should be. */
static bool repair(struct mr_intake *in)
{
    struct mr_move *out = malloc(((size_t)in->num + in->num / 2 + 1) * sizeof *out);
    uint16_t *work = malloc(in->num * sizeof *work);
    unsigned char aside[ZCOPY_SIZE_MAX];
    unsigned moves = 0;

    if (out && work)
        moves = mr_repair_plan(in->lies, in->num, work, out);
    for (unsigned i = 0; i < moves; i++)
        move(in, &out[i], aside);
    mr_stat_add(MR_STAT_UD_MISPLACED, moves);
    free(out);
    free(work);
    return out && work;
}

/* True if all that was cleared is there. What is not has to be cleared again. */
bool mr_intake_settle(struct mr_intake *in)
{
    struct mr_inflow *f = in->inflow;
    bool ordered = in->came == in->num;
    unsigned missing = 0;

    for (unsigned i = 0; ordered && i < in->num; i++)
        ordered = in->lies[i] == i;
    if (!ordered && !repair(in))
        memset(in->lies, 0xff, in->num * sizeof in->lies[0]);
    for (unsigned i = 0; i < in->num; i++) {
        bool there = in->lies[i] == i;

        mr_blocks_add(there ? &f->have : &f->todo, (struct mr_run){in->block[i], 1});
        missing += !there;
    }
    mr_stat_add(MR_STAT_UD_MISSING, missing);
    return !missing;
}

/* A path over which nothing has come for many rounds is of no use, though its adapters have nothing to say. */
void mr_intake_judge(struct mr_intake *in)
{
    struct mr_sub *sub = in->sub;
    struct mr_peer *p = in->peer;
    char name[MR_SUB_NAME];

    if (in->came) {
        mr_bulk_sub_of(sub)->fruitless = mr_bulk_of(p)->hasty = 0;
        return;
    }
    if (!in->written)
        return;
    mr_bulk_of(p)->hasty += mr_bulk_of(p)->hasty < 8;
    if (++mr_bulk_sub_of(sub)->fruitless < FRUITLESS_MAX)
        return;
    mr_bulk_sub_of(sub)->fruitless = 0;
    mr_log(MR_LOG_WARN, "rank %d on %s, %s: what is sent does not come any more", p->rank, p->address->host,
           mr_sub_name(sub, name));
    mr_sub_break(sub);
}
