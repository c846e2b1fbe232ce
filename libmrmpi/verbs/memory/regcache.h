/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registration cache: memory stays registered after its transfer, so the next transfer from the same place pays
 * nothing. Unused registrations are evicted, the longest unused first, when more than max_bytes are registered or when
 * there are more than max_entries registrations. Registrations in use count, too, and stay.
 *
 * Entries may overlap, but none lies in another: sorted by their starts they are sorted by their ends, too, and one
 * binary search finds an entry that covers a buffer if there is one. A registration is never longer than twice the
 * requested pages (regcache.c, range_join), so buffers that share pages with their neighbours cost their length.
 *
 * A registration pins the pages present at its creation. If the program unmaps the memory, another mapping may appear
 * at the same address, and the old registration would move the wrong bytes. The cache must therefore be told of every
 * unmapping before it happens (mr_regcache_unmapped), and keeps nothing beyond its use otherwise (keep). Deregistering
 * takes as long as a message, so unmapped memory is deregistered later, one range with each new registration: a program
 * that has unmapped a hundred buffers is not held up by all of them at once. Never more than MR_REGCACHE_GONE bytes of
 * such memory stay pinned.
 *
 * mr_regcache_unmapped may be called from any thread without any lock, also from inside the allocator; it only takes a
 * note. All other functions: with the library's lock.
 */
#ifndef MRMPI_REGCACHE_H
#define MRMPI_REGCACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/verbs/memory/asked.h"
#include "libmrmpi/verbs/verbs.h"

struct mr_regcache_backend {
    /* as mr_memory_add */
    int (*add)(void *addr, size_t len, enum mr_access access, uint32_t devices, struct mr_memory *m);
    void (*remove)(struct mr_memory *m);
};

/* The source of news about unmapping. */
enum mr_place {
    MR_PLACE_WATCHED,   /* noted */
    MR_PLACE_LIBRARY,   /* and the memory may also go with an unloaded library, which has to be asked */
    MR_PLACE_UNWATCHED, /* from now on, of no memory */
};

#define MR_REGCACHE_NOTES 64
#define MR_REGCACHE_GONE  ((size_t)64 << 20)

struct mr_regcache {
    const struct mr_regcache_backend *backend;
    size_t max_bytes, bytes;     /* registered, in the table or not */
    size_t max_entries, entries; /* the same */
    bool keep;                   /* unmappings are reported: unused entries may stay */
    /* of memory to be registered; NULL: all is watched */
    enum mr_place (*place)(uintptr_t start, uintptr_t end);
    bool (*unloaded)(void); /* true after an unloaded library, since the last question */
    bool libraries;         /* memory of some is registered */
    struct mr_reg **entry;  /* ascending, both starts and ends */
    size_t num, room;
    struct mr_reg *oldest, *newest;
    struct mr_reg *gone; /* unmapped, out of the table, unused: to be deregistered */
    size_t gone_bytes;
    size_t page;
    struct mr_asked asked;

    /* unmappings not acted on yet */
    atomic_flag notes_lock;
    atomic_uint num_notes; /* more than there is room for: everything is suspect */
    struct {
        uintptr_t start, end;
    } note[MR_REGCACHE_NOTES];
    atomic_uintptr_t lowest, highest; /* of all that ever was registered: others' unmappings are no business of ours */
};

void mr_regcache_init(struct mr_regcache *c, const struct mr_regcache_backend *backend, size_t max_bytes, bool keep);
/* Until this is called there may be any number. */
void mr_regcache_limit_entries(struct mr_regcache *c, size_t max_entries);
/* A good limit for a device with max_regions, shared by so many ranks of a host. */
size_t mr_regcache_fair_entries(size_t max_regions, size_t ranks);
void mr_regcache_clear(struct mr_regcache *c); /* nothing may be in use */

/* A registration that covers [addr, addr + len), with the wished devices. 0 or negative errno. */
int mr_regcache_get(struct mr_regcache *c, const void *addr, size_t len, enum mr_access access, struct mr_reg_wish wish,
                    struct mr_reg **out);
/* Extends a registration in use to other devices. 0 or negative errno: unchanged. */
int mr_regcache_extend(struct mr_regcache *c, struct mr_reg *r, struct mr_reg_wish wish);
void mr_regcache_put(struct mr_regcache *c, struct mr_reg *r);
/* The registration that covers the range; NULL: there is none. */
const struct mr_reg *mr_regcache_refresh(struct mr_regcache *c, const void *addr, size_t len, enum mr_access access);
/*
 * True if the memory is registered, or was asked for before, and has not been unmapped since: likely to be used again.
 * Else the request is remembered. Never true if nothing stays registered.
 */
bool mr_regcache_knows(struct mr_regcache *c, const void *addr, size_t len);

void mr_regcache_unmapped(struct mr_regcache *c, const void *addr, size_t len);

#endif
