/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registration cache: memory stays registered after its transfer, so that the next one from the same place pays
 * nothing. Those that nobody uses are evicted, the longest unused first, when more than max_bytes are registered or
 * when there are more than max_entries registrations. Those in use count, too, and stay.
 *
 * Entries may overlap, but none lies in another: sorted by their starts they are sorted by their ends, too, and one
 * binary search finds an entry that covers a buffer if there is one. A registration is never longer than twice the
 * pages that were asked for (regcache.c, range_join), so that buffers that share pages with their neighbours cost what
 * they are long.
 *
 * A registration pins the pages that were there when it was made. If the program unmaps the memory, another mapping may
 * appear at the same address, and the old registration would move the wrong bytes. So the cache must be told of every
 * unmapping before it happens (mr_regcache_unmapped), and keeps nothing beyond its use unless it is (keep).
 * Deregistering takes as long as a message, so what was unmapped goes later, one with each registration that is made:
 * a program that has unmapped a hundred buffers is not held up by all of them at once. Never more than MR_REGCACHE_GONE
 * bytes of such memory stay pinned.
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
#include "libmrmpi/verbs/memory/memory.h"

struct mr_reg {
    uintptr_t start, end;
    unsigned refs, uses; /* now; ever */
    bool writable; /* may be the target of the HCA's writes */
    bool cached;   /* is in the table; else it is freed with its last use */
    struct mr_memory memory;
    struct mr_reg *older, *newer; /* unused ones, by the time of their last use; of those that are gone: newer only */
};

/*
 * Which devices have to know it: each of a set; or, if first is not 0, one of the set is enough, and if none knows it
 * the first shall, which is one of them.
 */
struct mr_reg_wish {
    uint32_t devices, first;
};

struct mr_regcache_backend {
    /* as mr_memory_add */
    int (*add)(void *addr, size_t len, enum mr_access access, uint32_t devices, struct mr_memory *m);
    void (*remove)(struct mr_memory *m);
};

/* How it is known that memory has been unmapped. */
enum mr_place {
    MR_PLACE_WATCHED,   /* it is noted */
    MR_PLACE_LIBRARY,   /* and it may also go with a library that is unloaded, which has to be asked */
    MR_PLACE_UNWATCHED, /* from now on, of no memory */
};

#define MR_REGCACHE_NOTES 64
#define MR_REGCACHE_GONE  ((size_t)64 << 20)

struct mr_regcache {
    const struct mr_regcache_backend *backend;
    size_t max_bytes, bytes;     /* registered, whether it is in the table or not */
    size_t max_entries, entries; /* the same */
    bool keep;                   /* unmappings are reported: unused entries may stay */
    /* of what is about to be registered; NULL: all is watched */
    enum mr_place (*place)(uintptr_t start, uintptr_t end);
    bool (*unloaded)(void);      /* a library was, since it was asked last */
    bool libraries;              /* memory of some is registered */
    struct mr_reg **entry;       /* ascending, both starts and ends */
    size_t num, room;
    struct mr_reg *oldest, *newest;
    struct mr_reg *gone; /* unmapped, out of the table, unused: to be deregistered */
    size_t gone_bytes;
    size_t page;
    struct mr_asked asked;

    /* unmappings that have not been acted on yet */
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
/* A good limit where a device has max_regions, which so many ranks of a host share. */
size_t mr_regcache_fair_entries(size_t max_regions, size_t ranks);
void mr_regcache_clear(struct mr_regcache *c); /* nothing may be in use */

/* A registration that covers [addr, addr + len), with the devices that are wished. 0 or negative errno. */
int mr_regcache_get(struct mr_regcache *c, const void *addr, size_t len, enum mr_access access,
                    struct mr_reg_wish wish, struct mr_reg **out);
/* One that is in use, with other devices as well. 0 or negative errno: it is what it was. */
int mr_regcache_extend(struct mr_regcache *c, struct mr_reg *r, struct mr_reg_wish wish);
void mr_regcache_put(struct mr_regcache *c, struct mr_reg *r);
/* The registration that covers it; NULL: there is none. */
const struct mr_reg *mr_regcache_look(struct mr_regcache *c, const void *addr, size_t len, enum mr_access access);
/*
 * It is registered, or was asked for before, and has not been unmapped since: it is likely to be used again. Else this
 * is remembered. Never, if nothing stays registered.
 */
bool mr_regcache_knows(struct mr_regcache *c, const void *addr, size_t len);

void mr_regcache_unmapped(struct mr_regcache *c, const void *addr, size_t len);

#endif
