/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Knowing when memory is unmapped, which the registration cache depends on (regcache.h). The calls that unmap memory
 * are interposed by the ABI library, which the program links with ahead of the C library (api/memory.c); it says so
 * here. Where its definitions do not come first (Fortran programs, a library loaded late) it redirects the calls of all
 * loaded objects (api/rebind.c), and the cache starts anew when more have been loaded. With another allocator nothing
 * stays registered beyond its use.
 */
#ifndef MRMPI_WATCH_H
#define MRMPI_WATCH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Who interposes the calls: from now on every unmapping is reported. lost_track, if it is given, tells whether some may
 * not have been since it was asked last; it is called with the library's lock, before a registration is used again.
 */
void mr_memory_watch_begin(bool (*lost_track)(void));
/* [addr, addr + len) is about to be unmapped. From any thread, from inside the allocator. */
void mr_memory_unmapped(const void *addr, size_t len);

bool mr_memory_watched(void);
struct mr_regcache;
/* The cache that is to hear of it; NULL: none any more. */
void mr_memory_watch_for(struct mr_regcache *c);

#endif
