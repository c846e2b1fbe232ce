/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies into memory that another core reads next. There are two ways, and which one is better depends on where the two
 * cores are. If they share a cache, plain stores leave the data there. If they do not, each plain store fetches a line
 * from far away only to overwrite it; streaming stores need not, and are five to ten times as fast.
 *
 * Where the cores are cannot be asked reliably (virtual machines, ranks that move), but plain stores to far lines tell
 * by the time they take. So some copies are timed, and after several slow ones in a row streaming is used; after many
 * copies plain stores have another try. MRMPI_SHM_STREAM says it instead.
 */
#ifndef MRMPI_SHM_COPY_H
#define MRMPI_SHM_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mr_copier {
    unsigned plain, slow; /* plain copies since the last timed one; timed ones in a row that were slow */
    unsigned streamed;    /* copies since streaming began; 0: plain */
};

static inline bool mr_copy_streams(const struct mr_copier *c)
{
    return c->streamed != 0;
}

/* One that has not copied anything yet. */
struct mr_copier mr_copier_begin(void);
/* Of at least 1 KiB: what is less is as fast in any case. */
void mr_copy_out(struct mr_copier *c, void *to, const void *from, size_t len);
/* The way of writing alone, whatever the times say. */
void mr_copy_stream(void *to, const void *from, size_t len);
/* A plain copy of len bytes took so long. */
void mr_copy_timed(struct mr_copier *c, size_t len, uint64_t ns);

#endif
