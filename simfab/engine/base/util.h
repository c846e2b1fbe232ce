/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Helpers for all files of the engine. Failed allocations end the engine, because a simulation with part of its state
 * lost gives wrong results. The log goes to engine.log (stderr).
 */
#ifndef SIMFAB_UTIL_H
#define SIMFAB_UTIL_H

#include <stddef.h>
#include <stdint.h>

void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t size);

void engine_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, and to whoever runs the fabric: something that he should know now. */
void engine_notice(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void engine_notices_to(int fd);

/*
 * The kernel's clocks, by a system call: the C library's functions read the time stamp counter, and the engine may have
 * set the trap for itself (tsc.c).
 */
uint64_t clock_ns(int clock);
uint64_t real_ns(void); /* CLOCK_MONOTONIC */
/* That as of the kernel's last tick: no system call and no reading of the time stamp counter. Right in the sum. */
uint64_t coarse_ns(void);

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Picoseconds to transfer `bytes` at `bps` bits per second. */
static inline uint64_t transfer_ps(uint64_t bytes, uint64_t bps)
{
    return bps ? bytes * 8000000000000ull / bps : 0; /* bytes of a packet: no overflow */
}

#endif
