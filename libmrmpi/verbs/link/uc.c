/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unreliable connections: packets come in order or not at all, without a report. A message with one lost packet is lost
 * as a whole; so is a message without a receive buffer. Some bytes of a lost write may be there.
 */
#include "libmrmpi/verbs/link/connected.h"

static int uc_open(struct mr_link *l, struct mr_rail *rail)
{
    return mr_connected_open(l, rail, MR_QP_UC);
}

const struct mr_link_ops mr_link_uc = {
    .open = uc_open,
    .connect = mr_connected_connect,
    .send = mr_connected_send,
    .write = mr_connected_write,
    .flush = mr_connected_keepalive,
    .drain = mr_connected_drain,
    .close = mr_connected_close,
    .leave = mr_connected_leave,
};
