/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of a collective access. */
#include "libmrmpi/io/internal.h"

#include <stdlib.h>

static int by_place(const void *a, const void *b)
{
    const struct mr_io_span *x = a, *y = b;

    return (x->from > y->from) - (x->from < y->from);
}

/* No rank's part lies within another's: each moves its own as quickly alone. Changes the order of `all`. */
static bool is_apart(struct mr_io_span *all, int n)
{
    int64_t end = INT64_MIN;

    qsort(all, (size_t)n, sizeof(*all), by_place);
    for (int i = 0; i < n; i++) {
        if (!all[i].len)
            continue;
        if (all[i].from < end)
            return false;
        end = all[i].to;
    }
    return true;
}

/* Many ranks read the same bytes: they would be sent to each of them, and are in memory after the first read. */
static bool is_common(const struct mr_io_span *all, int n)
{
    int64_t from = INT64_MAX, to = 0;
    uint64_t sum = 0;

    for (int i = 0; i < n; i++) {
        if (!all[i].len)
            continue;
        from = all[i].from < from ? all[i].from : from;
        to = all[i].to > to ? all[i].to : to;
        sum += all[i].len;
    }
    return to > from && sum > (uint64_t)(to - from) + (uint64_t)(to - from) / 2;
}

static bool pays(const struct mr_file *f, bool write, struct mr_io_span *all)
{
    const enum mr_when when = write ? f->hints.cb_write : f->hints.cb_read;

    if (f->atomic || f->overlaps)
        return false;
    if (when != MR_WHEN_IT_PAYS)
        return when == MR_ALWAYS;
    if (f->near) /* all ranks write to the system's pages, sooner than through another rank's memory */
        return false;
    return !is_apart(all, f->comm->size) && (write || !is_common(all, f->comm->size));
}

static enum mr_err through_aggregators(struct mr_file *f, bool write, uint64_t nth, const struct mr_file_data *d,
                                       size_t len, enum mr_err wrong, const struct mr_io_span *all, size_t *bytes)
{
    struct mr_io_bytes b = {0};
    enum mr_err err = wrong ? wrong : mr_io_bytes_begin(f, write, d, len, &b), met;

    if (err) /* without data of its own, but the others wait for this rank */
        b = (struct mr_io_bytes){0};
    met = mr_io_two_phase(f, write, nth, &b, all);
    if (!err)
        err = met;
    met = mr_io_bytes_end(&b, write, err ? 0 : len);
    met = mr_io_agree(f, err ? err : met);
    *bytes = met ? 0 : mr_io_in_memory(f, d, len);
    return met;
}

static enum mr_err access_all(struct mr_file *f, bool write, int64_t offset, const struct mr_file_data *d,
                              enum mr_err wrong, struct mr_io_span *all, size_t *bytes)
{
    struct mr_io_span mine = {0};
    uint64_t nth = 0;
    int64_t etypes;
    size_t len;
    enum mr_err err = wrong ? wrong : mr_file_data_size(f, d, &len, &etypes), met;

    if (!err)
        err = mr_io_first(f, offset, len, &nth);
    if (!err && !write)
        err = mr_io_clip(f, nth, &len);
    if (!err && len)
        mine = (struct mr_io_span){mr_tiling_at(&f->view, nth), mr_tiling_at(&f->view, nth + len - 1) + 1, len};
    /* a rank that cannot take part has nothing to move: the others continue, and learn of the error at the end */
    met = mr_io_gather(f, &mine, all, sizeof(mine));
    if (met)
        return err ? err : met;
    if (pays(f, write, all))
        return through_aggregators(f, write, nth, d, mine.len, err, all, bytes);
    if (!err)
        err = mr_file_access(f, write, offset, d, bytes);
    return mr_io_agree(f, err);
}

enum mr_err mr_file_access_all(struct mr_file *f, bool write, int64_t offset, const struct mr_file_data *d,
                               enum mr_err wrong, size_t *bytes)
{
    struct mr_io_span *all;
    enum mr_err err;

    *bytes = 0;
    if (mr_io_alone(f))
        return wrong ? wrong : mr_file_access(f, write, offset, d, bytes);
    all = malloc((size_t)f->comm->size * sizeof(*all));
    if (!all)
        return mr_fail(MR_ERR_NO_MEM, "no memory for an access of %d ranks", f->comm->size);
    err = access_all(f, write, offset, d, wrong, all, bytes);
    free(all);
    return err;
}
