/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets between hosts: the first MR_WIRE_MIN bytes of struct mr_hdr, then the meaningful ones of len, sreq and rreq,
 * then the payload. len is left out if equal to the payload's, sreq and rreq if 0; the header's form tells which are
 * present. A short message is thus 24 bytes longer than its data, and up to 20 bytes of data fit, inline, into one
 * block of an mlx5 send queue (64 bytes, 20 of them its own). The form also says whether an ACK for the peer's packets
 * (conn/reliable/ack.h) lies behind the payload, and whether the packet itself calls for an ACK. Pure: tested alone.
 */
#ifndef MRMPI_WIRE_H
#define MRMPI_WIRE_H

#include <string.h>

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/base/packet.h"

enum mr_wire_form {
    MR_WIRE_LEN = 1,
    MR_WIRE_SREQ = 2,
    MR_WIRE_RREQ = 4,
    MR_WIRE_ACK = 8,       /* MR_ACK_WIRE_MIN bytes behind the payload */
    MR_WIRE_LONG_ACK = 16, /* MR_ACK_WIRE_MAX */
    MR_WIRE_WANTS = 32,    /* the link may lose the packet: it is sent again until an ACK names it */
    MR_WIRE_FORMS = 64
};
/* Bytes of an ACK (conn/reliable/ack.h). */
#define MR_ACK_WIRE_MIN 4
#define MR_ACK_WIRE_MAX 12

#define MR_WIRE_SIZES 7u /* the bits that determine the length of the header */
#define MR_WIRE_FLAGS 56u

/* The flags in the form of a packet posted now, or again. */
static inline void mr_wire_dress(void *packet, unsigned flags)
{
    unsigned char *form = (unsigned char *)packet + offsetof(struct mr_hdr, form);

    *form = (unsigned char)((*form & MR_WIRE_SIZES) | flags);
}

static inline unsigned mr_wire_kind(const void *packet)
{
    return ((const unsigned char *)packet)[offsetof(struct mr_hdr, kind)];
}

/* pt2pt's flags of a packet */
static inline unsigned mr_wire_flags(const void *packet)
{
    return ((const unsigned char *)packet)[offsetof(struct mr_hdr, flags)];
}

/* The length of the whole message, for a packet with it. */
static inline uint64_t mr_wire_len(const void *packet)
{
    uint64_t len;

    memcpy(&len, (const unsigned char *)packet + MR_WIRE_MIN, sizeof len);
    return len;
}

/* The same for a piece of an offered message; from 4 GiB on not all of it. */
static inline uint32_t mr_wire_whole(const void *packet)
{
    uint32_t whole;

    memcpy(&whole, (const unsigned char *)packet + offsetof(struct mr_hdr, ctx), sizeof whole);
    return whole;
}

static inline size_t mr_wire_ack_bytes(unsigned form)
{
    return form & MR_WIRE_LONG_ACK ? MR_ACK_WIRE_MAX : form & MR_WIRE_ACK ? MR_ACK_WIRE_MIN : 0;
}

/* The form before a payload of len bytes. */
static inline unsigned mr_wire_form(const struct mr_hdr *hdr, size_t len)
{
    if (likely(hdr->len == len && !(hdr->sreq | hdr->rreq)))
        return 0;
    return (hdr->len != len ? MR_WIRE_LEN : 0u) | (hdr->sreq ? MR_WIRE_SREQ : 0u) | (hdr->rreq ? MR_WIRE_RREQ : 0u);
}

static inline size_t mr_wire_size(unsigned form)
{
    if (likely(!(form & MR_WIRE_SIZES)))
        return MR_WIRE_MIN;
    return MR_WIRE_MIN + 8 * (size_t)((form & 1) + (form >> 1 & 1) + (form >> 2 & 1));
}

/* Writes the header of a packet to out, which has room for MR_WIRE_MAX bytes; returns its length. */
static inline size_t mr_wire_put(const struct mr_hdr *hdr, unsigned form, void *out)
{
    unsigned char *at = out;

    memcpy(at, hdr, MR_WIRE_MIN);
    at[offsetof(struct mr_hdr, form)] = (unsigned char)form;
    at += MR_WIRE_MIN;
    if (likely(!form))
        return MR_WIRE_MIN;
    if (form & MR_WIRE_LEN) {
        memcpy(at, &hdr->len, 8);
        at += 8;
    }
    if (form & MR_WIRE_SREQ) {
        memcpy(at, &hdr->sreq, 8);
        at += 8;
    }
    if (form & MR_WIRE_RREQ) {
        memcpy(at, &hdr->rreq, 8);
        at += 8;
    }
    return (size_t)(at - (unsigned char *)out);
}

/*
 * Reads the header of a packet of *size bytes; returns where the payload begins, 0 if it is none. *size becomes where
 * the payload ends and an ACK begins; hdr->form: the flags.
 */
static inline size_t mr_wire_get(const void *packet, size_t *size, struct mr_hdr *hdr)
{
    const unsigned char *at = packet;
    unsigned form;
    size_t header;

    if (unlikely(*size < MR_WIRE_MIN))
        return 0;
    memcpy(hdr, at, MR_WIRE_MIN);
    form = hdr->form;
    hdr->sreq = hdr->rreq = 0;
    if (likely(!form)) {
        hdr->len = *size - MR_WIRE_MIN;
        return MR_WIRE_MIN;
    }
    header = mr_wire_size(form);
    if (unlikely(form >= MR_WIRE_FORMS || *size < header + mr_wire_ack_bytes(form)))
        return 0;
    at += MR_WIRE_MIN;
    *size -= mr_wire_ack_bytes(form);
    hdr->form = form & MR_WIRE_FLAGS;
    hdr->len = *size - header;
    if (form & MR_WIRE_LEN) {
        memcpy(&hdr->len, at, 8);
        at += 8;
    }
    if (form & MR_WIRE_SREQ) {
        memcpy(&hdr->sreq, at, 8);
        at += 8;
    }
    if (form & MR_WIRE_RREQ)
        memcpy(&hdr->rreq, at, 8);
    return header;
}

#endif
