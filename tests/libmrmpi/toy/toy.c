/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A kind of link for toy.sh: connections without RDMA that lose every eighth packet, a hundred in all, so the last
 * packets of a job arrive. A row in kinds.def and this file in link/ are enough to add a kind of link.
 */
#include "libmrmpi/verbs/link/connected.h"

#include "libmrmpi/base/base.h"

#define LOSE 8
#define MOST 100

static unsigned opened, carried, lost;

static int toy_open(struct mr_link *l, struct mr_rail *rail)
{
    opened++;
    return mr_connected_open(l, rail, MR_QP_RC);
}

static int toy_send(struct mr_link *l, struct mr_packet *p)
{
    int err = 0;

    if ((carried + lost) % LOSE != LOSE - 1 || lost == MOST) {
        err = mr_connected_send(l, p);
        carried += !err;
    } else {
        lost++;
    }
    return err;
}

static void toy_close(struct mr_link *l)
{
    mr_connected_close(l);
    mr_log_print(MR_LOG_INFO, "toy: links=%u carried=%u lost=%u", opened, carried, lost);
}

const struct mr_link_ops mr_link_toy = {
    .open = toy_open,
    .connect = mr_connected_connect,
    .send = toy_send,
    .flush = mr_connected_keepalive,
    .drain = mr_connected_drain,
    .close = toy_close,
    .leave = mr_connected_leave,
};
