/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two channels over RC queue pairs: packets by sends into the peer's shared receive queue (rc_send.c), large
 * messages by RDMA writes whose last one notifies the receiver, or by RDMA reads (rc_rdma.c).
 */
#ifndef MRMPI_CHANNEL_RC_H
#define MRMPI_CHANNEL_RC_H

#include "libmrmpi/rail/net.h"

/* ---- rc_send.c ------------------------------------------------------------------------------------------------- */

int mr_rc_send_open(size_t packet_max);
void mr_rc_send_close(void);
/* Post one packet. -EAGAIN: no room now; any other error is the queue pair's. */
int mr_rc_send(struct mr_qp *qp, const struct mr_hdr *hdr, const void *payload, size_t len);

/*
 * For a request that must be signaled and has nothing to do at its completion: NULL if mr_qp_must_signal() is false or
 * there is no memory. Give it back if it was not posted.
 */
struct mr_tx *mr_rc_counter(const struct mr_qp *qp);
void mr_rc_counter_unused(struct mr_tx *tx);

/* ---- rc_rdma.c ------------------------------------------------------------------------------------------------- */

int mr_rc_expose(struct mr_peer *p, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                 struct mr_remote *out);
void mr_rc_unexpose(struct mr_region *region);
int mr_rc_put(struct mr_peer *p, const void *buf, size_t len, const struct mr_remote *dst, void *cookie);
int mr_rc_read(struct mr_peer *p, void *buf, size_t len, const struct mr_remote *src, void *cookie);
/* Stripes that waited for room, and after connecting. True if some still wait. */
bool mr_rc_put_resume(struct mr_peer *p);
void mr_rc_landed(uint32_t imm);
/* The peer is lost. What was posted comes back flushed, unless the device is gone (flushed false). */
void mr_rc_put_abandon(struct mr_peer *p, int error);

#endif
