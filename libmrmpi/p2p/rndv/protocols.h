/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rendezvous protocols, one descriptor each. A sender offers a message (RTS) with the means that it has for each of
 * the protocols; the receiver takes the first protocol that sender, channel and both buffers allow, and answers. The
 * answer starts the protocol at the sender. From then on the transfer's packets, its turns in progress and the
 * channel's reports go to the protocol.
 */
#ifndef MRMPI_RNDV_PROTOCOLS_H
#define MRMPI_RNDV_PROTOCOLS_H

#include "libmrmpi/p2p/rndv/rndv.h"

/* RTS under construction. */
struct mr_rndv_means {
    struct mr_hdr *hdr;
    unsigned caps;              /* enum mr_vc_caps of the channel, for this length and buffer */
    struct mr_remote remote[2]; /* the payload: the message, and its bounce buffer */
    unsigned num;               /* of these */
};

/* A function is NULL where the protocol has no use for it. */
struct mr_protocol {
    const char *name;
    enum mr_stat stat; /* counts the messages received by it */
    /* Sender: adds to the offer what the protocol needs. */
    void (*offer)(struct mr_rndv *r, struct mr_rndv_means *m);
    /* Receiver: flags of RTS, one of which the protocol needs (0: none), and its start. False: nothing has happened. */
    uint8_t needs;
    bool (*start_recv)(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len);
    /* Sender: the kind of the answer, and its start. False: the answer means another protocol. */
    uint8_t answer;
    bool (*start_send)(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len);

    /* ---- while it moves a message ---- */
    /*
     * Packets of the peer that name the transfer, except PREFIX and FIN. FIN ends the transfer of a sender, unless the
     * channel writes the message.
     */
    void (*packet)(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len);
    int (*progress)(struct mr_rndv *r); /* of an active transfer. What it has done: 0 nothing */
    /* Receiver: bytes of the eager prefix have been copied. NULL: the protocol moves these bytes, too. */
    void (*prefix)(struct mr_rndv *r);
    void (*sent)(struct mr_rndv *r, int error);   /* sender: the channel's write has ended */
    void (*landed)(struct mr_rndv *r, int error); /* receiver: the peer's write has ended */
    void (*ended)(struct mr_rndv *r);             /* the transfer ends */
};

#define MR_PROTOCOL(descriptor) extern MR_OWN const struct mr_protocol descriptor;
#include "libmrmpi/p2p/rndv/protocols.def"
#undef MR_PROTOCOL

#endif
