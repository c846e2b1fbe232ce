/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registration cache against a model of the kernel: an array of page generations, changed by unmapping. A
 * registration remembers the generations at its creation; a registration handed out must have the present generations.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/memory/regcache.h"
#include "tests/check.h"

#define PAGE  4096u
#define PAGES 256u
#define BASE  ((uintptr_t)0x10000000)

uint64_t mr_stats[MR_STAT_COUNT];

static unsigned generation[PAGES]; /* 0: not mapped */
static bool read_only[PAGES];
static unsigned live;
static size_t live_bytes;
static size_t registered; /* bytes, by all registrations so far */
static int refuse;        /* registrations to refuse with -ENOMEM */

struct pinned {
    size_t first, num;
    unsigned generation[];
};

static int model_add(void *addr, size_t len, enum mr_access access, uint32_t devices, struct mr_memory *out)
{
    size_t first = ((uintptr_t)addr - BASE) / PAGE, num = len / PAGE;
    struct pinned *p;

    ck_assert_uint_eq((uintptr_t)addr % PAGE, 0);
    ck_assert_uint_eq(len % PAGE, 0);
    if (refuse > 0) {
        refuse--;
        return -ENOMEM;
    }
    for (size_t i = first; i < first + num; i++)
        if (i >= PAGES || !generation[i] || (read_only[i] && access == MR_ACCESS_TARGET))
            return -EFAULT;
    p = malloc(sizeof *p + num * sizeof p->generation[0]);
    p->first = first;
    p->num = num;
    memcpy(p->generation, &generation[first], num * sizeof p->generation[0]);
    memset(out, 0, sizeof *out);
    out->mr[0] = (struct ibv_mr *)p;
    live++;
    live_bytes += len;
    registered += len;
    return 0;
}

static void model_remove(struct mr_memory *m)
{
    struct pinned *p = (struct pinned *)m->mr[0];

    live--;
    live_bytes -= p->num * PAGE;
    free(p);
}

static const struct mr_reg_wish one_device = {.devices = 1};
static const struct mr_regcache_backend model = {model_add, model_remove};
static struct mr_regcache cache;

static void start(size_t max_bytes, bool keep)
{
    for (unsigned i = 0; i < PAGES; i++) {
        generation[i] = 1;
        read_only[i] = false;
    }
    live = 0;
    live_bytes = 0;
    registered = 0;
    refuse = 0;
    memset(mr_stats, 0, sizeof mr_stats);
    mr_regcache_init(&cache, &model, max_bytes, keep);
}

static void *at(size_t offset)
{
    return (void *)(BASE + offset);
}

static struct mr_reg *get(size_t offset, size_t len)
{
    struct mr_reg *r;

    ck_assert_int_eq(mr_regcache_get(&cache, at(offset), len, MR_ACCESS_TARGET, one_device, &r), 0);
    return r;
}

/* The registration covers the range and saw the pages that are there now. */
static void check_fresh(const struct mr_reg *r, size_t offset, size_t len)
{
    const struct pinned *p = (const struct pinned *)r->memory.mr[0];

    ck_assert_uint_le(r->start, BASE + offset);
    ck_assert_uint_ge(r->end, BASE + offset + len);
    for (size_t i = offset / PAGE; i <= (offset + len - 1) / PAGE; i++)
        ck_assert_uint_eq(p->generation[i - p->first], generation[i]);
}

START_TEST(second_use_is_free)
{
    struct mr_reg *a, *b;

    start(1 << 20, true);
    a = get(100, 5000);
    mr_regcache_put(&cache, a);
    b = get(4096, 4000);
    ck_assert_ptr_eq(a, b);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_HITS], 1);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_MISSES], 1);
    mr_regcache_put(&cache, b);
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
}
END_TEST

START_TEST(unmapped_memory_is_not_trusted)
{
    struct mr_reg *a, *b;

    start(1 << 20, true);
    a = get(0, 3 * PAGE);
    mr_regcache_put(&cache, a);
    mr_regcache_unmapped(&cache, at(PAGE), PAGE);
    generation[1] = 2;
    b = get(PAGE, PAGE);
    check_fresh(b, PAGE, PAGE);
    mr_regcache_put(&cache, b);
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
}
END_TEST

/* Memory used before is known until unmapped; memory of other owners is not. */
START_TEST(what_was_asked_for_is_known)
{
    start(1 << 20, true);
    for (size_t size = 3; size <= 3 * MR_ASKED_SETS; size += 3 * MR_ASKED_SETS - 3) {
        ck_assert(!mr_regcache_knows(&cache, at(PAGE), 2 * PAGE));
        ck_assert(!mr_regcache_knows(&cache, at(7 * PAGE), PAGE));
        ck_assert(mr_regcache_knows(&cache, at(PAGE), 2 * PAGE));
        mr_regcache_unmapped(&cache, at(0), size * PAGE / 3);
        ck_assert_int_eq(mr_regcache_knows(&cache, at(PAGE), 2 * PAGE), size == 3);
        ck_assert_int_eq(mr_regcache_knows(&cache, at(7 * PAGE), PAGE), size == 3);
        mr_regcache_unmapped(&cache, at(PAGE), PAGE);
        mr_regcache_unmapped(&cache, at(7 * PAGE), PAGE);
    }
    mr_regcache_put(&cache, get(0, 6 * PAGE));
    ck_assert(mr_regcache_knows(&cache, at(3 * PAGE), PAGE)); /* registered */
    ck_assert_ptr_nonnull(mr_regcache_refresh(&cache, at(3 * PAGE), 3 * PAGE, MR_ACCESS_TARGET));
    ck_assert_ptr_null(mr_regcache_refresh(&cache, at(3 * PAGE), 4 * PAGE, MR_ACCESS_TARGET));
    mr_regcache_unmapped(&cache, at(0), PAGE);
    ck_assert_ptr_null(mr_regcache_refresh(&cache, at(3 * PAGE), PAGE, MR_ACCESS_TARGET));
    mr_regcache_clear(&cache);
    start(1 << 20, true);
    for (unsigned i = 0; i < 256; i++) /* buffers of 256 KiB and a page */
        ck_assert(!mr_regcache_knows(&cache, at(65 * PAGE * i), PAGE));
    for (unsigned i = 0; i < 256; i++)
        ck_assert(mr_regcache_knows(&cache, at(65 * PAGE * i), PAGE));
    start(1 << 20, false);
    ck_assert(!mr_regcache_knows(&cache, at(PAGE), PAGE) && !mr_regcache_knows(&cache, at(PAGE), PAGE));
}
END_TEST

START_TEST(unmapped_while_in_use_lives_until_put)
{
    struct mr_reg *a, *b;

    start(1 << 20, true);
    a = get(0, PAGE);
    mr_regcache_unmapped(&cache, at(0), PAGE);
    generation[0] = 2;
    b = get(0, PAGE);
    ck_assert_ptr_ne(a, b);
    check_fresh(b, 0, PAGE);
    ck_assert_uint_eq(live, 2);
    mr_regcache_put(&cache, a);
    ck_assert_uint_eq(live, 1);
    mr_regcache_put(&cache, b);
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
}
END_TEST

/* A hundred unmapped registrations are removed with the next hundred that are made, not all before the next use. */
START_TEST(unmapped_ones_go_by_and_by)
{
    enum { GONE = 100 };
    struct mr_reg *r;

    start(1 << 20, true);
    for (unsigned i = 0; i < GONE; i++)
        mr_regcache_put(&cache, get(i * PAGE, PAGE));
    mr_regcache_put(&cache, get(200 * PAGE, PAGE));
    mr_regcache_unmapped(&cache, at(0), GONE * PAGE);
    for (unsigned i = 0; i < GONE; i++)
        generation[i] = 2;
    r = get(200 * PAGE, PAGE);
    ck_assert_uint_eq(live, GONE + 1);
    mr_regcache_put(&cache, r);
    for (unsigned i = 0; i < GONE; i++) {
        r = get(i * PAGE, PAGE);
        check_fresh(r, i * PAGE, PAGE);
        mr_regcache_put(&cache, r);
        ck_assert_uint_eq(live, GONE + 1);
    }
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_UNMAPPED], GONE);
    ck_assert_ptr_null(cache.gone);
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
}
END_TEST

/* They are the first to go where there may be no more entries, or the kernel has no room. */
START_TEST(unmapped_ones_go_first)
{
    start(1 << 20, true);
    for (unsigned i = 0; i < 20; i++)
        mr_regcache_put(&cache, get(i * PAGE, PAGE));
    mr_regcache_unmapped(&cache, at(10 * PAGE), 10 * PAGE);
    mr_regcache_limit_entries(&cache, 13);
    mr_regcache_put(&cache, get(100 * PAGE, PAGE));
    ck_assert_uint_eq(live, 13);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_EVICTED], 0);
    mr_regcache_limit_entries(&cache, 100);
    mr_regcache_unmapped(&cache, at(0), 10 * PAGE);
    refuse = 1;
    mr_regcache_put(&cache, get(101 * PAGE, PAGE));
    ck_assert_uint_eq(live, 1);
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
}
END_TEST

static int any_add(void *addr, size_t len, enum mr_access access, uint32_t devices, struct mr_memory *out)
{
    out->mr[0] = (struct ibv_mr *)len;
    live_bytes += len;
    return 0;
}

static void any_remove(struct mr_memory *m)
{
    live_bytes -= (size_t)m->mr[0];
}

/* Memory that a program has given back is not kept from the others of the host. */
START_TEST(little_stays_pinned)
{
    static const struct mr_regcache_backend any = {any_add, any_remove};
    enum { MIB = 1 << 20 };
    struct mr_reg *r;

    start(1 << 20, true);
    mr_regcache_init(&cache, &any, SIZE_MAX / 2, true);
    for (size_t i = 0; i < 32; i++)
        mr_regcache_put(&cache, get(i * 16 * MIB, 8 * MIB));
    mr_regcache_unmapped(&cache, at(16 * MIB), (size_t)31 * 16 * MIB);
    r = get(0, PAGE);
    ck_assert_uint_eq(live_bytes, MR_REGCACHE_GONE + 8 * MIB);
    mr_regcache_put(&cache, r);
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live_bytes, 0);
}
END_TEST

START_TEST(more_unmappings_than_notes)
{
    struct mr_reg *r;

    start(1 << 20, true);
    for (unsigned i = 0; i < PAGES; i++)
        mr_regcache_put(&cache, get(i * PAGE, PAGE));
    for (unsigned i = 0; i < PAGES; i++) {
        mr_regcache_unmapped(&cache, at(i * PAGE), PAGE);
        generation[i] = 2;
    }
    for (unsigned i = 0; i < PAGES; i++) {
        r = get(i * PAGE, PAGE);
        check_fresh(r, i * PAGE, PAGE);
        mr_regcache_put(&cache, r);
    }
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
}
END_TEST

START_TEST(nothing_stays_if_unmappings_are_not_reported)
{
    start(1 << 20, false);
    mr_regcache_put(&cache, get(0, PAGE));
    ck_assert_uint_eq(live, 0);
    mr_regcache_clear(&cache);
}
END_TEST

static enum mr_place place;
static bool library_unloaded;
static unsigned times_asked;

static enum mr_place tell_place(uintptr_t start_addr, uintptr_t end)
{
    return place;
}

static bool was_unloaded(void)
{
    bool was = library_unloaded;

    times_asked++;
    library_unloaded = false;
    return was;
}

static void start_with_places(void)
{
    start(1 << 20, true);
    cache.place = tell_place;
    cache.unloaded = was_unloaded;
    place = MR_PLACE_WATCHED;
    times_asked = 0;
}

START_TEST(memory_of_libraries_is_not_trusted_once_one_is_unloaded)
{
    struct mr_reg *r;

    start_with_places();
    mr_regcache_put(&cache, get(8 * PAGE, PAGE));
    mr_regcache_put(&cache, get(8 * PAGE, PAGE));
    ck_assert_uint_eq(times_asked, 0); /* no library's, nothing to ask for */
    place = MR_PLACE_LIBRARY;
    mr_regcache_put(&cache, get(0, PAGE));
    r = get(4 * PAGE, PAGE);
    library_unloaded = true; /* perhaps the registration of this memory */
    memset(mr_stats, 0, sizeof mr_stats);
    mr_regcache_put(&cache, get(0, PAGE));
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_MISSES], 1);
    ck_assert_uint_gt(times_asked, 0);
    mr_regcache_put(&cache, r); /* a registration in use lives on */
    mr_regcache_put(&cache, get(0, PAGE));
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_HITS], 1);
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
}
END_TEST

START_TEST(nothing_stays_once_unmappings_are_not_seen_any_more)
{
    struct mr_reg *r;

    start_with_places();
    mr_regcache_put(&cache, get(0, PAGE));
    r = get(4 * PAGE, PAGE);
    place = MR_PLACE_UNWATCHED; /* an allocator was loaded */
    mr_regcache_put(&cache, get(8 * PAGE, PAGE));
    memset(mr_stats, 0, sizeof mr_stats);
    mr_regcache_put(&cache, get(0, PAGE));
    mr_regcache_put(&cache, get(8 * PAGE, PAGE));
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_MISSES], 2);
    mr_regcache_put(&cache, r);
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
}
END_TEST

START_TEST(longest_unused_goes_first)
{
    struct mr_reg *a, *b;

    start(4 * PAGE, true);
    for (unsigned i = 0; i < 4; i++)
        mr_regcache_put(&cache, get(2 * i * PAGE, PAGE));
    mr_regcache_put(&cache, get(0, PAGE)); /* the first is the youngest now */
    mr_regcache_put(&cache, get(20 * PAGE, PAGE));
    ck_assert_uint_le(live_bytes, 4 * PAGE);
    memset(mr_stats, 0, sizeof mr_stats);
    a = get(0, PAGE);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_HITS], 1);
    b = get(2 * PAGE, PAGE);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_MISSES], 1);
    mr_regcache_put(&cache, a);
    mr_regcache_put(&cache, b);
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
}
END_TEST

START_TEST(entries_are_bounded)
{
    struct mr_reg *used[4];

    start(1 << 20, true);
    mr_regcache_limit_entries(&cache, 4);
    for (unsigned i = 0; i < 40; i++)
        mr_regcache_put(&cache, get(2 * i * PAGE, PAGE));
    ck_assert_uint_eq(live, 4);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_EVICTED], 36);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_ENTRIES], 4);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_ENTRIES_MOST], 4);
    memset(mr_stats, 0, sizeof mr_stats);
    for (unsigned i = 36; i < 40; i++) /* the last four */
        mr_regcache_put(&cache, get(2 * i * PAGE, PAGE));
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_HITS], 4);

    /* registrations in use stay, in any amount; those beyond the limit go with their use */
    for (unsigned i = 0; i < 4; i++)
        used[i] = get(2 * i * PAGE, PAGE);
    mr_regcache_put(&cache, get(50 * PAGE, PAGE));
    ck_assert_uint_eq(live, 4);
    ck_assert_uint_eq(cache.entries, 4);
    for (unsigned i = 0; i < 4; i++) {
        check_fresh(used[i], 2 * i * PAGE, PAGE);
        mr_regcache_put(&cache, used[i]);
    }
    ck_assert_uint_eq(live, 4);
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_ENTRIES], 0);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_BYTES], 0);
}
END_TEST

START_TEST(what_there_is_is_counted)
{
    struct mr_reg *r;

    start(1 << 20, true);
    mr_regcache_put(&cache, get(0, 3 * PAGE));
    mr_regcache_put(&cache, get(8 * PAGE, PAGE));
    r = get(16 * PAGE, PAGE);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_BYTES], 5 * PAGE);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_ENTRIES], 3);
    mr_regcache_unmapped(&cache, at(0), 17 * PAGE);
    mr_regcache_put(&cache, get(100 * PAGE, PAGE));
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_UNMAPPED], 3);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_ENTRIES], 3); /* one is in use, and one goes with the next creation */
    mr_regcache_put(&cache, r);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_ENTRIES], 2);
    mr_regcache_put(&cache, get(102 * PAGE, PAGE));
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_ENTRIES], 2);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_BYTES], 2 * PAGE);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_ENTRIES_MOST], 3);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_BYTES_MOST], 5 * PAGE);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_EVICTED], 0);
    mr_regcache_clear(&cache);
}
END_TEST

START_TEST(entries_are_shared_fairly)
{
    ck_assert_uint_eq(mr_regcache_fair_entries(1 << 24, 1), 16384);
    ck_assert_uint_eq(mr_regcache_fair_entries(1 << 17, 64), 1024);
    ck_assert_uint_eq(mr_regcache_fair_entries(1 << 10, 64), 64);
    ck_assert_uint_eq(mr_regcache_fair_entries(1 << 10, 0), 512);
    ck_assert_uint_eq(mr_regcache_fair_entries(SIZE_MAX, 1), 16384);
}
END_TEST

START_TEST(constants_can_be_sent)
{
    struct mr_reg *r;

    start(1 << 20, true);
    read_only[3] = true;
    ck_assert_int_eq(mr_regcache_get(&cache, at(3 * PAGE), 100, MR_ACCESS_TARGET, one_device, &r), -EFAULT);
    ck_assert_int_eq(mr_regcache_get(&cache, at(3 * PAGE), 100, MR_ACCESS_SOURCE, one_device, &r), 0);
    ck_assert(!r->writable);
    mr_regcache_put(&cache, r);
    read_only[3] = false; /* mprotect: the old registration will not do for receiving */
    r = get(3 * PAGE, 100);
    ck_assert(r->writable);
    mr_regcache_put(&cache, r);
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
}
END_TEST

START_TEST(neighbour_that_is_gone_does_not_spoil_it)
{
    struct mr_reg *r;

    start(1 << 20, true);
    mr_regcache_put(&cache, get(0, 2 * PAGE));
    generation[0] = 0; /* unmapped behind our back: joining would fail */
    r = get(PAGE, 2 * PAGE);
    check_fresh(r, PAGE, 2 * PAGE);
    mr_regcache_put(&cache, r);
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
}
END_TEST

START_TEST(room_is_made_when_the_kernel_has_none)
{
    struct mr_reg *r;

    start(1 << 20, true);
    mr_regcache_put(&cache, get(0, PAGE));
    refuse = 1;
    r = get(8 * PAGE, PAGE);
    ck_assert_uint_eq(live, 1);
    mr_regcache_put(&cache, r);
    mr_regcache_clear(&cache);
    ck_assert_int_eq(mr_regcache_get(&cache, (void *)UINTPTR_MAX, 2, MR_ACCESS_TARGET, one_device, &r), -EINVAL);
}
END_TEST

static size_t pages_of(size_t offset, size_t len)
{
    return ((offset + len + PAGE - 1) / PAGE - offset / PAGE) * PAGE;
}

#define BLOCK  (4 * PAGE + 8) /* its neighbours share its first page and its last */
#define BLOCKS 60u

/* An array is walked through, forwards or backwards, in consecutive buffers that do not end with a page. */
START_TEST(buffers_that_share_pages_cost_what_they_are_long)
{
    bool backwards = _i & 1, all_at_once = _i & 2;
    struct mr_reg *r[BLOCKS];
    size_t asked = 0;

    start(1 << 30, true);
    for (unsigned i = 0; i < BLOCKS; i++) {
        size_t offset = (size_t)(backwards ? BLOCKS - 1 - i : i) * BLOCK;

        r[i] = get(offset, BLOCK);
        check_fresh(r[i], offset, BLOCK);
        asked += pages_of(offset, BLOCK);
        if (!all_at_once)
            mr_regcache_put(&cache, r[i]);
    }
    for (unsigned i = 0; i < BLOCKS && all_at_once; i++)
        mr_regcache_put(&cache, r[i]);
    ck_assert_uint_le(registered, 2 * asked);
    ck_assert_uint_eq(live_bytes, cache.bytes);

    memset(mr_stats, 0, sizeof mr_stats);
    for (unsigned i = 0; i < BLOCKS; i++)
        mr_regcache_put(&cache, get((size_t)i * BLOCK, BLOCK));
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_MISSES], 0);
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
}
END_TEST

/*
 * Windows anywhere in an array: each starts at another page, yet soon nearly all are covered by earlier registrations.
 */
START_TEST(overlapping_windows_grow_together)
{
    const size_t window = 16 * PAGE;

    srand(1);
    start(1 << 30, true);
    for (unsigned i = 0; i < 2000; i++) {
        if (i == 400)
            memset(mr_stats, 0, sizeof mr_stats);
        mr_regcache_put(&cache, get((size_t)rand() % (PAGES * PAGE - window), window));
    }
    ck_assert_uint_le(mr_stats[MR_STAT_REG_MISSES], 16);
    ck_assert_uint_le(live_bytes, 4 * PAGES * PAGE);
    mr_regcache_clear(&cache);
}
END_TEST

/* Two overlapping entries, too unequal to be joined. */
static void make_two(void)
{
    mr_regcache_put(&cache, get(0, 8 * PAGE));
    mr_regcache_put(&cache, get(7 * PAGE, 2 * PAGE));
    ck_assert_uint_eq(live, 2);
    ck_assert_uint_eq(live_bytes, 10 * PAGE);
}

START_TEST(unmapping_meets_all_that_overlap)
{
    struct mr_reg *a, *b;

    start(1 << 20, true);
    make_two();
    mr_regcache_unmapped(&cache, at(7 * PAGE + 5), 1);
    generation[7] = 2;
    a = get(0, 8 * PAGE);
    check_fresh(a, 0, 8 * PAGE);
    b = get(7 * PAGE, 2 * PAGE);
    check_fresh(b, 7 * PAGE, 2 * PAGE);
    mr_regcache_put(&cache, a);
    mr_regcache_put(&cache, b);
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
}
END_TEST

START_TEST(limit_takes_the_oldest_and_not_its_neighbour)
{
    start(10 * PAGE, true);
    make_two();
    mr_regcache_put(&cache, get(20 * PAGE, PAGE)); /* the first must go */
    ck_assert_uint_eq(live_bytes, 3 * PAGE);
    memset(mr_stats, 0, sizeof mr_stats);
    mr_regcache_put(&cache, get(7 * PAGE, 2 * PAGE));
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_HITS], 1);
    mr_regcache_clear(&cache);
}
END_TEST

START_TEST(joined_while_in_use_lives_until_put)
{
    struct mr_reg *a, *b;

    start(1 << 20, true);
    a = get(0, 4 * PAGE);
    b = get(2 * PAGE, 4 * PAGE);
    ck_assert_uint_eq(b->start, BASE);
    check_fresh(a, 0, 4 * PAGE);
    ck_assert_uint_eq(live, 2);
    mr_regcache_put(&cache, a);
    ck_assert_uint_eq(live, 1);
    mr_regcache_put(&cache, b);
    ck_assert_uint_eq(live_bytes, 6 * PAGE);
    mr_regcache_clear(&cache);
}
END_TEST

START_TEST(nothing_is_joined_that_will_not_stay)
{
    struct mr_reg *a, *b;

    start(1 << 20, false);
    a = get(0, 4 * PAGE);
    b = get(2 * PAGE, 4 * PAGE);
    ck_assert_uint_eq(registered, 8 * PAGE);
    mr_regcache_put(&cache, b);
    ck_assert_uint_eq(live, 1);
    check_fresh(a, 0, 4 * PAGE);
    mr_regcache_put(&cache, a);
    ck_assert_uint_eq(live, 0);
    mr_regcache_clear(&cache);
}
END_TEST

/* A constant in the middle of writable memory: registrations of both kinds, overlapping. */
START_TEST(constants_between_variables)
{
    struct mr_reg *r;

    start(1 << 20, true);
    read_only[3] = true;
    mr_regcache_put(&cache, get(0, 3 * PAGE));
    mr_regcache_put(&cache, get(4 * PAGE, 2 * PAGE));
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(mr_regcache_get(&cache, at(0), 6 * PAGE, MR_ACCESS_SOURCE, one_device, &r), 0);
        ck_assert(!r->writable);
        check_fresh(r, 0, 6 * PAGE);
        mr_regcache_put(&cache, r);
        ck_assert_int_eq(mr_regcache_get(&cache, at(2 * PAGE), 2 * PAGE, MR_ACCESS_SOURCE, one_device, &r), 0);
        mr_regcache_put(&cache, r);
        r = get(PAGE, 2 * PAGE);
        ck_assert(r->writable);
        check_fresh(r, PAGE, 2 * PAGE);
        mr_regcache_put(&cache, r);
        ck_assert_int_eq(mr_regcache_get(&cache, at(0), 6 * PAGE, MR_ACCESS_TARGET, one_device, &r), -EFAULT);
    }
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
}
END_TEST

static void check_table(void)
{
    bool ascending = true;

    for (size_t i = 1; i < cache.num; i++)
        ascending &= cache.entry[i - 1]->start < cache.entry[i]->start && cache.entry[i - 1]->end < cache.entry[i]->end;
    ck_assert(ascending);
    ck_assert_uint_eq(cache.bytes, live_bytes);
    ck_assert_uint_eq(cache.entries, live);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_ENTRIES], live);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_BYTES], live_bytes);
    ck_assert((cache.bytes <= cache.max_bytes && cache.entries <= cache.max_entries) || !cache.oldest);
}

/* A search of all entries: one that covers the range and has the present pages. */
static bool covered(size_t offset, size_t len, unsigned unmappings)
{
    for (size_t i = 0; i < cache.num && unmappings <= MR_REGCACHE_NOTES; i++) {
        const struct mr_reg *r = cache.entry[i];
        const struct pinned *p = (const struct pinned *)r->memory.mr[0];

        if (r->start <= BASE + offset && r->end >= BASE + offset + len &&
            !memcmp(p->generation, &generation[p->first], p->num * sizeof p->generation[0]))
            return true;
    }
    return false;
}

/* get(), compared with its expected result. */
static struct mr_reg *get_as_expected(size_t offset, size_t len, unsigned unmappings)
{
    bool hit = covered(offset, len, unmappings);
    size_t before = registered;
    uint64_t hits = mr_stats[MR_STAT_REG_HITS];
    struct mr_reg *r = get(offset, len);

    check_fresh(r, offset, len);
    ck_assert_uint_eq(mr_stats[MR_STAT_REG_HITS] - hits, hit);
    ck_assert_uint_le(registered - before, hit ? 0 : 2 * pages_of(offset, len));
    return r;
}

/* Whatever was covered once stays so while nothing is unmapped and there is room. */
START_TEST(hits_stay_hits)
{
    struct {
        size_t offset, len;
    } seen[300];

    srand((unsigned)_i);
    start(1 << 30, true);
    for (unsigned i = 0; i < 300; i++) {
        seen[i].offset = (size_t)rand() % ((PAGES - 40) * PAGE);
        seen[i].len = 1 + (size_t)rand() % (rand() % 40 * PAGE + PAGE);
        mr_regcache_put(&cache, get_as_expected(seen[i].offset, seen[i].len, 0));
        check_table();
        for (unsigned k = 0; k <= i; k++)
            if (!covered(seen[k].offset, seen[k].len, 0))
                ck_abort_msg("range %u is not covered after range %u", k, i);
    }
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
}
END_TEST

START_TEST(random_use)
{
    struct mr_reg *held[8] = {0};
    unsigned unmappings = 0; /* since the cache looked last */

    srand((unsigned)_i);
    start((size_t)(1 + rand() % 64) * PAGE, true);
    mr_regcache_limit_entries(&cache, 1 + (size_t)rand() % 16);
    for (int step = 0; step < 20000; step++) {
        unsigned slot = (unsigned)rand() % 8;
        size_t offset = (size_t)rand() % (PAGES - 20) * PAGE + (size_t)rand() % PAGE,
               len = 1 + (size_t)rand() % (16 * PAGE);

        if (rand() % 4 == 0) {
            uintptr_t low = cache.lowest, high = cache.highest;

            mr_regcache_unmapped(&cache, at(offset), len);
            unmappings += BASE + offset < high && BASE + offset + len > low;
            for (size_t i = offset / PAGE; i <= (offset + len - 1) / PAGE; i++)
                generation[i]++;
        } else if (held[slot]) {
            mr_regcache_put(&cache, held[slot]);
            held[slot] = NULL;
        } else {
            held[slot] = get_as_expected(offset, len, unmappings);
            unmappings = 0;
        }
        check_table();
    }
    for (unsigned i = 0; i < 8; i++)
        if (held[i])
            mr_regcache_put(&cache, held[i]);
    mr_regcache_clear(&cache);
    ck_assert_uint_eq(live, 0);
    ck_assert_uint_eq(cache.bytes, 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("regcache");

    tcase_add_test(t, second_use_is_free);
    tcase_add_test(t, unmapped_memory_is_not_trusted);
    tcase_add_test(t, what_was_asked_for_is_known);
    tcase_add_test(t, unmapped_while_in_use_lives_until_put);
    tcase_add_test(t, unmapped_ones_go_by_and_by);
    tcase_add_test(t, unmapped_ones_go_first);
    tcase_add_test(t, little_stays_pinned);
    tcase_add_test(t, more_unmappings_than_notes);
    tcase_add_test(t, nothing_stays_if_unmappings_are_not_reported);
    tcase_add_test(t, memory_of_libraries_is_not_trusted_once_one_is_unloaded);
    tcase_add_test(t, nothing_stays_once_unmappings_are_not_seen_any_more);
    tcase_add_test(t, longest_unused_goes_first);
    tcase_add_test(t, entries_are_bounded);
    tcase_add_test(t, what_there_is_is_counted);
    tcase_add_test(t, entries_are_shared_fairly);
    tcase_add_test(t, constants_can_be_sent);
    tcase_add_test(t, neighbour_that_is_gone_does_not_spoil_it);
    tcase_add_test(t, room_is_made_when_the_kernel_has_none);
    tcase_add_loop_test(t, buffers_that_share_pages_cost_what_they_are_long, 0, 4);
    tcase_add_test(t, overlapping_windows_grow_together);
    tcase_add_test(t, unmapping_meets_all_that_overlap);
    tcase_add_test(t, limit_takes_the_oldest_and_not_its_neighbour);
    tcase_add_test(t, joined_while_in_use_lives_until_put);
    tcase_add_test(t, nothing_is_joined_that_will_not_stay);
    tcase_add_test(t, constants_between_variables);
    tcase_add_loop_test(t, hits_stay_hits, 0, 5);
    tcase_add_loop_test(t, random_use, 0, 5);
    return check_run(t, NULL);
}
