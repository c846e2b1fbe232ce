/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets of pt2pt, and the protocols that they make up.
 *
 * Protocols, as seen on the virtual channel (S sender, R receiver):
 * - eager: S EAGER(payload), or EAGER(first part), EAGER(rest)... with nothing between (parts.c)
 * - synchronous: S EAGER(payload, ACK wanted); R ACK when matched
 * - get: S RTS(where the data is); R reads, R FIN
 * - shared: S RTS(where the data is); R GO; S DATA... from the front, while R, whenever no DATA comes, reads from the
 *   back; R FIN when all is there. A computing sender costs the receiver nothing. Once its program has freed the
 *   request, S stops and sends LEFT; R reads the rest. If R cannot read, R sends GO again, as for copy, and S
 *   continues.
 * - split copy: S RTS(where the data is); R GO(where it goes to, a claim); S writes chunks from the front into the
 *   receiver's memory, R reads chunks from the back, each claims what it takes (channel/shm_claim.h); S LEFT if R may
 *   sleep while S writes the last chunk; R FIN
 * - put: S RTS; R CTS(where to write); S writes, or sends what lands there, both are told by the channel
 * - read: S RTS(where the data is); the channel reads for R, R FIN. RTS may announce an eager prefix: bytes from the
 *   front follow, S PREFIX..., with nothing between, and R reads the rest (prefix.c, read.c). RTS may offer the last
 *   bytes in a bounce buffer of the sender: R FRONT after reading the others, and FIN after all (bounce.c)
 * - ready: R RTR(where to write), in whichever order with S RTS(heeds RTR); S writes, except the eager prefix that RTS
 *   may announce; both are told by the channel. What S offers otherwise, or sends eagerly, ends it: R RTR_CANCEL
 *   (ready.c)
 * - copy: S RTS; R GO; S DATA..., R CREDIT now and then; for data that is not in one piece, when the kernel refuses
 *   single copy, and for short messages to a receiver that keeps enough of this sender's already
 * A receiver tells by a byte of every packet, and by EAGER_CREDIT when it has nothing else to send, how many bytes of
 * eager messages have met their receives (credit.h).
 *
 * A send that waits for the receiver (OFFERED, ACK) can be cancelled: S CANCEL; if the message is still unexpected, R
 * CANCELLED; if not, the answer to the message itself is already on its way and nothing is sent. Of eager messages, to
 * which there is no answer, CANCEL names the packet (mr_eager_id); then R sends CANCELLED or ACK.
 *
 * A process that waits in MPI_Finalize sends PARTS to its peers: their receives without a message end with an error,
 * and their sends without a receive at the process are cancelled, with an error.
 *
 * The receiver decides, knowing what the sender offers. A receiver with less room than the message requests only the
 * part that fits.
 *
 * Ids that travel (sreq, rreq) are index and generation of a slot in the table of transfers, never pointers: a stale or
 * damaged one is recognised.
 */
#ifndef MRMPI_REQUEST_PROTOCOL_H
#define MRMPI_REQUEST_PROTOCOL_H

#include "libmrmpi/channel/channel.h"
#include "libmrmpi/p2p/p2p.h"

enum mr_packet {
    MR_PKT_EAGER = MR_VC_KIND_EAGER,
    MR_PKT_RTS,
    MR_PKT_CTS,
    MR_PKT_GO,
    MR_PKT_DATA,   /* hdr.len: offset of the payload; hdr.ctx: bytes of the message, UINT32_MAX: so many or more */
    MR_PKT_CREDIT, /* hdr.len: bytes that have arrived */
    MR_PKT_FIN,    /* from the receiver; hdr.len: 0 or a positive errno */
    MR_PKT_FAIL,   /* from the sender, which cannot write after all, or has not written all */
    MR_PKT_ACK,
    MR_PKT_CANCEL,       /* from the sender, which wants to take its message back */
    MR_PKT_CANCELLED,    /* from the receiver: the message was unexpected, and is dropped */
    MR_PKT_EAGER_CREDIT, /* hdr.len: bytes of eager messages that have met their receives, in all */
    MR_PKT_FRONT,        /* from the receiver: it has all data in the program's memory */
    MR_PKT_PREFIX,       /* hdr.len: offset of the payload. RTS said in hdr.rreq how many bytes come in such packets */
    MR_PKT_RTR,          /* from the receiver of a message of hdr.len bytes, not offered yet; hdr.sreq: its number */
    MR_PKT_RTR_CANCEL,   /* from the receiver: RTR, with the same context, tag and number, is not to be heeded */
    MR_PKT_LEFT,         /* from the sender, which stops its part of the message unless requested again */
    MR_PKT_PARTS,        /* from a process in MPI_Finalize: its program sends and receives nothing more */
    MR_PKT_REVOKE,       /* the communicator hdr.ctx of the group hdr.sreq; the receiver passes the packet on, once */
    MR_PKT_AGREE,        /* hdr.flags: enum mr_era_kind, of agreement hdr.tag; the rest as above (fault/agree.c) */
    MR_PKT_DOOR,         /* hdr.tag: enum mr_door_word; hdr.rreq: the door, hdr.sreq: the number of the question */
    MR_PKT_LAST = MR_PKT_ABOVE - 1, /* the higher kinds belong to the subsystem above */
};

enum mr_packet_flags {
    MR_FLAG_ACK = 1,        /* EAGER: the sender waits for ACK */
    MR_FLAG_RTR = 1,        /* RTS: the sender heeds RTR, if that names this length */
    MR_FLAG_GET = 2,        /* RTS: the payload is a struct mr_remote of the data */
    MR_FLAG_PUT = 4,        /* RTS: the sender can write into advertised memory */
    MR_FLAG_AGAIN = 4,      /* FAIL: the receiver asks for the bytes by GO, or says FIN if all are there */
    MR_FLAG_DATAGRAMS = 32, /* RTS: the sender can send to memory that is advertised for datagrams */
    MR_FLAG_READ = 16,      /* RTS: the payload is a struct mr_remote of the data, for the channel to read; and perhaps
                               another one, of where its last bytes are as well */
    MR_FLAG_POISON = 8,     /* EAGER: no data, but an error of the sender's (sreq: its class) */
    MR_FLAG_PART = MR_VC_FLAG_PART, /* EAGER: one of several packets of a message of hdr.len bytes; rreq: its place */
};

/* CANCEL's name for an eager message in hdr.rreq, by the number of its first packet. Never 0. */
static inline uint64_t mr_eager_id(uint32_t seq)
{
    return 1 + (uint64_t)seq;
}

#endif
