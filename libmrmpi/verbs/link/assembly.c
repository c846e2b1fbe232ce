/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that come in parts: a ring of incomplete packets, the last one touched in front. */
#include "libmrmpi/verbs/link/assembly.h"

#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/packet.h"

#define MAGIC 0x6d727067u /* "mrpg" */

struct header {
    uint32_t magic, src, seq, size;
};
_Static_assert(sizeof(struct header) == MR_PART_HEADER, "on the wire");

struct mr_assembly {
    struct mr_assembly *next, *prev;
    struct header header;
    uint32_t chunk;
    uint64_t missing; /* set of parts */
    unsigned char data[];
};

void mr_part_header(const void *data, uint32_t size, void *out)
{
    struct header header = {.magic = MAGIC, .size = size};

    memcpy(&header.src, (const char *)data + offsetof(struct mr_hdr, src), sizeof header.src);
    memcpy(&header.seq, (const char *)data + offsetof(struct mr_hdr, seq), sizeof header.seq);
    memcpy(out, &header, sizeof header);
}

/* ---- the ring ---------------------------------------------------------------------------------------------------- */

static void assembly_take_out(struct mr_assemblies *as, struct mr_assembly *a)
{
    if (as->recent == a)
        as->recent = a->next == a ? NULL : a->next;
    a->prev->next = a->next;
    a->next->prev = a->prev;
    as->num--;
}

static void assembly_put_first(struct mr_assemblies *as, struct mr_assembly *a)
{
    struct mr_assembly *first = as->recent;

    a->next = first ? first : a;
    a->prev = first ? first->prev : a;
    a->prev->next = a;
    a->next->prev = a;
    as->recent = a;
    as->num++;
}

static struct mr_assembly *assembly_find(const struct mr_assemblies *as, const struct header *header)
{
    struct mr_assembly *a = as->recent;

    for (unsigned i = 0; i < as->num; i++, a = a->next)
        if (a->header.src == header->src && a->header.seq == header->seq)
            return a;
    return NULL;
}

/* Memory for one more: the oldest is given up if there are as many as may be. */
static struct mr_assembly *assembly_make(struct mr_assemblies *as)
{
    struct mr_assembly *a;

    if (as->num < MR_ASSEMBLIES_MAX)
        return malloc(sizeof *a + as->packet_max);
    a = as->recent->prev;
    assembly_take_out(as, a);
    as->dropped++;
    return a;
}

void mr_assemblies_init(struct mr_assemblies *as, size_t packet_max)
{
    *as = (struct mr_assemblies){.packet_max = packet_max};
}

void mr_assemblies_free(struct mr_assemblies *as)
{
    struct mr_assembly *a;

    while ((a = as->recent)) {
        assembly_take_out(as, a);
        free(a);
    }
    free(as->whole);
    as->whole = NULL;
}

/* ---- parts ---------------------------------------------------------------------------------------------------------
 */

static unsigned parts_of(uint32_t size, uint32_t chunk)
{
    return (unsigned)(((uint64_t)size + chunk - 1) / chunk);
}

static bool assembly_part_fits(const struct mr_assemblies *as, const struct header *header, uint32_t chunk,
                               unsigned part, size_t len)
{
    unsigned parts;

    if (header->magic != MAGIC || !chunk || !header->size || header->size > as->packet_max)
        return false;
    parts = parts_of(header->size, chunk);
    if (parts > MR_PARTS_MAX || part >= parts)
        return false;
    return len == (part + 1 < parts ? chunk : header->size - (uint64_t)part * chunk);
}

static void assembly_begin(struct mr_assembly *a, const struct header *header, uint32_t chunk)
{
    unsigned parts = parts_of(header->size, chunk);

    a->header = *header;
    a->chunk = chunk;
    a->missing = parts < 64 ? (1ull << parts) - 1 : ~0ull;
}

static struct mr_assembly *assembly_find_or_begin(struct mr_assemblies *as, const struct header *header, uint32_t chunk)
{
    struct mr_assembly *a = assembly_find(as, header);

    if (!a) {
        a = assembly_make(as);
        if (!a)
            return NULL;
        assembly_begin(a, header, chunk);
    } else {
        assembly_take_out(as, a);
        if (a->header.size != header->size || a->chunk != chunk)
            assembly_begin(a, header, chunk);
    }
    assembly_put_first(as, a);
    return a;
}

const void *mr_assemblies_add(struct mr_assemblies *as, const void *data, size_t len, uint32_t imm, size_t *size)
{
    unsigned part = imm >> 16;
    uint32_t chunk = imm & 0xffff;
    struct mr_assembly *a;
    struct header header;

    free(as->whole);
    as->whole = NULL;
    if (len < sizeof header) {
        as->dropped++;
        return NULL;
    }
    memcpy(&header, data, sizeof header);
    len -= sizeof header;
    if (!assembly_part_fits(as, &header, chunk, part, len) || !(a = assembly_find_or_begin(as, &header, chunk))) {
        as->dropped++;
        return NULL;
    }
    memcpy(a->data + (size_t)part * chunk, (const char *)data + sizeof header, len);
    a->missing &= ~(1ull << part);
    if (a->missing)
        return NULL;
    assembly_take_out(as, a);
    as->whole = a;
    *size = header.size;
    return a->data;
}
