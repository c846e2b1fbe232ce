/* SPDX-License-Identifier: BSD-3-Clause */
/* An aggregator's part: the wanted pieces of a stretch of the file, from the lists of all, moved in few accesses. */
#include "libmrmpi/io/phases.h"

#include <string.h>

static const struct mr_rma_piece *piece_list_of(const struct mr_io_phases *p, int rank, unsigned *num)
{
    *num = (unsigned)((size_t)p->their_lists.len[rank] / sizeof(struct mr_rma_piece));
    return (const struct mr_rma_piece *)(const void *)(p->their_lists.data + p->their_lists.at[rank]);
}

enum mr_err mr_io_wanted_of(const struct mr_io_phases *p, struct mr_io_wanted *w)
{
    *w = (struct mr_io_wanted){.from = INT64_MAX};
    for (int i = 0; i < p->f->comm->size; i++) {
        const struct mr_rma_piece *piece;
        int64_t lo, hi;
        unsigned num;

        if (!p->their_lists.len[i])
            continue;
        piece = piece_list_of(p, i, &num);
        if (!mr_pieces_span(piece, num, (size_t)p->their_data.len[i], &lo, &hi) || lo < 0 || hi > p->stretch)
            return mr_fail(MR_ERR_INTERN, "rank %d wants pieces of \"%s\" that are not there", i, p->f->name);
        w->from = lo < w->from ? lo : w->from;
        w->to = hi > w->to ? hi : w->to;
        w->bytes += (uint64_t)p->their_data.len[i];
        for (unsigned k = 0; k < num; k++)
            w->pieces += piece[k].count;
    }
    return MR_SUCCESS;
}

static void cover(char *map, int64_t from, int64_t to)
{
    for (; from < to && from & 7; from++)
        map[from >> 3] |= (char)(1 << (from & 7));
    if (to - from >= 8) {
        memset(map + (from >> 3), 0xff, (size_t)((to - from) >> 3));
        from += (to - from) & ~(int64_t)7;
    }
    for (; from < to; from++)
        map[from >> 3] |= (char)(1 << (from & 7));
}

static bool is_covered(const char *map, int64_t at)
{
    return map[at >> 3] >> (at & 7) & 1;
}

/* The end of the run of bytes that are, or are not, covered. */
static int64_t run_end(const char *map, int64_t at, int64_t end)
{
    const bool is = is_covered(map, at);

    while (at < end && is_covered(map, at) == is) {
        while (!(at & 7) && at + 8 <= end && map[at >> 3] == (is ? (char)0xff : 0))
            at += 8;
        if (at < end && is_covered(map, at) == is)
            at++;
    }
    return at;
}

static void cover_all(const struct mr_io_phases *p, const struct mr_io_wanted *w)
{
    memset(p->covered + (w->from >> 3), 0, (size_t)((w->to >> 3) - (w->from >> 3) + 1));
    for (int i = 0; i < p->f->comm->size; i++) {
        unsigned num = 0;
        const struct mr_rma_piece *piece = p->their_lists.len[i] ? piece_list_of(p, i, &num) : NULL;

        for (unsigned k = 0; k < num; k++)
            for (uint32_t n = 0; n < piece[k].count; n++) {
                int64_t at = piece[k].at + (int64_t)n * piece[k].stride;

                cover(p->covered, at, at + piece[k].elem);
            }
    }
}

static uint64_t runs_covered(const struct mr_io_phases *p, const struct mr_io_wanted *w)
{
    uint64_t runs = 0;

    cover_all(p, w);
    for (int64_t at = w->from; at < w->to; at = run_end(p->covered, at, w->to))
        runs += is_covered(p->covered, at);
    return runs;
}

static void put_into_image(const struct mr_io_phases *p)
{
    for (int i = 0; i < p->f->comm->size; i++) {
        unsigned num;

        if (p->their_lists.len[i]) {
            const struct mr_rma_piece *piece = piece_list_of(p, i, &num);

            mr_pieces_scatter(p->image, piece, num, (size_t)p->their_data.len[i],
                              p->their_data.data + p->their_data.at[i]);
        }
    }
}

/* With the holes, if they can be read and reading pays, else each run by itself. */
enum mr_err mr_io_stretch_write(const struct mr_io_phases *p, const struct mr_io_wanted *w, int64_t base)
{
    const struct mr_disk d = mr_io_disk(p->f);
    const uint64_t runs = runs_covered(p, w), holes = (uint64_t)(w->to - w->from) - w->bytes;
    const bool whole =
        runs == 1 || (p->f->may_read && p->f->hints.ds_write != MR_NEVER && runs * MR_IO_CALL_BYTES > holes);
    enum mr_err err = MR_SUCCESS;
    size_t n;

    if (whole && runs > 1) {
        err = mr_disk_read(&d, p->image + w->from, (size_t)(w->to - w->from), base + w->from, &n);
        if (!err)
            memset(p->image + w->from + n, 0, (size_t)(w->to - w->from) - n);
    }
    put_into_image(p);
    for (int64_t at = w->from, next; at < w->to && !err; at = next) {
        next = whole ? w->to : run_end(p->covered, at, w->to);
        if (whole || is_covered(p->covered, at))
            err = mr_disk_write(&d, p->image + at, (size_t)(next - at), base + at, &n);
    }
    return err;
}

static enum mr_err read_image(const struct mr_io_phases *p, int64_t at, size_t len, int64_t base)
{
    const struct mr_disk d = mr_io_disk(p->f);
    size_t n;
    enum mr_err err = mr_disk_read(&d, p->image + at, len, base + at, &n);

    if (!err)
        memset(p->image + at + n, 0, len - n);
    return err;
}

static enum mr_err fill_image(const struct mr_io_phases *p, const struct mr_io_wanted *w, int64_t base)
{
    const uint64_t span = (uint64_t)(w->to - w->from), holes = span > w->bytes ? span - w->bytes : 0;
    enum mr_err err = MR_SUCCESS;

    if (p->f->hints.ds_read != MR_NEVER && w->pieces * MR_IO_CALL_BYTES > holes)
        return read_image(p, w->from, span, base);
    for (int i = 0; i < p->f->comm->size; i++) {
        unsigned num = 0;
        const struct mr_rma_piece *piece = p->their_lists.len[i] ? piece_list_of(p, i, &num) : NULL;

        for (unsigned k = 0; k < num; k++)
            for (uint32_t m = 0; m < piece[k].count && !err; m++)
                err = read_image(p, piece[k].at + (int64_t)m * piece[k].stride, piece[k].elem, base);
    }
    return err;
}

static void take_from_image(const struct mr_io_phases *p)
{
    for (int i = 0; i < p->f->comm->size; i++) {
        unsigned num;

        if (p->their_lists.len[i]) {
            const struct mr_rma_piece *piece = piece_list_of(p, i, &num);

            mr_pieces_gather(p->image, piece, num, (size_t)p->their_data.len[i],
                             p->their_data.data + p->their_data.at[i]);
        }
    }
}

enum mr_err mr_io_stretch_read(const struct mr_io_phases *p, const struct mr_io_wanted *w, int64_t base)
{
    enum mr_err err = fill_image(p, w, base);

    if (!err)
        take_from_image(p);
    return err;
}
