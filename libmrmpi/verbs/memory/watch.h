/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Detects unmapping, for the registration cache (regcache.h). The C library's functions that unmap are redirected to
 * ours (calls.h), which leave notes; the loader's count shows unloaded libraries (objects.h). If an allocator unmaps
 * memory unseen, or redirection is impossible, nothing stays registered beyond its use.
 */
#ifndef MRMPI_WATCH_H
#define MRMPI_WATCH_H

struct mr_regcache;

/* From now on unmappings are noted. NULL: success; else the reason of the failure. Once is enough for a process. */
const char *mr_memory_watch_begin(void);
/* The allocator in use: the object that has it. After watching has begun, or has failed to. */
const char *mr_memory_allocator(void);
/* The cache to notify; NULL: none any more. */
void mr_memory_watch_for(struct mr_regcache *c);

#endif
