/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations shared by the files of verbs/: receive buffers, datagrams, posting, completion tags. */
#ifndef MRMPI_VERBS_INTERNAL_H
#define MRMPI_VERBS_INTERNAL_H

#include <infiniband/verbs.h>

#include "libmrmpi/verbs/qp.h"
#include "libmrmpi/verbs/up.h"
#include "libmrmpi/verbs/verbs.h"

/* Completions that the receive side of a rail can have outstanding. */
#define MR_UD_RECVS 256
#define MR_UD_SENDS 32

#define MR_GRH_BYTES 40 /* before each datagram: room for a global header */

#define MR_POLL_STREAK 8 /* polls in a row of a busy rail before the next rail's turn */
#define MR_POLL_TURNS  4 /* polls in a row with work at another rail than the first: the rails take turns */

/* wr_id is the address of a struct mr_wr: of qp->unsignaled_failed for a request that was posted unsignaled and failed.
 */
static inline uint64_t mr_wr_id(const struct mr_wr *wr)
{
    return (uint64_t)(uintptr_t)wr;
}

/* device.c: the device failed. All of its rails are down from now on, and reported as down; again: nothing. */
void mr_device_lost(struct mr_device *dev);

/* rx.c: *out is closed by mr_rx_close(), after an error too. */
int mr_rx_open(struct mr_rail *rail, struct mr_rx **out, unsigned depth, size_t longest, bool datagrams);
/* Buffers of one queue pair with buffers of its own. */
int mr_rx_open_own(struct mr_rail *rail, struct mr_rx **out, struct ibv_qp *qp, unsigned depth);
/* There are more rails than at its opening. */
void mr_rx_rails_changed(struct mr_rx *rx);
/* Posts a batch for the first in mr_verbs.rx_due, which is not empty. */
void mr_rx_repost(void);
/* Posts a batch for each with a second batch behind the first. */
void mr_rx_repost_streams(void);
struct ibv_srq *mr_rx_queue(const struct mr_rx *rx);
/* True if none of its buffers is with the adapter. */
bool mr_rx_is_back(const struct mr_rx *rx);
void mr_rx_close(struct mr_rx **rx);

/*
 * post.c: a queue pair's data for posting. open: before the queue pair is made. restart: the queue pair is alive,
 * perhaps again, or *qp has another place; nothing is under way. close: after its destruction.
 */
int mr_post_open(struct mr_qp *qp);
void mr_post_restart(struct mr_qp *qp);
void mr_post_close(struct mr_qp *qp);

/* partition.c: 0, or -ENOKEY (said): the port is in none. changed: its table of P_Keys may have. */
int mr_partitions_open(struct mr_rail *rail, const struct ibv_port_attr *port);
void mr_partitions_changed(struct mr_rail *rail);
/* Before the queue pairs of a rail are made anew: its port may have other P_Keys. */
void mr_partitions_renew(struct mr_rail *rail, const struct ibv_port_attr *port);

/* udp.c: if packets may come as datagrams. moved: the i-th partition has another index in the port's table. */
int mr_udp_open(struct mr_rail *rail);
void mr_udp_moved(struct mr_rail *rail, unsigned i);
void mr_udp_close(struct mr_rail *rail);
unsigned mr_udp_num_qps(const struct mr_rail *rail); /* existing ones */

/* pool.c: completions of its receives */
unsigned mr_ud_pool_completions(void);
void mr_ud_pool_close(struct mr_rail *rail);
bool mr_ud_pool_in_use(const struct mr_rail *rail); /* some of its queue pairs have not been given back */

/* ud.c; moved: as of udp.c */
int mr_ud_open(struct mr_rail *rail);
void mr_ud_moved(struct mr_rail *rail, unsigned i);
void mr_ud_close(struct mr_rail *rail);

/* The address of a peer's port as verbs wants it. */
void mr_rail_ah_attr(const struct mr_rail *rail, const struct mr_rail_addr *to, uint8_t sl, uint8_t path,
                     struct ibv_ah_attr *attr);

#endif
