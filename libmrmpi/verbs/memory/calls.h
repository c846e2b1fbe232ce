/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The C library's functions that unmap memory: munmap, mmap, mremap, madvise, shmat, shmdt, brk, and syscall,
 * redirected to functions of ours (patch.h), which take a note and do the work of the C library's. Every allocator, the
 * C library's own, a preloaded one and a program's alike, returns memory through these functions; so does all else that
 * the C library maps, such as the stacks of threads. malloc and free themselves are left alone: each program keeps its
 * allocator.
 *
 * An allocator with system calls by its own instructions bypasses these functions: its code (objects.h), or a trial,
 * shows so.
 */
#ifndef MRMPI_CALLS_H
#define MRMPI_CALLS_H

#include <stdbool.h>
#include <stddef.h>

/* [addr, addr + len) is about to be unmapped. From any thread, from inside the allocator. */
typedef void mr_unmapped_fn(const void *addr, size_t len);

/* Once per process. NULL: from now on each call is noted, as a trial has shown; else the reason of the failure. */
const char *mr_calls_lead(mr_unmapped_fn *take_note);
/* False: a large block of the allocator in front was freed, and unmapped without a note. */
bool mr_calls_try_allocator(void);

#endif
