/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Telling the registration cache what is unmapped (memory/regcache.h says why it must know). The calls that unmap
 * memory are defined here, in the library that the program links with ahead of the C library, so that the program's and
 * other libraries' calls come by.
 *
 * The allocator of the C library unmaps memory with calls that nobody can interpose, but only inside free and realloc,
 * and where a block lies can be seen from its header: a block with a mapping of its own is reported when it is freed, a
 * block of a thread's arena together with its whole heap, and the main heap is told not to shrink (memory/watch.c).
 * That is a fact about the GNU C library's allocator; when the program runs with another one nothing is promised and no
 * registration is kept beyond its use.
 *
 * Where the C library's definitions come first (a Fortran program, which names the MPI library only by way of its
 * binding; an MPI library that was loaded late), all objects that are there are made to call ours, and the cache is
 * emptied when others have come meanwhile.
 */
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libmrmpi/api/rebind.h"
#include "libmrmpi/memory/watch.h"

/* ---- system calls ------------------------------------------------------------------------------------------------ */

static void from_here_on(const void *addr)
{
    mr_memory_unmapped(addr, UINTPTR_MAX - (uintptr_t)addr);
}

int munmap(void *addr, size_t len)
{
    mr_memory_unmapped(addr, len);
    return (int)syscall(SYS_munmap, addr, len);
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    if (flags & MAP_FIXED)
        mr_memory_unmapped(addr, len);
    return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t offset)
{
    return mmap(addr, len, prot, flags, fd, offset);
}

void *mremap(void *addr, size_t old_len, size_t new_len, int flags, ...)
{
    void *to = NULL;

    if (flags & MREMAP_FIXED) {
        va_list ap;

        va_start(ap, flags);
        to = va_arg(ap, void *);
        va_end(ap);
        mr_memory_unmapped(to, new_len);
    }
    mr_memory_unmapped(addr, old_len);
    return (void *)syscall(SYS_mremap, addr, old_len, new_len, flags, to);
}

int madvise(void *addr, size_t len, int advice)
{
    if (advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE)
        mr_memory_unmapped(addr, len);
    return (int)syscall(SYS_madvise, addr, len, advice);
}

/* The length of a segment is not told here; what lies behind it is registered again if need be. */
int shmdt(const void *addr)
{
    from_here_on(addr);
    return (int)syscall(SYS_shmdt, addr);
}

void *shmat(int id, const void *addr, int flags)
{
    if (flags & SHM_REMAP)
        from_here_on(addr);
    return (void *)syscall(SYS_shmat, id, addr, flags);
}

/* ---- the heap ---------------------------------------------------------------------------------------------------- */

#define NEXT(name) ((__typeof__(&name))next_definition(&next_##name, #name))

static void *next_free, *next_realloc, *next_brk, *next_sbrk, *next_malloc_trim;

/* Where the C library comes first (Fortran programs name us only by way of their binding), nothing comes after us. */
static void *next_definition(void **slot, const char *name)
{
    void *f = __atomic_load_n(slot, __ATOMIC_RELAXED);

    if (__builtin_expect(!f, 0)) {
        f = dlsym(RTLD_NEXT, name);
        if (!f)
            f = dlsym(RTLD_DEFAULT, name);
        __atomic_store_n(slot, f, __ATOMIC_RELAXED);
    }
    return f;
}

#define OWN_MAPPING  2u /* bits of a block's size word */
#define THREAD_ARENA 4u
#define THREAD_HEAP  ((uintptr_t)64 << 20) /* size and alignment of the heaps of thread arenas */

static void report_block(void *p)
{
    size_t before = ((size_t *)p)[-2], size = ((size_t *)p)[-1];
    uintptr_t block = (uintptr_t)p - 2 * sizeof(size_t);

    if (size & OWN_MAPPING)
        mr_memory_unmapped((void *)(block - before), before + (size & ~(size_t)7));
    else
        mr_memory_unmapped((void *)(block & ~(THREAD_HEAP - 1)), THREAD_HEAP);
}

static bool glibc_heap; /* blocks are the C library's: their headers may be read */

static inline void report_freed(void *p)
{
    if (p && glibc_heap && __builtin_expect(((size_t *)p)[-1] & (OWN_MAPPING | THREAD_ARENA), 0))
        report_block(p);
}

void free(void *p)
{
    report_freed(p);
    NEXT(free)(p);
}

void *realloc(void *p, size_t size)
{
    report_freed(p);
    return NEXT(realloc)(p, size);
}

void *reallocarray(void *p, size_t n, size_t size)
{
    size_t bytes;

    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(p, bytes);
}

int malloc_trim(size_t pad)
{
    from_here_on(NULL);
    return NEXT(malloc_trim)(pad);
}

int brk(void *addr)
{
    from_here_on(addr);
    return NEXT(brk)(addr);
}

void *sbrk(intptr_t increment)
{
    if (increment < 0)
        from_here_on((char *)NEXT(sbrk)(0) + increment);
    return NEXT(sbrk)(increment);
}

/* ---- is it so? --------------------------------------------------------------------------------------------------- */

#define OURS(f)                                                                                                        \
    {                                                                                                                  \
#f, (void *)f                                                                                                  \
    }
static const struct rebinding ours[] = {
    OURS(munmap), OURS(mmap),    OURS(mmap64), OURS(mremap),       OURS(madvise),     OURS(shmdt), OURS(shmat),
    OURS(free),   OURS(realloc), OURS(brk),    OURS(reallocarray), OURS(malloc_trim), OURS(sbrk)};
enum { NUM_OURS = sizeof(ours) / sizeof(ours[0]) };

static bool ours_come_first(void)
{
    for (int i = 0; i < NUM_OURS; i++)
        if (dlsym(RTLD_DEFAULT, ours[i].name) != ours[i].to)
            return false;
    return true;
}

static bool in_libc(void *f)
{
    Dl_info here, libc;

    return f && dladdr(f, &here) && dladdr((void *)gnu_get_libc_version, &libc) && here.dli_fbase == libc.dli_fbase;
}

static unsigned long long objects; /* that were loaded when the calls were redirected */

/* What was loaded since then called the C library past us. */
static bool lost_track(void)
{
    unsigned long long now = rebind_objects_loaded();

    if (now == objects)
        return false;
    objects = now;
    rebind_all(ours, NUM_OURS);
    return true;
}

static void __attribute__((constructor)) begin(void)
{
    bool first = ours_come_first();

    if (!in_libc((void *)NEXT(free)) || !in_libc((void *)NEXT(realloc)))
        return;
    objects = rebind_objects_loaded();
    if (!first && !rebind_all(ours, NUM_OURS))
        return;
    glibc_heap = true;
    mr_memory_watch_begin(first ? NULL : lost_track);
}
