/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The C library's functions that unmap memory: munmap, mmap, mremap, madvise, shmat, shmdt, brk, and syscall, led to
 * functions of ours (patch.h), which take a note and do what the C library's do. Every allocator, the C library's own,
 * a preloaded one and a program's alike, returns memory through these functions; so does what else the C library maps,
 * as the stacks of threads. malloc and free themselves are left alone: each program keeps the allocator that it has.
 *
 * An allocator that makes system calls with instructions of its own passes these functions by: its code shows that
 * (objects.h), or a trial.
 */
#ifndef MRMPI_CALLS_H
#define MRMPI_CALLS_H

#include <stdbool.h>
#include <stddef.h>

/* [addr, addr + len) is about to be unmapped. From any thread, from inside the allocator. */
typedef void mr_unmapped_fn(const void *addr, size_t len);

/* Once in a process. NULL: from now on each call is noted, which was tried; else why not. */
const char *mr_calls_lead(mr_unmapped_fn *take_note);
/* False: a large block of the allocator in front was freed, and unmapped without a note. */
bool mr_calls_try_allocator(void);

#endif
