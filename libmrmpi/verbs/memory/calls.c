/* SPDX-License-Identifier: BSD-3-Clause */
#include "libmrmpi/base/idioms.h"
#include "libmrmpi/verbs/memory/calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libmrmpi/verbs/memory/patch.h"

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* ---- system calls ------------------------------------------------------------------------------------------------ */

#if defined(__x86_64__)
static inline long kernel(long n, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;

    __asm__ volatile("syscall" : "+a"(n) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return n;
}
#elif defined(__aarch64__)
static inline long kernel(long n, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;

    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#else
/* Nothing is led here: mr_patch_function knows no such processor. */
static inline long kernel(long n, long a, long b, long c, long d, long e, long f)
{
    return -ENOSYS;
}
#endif

static inline long set_errno(long result)
{
    if (result >= 0 || result < -4095)
        return result;
    errno = (int)-result;
    return -1;
}

/* ---- notes ------------------------------------------------------------------------------------------------------- */

static mr_unmapped_fn *unmapped;
static volatile uintptr_t tried; /* a trial unmaps this memory */
static volatile bool heard;

static inline void note_unmap(uintptr_t addr, size_t len)
{
    if (unlikely(tried && tried - addr < len))
        heard = true;
    unmapped((const void *)addr, len);
}

static inline void note_from(uintptr_t addr)
{
    note_unmap(addr, UINTPTR_MAX - addr);
}

static inline void note_mmap(uintptr_t addr, size_t len, long flags)
{
    if (flags & MAP_FIXED)
        note_unmap(addr, len);
}

static inline void note_mremap(uintptr_t addr, size_t old_len, size_t new_len, long flags, uintptr_t to)
{
    if (flags & MREMAP_FIXED)
        note_unmap(to, new_len);
    note_unmap(addr, old_len);
}

static inline void note_madvise(uintptr_t addr, size_t len, long advice)
{
    if (advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE || advice == MADV_DONTNEED_LOCKED)
        note_unmap(addr, len);
}

/* The length of a segment is unknown; memory behind it is registered again if necessary. */
static inline void note_shmat(uintptr_t addr, long flags)
{
    if (flags & SHM_REMAP)
        note_from(addr);
}

static inline void note_brk(uintptr_t addr, uintptr_t now)
{
    if (addr && addr < now)
        note_unmap(addr, now - addr);
}

/* ---- in the place of the C library's ----------------------------------------------------------------------------- */

static void **heap_end; /* the C library's, read by its sbrk */

static int watched_munmap(uintptr_t addr, size_t len)
{
    note_unmap(addr, len);
    return (int)set_errno(kernel(SYS_munmap, (long)addr, (long)len, 0, 0, 0, 0));
}

static long watched_mmap(uintptr_t addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    note_mmap(addr, len, flags);
    return set_errno(kernel(SYS_mmap, (long)addr, (long)len, prot, flags, fd, offset));
}

static long watched_mremap(uintptr_t addr, size_t old_len, size_t new_len, int flags, uintptr_t to)
{
    if (!(flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)))
        to = 0; /* the caller has given none */
    note_mremap(addr, old_len, new_len, flags, to);
    return set_errno(kernel(SYS_mremap, (long)addr, (long)old_len, (long)new_len, flags, (long)to, 0));
}

static int watched_madvise(uintptr_t addr, size_t len, int advice)
{
    note_madvise(addr, len, advice);
    return (int)set_errno(kernel(SYS_madvise, (long)addr, (long)len, advice, 0, 0, 0));
}

static int watched_shmdt(uintptr_t addr)
{
    note_from(addr);
    return (int)set_errno(kernel(SYS_shmdt, (long)addr, 0, 0, 0, 0, 0));
}

static long watched_shmat(int id, uintptr_t addr, int flags)
{
    note_shmat(addr, flags);
    return set_errno(kernel(SYS_shmat, id, (long)addr, flags, 0, 0, 0));
}

static int watched_brk(uintptr_t addr)
{
    uintptr_t end;

    note_brk(addr, (uintptr_t)*heap_end);
    end = (uintptr_t)kernel(SYS_brk, (long)addr, 0, 0, 0, 0, 0);
    *heap_end = (void *)end;
    return end < addr ? (int)set_errno(-ENOMEM) : 0;
}

static long watched_syscall(long n, long a, long b, long c, long d, long e, long f)
{
    switch (n) {
    case SYS_munmap:
        note_unmap((uintptr_t)a, (size_t)b);
        break;
    case SYS_mmap:
        note_mmap((uintptr_t)a, (size_t)b, d);
        break;
    case SYS_mremap:
        note_mremap((uintptr_t)a, (size_t)b, (size_t)c, d, (uintptr_t)e);
        break;
    case SYS_madvise:
        note_madvise((uintptr_t)a, (size_t)b, c);
        break;
    case SYS_shmdt:
        note_from((uintptr_t)a);
        break;
    case SYS_shmat:
        note_shmat((uintptr_t)b, c);
        break;
    case SYS_brk:
        note_brk((uintptr_t)a, (uintptr_t)kernel(SYS_brk, 0, 0, 0, 0, 0, 0));
        break;
    default:
        break;
    }
    return set_errno(kernel(n, a, b, c, d, e, f));
}

/* ---- leading them ------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    void *to;
} led[] = {
    {"munmap", (void *)watched_munmap},   {"mmap", (void *)watched_mmap},   {"mmap64", (void *)watched_mmap},
    {"mremap", (void *)watched_mremap},   {"shmdt", (void *)watched_shmdt}, {"shmat", (void *)watched_shmat},
    {"madvise", (void *)watched_madvise}, {"brk", (void *)watched_brk},     {"syscall", (void *)watched_syscall},
};
enum { NUM_LED = sizeof led / sizeof led[0] };

static bool lead_call(void *libc, const char *name, void *to)
{
    void *function = dlsym(libc, name), *symbol = NULL;
    Dl_info info;

    return function && dladdr1(function, &info, &symbol, RTLD_DL_SYMENT) && symbol && info.dli_saddr == function &&
           mr_patch_function(function, ((const ElfW(Sym) *)symbol)->st_size, to);
}

static bool heard_it(void)
{
    bool yes = heard;

    heard = false;
    return yes;
}

static void begin_trial(const void *addr)
{
    heard = false;
    tried = (uintptr_t)addr;
}

/* Under an emulator that runs a copy of the code, for example, the patch has no effect. shmdt and shmat fail here. */
static bool try_calls(void *libc)
{
    int (*my_munmap)(void *, size_t) = (__typeof__(my_munmap))dlsym(libc, "munmap");
    void *(*my_mmap)(void *, size_t, int, int, int, off_t) = (__typeof__(my_mmap))dlsym(libc, "mmap");
    void *(*my_mremap)(void *, size_t, size_t, int, ...) = (__typeof__(my_mremap))dlsym(libc, "mremap");
    int (*my_madvise)(void *, size_t, int) = (__typeof__(my_madvise))dlsym(libc, "madvise");
    int (*my_shmdt)(const void *) = (__typeof__(my_shmdt))dlsym(libc, "shmdt");
    void *(*my_shmat)(int, const void *, int) = (__typeof__(my_shmat))dlsym(libc, "shmat");
    long (*my_syscall)(long, ...) = (__typeof__(my_syscall))dlsym(libc, "syscall");
    size_t len = (size_t)sysconf(_SC_PAGESIZE);
    int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS, before = errno;
    char *p = my_mmap(NULL, len, prot, flags, -1, 0);
    bool good = p != MAP_FAILED;

    begin_trial(p);
    good = good && my_mmap(p, len, prot, flags | MAP_FIXED, -1, 0) == p && heard_it();
    good = good && !my_madvise(p, len, MADV_DONTNEED) && heard_it();
    good = good && !my_syscall(SYS_madvise, p, len, MADV_DONTNEED) && heard_it();
    good = good && my_mremap(p, len, len, 0) == p && heard_it();
    good = good && my_shmdt(p - 1) && heard_it();
    good = good && my_shmat(-1, p, SHM_REMAP) == (void *)-1 && heard_it();
    good = good && !my_munmap(p, len) && heard_it();
    tried = 0;
    errno = before;
    return good;
}

const char *mr_calls_lead(mr_unmapped_fn *take_note)
{
    void *libc = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);

    unmapped = take_note;
    heap_end = libc ? dlsym(libc, "__curbrk") : NULL;
    if (!heap_end)
        return "the C library is not the GNU one";
    for (int i = 0; i < NUM_LED; i++)
        if (!lead_call(libc, led[i].name, led[i].to))
            return "the kernel does not let code be changed";
    return try_calls(libc) ? NULL : "changed code has no effect here";
}

/* Large enough for a mapping of its own; nothing is written there. */
bool mr_calls_try_allocator(void)
{
    size_t len = (size_t)64 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
    char *volatile block = malloc(len); /* volatile: else the compiler removes it */
    unsigned char resident;
    uintptr_t middle;
    bool gone;

    if (!block)
        return true;
    middle = ((uintptr_t)block + len / 2) & ~(page - 1);
    begin_trial((void *)middle);
    free(block);
    gone = mincore((void *)middle, page, &resident) && errno == ENOMEM;
    tried = 0;
    return !gone || heard;
}
