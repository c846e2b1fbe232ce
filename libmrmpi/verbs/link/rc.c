/* SPDX-License-Identifier: BSD-3-Clause */
/* Reliable connections: the adapter sees to order, repetition and confirmation. */
#include "libmrmpi/verbs/link/connected.h"

static int rc_open(struct mr_link *l, struct mr_rail *rail)
{
    return mr_connected_open(l, rail, MR_QP_RC);
}

const struct mr_link_ops mr_link_rc = {
    .open = rc_open,
    .connect = mr_connected_connect,
    .send = mr_connected_send,
    .write = mr_connected_write,
    .write_list = mr_connected_write_list,
    .atomic = mr_connected_atomic,
    .read = mr_connected_read,
    .keepalive = mr_connected_keepalive,
    .ask = mr_connected_ask,
    .flush = mr_connected_keepalive,
    .drain = mr_connected_drain,
    .close = mr_connected_close,
    .leave = mr_connected_leave,
};
