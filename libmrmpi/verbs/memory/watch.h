/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Knowing when memory is unmapped, which the registration cache depends on (regcache.h). The C library's functions that
 * unmap are led to ours (calls.h), which leave notes; of libraries that are unloaded the loader's count tells
 * (objects.h). Where an allocator unmaps memory unseen, or nothing can be led, nothing stays registered beyond its use.
 */
#ifndef MRMPI_WATCH_H
#define MRMPI_WATCH_H

struct mr_regcache;

/* From now on unmappings are noted. NULL: they are; else why they are not. Once is enough for a process. */
const char *mr_memory_watch_begin(void);
/* The allocator in front: the object that has it. Once watching has begun, or has failed to. */
const char *mr_memory_allocator(void);
/* The cache that is to hear of it; NULL: none any more. */
void mr_memory_watch_for(struct mr_regcache *c);

#endif
