/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages between hosts: memory advertised to a peer, RDMA writes into it and reads from it, in stripes over the
 * subchannels with RDMA, or datagrams directly into the program's memory. The channel (net/) calls these functions with
 * the library's lock held. Completions go up through mr_vc_up (put_sent, read_done, put_landed).
 */
#ifndef MRMPI_BULK_H
#define MRMPI_BULK_H

#include "libmrmpi/net/stripe/transfers.h"

/* Subscribes to the events of peers; mr_peers.launch is set. */
void mr_bulk_init(void);
/* After peers have been freed. */
void mr_bulk_finalize(void);
/* No large message of ours is under way. */
bool mr_bulk_is_idle(void);
/* Parts of large messages are late, or wait for a queue pair of a pool that has none free. */
bool mr_bulk_is_late(void);
/*
 * Registers [buf, buf + len) for the peer and describes it in *out; how: MR_VC_PUT and MR_VC_DATAGRAMS are written,
 * MR_VC_WINDOW and MR_VC_ATTACHED both, others read. *region is the caller's until mr_bulk_withdraw(). 0; -EAGAIN: no
 * datagrams now; -ENOMEM or another negative errno.
 */
int mr_bulk_advertise(struct mr_peer *p, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                      struct mr_remote *out);
void mr_bulk_withdraw(struct mr_region *region);
/* Stripes of messages shorter than so many times MRMPI_STRIPE_MIN are not cut while all rails are busy. */
#define MR_STRIPE_BUSY 4
/*
 * As mr_vc_move. Short writes carry their data in the request, so buf need not be registered. Errors as of
 * mr_net_begin_transfer; -EOPNOTSUPP: over links that lose writes, too.
 */
int mr_net_move(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *remote, bool write,
                struct mr_vc_move *m);
/* Posts parts that waited for room or for a connection. True: some still wait. */
bool mr_bulk_resume(struct mr_peer *p);
/* A notification (immediate data of a write) has arrived. */
void mr_bulk_landed(uint32_t imm);
/* A control message of the peer. True: it was about a large message, and has been handled. */
bool mr_bulk_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len);
/*
 * Called from poll for a watched peer. idle: every completion has been handled, so parts overdue at now_ns are
 * requested again. True: call again.
 */
bool mr_bulk_watch(struct mr_peer *p, bool idle, uint64_t now_ns);
/* Gives free queue pairs to waiting datagram receives. The time if the clock was read, or 0. */
uint64_t mr_bulk_serve(void);

#endif
