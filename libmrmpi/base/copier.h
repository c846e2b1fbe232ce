/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies into memory that another core reads next. There are two modes, and the better mode depends on the places of
 * the two cores. If the cores share a cache, cached stores leave the data there. If they do not, each cached store
 * fetches a line from far away only to overwrite it; streaming stores need not, and are five to ten times as fast.
 *
 * The places of cores cannot be asked reliably (virtual machines, ranks that move), but cached stores to far lines take
 * a longer time. Some copies are timed, and after several slow copies in a row streaming is used. Cached stores are
 * tried again after some copies, and after ever more if the stores are still slow (backoff.h): slow copies prove little
 * while other processes disturb. MRMPI_SHM_STREAM sets the mode instead.
 */
#ifndef MRMPI_SHM_COPY_H
#define MRMPI_SHM_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/backoff.h"

struct mr_copier {
    unsigned cached, slow;    /* cached copies since the last timed copy; slow timed copies in a row */
    struct mr_backoff stores; /* of cached stores: streamed copies are skipped chances */
    bool always;              /* streaming, by a setting */
};

static inline bool mr_copy_streams(const struct mr_copier *c)
{
    return c->always || c->stores.left;
}

/* A copier without any copy so far. */
struct mr_copier mr_copier_begin(void);
/* Of at least 1 KiB: shorter copies are as fast in any case. */
void mr_copy_out(struct mr_copier *c, void *to, const void *from, size_t len);
/* The streaming mode, for any times. */
void mr_copy_stream(void *to, const void *from, size_t len);
/* A cached copy of len bytes took ns. */
void mr_copy_timed(struct mr_copier *c, size_t len, uint64_t ns);

#endif
