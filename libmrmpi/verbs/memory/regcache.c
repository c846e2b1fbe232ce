/* SPDX-License-Identifier: BSD-3-Clause */
#include "libmrmpi/verbs/memory/regcache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/memory/memory.h"

void mr_regcache_init(struct mr_regcache *c, const struct mr_regcache_backend *backend, size_t max_bytes, bool keep)
{
    memset(c, 0, sizeof *c);
    c->backend = backend;
    c->max_bytes = max_bytes;
    c->max_entries = SIZE_MAX;
    c->keep = keep && max_bytes;
    c->page = (size_t)sysconf(_SC_PAGESIZE);
    atomic_flag_clear(&c->notes_lock);
    atomic_store(&c->lowest, UINTPTR_MAX);
}

/* Inserting into the array moves 64 KiB on average with this number, which takes less than registering. */
#define ENTRIES_MOST  16384u
#define ENTRIES_LEAST 64u

size_t mr_regcache_fair_entries(size_t max_regions, size_t ranks)
{
    size_t n = max_regions / 2 / (ranks ? ranks : 1); /* others of the host register memory, too */

    return n > ENTRIES_MOST ? ENTRIES_MOST : n < ENTRIES_LEAST ? ENTRIES_LEAST : n;
}

void mr_regcache_limit_entries(struct mr_regcache *c, size_t max_entries)
{
    c->max_entries = max_entries;
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

static void list_remove(struct mr_regcache *c, struct mr_reg *r)
{
    *(r->older ? &r->older->newer : &c->oldest) = r->newer;
    *(r->newer ? &r->newer->older : &c->newest) = r->older;
    r->older = r->newer = NULL;
}

static void list_append(struct mr_regcache *c, struct mr_reg *r)
{
    r->older = c->newest;
    r->newer = NULL;
    *(c->newest ? &c->newest->newer : &c->oldest) = r;
    c->newest = r;
}

/* Index of the first entry that ends after addr: overlaps with [addr, ...) begin here. */
static size_t first_ending_after(const struct mr_regcache *c, uintptr_t addr)
{
    size_t lo = 0, hi = c->num;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (c->entry[mid]->end <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Index of the first entry that starts after addr. The one before it covers [addr, end) if any entry does. */
static size_t first_starting_after(const struct mr_regcache *c, uintptr_t addr)
{
    size_t lo = 0, hi = c->num;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (c->entry[mid]->start <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void cache_count(struct mr_regcache *c)
{
    mr_stat_set(MR_STAT_REG_ENTRIES, c->entries);
    mr_stat_set(MR_STAT_REG_BYTES, c->bytes);
    mr_stat_most(MR_STAT_REG_ENTRIES_MOST, c->entries);
    mr_stat_most(MR_STAT_REG_BYTES_MOST, c->bytes);
}

static void reg_destroy(struct mr_regcache *c, struct mr_reg *r)
{
    c->backend->remove(&r->memory);
    c->bytes -= r->end - r->start;
    c->entries--;
    cache_count(c);
    free(r);
}

static void reg_destroy_later(struct mr_regcache *c, struct mr_reg *r)
{
    r->newer = c->gone;
    c->gone = r;
    c->gone_bytes += r->end - r->start;
}

/* Destroys one of the unmapped ones; false: none. */
static bool destroy_gone(struct mr_regcache *c)
{
    struct mr_reg *r = c->gone;

    if (!r)
        return false;
    c->gone = r->newer;
    c->gone_bytes -= r->end - r->start;
    reg_destroy(c, r);
    return true;
}

/* Takes num entries from i on out of the table; they live on while in use, or longer (later). */
static void drop_some(struct mr_regcache *c, size_t i, size_t num, bool later)
{
    for (size_t k = i; k < i + num; k++) {
        struct mr_reg *r = c->entry[k];

        r->cached = false;
        if (r->refs)
            continue;
        list_remove(c, r);
        if (later)
            reg_destroy_later(c, r);
        else
            reg_destroy(c, r);
    }
    c->num -= num;
    memmove(&c->entry[i], &c->entry[i + num], (c->num - i) * sizeof *c->entry);
}

static void cache_drop(struct mr_regcache *c, size_t i)
{
    drop_some(c, i, 1, false);
}

/* How many were dropped, to be deregistered later. */
static size_t drop_range(struct mr_regcache *c, uintptr_t start, uintptr_t end)
{
    size_t i = first_ending_after(c, start), num = 0;

    while (i + num < c->num && c->entry[i + num]->start < end)
        num++;
    if (num)
        drop_some(c, i, num, true);
    return num;
}

/* Makes place for an entry [start, end): none may lie in another. It lies in another only if that cannot be written. */
static void drop_nested(struct mr_regcache *c, uintptr_t start, uintptr_t end)
{
    size_t i = first_ending_after(c, start);

    while (i < c->num && c->entry[i]->start < end) {
        const struct mr_reg *r = c->entry[i];

        if ((r->start >= start && r->end <= end) || (r->start <= start && r->end >= end))
            cache_drop(c, i);
        else
            i++;
    }
}

static void drop_cached(struct mr_regcache *c, const struct mr_reg *r)
{
    cache_drop(c, first_starting_after(c, r->start) - 1);
}

/* The same of all. */
static size_t drop_all(struct mr_regcache *c)
{
    size_t num = c->num;

    if (num)
        drop_some(c, 0, num, true);
    return num;
}

/* Evicts unused entries until at most this number of bytes and entries is left; unmapped ones go first. */
static void cache_shrink(struct mr_regcache *c, size_t bytes, size_t entries)
{
    while ((c->bytes > bytes || c->entries > entries) && destroy_gone(c))
        ;
    while (c->oldest && (c->bytes > bytes || c->entries > entries)) {
        drop_cached(c, c->oldest);
        mr_stat_add(MR_STAT_REG_EVICTED, 1);
    }
}

void mr_regcache_clear(struct mr_regcache *c)
{
    drop_all(c);
    while (destroy_gone(c))
        ;
    free(c->entry);
    c->entry = NULL;
    c->room = 0;
}

/* ---- unmappings ------------------------------------------------------------------------------------------------- */

static void lock_notes(struct mr_regcache *c)
{
    while (atomic_flag_test_and_set_explicit(&c->notes_lock, memory_order_acquire))
        ;
}

static void unlock_notes(struct mr_regcache *c)
{
    atomic_flag_clear_explicit(&c->notes_lock, memory_order_release);
}

void mr_regcache_unmapped(struct mr_regcache *c, const void *addr, size_t len)
{
    uintptr_t start = (uintptr_t)addr, end = start + len;
    unsigned n;

    if (!c->keep || !len || end <= atomic_load_explicit(&c->lowest, memory_order_relaxed) ||
        start >= atomic_load_explicit(&c->highest, memory_order_relaxed))
        return;
    lock_notes(c);
    n = atomic_load_explicit(&c->num_notes, memory_order_relaxed);
    if (n < MR_REGCACHE_NOTES) {
        c->note[n].start = start;
        c->note[n].end = end;
    }
    if (n <= MR_REGCACHE_NOTES)
        atomic_store_explicit(&c->num_notes, n + 1, memory_order_relaxed);
    unlock_notes(c);
}

/* Drops all registrations and requests. Returns the number dropped. */
static size_t forget_all(struct mr_regcache *c)
{
    memset(&c->asked, 0, sizeof c->asked);
    return drop_all(c);
}

static void act_on_notes(struct mr_regcache *c)
{
    struct {
        uintptr_t start, end;
    } note[MR_REGCACHE_NOTES];
    size_t dropped = 0;
    unsigned n;

    _Static_assert(sizeof note == sizeof c->note, "the same");
    lock_notes(c);
    n = atomic_load_explicit(&c->num_notes, memory_order_relaxed);
    memcpy(note, c->note, sizeof note);
    atomic_store_explicit(&c->num_notes, 0, memory_order_relaxed);
    unlock_notes(c);

    if (n > MR_REGCACHE_NOTES)
        dropped = forget_all(c);
    for (unsigned i = 0; n <= MR_REGCACHE_NOTES && i < n; i++) {
        dropped += drop_range(c, note[i].start, note[i].end);
        mr_asked_forget(&c->asked, note[i].start / c->page, (note[i].end - 1) / c->page);
    }
    mr_stat_add(MR_STAT_REG_UNMAPPED, dropped);
}

static void remember_span(struct mr_regcache *c, uintptr_t start, uintptr_t end)
{
    if (start < atomic_load_explicit(&c->lowest, memory_order_relaxed))
        atomic_store(&c->lowest, start);
    if (end > atomic_load_explicit(&c->highest, memory_order_relaxed))
        atomic_store(&c->highest, end);
}

/* ---- use -------------------------------------------------------------------------------------------------------- */

/* Devices still to register with; 0: none. */
static uint32_t lacking(const struct mr_memory *m, struct mr_reg_wish wish)
{
    uint32_t known = mr_memory_devices(m);

    if (!wish.first)
        return wish.devices & ~known;
    return known & wish.devices ? 0 : wish.first;
}

static int add_by_backend(struct mr_regcache *c, uintptr_t start, uintptr_t end, enum mr_access access,
                          uint32_t devices, struct mr_memory *m)
{
    int err = c->backend->add((void *)start, end - start, access, devices, m);

    if (err == -ENOMEM && (c->oldest || c->gone)) {
        cache_shrink(c, 0, 0);
        err = c->backend->add((void *)start, end - start, access, devices, m);
    }
    return err;
}

static void judge_place(struct mr_regcache *c, uintptr_t start, uintptr_t end)
{
    enum mr_place place = c->keep && c->place ? c->place(start, end) : MR_PLACE_WATCHED;

    c->libraries |= place == MR_PLACE_LIBRARY;
    if (place == MR_PLACE_UNWATCHED) {
        c->keep = false;
        mr_stat_set(MR_STAT_REG_KEPT, 0);
        forget_all(c);
    }
}

static int reg_register(struct mr_regcache *c, uintptr_t start, uintptr_t end, enum mr_access access,
                        struct mr_reg_wish wish, struct mr_memory *out)
{
    judge_place(c, start, end);
    destroy_gone(c);
    cache_shrink(c, c->max_bytes > end - start ? c->max_bytes - (end - start) : 0,
                 c->max_entries ? c->max_entries - 1 : 0);
    /* before it is registered: an unmapping from now on must leave a note */
    remember_span(c, start, end);
    memset(out, 0, sizeof *out);
    return add_by_backend(c, start, end, access, lacking(out, wish), out);
}

static int cache_insert(struct mr_regcache *c, struct mr_reg *r)
{
    size_t i;

    if (c->num == c->room) {
        size_t room = c->room ? 2 * c->room : 64;
        struct mr_reg **e = realloc(c->entry, room * sizeof *e);

        if (!e)
            return -ENOMEM;
        c->entry = e;
        c->room = room;
    }
    i = first_starting_after(c, r->start);
    memmove(&c->entry[i + 1], &c->entry[i], (c->num++ - i) * sizeof *c->entry);
    c->entry[i] = r;
    r->cached = true;
    return 0;
}

/*
 * The range to register for [*start, *end): joined with overlapping entries as long as it becomes at most twice as
 * long. So a registration never costs more than twice the requested range, however many neighbours share its pages:
 * walking through an array in unaligned buffers costs the length of the array. And ranges that keep overlapping grow
 * into a few entries, which contain later ones.
 */
static void range_join(const struct mr_regcache *c, uintptr_t *start, uintptr_t *end)
{
    uintptr_t from = *start, to = *end;
    size_t most = 2 * (to - from);

    if (!c->keep)
        return; /* whatever is in the table goes with its use */
    if (most > c->max_bytes)
        most = c->max_bytes;
    for (size_t i = first_ending_after(c, *start); i < c->num && c->entry[i]->start < *end; i++) {
        const struct mr_reg *r = c->entry[i];
        uintptr_t first = r->start < from ? r->start : from, last = r->end > to ? r->end : to;

        if (r->writable && last - first <= most) {
            from = first;
            to = last;
        }
    }
    *start = from;
    *end = to;
}

static int make_exactly(struct mr_regcache *c, uintptr_t start, uintptr_t end, enum mr_access access,
                        struct mr_reg_wish wish, struct mr_reg *r)
{
    drop_nested(c, start, end);
    r->start = start;
    r->end = end;
    r->writable = access == MR_ACCESS_TARGET;
    return reg_register(c, start, end, access, wish, &r->memory);
}

/*
 * Registers [start, end), or more. Joined memory may be gone, or of another kind: then the range is registered alone.
 * Memory that cannot be written (a constant) can only be a source.
 */
static int reg_make(struct mr_regcache *c, uintptr_t start, uintptr_t end, enum mr_access access,
                    struct mr_reg_wish wish, struct mr_reg *r)
{
    uintptr_t from = start, to = end;
    int err;

    range_join(c, &from, &to);
    err = make_exactly(c, from, to, MR_ACCESS_TARGET, wish, r);
    if (err && (from != start || to != end))
        err = make_exactly(c, start, end, MR_ACCESS_TARGET, wish, r);
    if (err && access == MR_ACCESS_SOURCE)
        err = make_exactly(c, start, end, MR_ACCESS_SOURCE, wish, r);
    return err;
}

/* Handles unmapped memory. */
static void catch_up(struct mr_regcache *c)
{
    if (atomic_load_explicit(&c->num_notes, memory_order_acquire))
        act_on_notes(c);
    if (c->libraries && c->unloaded()) {
        c->libraries = false;
        mr_stat_add(MR_STAT_REG_UNMAPPED, forget_all(c));
    }
}

/* An entry that covers [start, end); NULL: there is none. */
static struct mr_reg *find_covering(const struct mr_regcache *c, uintptr_t start, uintptr_t end, enum mr_access access)
{
    size_t i = first_starting_after(c, start);
    struct mr_reg *r = i ? c->entry[i - 1] : NULL;

    return r && r->end >= end && (r->writable || access == MR_ACCESS_SOURCE) ? r : NULL;
}

const struct mr_reg *mr_regcache_refresh(struct mr_regcache *c, const void *addr, size_t len, enum mr_access access)
{
    catch_up(c);
    return find_covering(c, (uintptr_t)addr, (uintptr_t)addr + len, access);
}

bool mr_regcache_knows(struct mr_regcache *c, const void *addr, size_t len)
{
    uintptr_t start = (uintptr_t)addr;

    if (!c->keep)
        return false;
    catch_up(c);
    if (mr_asked_has(&c->asked, start / c->page) || find_covering(c, start, start + len, MR_ACCESS_SOURCE))
        return true;
    remember_span(c, start, start + len);
    mr_asked_add(&c->asked, start / c->page);
    return false;
}

int mr_regcache_extend(struct mr_regcache *c, struct mr_reg *r, struct mr_reg_wish wish)
{
    uint32_t devices = lacking(&r->memory, wish);

    return devices ? add_by_backend(c, r->start, r->end, r->writable ? MR_ACCESS_TARGET : MR_ACCESS_SOURCE, devices,
                                    &r->memory)
                   : 0;
}

int mr_regcache_get(struct mr_regcache *c, const void *addr, size_t len, enum mr_access access, struct mr_reg_wish wish,
                    struct mr_reg **out)
{
    uintptr_t start = (uintptr_t)addr, end = start + len;
    struct mr_reg *r;
    int err;

    if (end < start)
        return -EINVAL;
    catch_up(c);
    while (c->gone_bytes > MR_REGCACHE_GONE)
        destroy_gone(c);
    r = find_covering(c, start, end, access);
    if (r) {
        r->uses += r->uses < UINT32_MAX;
        if (!r->refs++)
            list_remove(c, r);
        mr_stat_add(MR_STAT_REG_HITS, 1);
        *out = r;
        err = mr_regcache_extend(c, r, wish);
        if (err)
            mr_regcache_put(c, r);
        return err;
    }
    mr_stat_add(MR_STAT_REG_MISSES, 1);
    r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    start -= start % c->page;
    end = (end + c->page - 1) / c->page * c->page;
    err = reg_make(c, start, end, access, wish, r);
    if (err) {
        free(r);
        return err;
    }
    c->bytes += r->end - r->start;
    c->entries++;
    cache_count(c);
    r->refs = r->uses = 1;
    cache_insert(c, r); /* without room in the table it is used once: r->cached stays false */
    *out = r;
    return 0;
}

void mr_regcache_put(struct mr_regcache *c, struct mr_reg *r)
{
    if (--r->refs)
        return;
    if (!r->cached) {
        reg_destroy(c, r);
        return;
    }
    list_append(c, r);
    if (!c->keep)
        drop_cached(c, r);
    else
        cache_shrink(c, c->max_bytes, c->max_entries);
}
