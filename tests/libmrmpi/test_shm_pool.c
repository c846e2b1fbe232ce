/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools of chunks, packets with their payload in a chunk, and the two modes of copying into a chunk. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/copy_loops.h"
#include "libmrmpi/base/copier.h"
#include "libmrmpi/channel/shm_pool.h"
#include "libmrmpi/channel/shm_ring.h"
#include "libmrmpi/channel/shm_ring_writer.h"
#include "tests/check.h"

struct mr_config mr_config = {.shm_stream = -1};

enum { CHUNKS = 5, CHUNK = 8192, LONGEST = 2 * CHUNK };
static const struct mr_pool_shape shape = {.num_chunks = CHUNKS, .chunk_bytes = CHUNK};
static const struct mr_ring_shape few = {.num_slots = 8, .data_bytes = 4096};
static void *memory;
static struct mr_pool owner, reader;
static struct mr_pool_user users[CHUNKS];
/* One peer for each chunk. */
static void *rings;
static struct mr_ring_writer writers[CHUNKS];
static struct mr_ring_reader readers[CHUNKS];

static void setup(void)
{
    size_t each = (mr_ring_bytes(few) + 4095) & ~(size_t)4095;

    memory = aligned_alloc(4096, mr_pool_bytes(shape));
    rings = aligned_alloc(4096, CHUNKS * each);
    ck_assert(memory && rings);
    memset(rings, 0, CHUNKS * each);
    memset(users, 0, sizeof(users));
    mr_pool_init(&owner, memory, shape, users);
    mr_pool_init(&reader, memory, shape, NULL);
    for (int i = 0; i < CHUNKS; i++) {
        mr_ring_writer_init(&writers[i], (char *)rings + i * each, few);
        mr_ring_reader_init(&readers[i], (char *)rings + i * each, few, 0);
    }
}

static void teardown(void)
{
    free(memory);
    free(rings);
}

static void assign_to(int peer, uint32_t chunk, uint32_t n)
{
    struct mr_hdr hdr = {.len = n * CHUNK};

    ck_assert_ptr_nonnull(mr_ring_begin(&writers[peer], 0));
    mr_pool_assign(&owner, chunk, n, &writers[peer].reader, writers[peer].slot);
    mr_ring_commit_far(&writers[peer], &hdr, chunk, n * CHUNK);
}

/* Assigns the next chunk to a peer. */
static uint32_t assign(int peer)
{
    uint32_t chunk = mr_pool_find(&owner, 1);

    if (chunk != MR_POOL_NONE)
        assign_to(peer, chunk, 1);
    return chunk;
}

/* The peer has read its first chunk. */
static void give_back(int peer)
{
    mr_ring_release_far(&readers[peer], CHUNK);
    mr_ring_tell(&readers[peer]);
}

START_TEST(chunks_do_not_overlap)
{
    char *end = (char *)memory + mr_pool_bytes(shape);

    for (uint32_t i = 0; i < CHUNKS; i++) {
        ck_assert_uint_eq((uintptr_t)mr_pool_at(&owner, i) % 4096, 0);
        ck_assert((char *)mr_pool_at(&owner, i) + CHUNK <= end);
        if (i)
            ck_assert_int_eq((char *)mr_pool_at(&owner, i) - (char *)mr_pool_at(&owner, i - 1), CHUNK);
    }
}
END_TEST

/* A chunk just given back is not the next one taken. */
START_TEST(round_and_round)
{
    for (uint32_t i = 0; i < 3 * CHUNKS; i++) {
        ck_assert_uint_eq(mr_pool_find(&owner, 1), i % CHUNKS);
        ck_assert_uint_eq(assign(i % 2), i % CHUNKS);
        give_back(i % 2);
    }
}
END_TEST

START_TEST(all_are_lent)
{
    for (uint32_t i = 0; i < CHUNKS; i++)
        ck_assert_uint_eq(assign(i), i);
    ck_assert_uint_eq(assign(0), MR_POOL_NONE);
    give_back(3);
    ck_assert_uint_eq(assign(0), 3);
    ck_assert_uint_eq(assign(0), MR_POOL_NONE);
}
END_TEST

/* A reader that keeps a chunk for ever does not stop the others. */
START_TEST(kept_ones_are_passed_over)
{
    for (uint32_t i = 0; i < CHUNKS; i++)
        assign(i);
    for (uint32_t i = 0; i < CHUNKS; i++)
        if (i != 2)
            give_back(i);
    for (int lap = 0; lap < 3; lap++)
        for (uint32_t i = 0; i < CHUNKS; i++) {
            if (i == 2)
                continue;
            ck_assert_uint_eq(assign(i), i);
            give_back(i);
        }
}
END_TEST

/* A peer gives chunks back in the order of assignment, with any other packets between. */
START_TEST(in_the_order_of_the_ring)
{
    struct mr_hdr hdr = {.len = 0};

    ck_assert(mr_ring_write(&writers[0], &hdr, NULL, 0));
    for (uint32_t i = 0; i < CHUNKS; i++)
        ck_assert_uint_eq(assign(0), i);
    mr_ring_release(&readers[0]);
    mr_ring_tell(&readers[0]);
    ck_assert_uint_eq(mr_pool_find(&owner, 1), MR_POOL_NONE);
    for (uint32_t i = 0; i < CHUNKS; i++) {
        give_back(0);
        ck_assert_uint_eq(assign(1), i);
        ck_assert_uint_eq(mr_pool_find(&owner, 1), MR_POOL_NONE);
    }
}
END_TEST

/* Readers tell in portions, but keep no more than one payload of the ring may have. */
START_TEST(told_in_portions)
{
    struct mr_ring_shape many = {.num_slots = 64, .data_bytes = 4 * CHUNK};
    void *ring = aligned_alloc(4096, (mr_ring_bytes(many) + 4095) & ~(size_t)4095);

    ck_assert_ptr_nonnull(ring);
    memset(ring, 0, mr_ring_bytes(many));
    mr_ring_writer_init(&writers[0], ring, many);
    mr_ring_reader_init(&readers[0], ring, many, 0);
    for (uint32_t i = 0; i < CHUNKS; i++)
        ck_assert_uint_eq(assign(0), i);
    mr_ring_release_far(&readers[0], CHUNK);
    ck_assert_uint_eq(mr_pool_find(&owner, 1), MR_POOL_NONE);
    mr_ring_release_far(&readers[0], CHUNK);
    ck_assert_uint_eq(mr_pool_find(&owner, 2), 0);
    mr_ring_release_far(&readers[0], CHUNK);
    ck_assert_uint_eq(mr_pool_find(&owner, 3), MR_POOL_NONE);
    mr_ring_tell(&readers[0]);
    ck_assert_uint_eq(mr_pool_find(&owner, 3), 0);
    free(ring);
}
END_TEST

START_TEST(several_in_a_row)
{
    ck_assert_uint_eq(mr_pool_count(&owner, 1), 1);
    ck_assert_uint_eq(mr_pool_count(&owner, CHUNK), 1);
    ck_assert_uint_eq(mr_pool_count(&owner, CHUNK + 1), 2);
    ck_assert_uint_eq(mr_pool_find(&owner, 2), 0);
    assign_to(0, 0, 2);
    ck_assert_uint_eq(mr_pool_find(&owner, 3), 2);
    assign_to(1, 2, 2);
    ck_assert_uint_eq(mr_pool_find(&owner, 2), MR_POOL_NONE); /* one at the end, none at the beginning */
    give_back(0);
    ck_assert_uint_eq(mr_pool_find(&owner, 2), 0); /* not 4 and 0: they must be neighbours */
    assign_to(0, 0, 2);
    give_back(1);
    ck_assert_uint_eq(mr_pool_find(&owner, 3), 2);
    ck_assert_uint_eq(mr_pool_find(&owner, 4), MR_POOL_NONE);
    give_back(0);
    ck_assert_uint_eq(mr_pool_find(&owner, CHUNKS), 0);
    ck_assert_uint_eq(mr_pool_find(&owner, CHUNKS + 1), MR_POOL_NONE);
}
END_TEST

/* ---- pages, and other readers than of rings ---------------------------------------------------------------------- */

static char *made;
static size_t made_bytes;
static unsigned times_made;

static void make_pages(void *at, size_t len)
{
    ck_assert_ptr_eq(at, made + made_bytes); /* each once, in order */
    made_bytes += len;
    times_made++;
}

/* Pages are made some at a time, before the first use of a chunk, and never behind the pool. */
START_TEST(pages_as_far_as_used)
{
    enum { MANY = 2 * MR_POOL_GROWS + 3 };
    struct mr_pool p;

    made = memory;
    made_bytes = times_made = 0;
    mr_pool_init(&p, memory, (struct mr_pool_shape){.num_chunks = MANY, .chunk_bytes = CHUNK}, NULL);
    for (uint32_t i = 0; i < MANY; i++) {
        ck_assert_int_eq(mr_pool_begin(&p, i, 1, make_pages), i % MR_POOL_GROWS != 0);
        ck_assert_uint_ge(made_bytes, (size_t)(i + 1) * CHUNK);
        ck_assert_uint_le(made_bytes, mr_pool_bytes(p.shape));
    }
    ck_assert_uint_eq(made_bytes, mr_pool_bytes(p.shape));
    for (uint32_t i = 0; i < MANY; i++)
        ck_assert(mr_pool_begin(&p, i, MANY - i, make_pages));
    ck_assert_uint_eq(times_made, 3);

    made_bytes = 0;
    mr_pool_init(&p, memory, (struct mr_pool_shape){.num_chunks = MANY, .chunk_bytes = CHUNK}, NULL);
    ck_assert(!mr_pool_begin(&p, MR_POOL_GROWS - 1, 2, make_pages)); /* the second has none */
    ck_assert_uint_eq(made_bytes, 2 * MR_POOL_GROWS * CHUNK);
}
END_TEST

/* A reader maps pages in the same steps, for chunks in any order, and none for chunks that cannot be. */
START_TEST(pages_as_far_as_read)
{
    enum { MANY = 2 * MR_POOL_GROWS + 3 };
    const struct mr_pool_shape many = {.num_chunks = MANY, .chunk_bytes = CHUNK};
    struct mr_pool_user own[MANY] = {{0}};
    struct mr_pool p;

    made = memory;
    made_bytes = times_made = 0;
    mr_pool_init(&p, memory, many, NULL);
    ck_assert_ptr_null(mr_pool_read(&p, MANY, 1, make_pages));
    ck_assert_ptr_null(mr_pool_read(&p, MR_POOL_NONE, 1, make_pages));
    ck_assert_ptr_null(mr_pool_read(&p, MANY - 1, CHUNK + 1, make_pages));
    ck_assert_uint_eq(times_made, 0);
    ck_assert_ptr_eq(mr_pool_read(&p, 3, CHUNK + 1, make_pages), made + 3 * CHUNK);
    ck_assert_uint_eq(made_bytes, MR_POOL_GROWS * CHUNK);
    for (uint32_t i = MANY; i--;)
        ck_assert_ptr_eq(mr_pool_read(&p, i, CHUNK, make_pages), made + (size_t)i * CHUNK);
    ck_assert_uint_eq(made_bytes, mr_pool_bytes(many));
    ck_assert_uint_eq(times_made, 2);

    mr_pool_init(&p, memory, many, own); /* an owner has made its pages by writing */
    ck_assert_ptr_eq(mr_pool_read(&p, 1, CHUNK, make_pages), made + CHUNK);
    ck_assert_uint_eq(times_made, 2);
    ck_assert_uint_eq(p.fresh, 0);
}
END_TEST

static uint64_t have_read;

static void poll_read(struct mr_reader *of)
{
    of->freed = have_read + 1;
}

/* Chunks are in use until the piece has been read, or their readers are no more; others do not take them meanwhile. */
START_TEST(readers_of_pieces)
{
    struct mr_reader pieces = {.poll = poll_read}, others = {.poll = poll_read};
    uint32_t next = 0;

    have_read = 0;
    mr_pool_use(&owner, 0, 2, &pieces, 1);
    mr_pool_use(&owner, 2, 1, &pieces, 2);
    mr_pool_use(&owner, 3, 1, &others, 3);
    ck_assert_uint_eq(assign(0), 4);
    ck_assert_uint_eq(assign(0), MR_POOL_NONE);
    have_read = 1;
    ck_assert_uint_eq(mr_pool_find_below(&owner, 2, CHUNKS, &next), 0);
    ck_assert_uint_eq(mr_pool_find_below(&owner, 3, CHUNKS, &next), MR_POOL_NONE);
    mr_pool_reclaim(&owner, &pieces);
    next = 0;
    ck_assert_uint_eq(mr_pool_find_below(&owner, 3, CHUNKS, &next), 0);
    next = 0;
    ck_assert_uint_eq(mr_pool_find_below(&owner, 4, CHUNKS, &next), MR_POOL_NONE); /* the others have not */
}
END_TEST

/* Below a bound chunks go round there; a search in vain begins elsewhere the next time. */
START_TEST(below_a_bound)
{
    struct mr_reader pieces = {.poll = poll_read};
    uint32_t next = 0;

    have_read = 0;
    for (uint64_t piece = 1; piece <= 10; piece++) {
        ck_assert_uint_eq(mr_pool_find_below(&owner, 1, 3, &next), (piece - 1) % 3);
        mr_pool_use(&owner, (uint32_t)(piece - 1) % 3, 1, &pieces, piece);
        next = (uint32_t)(piece - 1) % 3 + 1;
        if (piece >= 3)
            ck_assert_uint_eq(mr_pool_find_below(&owner, 1, 3, &(uint32_t){0}), MR_POOL_NONE);
        have_read = piece >= 3 ? piece - 2 : 0;
    }
    ck_assert_uint_eq(mr_pool_find(&owner, 2), 3); /* those behind were never in use */
}
END_TEST

/* ---- growth ------------------------------------------------------------------------------------------------------ */

enum { WHOLE = 5 * MR_POOL_GROWS + 3, PRICE = 40 };
static struct mr_pool_user whole_users[WHOLE];

static struct mr_pool whole_pool(void)
{
    struct mr_pool p;

    memset(whole_users, 0, sizeof(whole_users));
    mr_pool_init(&p, memory, (struct mr_pool_shape){.num_chunks = WHOLE, .chunk_bytes = CHUNK}, whole_users);
    p.price = p.unpaid = PRICE;
    return p;
}

/* A payload of n chunks; with a reader: of this number. */
static uint32_t write_one(struct mr_pool *p, uint32_t n, struct mr_reader *by, uint64_t number)
{
    uint32_t chunk = mr_pool_find(p, n);

    ck_assert_uint_ne(chunk, MR_POOL_NONE);
    ck_assert_uint_le(chunk + n, p->limit);
    mr_pool_pay(p, n);
    mr_pool_assign(p, chunk, n, by, number);
    return chunk;
}

/*
 * If each payload is read before the next, a pool goes round in the chunks that it has, and grows by the first chunk
 * whose copies have paid for more: not before, and until the pool is whole.
 */
START_TEST(grows_when_paid_for)
{
    struct mr_pool p = whole_pool();

    for (uint32_t i = 1; i <= 10 * PRICE; i++) {
        uint32_t limit = MR_POOL_GROWS * (1 + i / PRICE);

        write_one(&p, 1, NULL, 0);
        ck_assert_uint_eq(p.limit, limit < WHOLE ? limit : WHOLE);
    }
    p = whole_pool();
    for (uint32_t i = 1; i <= PRICE / 5; i++) {
        ck_assert_uint_eq(p.limit, MR_POOL_GROWS);
        write_one(&p, 5, NULL, 0);
    }
    ck_assert_uint_eq(p.limit, 2 * MR_POOL_GROWS);
}
END_TEST

/* Chunks that were added are used before the others have another turn. */
START_TEST(new_chunks_have_their_turn)
{
    struct mr_pool p = whole_pool();
    uint32_t most = 0;

    for (uint32_t i = 1; i <= 2 * PRICE; i++) {
        uint32_t chunk = write_one(&p, 1, NULL, 0);

        most = chunk > most ? chunk : most;
        if (i == PRICE + MR_POOL_GROWS + 1)
            ck_assert_uint_ge(most, MR_POOL_GROWS);
    }
    ck_assert_uint_eq(most, 2 * MR_POOL_GROWS - 1);
}
END_TEST

/* While readers keep all chunks, the pool grows at once, by as much as is needed, up to the whole. */
START_TEST(grows_when_full)
{
    struct mr_reader slow = {.poll = poll_read};
    struct mr_pool p = whole_pool();
    uint32_t next = 0;

    p.price = p.unpaid = UINT32_MAX;
    for (uint32_t i = 0; i < WHOLE; i++) {
        ck_assert_uint_eq(write_one(&p, 1, &slow, i + 1), i);
        ck_assert_uint_le(p.limit, i + MR_POOL_GROWS);
        have_read = 0;
    }
    ck_assert_uint_eq(mr_pool_find(&p, 1), MR_POOL_NONE);

    p = whole_pool();
    p.price = p.unpaid = UINT32_MAX;
    ck_assert_uint_eq(write_one(&p, MR_POOL_GROWS + 1, &slow, 1), MR_POOL_GROWS);
    ck_assert_uint_eq(p.limit, 2 * MR_POOL_GROWS + 1);
    ck_assert_uint_eq(write_one(&p, MR_POOL_GROWS, &slow, 2), 0);
    ck_assert_uint_eq(mr_pool_find_below(&p, 3, 2 * MR_POOL_GROWS + 3, &next), MR_POOL_NONE);
    ck_assert_uint_eq(mr_pool_find_below(&p, 3, 2 * MR_POOL_GROWS + 4, &next), 2 * MR_POOL_GROWS + 1);
}
END_TEST

/* Pages that cost nothing are used at once. */
START_TEST(grows_for_nothing)
{
    struct mr_pool p = whole_pool();

    p.price = p.unpaid = 0;
    for (uint32_t i = 0; i < WHOLE; i++)
        ck_assert_uint_eq(write_one(&p, 1, NULL, 0), i);
}
END_TEST

/* ---- through a ring ---------------------------------------------------------------------------------------------- */

static struct mr_ring_writer w;
static struct mr_ring_reader r;
static bool streaming;

enum { PACKETS = 10000 };

static size_t length_of(uint32_t number)
{
    return MR_RING_INLINE + 1 + number * 37 % (LONGEST - MR_RING_INLINE);
}

static uint8_t byte_of(uint32_t number, size_t i)
{
    return (uint8_t)(number * 31 + i * 7);
}

static bool put(uint32_t number)
{
    static _Thread_local uint8_t bytes[LONGEST];
    size_t len = length_of(number);
    struct mr_hdr hdr = {.tag = (int32_t)number, .len = len};
    uint32_t n = mr_pool_count(&owner, len), chunk = mr_pool_find(&owner, n);

    if (chunk == MR_POOL_NONE || !mr_ring_begin(&w, 0))
        return false;
    for (size_t i = 0; i < len; i++)
        bytes[i] = byte_of(number, i);
    if (streaming)
        mr_copy_stream(mr_pool_at(&owner, chunk), bytes, len);
    else
        memcpy(mr_pool_at(&owner, chunk), bytes, len);
    mr_pool_assign(&owner, chunk, n, &w.reader, w.slot);
    mr_ring_commit_far(&w, &hdr, chunk, len);
    return true;
}

static void *writer(void *arg)
{
    for (uint32_t i = 0; i < PACKETS; i++)
        while (!put(i))
            sched_yield();
    return NULL;
}

static void check_payload(uint32_t number, uint32_t chunk, size_t len)
{
    const uint8_t *bytes = mr_pool_at(&reader, chunk);

    ck_assert_uint_eq(len, length_of(number));
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != byte_of(number, i))
            ck_abort_msg("packet %u: byte %zu of %zu is wrong", number, i, len);
}

START_TEST(packets_between_two_threads)
{
    void *ring = aligned_alloc(4096, 16384);
    pthread_t thread;
    uint32_t i = 0;

    ck_assert_ptr_nonnull(ring);
    memset(ring, 0, 16384);
    mr_ring_writer_init(&w, ring, few);
    mr_ring_reader_init(&r, ring, few, 0);
    streaming = _i;
    ck_assert_int_eq(pthread_create(&thread, NULL, writer, NULL), 0);
    while (i < PACKETS) {
        struct mr_hdr hdr;
        const void *payload;
        uint32_t chunk = MR_POOL_NONE;
        size_t len;
        int n = mr_ring_peek(&r, &hdr, &payload, &len, &chunk);

        ck_assert_int_ge(n, 0);
        if (!n) {
            mr_ring_tell(&r);
            sched_yield();
            continue;
        }
        ck_assert_ptr_null(payload);
        ck_assert_uint_lt(chunk, CHUNKS);
        ck_assert_int_eq(hdr.tag, (int32_t)i);
        check_payload(i, chunk, len);
        mr_ring_release_far(&r, len);
        i++;
    }
    pthread_join(thread, NULL);
    free(ring);
}
END_TEST

/* ---- copying ----------------------------------------------------------------------------------------------------- */

static void *copy_in(void *to, const void *from, size_t len)
{
    mr_copy_in(to, from, len);
    return to;
}

/* Reads out of a chunk, to any address: with the state before the start, and by the loop of each level. */
START_TEST(copies_in_just_what_it_shall)
{
    mr_copy_fn *copy = _i ? mr_copy_loop_at(_i - 1) : copy_in;
    static uint8_t to[3 * MR_COPY_LONG], from[3 * MR_COPY_LONG];

    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = byte_of(1, i);
    for (size_t skip = 0; skip < 17; skip++)
        for (size_t len = MR_COPY_LONG; len < 2 * MR_COPY_LONG + 300; len++) {
            memset(to, 0xee, sizeof(to));
            copy(to + skip, from, len);
            ck_assert_int_eq(memcmp(to + skip, from, len), 0);
            for (size_t i = 0; i < skip; i++)
                ck_assert_uint_eq(to[i], 0xee);
            for (size_t i = skip + len; i < sizeof(to); i++)
                if (to[i] != 0xee)
                    ck_abort_msg("%zu bytes: byte %zu was written", len, i);
        }
}
END_TEST

/* Long copies to memory that nobody reads at once, by the processor's string instruction or not. */
START_TEST(copies_away_just_what_it_shall)
{
    const size_t most = MR_COPY_STRING + 4096;
    uint8_t *to = malloc(most + 128), *from = malloc(most + 128);

    mr_copy_by_string = _i;
    for (size_t i = 0; i < most + 128; i++)
        from[i] = byte_of(1, i);
    for (size_t skip = 0; skip < 64; skip += 7)
        for (size_t len = MR_COPY_STRING - 1; len <= most; len += 819) {
            memset(to, 0xee, most + 128);
            mr_copy_away(to + skip, from + skip / 2, len);
            ck_assert_int_eq(memcmp(to + skip, from + skip / 2, len), 0);
            ck_assert_uint_eq(skip ? to[skip - 1] : 0xee, 0xee);
            ck_assert_uint_eq(to[skip + len], 0xee);
        }
    free(to);
    free(from);
}
END_TEST

START_TEST(streams_just_what_it_shall)
{
    static _Alignas(64) uint8_t to[1024];
    static uint8_t from[1024];

    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = byte_of(1, i);
    for (size_t skip = 0; skip < 17; skip++)
        for (size_t len = 0; len < 700; len++) {
            size_t at = skip * 5 % 64;

            memset(to, 0xee, sizeof(to));
            mr_copy_stream(to + at, from + skip, len);
            ck_assert_int_eq(memcmp(to + at, from + skip, len), 0);
            for (size_t i = 0; i < sizeof(to); i++)
                if ((i < at || i >= at + len) && to[i] != 0xee)
                    ck_abort_msg("%zu bytes: byte %zu was written", len, i);
        }
}
END_TEST

START_TEST(streams_after_slow_copies_in_a_row)
{
    struct mr_copier c = {0};

    for (int i = 0; i < 100; i++) { /* an interrupted copy now and then proves nothing */
        for (int k = 0; k < 3; k++)
            mr_copy_timed(&c, 16384, 16384);
        mr_copy_timed(&c, 16384, 500);
    }
    ck_assert(!mr_copy_streams(&c));
    mr_copy_timed(&c, 16384, 0); /* a clock that stands still */
    ck_assert(!mr_copy_streams(&c));
    for (int k = 0; k < 4; k++)
        mr_copy_timed(&c, 16384, 4000);
    ck_assert(mr_copy_streams(&c));
}
END_TEST

/* Times measured between cores with a shared cache, and between others. */
START_TEST(tells_near_from_far)
{
    static const struct {
        size_t len;
        uint64_t near_ns, far_ns;
    } seen[] = {{1024, 70, 170},    {2048, 180, 250},    {4096, 560, 1000},   {8192, 780, 1800},
                {16384, 880, 2900}, {32768, 1300, 3700}, {32768, 1300, 15000}};

    for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
        struct mr_copier c = {0};

        for (int k = 0; k < 100; k++)
            mr_copy_timed(&c, seen[i].len, seen[i].near_ns);
        ck_assert(!mr_copy_streams(&c));
        for (int k = 0; k < 4; k++)
            mr_copy_timed(&c, seen[i].len, seen[i].far_ns);
        ck_assert(mr_copy_streams(&c));
    }
}
END_TEST

/* Whatever the times say. */
START_TEST(streams_as_it_is_told)
{
    uint8_t from[64] = {1, 2, 3};
    _Alignas(64) uint8_t to[64];
    struct mr_copier c;

    mr_config.shm_stream = _i;
    c = mr_copier_begin();
    for (int k = 0; k < 10000; k++) {
        ck_assert_int_eq(mr_copy_streams(&c), _i);
        mr_copy_timed(&c, 16384, _i ? 1 : 16384);
        mr_copy_out(&c, to, from, sizeof(from));
    }
    ck_assert_int_eq(memcmp(to, from, sizeof(to)), 0);
}
END_TEST

/* The number of streamed copies until cached stores are tried. */
static int streamed_copies(struct mr_copier *c)
{
    uint8_t from[64] = {1, 2, 3};
    _Alignas(64) uint8_t to[64] = {1, 2, 3};
    int streamed = 0;

    while (mr_copy_streams(c) && streamed < 100000) {
        mr_copy_out(c, to, from, sizeof(from));
        streamed++;
    }
    ck_assert_int_eq(memcmp(to, from, sizeof(to)), 0);
    return streamed;
}

/* One slow copy is then enough to stream again, each time twice as long, up to thousands. */
START_TEST(plain_copies_get_another_try)
{
    struct mr_copier c = {0};
    int streamed, before;

    for (int k = 0; k < 4; k++)
        mr_copy_timed(&c, 16384, 16384);
    before = streamed_copies(&c);
    ck_assert_int_le(before, 100); /* slow copies of a process that is new, or disturbed, cost little */
    for (int i = 0; i < 10; i++, before = streamed) {
        ck_assert(!mr_copy_streams(&c));
        mr_copy_timed(&c, 16384, 16384);
        ck_assert(mr_copy_streams(&c));
        streamed = streamed_copies(&c);
        ck_assert_int_ge(streamed, before < 2000 ? 2 * before : before);
    }
    ck_assert_int_ge(before, 4000);
    mr_copy_timed(&c, 16384, 500); /* a fast one: four more before cached stores are given up, for a short time */
    for (int k = 0; k < 3; k++)
        mr_copy_timed(&c, 16384, 16384);
    ck_assert(!mr_copy_streams(&c));
    mr_copy_timed(&c, 16384, 16384);
    ck_assert_int_le(streamed_copies(&c), 100);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("shm_pool");

    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, chunks_do_not_overlap);
    tcase_add_test(c, round_and_round);
    tcase_add_test(c, all_are_lent);
    tcase_add_test(c, kept_ones_are_passed_over);
    tcase_add_test(c, in_the_order_of_the_ring);
    tcase_add_test(c, told_in_portions);
    tcase_add_test(c, several_in_a_row);
    tcase_add_test(c, pages_as_far_as_used);
    tcase_add_test(c, pages_as_far_as_read);
    tcase_add_test(c, readers_of_pieces);
    tcase_add_test(c, below_a_bound);
    tcase_add_test(c, grows_when_paid_for);
    tcase_add_test(c, new_chunks_have_their_turn);
    tcase_add_test(c, grows_when_full);
    tcase_add_test(c, grows_for_nothing);
    tcase_add_loop_test(c, packets_between_two_threads, 0, 2);
    tcase_add_loop_test(c, copies_in_just_what_it_shall, 0, 2 + (int)mr_vectors());
    tcase_add_loop_test(c, copies_away_just_what_it_shall, 0, 2);
    tcase_add_test(c, streams_just_what_it_shall);
    tcase_add_test(c, streams_after_slow_copies_in_a_row);
    tcase_add_test(c, tells_near_from_far);
    tcase_add_loop_test(c, streams_as_it_is_told, 0, 2);
    tcase_add_test(c, plain_copies_get_another_try);
    return check_run(c, NULL);
}
