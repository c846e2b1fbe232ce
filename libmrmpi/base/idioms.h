/* SPDX-License-Identifier: BSD-3-Clause */
/* Idioms of all code. */
#ifndef MRMPI_IDIOMS_H
#define MRMPI_IDIOMS_H

#include <stddef.h>

/* The struct of this type whose member ptr points to. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* A condition that nearly always, or hardly ever, holds: the compiler lays the code out for that. */
#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* A global that is invisible outside its shared object: reached without the table of others' addresses. */
#define MR_OWN __attribute__((visibility("hidden")))

/* Between two reads of memory that another core writes: tells the core that the loop waits. */
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
    __asm__ volatile("prefetchw %0"
                     :
                     : "m"(*(const char *)at)); /* the compiler knows the instruction for some processors only */
#else
    __builtin_prefetch(at, 1);
#endif
}

#endif
