/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vocabulary of packets for p2p/, the virtual channel, channels, links and verbs. Only types and numbers; their use
 * is described in the subsystems.
 */
#ifndef MRMPI_BASE_PACKET_H
#define MRMPI_BASE_PACKET_H

#include <stddef.h>
#include <stdint.h>

#define MR_RAILS_MAX 8

/* The message of p2p/ to its peer; the transport reads only seq, src and form. Little endian, as in memory. */
struct mr_hdr {
    uint8_t kind; /* pt2pt's: eager, request to send, ...; from MR_VC_KIND_CHANNEL on the channel's own */
    uint8_t flags;
    uint8_t form; /* the channel's, between hosts (base/wire.h) */
    uint8_t note; /* pt2pt's byte for the peer, as it is when the packet is sent; set by mr_vc_send */
    uint32_t seq; /* set by mr_vc_send */
    uint32_t src; /* world rank of the sender; set by mr_vc_send */
    int32_t rank; /* rank of the sender in the communicator */
    int32_t tag;
    uint32_t ctx;
    uint64_t len; /* of the whole message */
    uint64_t sreq, rreq;
};
_Static_assert(sizeof(struct mr_hdr) == 48, "on the wire");
/* Its bytes between hosts, where empty parts are left out (base/wire.h): */
#define MR_WIRE_MIN  offsetof(struct mr_hdr, len)
#define MR_WIRE_PART (MR_WIRE_MIN + 16) /* of a part of a message: how long that is, and where the part begins */
#define MR_WIRE_MAX  sizeof(struct mr_hdr)
/* In hdr.rank, to a process of another job: the receiver's number of the sender takes its place. */
#define MR_RANK_OF_SOURCE  (-9)
#define MR_VC_KIND_EAGER   1 /* the only kind of p2p/ known here: a message, or a part, sent eagerly */
#define MR_VC_KIND_CHANNEL 0xe0
#define MR_VC_FLAG_BULK    0x80 /* in flags: a piece of an offered message of ctx bytes, to travel like that message */
#define MR_VC_FLAG_PART    0x40 /* one of several packets of a message of len bytes, to travel like that message */
#define MR_VC_FLAGS_PREFIX 0xc0 /* both: as large messages, but not behind their RDMA */
#define MR_VC_KIND_ACK     0xff /* has no number, and is never delivered (net/rely.c) */

/* How the other side reaches a memory region; travels inside pt2pt's packets. */
struct mr_remote {
    uint64_t addr, len;
    union {
        int32_t pid;    /* inside a host */
        uint32_t lives; /* between hosts: of the owner's rails when it told the keys (mr_verbs.lives) */
    };
    uint32_t num_keys;           /* between hosts; 0: it comes as datagrams, each of token bytes */
    uint32_t rkey[MR_RAILS_MAX]; /* by the index of the owner's rail */
    uint32_t token;  /* names the advertised region in put notifications; the owner's channel gives and reads it. Of
                        memory to be read between hosts: set of the owner's rails that have no key */
    uint32_t serial; /* between hosts; not 0: the owner reports landed parts of a put (net/stripe/track.c) */
};

/* A short write into such memory: with its address there, and the data here. */
struct mr_short_write {
    uint64_t addr;
    const void *data;
    uint32_t len;
};

/*
 * An atomic in such memory, changed by the owner's adapter, followed by a read of the memory, which sees the change.
 * Addresses there are counted from the memory's beginning.
 */
enum mr_atomic_what {
    MR_ATOMIC_SWAP,  /* 8 bytes, aligned: if equal to `compare` they become value; result: the old value */
    MR_ATOMIC_STORE, /* the first `bytes` of value are written */
    MR_ATOMIC_READ,  /* nothing */
};
struct mr_atomic {
    enum mr_atomic_what what;
    uint32_t bytes;
    uint64_t at, compare, value;
    size_t peek;      /* so many bytes from 0 on are read; 0: none are */
    uint64_t *result; /* the atomic's old value, followed by the bytes read: room for 8 + peek bytes; NULL: a store
                         without a read */
};

/* Returned by a poll for the next packet, in place of a payload: a packet has come, but cannot be taken so. */
#define MR_PEEK_OTHER ((const void *)-1)

enum mr_vc_caps {
    MR_VC_PUT = 1,               /* transfers to the peer by RDMA write */
    MR_VC_GET = 2,               /* mr_vc_get works (single copy inside a host); may still be refused at run time */
    MR_VC_READ = 4,              /* transfers from the peer by RDMA read */
    MR_VC_READ_FIRST = 8,        /* and a read is to be preferred to a write */
    MR_VC_OUTRUNS = 16,          /* its rails carry more than a processor copies */
    MR_VC_DATAGRAMS = 32,        /* transfers into memory advertised so; this may be refused */
    MR_VC_DATAGRAMS_STAY = 4096, /* for mr_vc_advertise: as that, for memory that others may write to meanwhile:
                                    misplaced blocks are sent again, not moved with the others' data */
    MR_VC_WINDOW = 64,           /* mr_vc_move works, for memory advertised so */
    MR_VC_ONE_OUTRUNS = 128,     /* one of its rails carries more than a processor copies */
    MR_VC_WRITE_BACK = 512, /* messages that cross are better written; for mr_vc_advertise: as MR_VC_PUT, -EAGAIN if not
                               all devices know the memory */
    MR_VC_ATTACHED = 1024, /* as MR_VC_WINDOW, for memory that may be withdrawn while others know it: nothing reaches it
                              from then on */
    MR_VC_ATOMIC = 2048,   /* mr_net_atomic works, for memory advertised so: with one adapter only */
    MR_VC_READ_ONCE = 256, /* for mr_vc_advertise: as MR_VC_READ, but it may fail with -ENOKEY if rails fail */
};

#endif
