/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program's own allocator: small blocks are never reused, large blocks have mappings of their own. With FEW, only the
 * four functions required by the C library. With RAW, direct system calls.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

struct head {
    size_t bytes, mapped; /* 0: of the pool */
    void *mapping;
    size_t unused;
};

static char *pool, *pool_end;
static int taken;

#ifdef RAW
static long ask(long number, long a, long b, long c, long d)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = -1;
    register long r9 __asm__("r9") = 0;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#define GET(n)     ((void *)ask(SYS_mmap, 0, (long)(n), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS))
#define GIVE(p, n) __asm__ volatile("syscall" : : "a"(SYS_munmap), "D"(p), "S"(n) : "rcx", "r11", "memory")
#else
#define GET(n)     mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
#define GIVE(p, n) munmap(p, n)
#endif

static void *get_from_pool(size_t bytes)
{
    char *p;

    while (__atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE))
        ;
    if ((size_t)(pool_end - pool) < bytes) {
        pool = GET(16 << 20);
        pool_end = pool + (16 << 20);
    }
    p = pool;
    pool += bytes;
    __atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
    return p;
}

static void *get(size_t align, size_t bytes)
{
    size_t whole = (bytes + align + sizeof(struct head) + 4095) & ~(size_t)15;
    struct head *h;
    char *p;

    if (bytes > PTRDIFF_MAX) {
        errno = ENOMEM;
        return NULL;
    }
    p = bytes < 65536 ? get_from_pool(whole) : GET(whole);
    h = (struct head *)(((uintptr_t)p + sizeof *h + align - 1) / align * align) - 1;
    *h = (struct head){.bytes = bytes, .mapped = bytes < 65536 ? 0 : whole, .mapping = p};
    return h + 1;
}

void *malloc(size_t bytes)
{
    return get(sizeof(struct head), bytes);
}

void free(void *p)
{
    struct head *h = p;

    if (p && h[-1].mapped)
        GIVE(h[-1].mapping, h[-1].mapped);
}

void *calloc(size_t n, size_t bytes)
{
    void *p = malloc(n * bytes);

    return p ? memset(p, 0, n * bytes) : NULL;
}

void *realloc(void *p, size_t bytes)
{
    void *to = malloc(bytes);
    size_t before = p ? ((struct head *)p)[-1].bytes : 0;

    if (p && to) {
        memcpy(to, p, before < bytes ? before : bytes);
        free(p);
    }
    return to;
}

#ifdef FEW
/* The program does not call the C library's function, whose blocks are unknown to this free. */
int posix_memalign(void **out, size_t align, size_t bytes) __attribute__((visibility("hidden")));
#else
void *memalign(size_t align, size_t bytes)
{
    return get(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    return get(align, bytes);
}
#endif

int posix_memalign(void **out, size_t align, size_t bytes)
{
    *out = get(align, bytes);
    return *out ? 0 : ENOMEM;
}
