/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages between hosts: memory that is advertised to a peer, RDMA writes into it and reads from it, in stripes
 * over the subchannels that have RDMA, or datagrams straight into the program's memory. The channel (net/) calls these
 * functions with the library's lock held. Completions go up through mr_channel_up (put_sent, read_done, put_landed).
 */
#ifndef MRMPI_BULK_H
#define MRMPI_BULK_H

#include "libmrmpi/connect/connect.h"

/* A subchannel's part in large messages. */
struct mr_bulk_sub {
    uint64_t queued;                             /* bytes of the stripes that were assigned to it and are not done */
    unsigned flows;                              /* datagram batches and sends under way over it */
    uint8_t fruitless;                           /* batches in a row of which nothing arrived */
    struct mr_stripe_op *waiting, **waiting_end; /* stripes for which there was no room */
};

/* A peer's part in large messages. Every peer is the first member of one (mr_peers.peer_size). */
struct mr_bulk_peer {
    struct mr_peer base;
    struct mr_bulk_sub *sub;         /* as base.sub; NULL: not listed yet */
    struct mr_put *puts;             /* not yet complete */
    struct mr_stripe_op *unassigned; /* stripes without a subchannel */
    unsigned num_unconfirmed;        /* stripes that may have landed over a subchannel that broke */
    struct mr_sched stripe_turn;
    struct mr_adapt *adapt;            /* NULL: no stripe has gone over one of several subchannels */
    struct mr_feedback *feedback;      /* the same for MR_WEIGHTS_PAPER */
    uint8_t write_shift;               /* log2 of the longest tracked write to it; 0: not known yet */
    uint8_t spurious;                  /* how often data was requested again that was only late */
    struct mr_track_recv *late_recvs;  /* tracked receives that wait for what is late */
    struct mr_dgram_recv *dgram_recvs; /* datagram receives that are open, */
    unsigned num_late_batches;         /* their batches that wait for what is late, */
    unsigned num_starving;             /* and those of them that wait for a queue pair */
    struct mr_dgram_send *dgram_sends; /* datagrams that are cleared and not posted */
    struct mr_sched dgram_turn;
    struct mr_bulk_writer *collecting; /* writers that may have something to post (writer.c) */
};

/* Subscribes to the events of peers; mr_peers.launch is set. */
void mr_bulk_init(void);
/* Devices are open: limits the cache of registrations, and chooses between pinning and on-demand paging. */
void mr_bulk_open_memory(void);
/* After peers have been freed. */
void mr_bulk_finalize(void);
/* No large message of ours is under way. */
bool mr_bulk_is_idle(void);
/* A look at the network has found nothing: completions are not late any more because memory was registered. */
void mr_bulk_caught_up(void);
/* Parts of large messages are late, or wait for a queue pair of a pool that has none free. */
bool mr_bulk_is_late(void);
/*
 * Registers [buf, buf + len) for the peer and describes it in *out; how: MR_VC_PUT and MR_VC_DATAGRAMS are written,
 * MR_VC_WINDOW both, others read. *region is the caller's until mr_bulk_withdraw(). 0; -EAGAIN: no datagrams now;
 * -ENOMEM or another negative errno.
 */
int mr_bulk_advertise(struct mr_peer *p, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                      struct mr_remote *out);
void mr_bulk_withdraw(struct mr_region *region);
/*
 * The message had better be copied by both sides, packet by packet and at the same time, than have its memory
 * registered, by one side after the other and with one device after the other, and perhaps for this time only: it is
 * short, and its memory has not been used since it was mapped. Remembers that it is used now.
 */
bool mr_bulk_copies(const struct mr_peer *p, const void *buf, size_t len);
#define MR_BULK_COPIED (128u << 10) /* bytes, for each device: copied in the 10.5 us that a registration takes */
#define MR_BULK_COPIED_FAST (160u << 10) /* the same with one device, whose rail carries more than is copied */
/*
 * Memory is registered with one device first, and with the others when it is used again: one of our rails to the peer
 * carries more than a processor copies, and what is read could not be registered with all of them in the time that they
 * save. Messages are read, not written.
 */
bool mr_bulk_one_suffices(const struct mr_peer *p);
unsigned mr_bulk_least_devices(void); /* with so many memory is registered at first, at least */
#define MR_BULK_COPY_MBPS 100000u /* that a processor copies: as much as an EDR rail carries */
/*
 * Memory that packets to a peer are sent from, over the rails whose devices know it, registered until
 * mr_bulk_give_back(). NULL: it cannot be.
 */
const struct mr_memory *mr_bulk_borrow(const struct mr_peer *p, const void *buf, size_t len);
void mr_bulk_give_back(const struct mr_memory *m);
/*
 * Writes len bytes at buf into what the peer has advertised. put_sent(cookie) follows, perhaps before this returns. buf
 * stays as it is until then. 0; -EMSGSIZE: it is longer than the target; -EPROTO: the target makes no sense;
 * -EOPNOTSUPP: no subchannel has RDMA; -ENOMEM.
 */
int mr_bulk_put(struct mr_peer *p, const void *buf, size_t len, const struct mr_remote *dst, void *cookie);
/* Stripes of messages shorter than so many times MRMPI_STRIPE_MIN are not cut while all rails are busy. */
#define MR_STRIPE_BUSY 4
/* Reads part of what the peer has advertised into the message of size bytes at buf. read_done(cookie) follows. Errors
 * as above. */
int mr_bulk_read(struct mr_peer *p, void *buf, size_t size, struct mr_vc_part part, const struct mr_remote *src,
                 void *cookie);
/*
 * As mr_vc_move. Short writes are sent with their request, so that buf need not be registered. Errors as above;
 * -EOPNOTSUPP: over links that lose writes, too.
 */
int mr_bulk_move(struct mr_peer *p, void *buf, size_t len, const struct mr_remote *remote, bool write,
                 struct mr_vc_move *m);
/* As mr_vc_writer_open; also NULL: not to this peer. */
struct mr_vc_writer *mr_bulk_writer_open(struct mr_peer *p, const struct mr_remote *remote);
/* Posts what waited for room or for a connection. True: some still waits. */
bool mr_bulk_resume(struct mr_peer *p);
/* A notification (immediate data of a write) has arrived. */
void mr_bulk_landed(uint32_t imm);
/* A control message of the peer. True: it was about a large message, and has been handled. */
bool mr_bulk_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len);
/*
 * Called from poll for a peer that is watched. idle: every completion has been handled, so what is overdue at now_ns is
 * requested again. True: call again.
 */
bool mr_bulk_watch(struct mr_peer *p, bool idle, uint64_t now_ns);
/* Gives free queue pairs to datagram receives that wait for one. The time if the clock was read, or 0. */
uint64_t mr_bulk_serve(void);

#endif
