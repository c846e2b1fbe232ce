/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions from the tables for unwinding. .eh_frame_hdr, sorted by address, leads to an entry (FDE) of .eh_frame with
 * the function's length; the common entry (CIE) gives the encoding. (Linux Standard Base, "Exception Frames"; DWARF.)
 */
#include <string.h>

#include "simfab/tsc/image.h"

enum { /* how a number is written: DW_EH_PE_* */
       ENC_ABS = 0x00,
       ENC_UDATA2 = 0x02,
       ENC_UDATA4 = 0x03,
       ENC_UDATA8 = 0x04,
       ENC_SDATA4_PCREL = 0x1b,
       ENC_SDATA4_DATAREL = 0x3b,
       ENC_WIDTH = 0x07,
};

struct header { /* .eh_frame_hdr in the form of all linkers */
    uint8_t version, frame_enc, count_enc, table_enc;
    int32_t frame;
    uint32_t count;
    struct entry {
        int32_t function, fde; /* from the header's own address */
    } table[];
};

/* A reader confined to the loaded segments. */
struct reader {
    const struct image *image;
    uintptr_t at;
    bool failed;
};

static uint64_t take(struct reader *r, size_t bytes)
{
    uint64_t value = 0;

    if (r->failed || !image_holds(r->image, r->at, bytes)) {
        r->failed = true;
        return 0;
    }
    memcpy(&value, (const void *)r->at, bytes);
    r->at += bytes;
    return value;
}

static uint64_t take_leb128(struct reader *r)
{
    uint64_t value = 0, byte;

    for (unsigned shift = 0; shift < 64; shift += 7) {
        byte = take(r, 1);
        value |= (byte & 0x7f) << shift;
        if (r->failed || !(byte & 0x80))
            return value;
    }
    r->failed = true;
    return 0;
}

static size_t width(uint8_t enc)
{
    switch (enc & ENC_WIDTH) {
    case ENC_ABS:
    case ENC_UDATA8:
        return 8;
    case ENC_UDATA4:
        return 4;
    case ENC_UDATA2:
        return 2;
    default:
        return 0;
    }
}

/* Encoding of addresses in a CIE's entries; ENC_ABS by default. */
static uint8_t address_encoding(struct reader r)
{
    char letters[8] = "";
    uint8_t version, enc;

    if (take(&r, 4) == UINT32_MAX || take(&r, 4) != 0) /* its length, and the mark of a CIE */
        return 0xff;
    version = (uint8_t)take(&r, 1);
    for (size_t i = 0; i < sizeof letters; i++)
        if (!(letters[i] = (char)take(&r, 1)))
            break;
    if (letters[0] != 'z')
        return letters[0] || r.failed ? 0xff : ENC_ABS;
    take_leb128(&r);
    take_leb128(&r);
    version == 1 ? take(&r, 1) : take_leb128(&r);
    take_leb128(&r);
    for (const char *l = letters + 1; l < letters + sizeof letters && *l; l++) {
        if (*l == 'R')
            return r.failed ? 0xff : (uint8_t)take(&r, 1);
        if (*l != 'P' && *l != 'L')
            continue;
        enc = (uint8_t)take(&r, 1);
        if (*l == 'P')
            take(&r, width(enc));
    }
    return r.failed ? 0xff : ENC_ABS;
}

/* How long the function of the entry at FDE is; 0 if it makes no sense. */
static uint64_t function_bytes(const struct image *image, uintptr_t fde)
{
    struct reader r = {.image = image, .at = fde}, cie = {.image = image};
    uint64_t length = take(&r, 4), back;
    uint8_t enc;

    cie.at = r.at;
    back = take(&r, 4);
    if (r.failed || !length || length == UINT32_MAX || !back || back > cie.at)
        return 0;
    cie.at -= back;
    enc = address_encoding(cie);
    if (enc == 0xff || !width(enc))
        return 0;
    take(&r, width(enc));
    length = take(&r, width(enc));
    return r.failed ? 0 : length;
}

static const struct header *find_header(const struct image *image)
{
    for (size_t i = 0; i < image->num_phdrs; i++) {
        const ElfW(Phdr) *p = &image->phdr[i];
        const struct header *h = (const struct header *)(image->base + p->p_vaddr);

        if (p->p_type != PT_GNU_EH_FRAME || !image_holds(image, (uintptr_t)h, sizeof *h))
            continue;
        if (h->version == 1 && h->frame_enc == ENC_SDATA4_PCREL && h->count_enc == ENC_UDATA4 &&
            h->table_enc == ENC_SDATA4_DATAREL && image_holds(image, (uintptr_t)h->table, h->count * sizeof *h->table))
            return h;
    }
    return NULL;
}

bool frames_find(const struct image *image, uintptr_t at, struct span *function, uintptr_t *prev_end)
{
    const struct header *h = find_header(image);
    uint32_t low = 0, high = h ? h->count : 0;

    *prev_end = 0;
    while (low < high) { /* the last that does not begin after AT is at low - 1 */
        uint32_t mid = low + (high - low) / 2;

        if ((uintptr_t)h + (uintptr_t)(intptr_t)h->table[mid].function <= at)
            low = mid + 1;
        else
            high = mid;
    }
    if (!low)
        return false;
    function->from = (uintptr_t)h + (uintptr_t)(intptr_t)h->table[low - 1].function;
    function->to = function->from + function_bytes(image, (uintptr_t)h + (uintptr_t)(intptr_t)h->table[low - 1].fde);
    *prev_end = function->to;
    return function->from <= at && at < function->to &&
           image_holds(image, function->from, function->to - function->from);
}
