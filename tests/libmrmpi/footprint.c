/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Not a unit test: run under mrrun, on simulated hosts or this one. Rank 0 prints the bytes of the heap after the
 * library's init, before any message, by the requesting library. Requests of the C library (strdup and the like) count
 * as its caller's.
 */
#include <execinfo.h>
#include <link.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libmrmpi/api/init/init.h"
#include "libmrmpi/launch/launch.h"

enum { BLOCKS = 1 << 18, RANGES = 128, DEPTH = 16 };

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

enum owner { OURS, LIBPMIX, SIMULATOR, OTHERS, C_LIBRARY, OWNERS };

/* The first row that fits; of the program itself the name is empty. */
static const struct {
    const char *part;
    enum owner owner;
} names[] = {{"/libmrmpi.so", OURS},  {"pmix", LIBPMIX},        {"/libevent", LIBPMIX},
             {"/libhwloc", LIBPMIX},  {"/libmunge", LIBPMIX},   {"/libsimfab", SIMULATOR},
             {"/libc.so", C_LIBRARY}, {"/ld-linux", C_LIBRARY}, {"/libgcc_s", C_LIBRARY}};

static struct block {
    void *at;
    size_t size;
    enum owner owner;
} block[BLOCKS]; /* by address; a search ends at an empty place */
static struct {
    uintptr_t from, to;
    enum owner owner;
} range[RANGES];
static int ranges;
static bool lost;
static long long bytes[OWNERS];
static atomic_flag taken = ATOMIC_FLAG_INIT; /* libpmix has a thread of its own */
static _Thread_local bool inside;            /* looking for the caller may ask for memory itself */

static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&taken, memory_order_acquire))
        sched_yield();
}

static void unlock(void)
{
    atomic_flag_clear_explicit(&taken, memory_order_release);
}

/* ---- owner of code ---- */

static int add_ranges(struct dl_phdr_info *info, size_t size, void *unused)
{
    enum owner owner = OTHERS;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strstr(info->dlpi_name, names[i].part)) {
            owner = names[i].owner;
            break;
        }
    for (int i = 0; i < info->dlpi_phnum && ranges < RANGES; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            range[ranges].from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            range[ranges].to = range[ranges].from + info->dlpi_phdr[i].p_memsz;
            range[ranges++].owner = owner;
        }
    return 0;
}

/* Code outside known libraries was loaded later: a part of libpmix or a driver. */
static enum owner owner_of(const void *code)
{
    for (int i = 0; i < ranges; i++)
        if ((uintptr_t)code >= range[i].from && (uintptr_t)code < range[i].to)
            return range[i].owner;
    return OTHERS;
}

static enum owner find_owner(const void *caller)
{
    enum owner owner = owner_of(caller);
    void *frame[DEPTH];

    if (owner != C_LIBRARY)
        return owner;
    for (int i = 1, n = backtrace(frame, DEPTH); i < n; i++)
        if ((uintptr_t)frame[i] != (uintptr_t)caller && owner_of(frame[i]) != C_LIBRARY &&
            owner_of(frame[i]) != owner_of((const void *)find_owner))
            return owner_of(frame[i]);
    return OTHERS;
}

/* ---- blocks ---- */

static unsigned home_of(const void *p)
{
    return (unsigned)(((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u >> 40) % BLOCKS;
}

static void *count(void *p, size_t n, const void *caller)
{
    if (!p || !ranges || inside)
        return p;
    inside = true;
    enum owner owner = find_owner(caller);
    inside = false;
    lock();
    unsigned h = home_of(p), tries = 0;
    while (block[h].at && tries++ < BLOCKS)
        h = (h + 1) % BLOCKS;
    if (block[h].at) {
        lost = true;
    } else {
        block[h] = (struct block){p, n, owner};
        bytes[owner] += (long long)n;
    }
    unlock();
    return p;
}

/* Entries behind move up, if nearer to the start of their search. */
static void take_out(unsigned hole)
{
    for (unsigned i = (hole + 1) % BLOCKS; block[i].at; i = (i + 1) % BLOCKS) {
        if ((i - home_of(block[i].at)) % BLOCKS < (i - hole) % BLOCKS)
            continue;
        block[hole] = block[i];
        hole = i;
    }
    block[hole].at = NULL;
}

static void forget(const void *p)
{
    if (!p || !ranges)
        return;
    lock();
    for (unsigned h = home_of(p), tries = 0; block[h].at && tries++ < BLOCKS; h = (h + 1) % BLOCKS)
        if (block[h].at == p) {
            bytes[block[h].owner] -= (long long)block[h].size;
            take_out(h);
            break;
        }
    unlock();
}

#pragma GCC visibility push(default) /* or the libraries would not find them */
void *malloc(size_t n)
{
    return count(__libc_malloc(n), n, __builtin_return_address(0));
}

void *calloc(size_t n, size_t size)
{
    return count(__libc_calloc(n, size), n * size, __builtin_return_address(0));
}

void *realloc(void *p, size_t n)
{
    forget(p);
    return count(__libc_realloc(p, n), n, __builtin_return_address(0));
}

void *aligned_alloc(size_t align, size_t n)
{
    return count(__libc_memalign(align, n), n, __builtin_return_address(0));
}

int posix_memalign(void **out, size_t align, size_t n)
{
    *out = count(__libc_memalign(align, n), n, __builtin_return_address(0));
    return *out ? 0 : 12; /* ENOMEM */
}

void free(void *p)
{
    forget(p);
    __libc_free(p);
}
#pragma GCC visibility pop

/*
 * libpmix's memory for a message in progress goes away: waits until nothing has changed for a while. libpmix's thread
 * needs real time, and a sleep on a simulated host would take none.
 */
static void settle(void)
{
    enum { QUIET_LOOKS = 10, LOOKS = 500 };
    struct timespec pause = {.tv_nsec = 2000000};
    long long before = -1;

    for (int quiet = 0, looks = 0; quiet < QUIET_LOOKS && looks < LOOKS; looks++) {
        lock();
        quiet = bytes[LIBPMIX] == before ? quiet + 1 : 0;
        before = bytes[LIBPMIX];
        unlock();
        syscall(SYS_nanosleep, &pause, NULL);
    }
}

int main(void)
{
    void *frame[1];

    backtrace(frame, 1); /* loads its libraries */
    dl_iterate_phdr(add_ranges, NULL);
    if (mr_init(0))
        return 1;
    settle();
    if (!mr_launch_info()->rank)
        printf("%d ranks: ours %lld, libpmix %lld, simulator %lld, others %lld bytes\n", mr_launch_info()->size,
               bytes[OURS], bytes[LIBPMIX], bytes[SIMULATOR], bytes[OTHERS]);
    mr_finalize();
    return ranges && !lost ? 0 : 1;
}
