/* SPDX-License-Identifier: BSD-3-Clause */
/* What is written the same way in every room. */
#ifndef MRMPI_IDIOMS_H
#define MRMPI_IDIOMS_H

#include <stddef.h>

/* The struct of that type whose member ptr points to. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Of a global that is not seen outside its shared object: it is reached without the table of others' addresses. */
#define MR_OWN __attribute__((visibility("hidden")))

/* Between two looks at memory that another core writes: the core is told that this is a loop that waits. */
static inline void mr_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The line of memory there is about to be written: the core asks others for it, and goes on meanwhile. */
static inline void mr_own_line(const void *at)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)at)); /* the compiler has it for some processors only */
#else
    __builtin_prefetch(at, 1);
#endif
}

#endif
