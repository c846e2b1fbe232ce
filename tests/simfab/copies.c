/* SPDX-License-Identifier: BSD-3-Clause */
/* Time of copies: "CALL BYTES NS" for each, by a thread that calls verbs. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

void *__memcpy_chk(void *to, const void *from, size_t n, size_t room);
void *__memmove_chk(void *to, const void *from, size_t n, size_t room);

#define MOST (1u << 20)

static unsigned char *from, *to;
/* the compiler must not know lengths, and must keep the calls */
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;
static void *(*volatile move)(void *, const void *, size_t) = memmove;

static unsigned long now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec;
}

static void by_memcpy(size_t n)
{
    copy(to, from, n);
}

static void by_memmove(size_t n)
{
    move(to, from, n);
}

static void by_memcpy_chk(size_t n)
{
    __memcpy_chk(to, from, n, MOST);
}

static void by_memmove_chk(size_t n)
{
    __memmove_chk(to, from, n, MOST);
}

static void by_kernel(size_t n)
{
    struct iovec a = {to, n}, b = {from, n};

    if (process_vm_readv(getpid(), &a, 1, &b, 1, 0) != (ssize_t)n)
        exit(2);
}

static const struct {
    const char *name;
    void (*copy)(size_t n);
} ways[] = {{"memcpy", by_memcpy},
            {"memmove", by_memmove},
            {"memcpy_chk", by_memcpy_chk},
            {"memmove_chk", by_memmove_chk},
            {"process_vm_readv", by_kernel}};

static void measure(void)
{
    static const size_t sizes[] = {1, 1023, 1024, 100000, MOST};

    for (unsigned w = 0; w < sizeof ways / sizeof *ways; w++)
        for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            unsigned long begin, took;

            memset(to, 0, MOST);
            begin = now_ns();
            ways[w].copy(sizes[i]);
            took = now_ns() - begin;
            if (memcmp(to, from, sizes[i]) || (sizes[i] < MOST && to[sizes[i]]))
                exit(3);
            printf("%s %zu %lu\n", ways[w].name, sizes[i], took);
        }
}

/* Overlapping ranges, in both directions. */
static void overlap(void)
{
    for (unsigned n = 1; n <= 4096; n += 63)
        for (int by = -100; by <= 100; by += 25) {
            memcpy(to, from, 8192);
            move(to + 1000 + by, to + 1000, n);
            if (memcmp(to + 1000 + by, from + 1000, n))
                exit(4);
        }
}

int main(void)
{
    struct ibv_device **list;

    from = malloc(MOST);
    to = malloc(MOST);
    for (unsigned i = 0; i < MOST; i++)
        from[i] = (unsigned char)(i * 7 / 5 | 1);
    overlap();
    list = ibv_get_device_list(NULL);
    if (!list || !list[0] || !ibv_alloc_pd(ibv_open_device(list[0])))
        return 1;
    ibv_free_device_list(list);
    measure();
    return 0;
}
