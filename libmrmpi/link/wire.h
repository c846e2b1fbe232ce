/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets as they travel between hosts: the first MR_WIRE_MIN bytes of struct mr_hdr, then those of len, sreq and rreq
 * that say something, then the payload. len is left out where it is the payload's, sreq and rreq where they are 0; the
 * header's form tells which are there. So a short message is 24 bytes longer than its data, and up to 20 bytes of data
 * fit, inline, into one block of an mlx5 send queue (64 bytes, 20 of them its own). Pure: tested alone.
 */
#ifndef MRMPI_WIRE_H
#define MRMPI_WIRE_H

#include <string.h>

#include "libmrmpi/rail/vc.h"

#define MR_WIRE_MIN offsetof(struct mr_hdr, len)
#define MR_WIRE_MAX sizeof(struct mr_hdr)

enum mr_wire_form { MR_WIRE_LEN = 1, MR_WIRE_SREQ = 2, MR_WIRE_RREQ = 4, MR_WIRE_FORMS = 8 };

/* What is there before a payload of len bytes. */
static inline unsigned mr_wire_form(const struct mr_hdr *hdr, size_t len)
{
    return (hdr->len != len ? MR_WIRE_LEN : 0u) | (hdr->sreq ? MR_WIRE_SREQ : 0u) | (hdr->rreq ? MR_WIRE_RREQ : 0u);
}

static inline size_t mr_wire_size(unsigned form)
{
    return MR_WIRE_MIN + 8 * (size_t)((form & 1) + (form >> 1 & 1) + (form >> 2 & 1));
}

/* Writes the header of a packet to out, which has room for MR_WIRE_MAX bytes; returns how many they are. */
static inline size_t mr_wire_put(const struct mr_hdr *hdr, unsigned form, void *out)
{
    const uint64_t word[] = {hdr->len, hdr->sreq, hdr->rreq};
    unsigned char *at = out;

    memcpy(at, hdr, MR_WIRE_MIN);
    at[offsetof(struct mr_hdr, form)] = (unsigned char)form;
    at += MR_WIRE_MIN;
    for (unsigned i = 0; i < 3; i++)
        if (form & 1u << i) {
            memcpy(at, &word[i], 8);
            at += 8;
        }
    return (size_t)(at - (unsigned char *)out);
}

/* Reads the header of a packet of size bytes; returns where the payload begins, 0 if it is none. */
static inline size_t mr_wire_get(const void *packet, size_t size, struct mr_hdr *hdr)
{
    const unsigned char *at = packet;
    unsigned form;
    size_t head;

    if (__builtin_expect(size < MR_WIRE_MIN, 0))
        return 0;
    memcpy(hdr, at, MR_WIRE_MIN);
    form = hdr->form;
    head = mr_wire_size(form);
    if (__builtin_expect(form >= MR_WIRE_FORMS || size < head, 0))
        return 0;
    at += MR_WIRE_MIN;
    hdr->form = 0;
    hdr->len = size - head;
    hdr->sreq = hdr->rreq = 0;
    if (__builtin_expect(!form, 1))
        return head;
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
    return head;
}

#endif
