/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Not a unit test: run under mrrun on simulated hosts. Rank 0 prints how many bytes the library has after its init,
 * before anything is sent. Counted is what is asked for from within libmrmpi.so: the launcher's library has memory of
 * its own.
 */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/init/init.h"
#include "libmrmpi/launch/launch.h"

enum { BLOCKS = 1 << 16, RANGES = 8 };

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

/* Only one thread of a rank calls the library here; libpmix's thread asks for memory, too, but is not counted. */
static struct {
    void *at;
    size_t size;
} block[BLOCKS];
static struct {
    uintptr_t from, to;
} range[RANGES];
static int ranges, lost;
static long long total;

static int add_range(struct dl_phdr_info *info, size_t size, void *unused)
{
    if (!strstr(info->dlpi_name, "libmrmpi.so"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum && ranges < RANGES; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            range[ranges].from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            range[ranges].to = range[ranges].from + info->dlpi_phdr[i].p_memsz;
            ranges++;
        }
    return 0;
}

static void *count(void *p, size_t n, const void *caller)
{
    unsigned h = (unsigned)((uintptr_t)p >> 4) % BLOCKS;

    for (int i = 0; p && i < ranges; i++) {
        if ((uintptr_t)caller < range[i].from || (uintptr_t)caller >= range[i].to)
            continue;
        for (unsigned k = 0; k < BLOCKS; k++, h = (h + 1) % BLOCKS)
            if (!block[h].at || block[h].at == (void *)block) {
                block[h].at = p;
                block[h].size = n;
                total += (long long)n;
                return p;
            }
        lost = 1;
    }
    return p;
}

static void forget(const void *p)
{
    unsigned h = (unsigned)((uintptr_t)p >> 4) % BLOCKS;

    for (unsigned k = 0; p && k < BLOCKS && block[h].at; k++, h = (h + 1) % BLOCKS)
        if (block[h].at == p) {
            block[h].at = block; /* a place that was used: the search goes on behind it */
            total -= (long long)block[h].size;
            return;
        }
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

void free(void *p)
{
    forget(p);
    __libc_free(p);
}
#pragma GCC visibility pop

int main(void)
{
    dl_iterate_phdr(add_range, NULL);
    if (mr_init(0))
        return 1;
    if (!mr_launch_info()->rank)
        printf("%d ranks: %lld bytes\n", mr_launch_info()->size, total);
    mr_finalize();
    return ranges && !lost ? 0 : 1;
}
