/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages over links that lose writes (UC): zero-copy as in M. Koop, R. Kumar, D. Panda, "Can Software
 * Reliability Outperform Hardware Reliability on High Performance Interconnects?", ICS 2008, section 6.3.
 *
 * The sender writes the message in rounds; the first round has the whole message. Each write carries a notification
 * with the round and the run of its blocks (net/stripe/blocks.h). When all writes of a round have left, the sender
 * sends WRITTEN (the paper's FIN), a control message of the virtual channel, which is reliable. The receiver sends
 * LANDED (ACK) when all blocks have arrived. The receiver does not wait for WRITTEN, because its rank may leave MPI
 * then. A sender whose adapter still has a write cannot end on that LANDED; its WRITTEN then asks for another. If
 * nothing has arrived for some round-trip times, the receiver answers MISSING (NACK) with the missing blocks, and the
 * next round has these. LANDED ends the send; the last block ends the receive.
 *
 * A missing block may still arrive, if WRITTEN has overtaken it. The block is then written twice, and the second write
 * must not arrive after the end of the receive. After MISSING, therefore, only writes of the new round count. A block
 * is written again over the same link, which keeps order: once the later write has arrived, the earlier write has
 * arrived or is lost. If the link's subchannel has broken, another subchannel is used, after the queue pairs of both
 * ends are gone (conn/recovery.c).
 *
 * Writes are long while none is lost, and get shorter with losses: a lost packet costs the whole write. Control
 * messages carry the message's token and serial number, so a late one matches nothing.
 */
#ifndef MRMPI_TRACK_H
#define MRMPI_TRACK_H

#include "libmrmpi/net/stripe/transfers.h"

/* Control messages, after those of conn/recovery.c. tag: the round; sreq: the sender's number of the message. */
enum mr_track_control {
    MR_TRACK_WRITTEN = MR_CONTROL_BULK, /* ctx, rreq: token and serial of the receive; rank: 1 if LANDED came early */
    MR_TRACK_LANDED,                    /* ctx, rreq: the same */
    MR_TRACK_MISSING,                   /* payload: struct mr_missing_run[]; rank: 1 if another message has more */
    MR_TRACK_END
};

struct mr_missing_run {
    uint16_t first, num;
};

/* How the stripes of a tracked message are posted. */
struct mr_track_ops {
    /* The next write of a stripe that has some left. */
    void (*choose_write)(const struct mr_stripe_op *s, const struct mr_link *l, struct mr_bulk_part *part);
    void (*write_posted)(struct mr_stripe_op *s, const struct mr_bulk_part *part);
    void (*stripe_written)(struct mr_stripe_op *s); /* all its remaining bytes */
    void (*free)(struct mr_transfer *transfer);
};

/* Sender: a message whose receiver confirms arrived blocks. */
struct mr_track {
    const struct mr_track_ops *ops;
    struct mr_blocks todo; /* to be written in this round */
    uint32_t written;      /* blocks, in this round */
    uint8_t block_shift;
    uint8_t round; /* 0: the first; another for each MISSING */
    bool asked;    /* WRITTEN has been sent in this round */
    bool early;    /* LANDED came before */
};

/* ---- sender ---- */
/* Tracks a transfer, before its stripes are started. 0 or negative errno. */
int mr_track_begin(struct mr_transfer *transfer);

/* ---- receiver ---- */
/* Opens a tracked receive of len bytes for a region. 0; -ENOMEM; -EAGAIN: too many are open. */
int mr_track_open(struct mr_bulk_region *r, uint64_t len, struct mr_remote *out);
void mr_track_close(struct mr_bulk_region *r);
/* A notification with MR_RUN_FLAG. */
void mr_track_landed(uint32_t imm);
/* Asks for overdue blocks at now_ns. */
void mr_track_poll(struct mr_peer *p, uint64_t now_ns);
/* ns that late data is waited for, after all has left the sender. */
uint64_t mr_track_hold(const struct mr_peer *p);

/* ---- both ---- */
/* Handles WRITTEN, LANDED and MISSING: true for these. */
bool mr_track_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len);

#endif
