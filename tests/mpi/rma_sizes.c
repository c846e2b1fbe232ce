/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Put, get and accumulate of every size around the powers of two up to 4 MiB, one by one and many in flight; from the
 * stack, the heap, and memory that was mapped just now and goes away at once. Nothing beside the bytes is touched.
 */
#include "rma.h"

#include <alloca.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { MOST = 4 << 20, EDGE = 64, PAGE = 4096 };
enum place { HEAP, STACK, FRESH, PLACES };

/* A new mapping, whose addresses have not been used for long. */
static char *fresh(size_t n)
{
    char *p = mmap(NULL, n + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}

/* The first period byte by byte, then copies of all so far. */
static void fill(char *p, size_t n, int r, int k)
{
    size_t done = n < BYTE_PERIOD ? n : BYTE_PERIOD, more;
    for (size_t i = 0; i < done; i++)
        p[i] = byte_of(r, k, i);
    for (; done < n; done += more) {
        more = done < n - done ? done : n - done;
        memcpy(p + done, p, more);
    }
}

/* The bytes times this factor. If the contents repeat, their first period is enough; else one byte is wrong. */
static void is_times(const char *p, size_t n, int r, int k, int factor)
{
    bool repeats = n > BYTE_PERIOD && !memcmp(p, p + BYTE_PERIOD, n - BYTE_PERIOD);
    for (size_t i = 0; i < (repeats ? BYTE_PERIOD : n); i++)
        EQ(p[i], (char)(factor * byte_of(r, k, i)));
}

static void is(const char *p, size_t n, int r, int k)
{
    is_times(p, n, r, k, 1);
}

static void is_all(const char *p, size_t n, char value)
{
    for (size_t i = 0; i < n; i++)
        EQ(p[i], value);
}

/* n bytes to the right neighbour, back, and added to the contents there. The origin's bytes begin at an odd place. */
static void one(const struct win *w, enum way way, size_t n, char *buf, int k)
{
    int right = (w->me + 1) % w->n, left = (w->me + w->n - 1) % w->n, bytes = (int)n;
    size_t at = (size_t)(k % EDGE);
    MPI_Aint there = at_of(w, right, EDGE + (MPI_Aint)at);
    fill(buf, n, w->me, k);
    own_open(w);
    memset(w->mem, 0x5a, n + 2 * EDGE + at);
    own_close(w);
    way_open(way, w);
    MPI_Put(buf, bytes, MPI_BYTE, right, there, bytes, MPI_BYTE, w->w);
    way_close(way, w);
    own_open(w);
    is_all(w->mem, EDGE + at, 0x5a);
    is(w->mem + EDGE + at, n, left, k);
    is_all(w->mem + EDGE + at + n, EDGE, 0x5a);
    own_close(w);
    memset(buf, 0, n);
    buf[n] = 0x33;
    way_open(way, w);
    MPI_Get(buf, bytes, MPI_BYTE, right, there, bytes, MPI_BYTE, w->w);
    way_close(way, w);
    is(buf, n, w->me, k);
    EQ(buf[n], 0x33);
    way_open(way, w);
    MPI_Accumulate(buf, bytes, MPI_UNSIGNED_CHAR, right, there, bytes, MPI_UNSIGNED_CHAR, MPI_SUM, w->w);
    way_close(way, w);
    own_open(w);
    is_all(w->mem, EDGE + at, 0x5a);
    is_times(w->mem + EDGE + at, n, left, k, 2);
    is_all(w->mem + EDGE + at + n, EDGE, 0x5a);
    own_close(w);
}

static void from(const struct win *w, enum way way, enum place place, size_t n, int k)
{
    char *p;
    switch (place) {
    case STACK:
        p = alloca(n + 2);
        one(w, way, n, p + k % 2, k);
        break;
    case FRESH:
        p = fresh(n + 2);
        one(w, way, n, p + k % 2, k);
        munmap(p, n + 2 + PAGE);
        break;
    default:
        p = room(n + 2);
        one(w, way, n, p + k % 2, k);
        free(p);
    }
}

/* As many as fit into the window, all in flight before the first is waited for: puts, then gets. */
static void in_flight(const struct win *w, enum way way, size_t n, int k)
{
    int count = (int)((size_t)MOST / 4 / n), right = (w->me + 1) % w->n, left = (w->me + w->n - 1) % w->n;
    count = count > 200 ? 200 : count;
    char *buf = fresh(n * (size_t)count);
    fill(buf, n * (size_t)count, w->me, k);
    own_set(w, 0);
    way_open(way, w);
    for (int i = count - 1; i >= 0; i--)
        MPI_Put(buf + n * (size_t)i, (int)n, MPI_BYTE, right, at_of(w, right, (MPI_Aint)n * i), (int)n, MPI_BYTE, w->w);
    way_close(way, w);
    own_open(w);
    is(w->mem, n * (size_t)count, left, k);
    own_close(w);
    munmap(buf, n * (size_t)count + PAGE);
    buf = fresh(n * (size_t)count);
    way_open(way, w);
    for (int i = 0; i < count; i++)
        MPI_Get(buf + n * (size_t)i, (int)n, MPI_BYTE, left, at_of(w, left, (MPI_Aint)n * i), (int)n, MPI_BYTE, w->w);
    way_close(way, w);
    is(buf, n * (size_t)count, (left + w->n - 1) % w->n, k);
    munmap(buf, n * (size_t)count + PAGE);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    size_t most = size > 4 ? MOST / 4 : MOST;
    for (enum flavor f = 0; f < FLAVORS; f++) {
        struct win w;
        int k = (int)f;
        win_make(&w, f, (MPI_Aint)(most + 4 * EDGE));
        for (size_t n = 1; n <= most; n *= 2)
            for (int d = -1; d <= 1; d++, k++)
                if (f == CREATE || n <= 65536 || k % FLAVORS == (int)f) {
                    enum place p = (enum place)((unsigned)k % PLACES);
                    size_t bytes = n == most && d > 0 ? n : n + (size_t)d;
                    from(&w, (enum way)((unsigned)(k / 3) % WAYS), p == STACK && n > 65536 ? FRESH : p, bytes, k);
                }
        static const size_t some[] = {1, 8, 100, 2048, 8191, 16384, 70000, 300001};
        for (int i = 0; i < 8; i++)
            in_flight(&w, (enum way)(((unsigned)i + f) % WAYS), some[i], i);
        win_free(&w);
    }
    return mt_end();
}
