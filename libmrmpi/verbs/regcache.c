/* SPDX-License-Identifier: BSD-3-Clause */
/* The registration cache. */
#include "libmrmpi/verbs/regcache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"

void mr_regcache_init(struct mr_regcache *c, const struct mr_regcache_backend *backend, size_t max_bytes, bool keep)
{
    memset(c, 0, sizeof *c);
    c->backend = backend;
    c->max_bytes = max_bytes;
    c->keep = keep && max_bytes;
    c->page = (size_t)sysconf(_SC_PAGESIZE);
    atomic_flag_clear(&c->notes_lock);
    atomic_store(&c->lowest, UINTPTR_MAX);
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

/* Index of the first entry that ends after addr. */
static size_t lower(const struct mr_regcache *c, uintptr_t addr)
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

static void destroy(struct mr_regcache *c, struct mr_reg *r)
{
    c->backend->remove(&r->memory);
    c->bytes -= r->end - r->start;
    free(r);
}

/* Take entry i out of the table; it lives on for as long as it is used. */
static void drop(struct mr_regcache *c, size_t i)
{
    struct mr_reg *r = c->entry[i];

    memmove(&c->entry[i], &c->entry[i + 1], (--c->num - i) * sizeof *c->entry);
    r->cached = false;
    if (r->refs)
        return;
    list_remove(c, r);
    destroy(c, r);
}

static void drop_range(struct mr_regcache *c, uintptr_t start, uintptr_t end)
{
    size_t i = lower(c, start);

    while (i < c->num && c->entry[i]->start < end)
        drop(c, i);
}

static void drop_all(struct mr_regcache *c)
{
    while (c->num)
        drop(c, c->num - 1);
}

static void shrink(struct mr_regcache *c, size_t target)
{
    while (c->oldest && c->bytes > target)
        drop_range(c, c->oldest->start, c->oldest->end);
}

void mr_regcache_clear(struct mr_regcache *c)
{
    drop_all(c);
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

static void act_on_notes(struct mr_regcache *c)
{
    struct {
        uintptr_t start, end;
    } note[MR_REGCACHE_NOTES];
    unsigned n;

    _Static_assert(sizeof note == sizeof c->note, "the same");
    lock_notes(c);
    n = atomic_load_explicit(&c->num_notes, memory_order_relaxed);
    memcpy(note, c->note, sizeof note);
    atomic_store_explicit(&c->num_notes, 0, memory_order_relaxed);
    unlock_notes(c);

    if (n > MR_REGCACHE_NOTES)
        drop_all(c);
    else
        for (unsigned i = 0; i < n; i++)
            drop_range(c, note[i].start, note[i].end);
}

static void remember_span(struct mr_regcache *c, uintptr_t start, uintptr_t end)
{
    if (start < atomic_load_explicit(&c->lowest, memory_order_relaxed))
        atomic_store(&c->lowest, start);
    if (end > atomic_load_explicit(&c->highest, memory_order_relaxed))
        atomic_store(&c->highest, end);
}

/* ---- use -------------------------------------------------------------------------------------------------------- */

static int add(struct mr_regcache *c, uintptr_t start, uintptr_t end, enum mr_access access, struct mr_memory *out)
{
    int err;

    shrink(c, c->max_bytes > end - start ? c->max_bytes - (end - start) : 0);
    /* before it is registered: an unmapping from now on must leave a note */
    remember_span(c, start, end);
    err = c->backend->add((void *)start, end - start, access, out);
    if (err == -ENOMEM && c->oldest) {
        shrink(c, 0);
        err = c->backend->add((void *)start, end - start, access, out);
    }
    return err;
}

static int insert(struct mr_regcache *c, struct mr_reg *r)
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
    i = lower(c, r->start);
    memmove(&c->entry[i + 1], &c->entry[i], (c->num++ - i) * sizeof *c->entry);
    c->entry[i] = r;
    r->cached = true;
    return 0;
}

/*
 * Register [start, end). What it overlaps is joined with it if all of it is still there and alike; else the old entries
 * go. Memory that cannot be written (a constant) can only be a source.
 */
static int make(struct mr_regcache *c, uintptr_t start, uintptr_t end, enum mr_access access, struct mr_reg *r)
{
    uintptr_t from = start, to = end;
    int err;

    for (size_t i = lower(c, start); i < c->num && c->entry[i]->start < end; i++) {
        from = c->entry[i]->start < from ? c->entry[i]->start : from;
        to = c->entry[i]->end > to ? c->entry[i]->end : to;
    }
    drop_range(c, start, end);
    r->writable = true;
    err = add(c, from, to, MR_ACCESS_TARGET, &r->memory);
    if (err && (from != start || to != end)) {
        from = start;
        to = end;
        err = add(c, from, to, MR_ACCESS_TARGET, &r->memory);
    }
    if (err && access == MR_ACCESS_SOURCE) {
        r->writable = false;
        err = add(c, from, to, MR_ACCESS_SOURCE, &r->memory);
    }
    r->start = from;
    r->end = to;
    return err;
}

int mr_regcache_get(struct mr_regcache *c, const void *addr, size_t len, enum mr_access access, struct mr_reg **out)
{
    uintptr_t start = (uintptr_t)addr, end = start + len;
    struct mr_reg *r;
    size_t i;
    int err;

    if (end < start)
        return -EINVAL;
    if (atomic_load_explicit(&c->num_notes, memory_order_acquire))
        act_on_notes(c);
    if (c->lost_track && c->lost_track())
        drop_all(c);
    i = lower(c, start);
    if (i < c->num) {
        r = c->entry[i];
        if (r->start <= start && r->end >= end && (r->writable || access == MR_ACCESS_SOURCE)) {
            if (!r->refs++)
                list_remove(c, r);
            mr_stat_add(MR_STAT_REG_HITS, 1);
            *out = r;
            return 0;
        }
    }
    mr_stat_add(MR_STAT_REG_MISSES, 1);
    r = calloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    start -= start % c->page;
    end = (end + c->page - 1) / c->page * c->page;
    err = make(c, start, end, access, r);
    if (err) {
        free(r);
        return err;
    }
    c->bytes += r->end - r->start;
    r->refs = 1;
    insert(c, r); /* without room in the table it is used once: r->cached stays false */
    *out = r;
    return 0;
}

void mr_regcache_put(struct mr_regcache *c, struct mr_reg *r)
{
    if (--r->refs)
        return;
    if (!r->cached) {
        destroy(c, r);
        return;
    }
    list_append(c, r);
    if (!c->keep)
        drop_range(c, r->start, r->end);
    else if (c->bytes > c->max_bytes)
        shrink(c, c->max_bytes);
}
