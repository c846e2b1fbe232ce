/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of node areas: how large, how it is made, opened and given back. */
#include "libmrmpi/coll/node/area.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/base/memfile.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/p2p/p2p.h"

#define KiB *(size_t)1024

struct plan {
    struct mr_node_shape small, bulk;
    size_t bulk_at, bytes;
    size_t chunks; /* bytes of each pool */
};

static size_t whole_pages(size_t n)
{
    return (n + 4095) & ~(size_t)4095;
}

/*
 * The agreement of the members: the least of their votes. With more ranks than cores a waiting rank gives its core
 * away, so pieces are cut such that waits are rare. A process has few areas of full size: a busy area holds 2 MiB for
 * each member, others .4 MiB.
 */
enum size { NO_AREA, CROWDED, COMPACT, FULL };
enum { FULL_MOST = 8 };
static int num_full;

/*
 * A line read by another core is slow to write while it lies in that core's cache. In a ring larger than such caches,
 * the line has moved to the shared cache before its slot's next turn: 1 MiB from one rank to another takes 53 us
 * through 64 slots of 32 KiB, 100 through 32, 145 through 8, and 8 KiB .65 us instead of 1.25 (AMD EPYC, 1 MiB of own
 * cache). Ranks on a common core share its cache too, and find each other's writes there while they are few: gather of
 * 1 MiB among 8 ranks on 2 cores takes .66 ms through 8 slots, .76 through 16, 1.4 through 32. With many ranks the sum
 * of all slots counts.
 *
 * So long pieces go round so much of their writer's pool. The area itself has LEAST slots for them, which are seldom
 * used: unused pages cost nothing.
 */
enum { FEW = 16 }; /* ranks: with more than these slots are smaller */
enum { FULL_BYTES = 16 << 20, FULL_SMALL = 256, FULL_BULK = 64, CROWDED_BYTES = 2 << 20, LEAST = 8, LEAST_MANY = 4 };

static int fitting_slots(int ranks, size_t slot_bytes, int slots, int least, size_t bytes)
{
    while (slots > least && (size_t)slots * slot_bytes * (size_t)ranks > bytes)
        slots /= 2;
    return slots;
}

/* Long pieces under way. */
static int bulk_pieces(int ranks, size_t slot_bytes, int least, enum size size)
{
    return size == COMPACT
               ? least
               : fitting_slots(ranks, slot_bytes, FULL_BULK, least, size == FULL ? FULL_BYTES : CROWDED_BYTES);
}

/* Deep enough that a rank seldom waits for others to be done. */
enum { LINES = 16, LINES_CROWDED = 64 };

static struct plan plan_of(int ranks, enum size size)
{
    size_t slot = ranks <= FEW ? 8 KiB : 2 KiB, bulk = ranks <= FEW ? 32 KiB : 16 KiB;
    int lines = size == CROWDED ? LINES_CROWDED : LINES, least = ranks <= FEW ? LEAST : LEAST_MANY;
    struct plan p = {
        .small = {.ranks = ranks,
                  .lines = lines,
                  .slots = size == FULL ? fitting_slots(ranks, slot, FULL_SMALL, lines, FULL_BYTES) : lines,
                  .slot_bytes = slot,
                  .brief_bytes = slot / 4},
        .bulk = {.ranks = ranks, .lines = bulk_pieces(ranks, bulk, least, size), .slots = least, .slot_bytes = bulk},
    };

    p.chunks = (size_t)p.bulk.lines * bulk;
    p.bulk_at = whole_pages(64 + mr_node_ring_bytes(p.small));
    p.bytes = p.bulk_at + whole_pages(mr_node_ring_bytes(p.bulk));
    return p;
}

/* Room for any agreement of the members. */
static size_t largest_area(int ranks)
{
    size_t most = 0;

    for (enum size size = CROWDED; size <= FULL; size++) {
        size_t bytes = plan_of(ranks, size).bytes;

        most = bytes > most ? bytes : most;
    }
    return most;
}

/* A rank that has ended reads nothing. */
static bool has_left(int world_rank)
{
    const struct mr_vc *vc = mr_vc_known_peer(world_rank);

    return mr_peer_parts(world_rank) || (vc && vc->error);
}

struct mr_node_site mr_node_create(int ranks)
{
    return (struct mr_node_site){.pid = getpid(), .fd = mr_memfile_make("mrmpi-node", largest_area(ranks))};
}

void mr_node_created(struct mr_node_site s)
{
    if (s.fd >= 0)
        close(s.fd);
}

static void *map_site(struct mr_node_site s, size_t bytes)
{
    int fd = s.fd < 0 ? -1 : mr_memfile_open(s.pid, s.fd, bytes);
    void *base;

    if (fd < 0)
        return MAP_FAILED;
    base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    close(fd);
    return base;
}

/* The members that still read are done with the pieces before reader->freed. */
static void poll_readers(struct mr_reader *reader)
{
    const struct mr_node *n = container_of(reader, struct mr_node, reader);
    uint64_t least = n->in_chunks;

    for (int i = 0; i < n->ranks; i++) {
        uint64_t done = __atomic_load_n(&n->bulk.done[i].number, __ATOMIC_ACQUIRE);

        if (done < least && (i == n->me || !has_left(n->world[i])))
            least = done;
    }
    reader->freed = least + 1;
}

struct mr_node *mr_node_open(struct mr_node_site s, const struct mr_comm *c)
{
    size_t bytes = largest_area(c->size);
    struct mr_node *n = malloc(sizeof(*n));
    void *base = n ? map_site(s, bytes) : MAP_FAILED;

    if (base == MAP_FAILED) {
        free(n);
        return NULL;
    }
    *n = (struct mr_node){.ranks = c->size,
                          .me = c->rank,
                          .world = c->group->world,
                          .group = mr_group_get(c->group),
                          .broken = base,
                          .base = base,
                          .bytes = bytes,
                          .copier = mr_copier_begin(),
                          .reader.poll = poll_readers};
    return n;
}

int mr_node_vote(const struct mr_node *n)
{
    if (!n)
        return NO_AREA;
    return mr_shm_oversubscribed() ? CROWDED : num_full < FULL_MOST ? FULL : COMPACT;
}

void mr_node_agreed(struct mr_node *n, int least)
{
    struct plan p = plan_of(n->ranks, (enum size)least);

    n->crowded = least == CROWDED;
    n->full = least == FULL;
    num_full += n->full;
    n->chunks.most = p.chunks;
    mr_node_ring_init(&n->small, (char *)n->base + 64, p.small, n->me);
    mr_node_ring_init(&n->bulk, (char *)n->base + p.bulk_at, p.bulk, n->me);
}

/* ---- long pieces ------------------------------------------------------------------------------------------------- */

char *mr_node_try_long(struct mr_node *n, uint64_t piece, size_t bytes)
{
    struct mr_node_line *line = mr_node_first(&n->bulk, n->me, piece);

    if (!mr_node_has_room(&n->bulk, piece))
        return NULL;
    if (mr_shm_chunks_take(&n->chunks, bytes, &n->reader, piece)) {
        n->in_chunks = piece;
        n->cached = n->crowded || n->chunks.fresh;
        mr_node_set_chunk(line, n->chunks.first);
        return n->chunks.at;
    }
    if (!mr_node_has_slot(&n->bulk, piece))
        return NULL;
    n->cached = n->crowded || !mr_node_use(&n->bulk, piece);
    mr_node_set_chunk(line, MR_NODE_IN_SLOT);
    return mr_node_slot(&n->bulk, n->me, piece);
}

char *mr_node_long(const struct mr_node *n, int rank, uint64_t piece, size_t bytes)
{
    uint32_t chunk = mr_node_chunk(mr_node_first(&n->bulk, rank, piece));

    if (unlikely(chunk == MR_NODE_IN_SLOT))
        return bytes <= n->bulk.shape.slot_bytes ? mr_node_slot(&n->bulk, rank, piece) : NULL;
    return mr_shm_chunks_at(n->world[rank], chunk, bytes);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static struct mr_node *closed; /* areas with chunks that others may read */

static bool is_read(struct mr_node *n)
{
    if (!n->in_chunks)
        return true;
    poll_readers(&n->reader);
    return n->in_chunks < n->reader.freed;
}

static void free_area(struct mr_node *n)
{
    mr_shm_chunks_reclaim(&n->reader);
    mr_group_put(n->group);
    munmap(n->base, n->bytes);
    free(n);
}

void mr_node_close(struct mr_node *n)
{
    struct mr_node **at = &closed;

    if (!n)
        return;
    num_full -= n->full;
    if (n->bulk.done)
        mr_node_done(&n->bulk, MR_NODE_LEFT);
    n->next = closed;
    closed = n;
    while ((n = *at)) {
        if (is_read(n)) {
            *at = n->next;
            free_area(n);
        } else {
            at = &n->next;
        }
    }
}
