/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of node areas: how large, how it is made, opened and given back. */
#include "libmrmpi/node/area.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libmrmpi/channel/shm.h"

#define KiB *(size_t)1024

/*
 * With more ranks than cores a rank that has to wait gives its core away. A root that is so many times as far ahead of
 * its readers seldom has to.
 */
enum { SPLIT = 4 };

struct plan {
    struct mr_node_shape small, bulk;
    size_t bulk_at, bytes;
};

static size_t whole_pages(size_t n)
{
    return (n + 4095) & ~(size_t)4095;
}

/*
 * Deep enough that a rank seldom waits for others to be done, and small enough for a core's own cache. Pages that are
 * never used cost nothing. With many ranks what all of them have together counts.
 */
static struct plan plan_of(int ranks)
{
    bool few = ranks <= 16;
    struct plan p = {.small = {.ranks = ranks, .slots = 16, .split = SPLIT, .slot_bytes = few ? 8 KiB : 2 KiB},
                     .bulk = {.ranks = ranks, .slots = few ? 8 : 4, .split = 1, .slot_bytes = few ? 32 KiB : 16 KiB}};

    p.bulk_at = whole_pages(64 + mr_node_ring_bytes(p.small));
    p.bytes = p.bulk_at + whole_pages(mr_node_ring_bytes(p.bulk));
    return p;
}

struct mr_node_site mr_node_create(int ranks)
{
    struct mr_node_site s = {.pid = getpid(), .fd = memfd_create("mrmpi-node", MFD_CLOEXEC)};

    if (s.fd >= 0 && ftruncate(s.fd, (off_t)plan_of(ranks).bytes)) {
        close(s.fd);
        s.fd = -1;
    }
    return s;
}

void mr_node_created(struct mr_node_site s)
{
    if (s.fd >= 0)
        close(s.fd);
}

static void *map_site(struct mr_node_site s, size_t bytes)
{
    char path[64];
    struct stat st;
    void *base = MAP_FAILED;
    int fd;

    if (s.fd < 0)
        return MAP_FAILED;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", s.pid, s.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return MAP_FAILED;
    if (fstat(fd, &st) == 0 && (uint64_t)st.st_size == bytes)
        base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    close(fd);
    return base;
}

struct mr_node *mr_node_open(struct mr_node_site s, const struct mr_comm *c)
{
    struct plan p = plan_of(c->size);
    struct mr_node *n = malloc(sizeof(*n));
    void *base = n ? map_site(s, p.bytes) : MAP_FAILED;

    if (base == MAP_FAILED) {
        free(n);
        return NULL;
    }
    *n = (struct mr_node){
        .ranks = c->size, .me = c->rank, .world = c->group->world, .broken = base, .base = base, .bytes = p.bytes};
    mr_node_ring_init(&n->bulk, (char *)base + p.bulk_at, p.bulk, c->rank);
    return n;
}

/* A member that sees more ranks than cores says it for all: pieces are cut as that wants it. */
enum { NO_AREA, CROWDED, NOT_CROWDED };

int mr_node_vote(const struct mr_node *n)
{
    return !n ? NO_AREA : mr_shm_oversubscribed() ? CROWDED : NOT_CROWDED;
}

void mr_node_agreed(struct mr_node *n, int least)
{
    struct mr_node_shape small = plan_of(n->ranks).small;

    n->crowded = least == CROWDED;
    if (!n->crowded) /* few lines stay in the caches, and answers are on their way */
        small.split = 1;
    mr_node_ring_init(&n->small, (char *)n->base + 64, small, n->me);
}

void mr_node_close(struct mr_node *n)
{
    if (!n)
        return;
    munmap(n->base, n->bytes);
    free(n);
}
