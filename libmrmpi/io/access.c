/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One process moves data. If its view has many small pieces near each other, the pieces are moved with the holes
 * between them, in an image of that part of the file (data sieving). Such a write reads the image first, and every rank
 * that writes to such a file locks its range; otherwise a rank could restore old data into a hole that another rank has
 * filled.
 */
#include "libmrmpi/io/internal.h"

#include <stdlib.h>
#include <string.h>

#define STAGE_BYTES (4u << 20) /* of data in several stretches in memory, at a time */

/* ---- the program's memory, as bytes of the view ------------------------------------------------------------------ */

enum mr_err mr_file_data_size(const struct mr_file *f, const struct mr_file_data *d, size_t *bytes, int64_t *etypes)
{
    enum mr_err err = mr_datarep_measure(f->datarep, d->type);

    *bytes = err ? 0 : d->count * mr_datarep_size(f->datarep, d->type);
    *etypes = 0;
    if (!*bytes)
        return err;
    if (!f->filetype->size)
        return mr_fail(MR_ERR_ARG, "the view of \"%s\" has no bytes, %zu are to be moved", f->name, *bytes);
    if (*bytes % f->etype->size)
        return mr_fail(MR_ERR_ARG, "%zu bytes are no whole number of etypes, which have %zu", *bytes, f->etype->size);
    *etypes = (int64_t)(*bytes / f->etype->size);
    return MR_SUCCESS;
}

size_t mr_io_in_memory(const struct mr_file *f, const struct mr_file_data *d, size_t bytes)
{
    return mr_datarep_converts(f->datarep) && bytes ? bytes / mr_datarep_size(f->datarep, d->type) * d->type->size
                                                    : bytes;
}

enum mr_err mr_io_bytes_begin(const struct mr_file *f, bool write, const struct mr_file_data *d, size_t len,
                              struct mr_io_bytes *b)
{
    const size_t size = d->count * mr_datarep_size(f->datarep, d->type);
    enum mr_err err = MR_SUCCESS;

    *b = (struct mr_io_bytes){.d = d, .len = len};
    if (!len)
        return MR_SUCCESS;
    if (!mr_datarep_converts(f->datarep)) {
        b->whole = d->type->contiguous ? (char *)d->buf + d->type->true_lb : NULL;
        return MR_SUCCESS;
    }
    b->datarep = f->datarep;
    b->whole = calloc(1, size);
    if (!b->whole)
        return mr_fail(MR_ERR_NO_MEM, "no memory for converting %zu bytes", size);
    if (write)
        err = mr_datarep_to_file(f->datarep, d->buf, d->count, d->type, b->whole);
    if (err) {
        free(b->whole);
        *b = (struct mr_io_bytes){.d = d};
    }
    return err;
}

/* Whole elements only are converted, when all is there. */
enum mr_err mr_io_bytes_end(struct mr_io_bytes *b, bool write, size_t moved)
{
    enum mr_err err = MR_SUCCESS;

    if (!b->datarep)
        return MR_SUCCESS;
    if (!write && moved)
        err = mr_datarep_from_file(b->datarep, b->d->buf, moved / mr_datarep_size(b->datarep, b->d->type), b->d->type,
                                   b->whole);
    free(b->whole);
    b->whole = NULL;
    b->datarep = NULL;
    return err;
}

const char *mr_io_bytes_get(const struct mr_io_bytes *b, size_t from, size_t n, char *room)
{
    if (b->whole)
        return b->whole + from;
    mr_type_pack(b->d->buf, b->d->count, b->d->type, from, room, n);
    return room;
}

void mr_io_bytes_put(const struct mr_io_bytes *b, size_t from, size_t n, const char *data)
{
    if (b->whole)
        memcpy(b->whole + from, data, n);
    else
        mr_type_unpack(b->d->buf, b->d->count, b->d->type, from, data, n);
}

/* ---- pieces of the file ------------------------------------------------------------------------------------------ */

static enum mr_err move_stretch(struct mr_file *f, bool write, char *data, size_t len, int64_t at, size_t *done)
{
    const struct mr_disk d = mr_io_disk(f);

    return write ? mr_disk_write(&d, data, len, at, done) : mr_disk_read(&d, data, len, at, done);
}

/* Each by itself. */
static enum mr_err move_each(struct mr_file *f, bool write, const struct mr_stretches *list, char *data, size_t *done)
{
    *done = 0;
    for (size_t k = 0; k < list->num; k++) {
        const struct mr_rma_piece *p = &list->piece[k];

        for (uint32_t i = 0; i < p->count; i++) {
            size_t n;
            enum mr_err err = move_stretch(f, write, data + *done, p->elem, p->at + (int64_t)i * p->stride, &n);

            *done += n;
            if (err || n < p->elem)
                return err;
        }
    }
    return MR_SUCCESS;
}

/* A part of the file, [from, to), that has the view's bytes [nth, nth + len), and holes. */
struct part {
    int64_t from, to;
    uint64_t nth;
    size_t len;
};

static enum mr_err move_image(struct mr_file *f, bool write, const struct part *p, char *image, char *data,
                              size_t *done)
{
    const size_t bytes = (size_t)(p->to - p->from);
    const struct mr_disk d = mr_io_disk(f);
    size_t n;
    enum mr_err err = mr_disk_read(&d, image, bytes, p->from, &n);

    *done = 0;
    if (err)
        return err;
    memset(image + n, 0, bytes - n); /* behind the end of the file */
    if (!write) {
        mr_tiling_gather(&f->view, p->nth, p->len, image, p->from, data);
        *done = p->len;
        return MR_SUCCESS;
    }
    mr_tiling_scatter(&f->view, p->nth, p->len, image, p->from, data);
    err = mr_disk_write(&d, image, bytes, p->from, &n);
    *done = err ? 0 : p->len;
    return err;
}

static bool sieves(const struct mr_file *f, bool write, const struct part *p)
{
    const enum mr_when when = write ? f->hints.ds_write : f->hints.ds_read;
    const double pieces = (double)p->len / (double)f->filetype->size * (double)f->tile_pieces;

    if (when == MR_NEVER || (write && (!f->may_read || !f->guarded)))
        return false;
    return when == MR_ALWAYS || pieces * MR_IO_CALL_BYTES > (double)(p->to - p->from);
}

static enum mr_err move_pieces(struct mr_file *f, bool write, const struct part *p, char *data, size_t *done)
{
    struct mr_stretches list = {0};
    enum mr_err err;

    if (mr_tiling_stretches(&f->view, p->nth, p->len, &list))
        err = move_each(f, write, &list, data, done);
    else
        err = mr_fail(MR_ERR_NO_MEM, "no memory for the pieces of \"%s\"", f->name);
    free(list.piece);
    return err;
}

/* Locked where others may fill the holes meanwhile. */
static enum mr_err move_part(struct mr_file *f, bool write, const struct part *p, char *image, char *data, size_t *done)
{
    const struct mr_disk d = mr_io_disk(f);
    const bool lock = write && f->guarded && !f->atomic;
    enum mr_err err = lock ? mr_disk_lock(&d, true, p->from, p->to - p->from) : MR_SUCCESS;

    *done = 0;
    if (err)
        return err;
    if (sieves(f, write, p))
        err = move_image(f, write, p, image, data, done);
    else
        err = move_pieces(f, write, p, data, done);
    if (lock)
        mr_disk_unlock(&d, p->from, p->to - p->from);
    return err;
}

/* The bytes of the view from nth on that lie within `most` bytes of the file. */
static struct part next_part(const struct mr_file *f, uint64_t nth, size_t len, int64_t most)
{
    struct part p = {.from = mr_tiling_at(&f->view, nth), .nth = nth};
    uint64_t n = mr_tiling_before(&f->view, p.from + most) - nth;

    p.len = n < len ? n : len;
    p.to = mr_tiling_at(&f->view, nth + p.len - 1) + 1;
    return p;
}

static enum mr_err move_solid(struct mr_file *f, bool write, uint64_t nth, char *data, size_t len, size_t *done)
{
    const struct mr_disk d = mr_io_disk(f);
    const int64_t at = mr_tiling_at(&f->view, nth);
    const bool lock = write && f->guarded && !f->atomic;
    enum mr_err err = lock ? mr_disk_lock(&d, true, at, (int64_t)len) : MR_SUCCESS;

    *done = 0;
    if (err)
        return err;
    err = move_stretch(f, write, data, len, at, done);
    if (lock)
        mr_disk_unlock(&d, at, (int64_t)len);
    return err;
}

/* Bytes that are in the view twice are read twice. */
static enum mr_err read_overlapping(struct mr_file *f, uint64_t nth, char *data, size_t len, size_t *done)
{
    const size_t most = (size_t)f->hints.read_size;
    enum mr_err err = MR_SUCCESS;
    size_t n = 0;

    for (*done = 0; *done < len && !err; *done += n) {
        const struct part p = {.nth = nth + *done, .len = len - *done < most ? len - *done : most};

        err = move_pieces(f, false, &p, data + *done, &n);
        if (n < p.len) {
            *done += n;
            break;
        }
    }
    return err;
}

enum mr_err mr_io_move(struct mr_file *f, bool write, uint64_t nth, char *data, size_t len, size_t *done)
{
    const int64_t most = write ? f->hints.write_size : f->hints.read_size;
    enum mr_err err = MR_SUCCESS;
    char *image;
    size_t n;

    *done = 0;
    if (!len || mr_tiling_dense(&f->view))
        return len ? move_solid(f, write, nth, data, len, done) : MR_SUCCESS;
    if (f->overlaps)
        return read_overlapping(f, nth, data, len, done);
    image = malloc((size_t)most);
    if (!image)
        return mr_fail(MR_ERR_NO_MEM, "no memory for %lld bytes of \"%s\"", (long long)most, f->name);
    while (*done < len && !err) {
        struct part p = next_part(f, nth + *done, len - *done, most);

        if (p.to - p.from == (int64_t)p.len)
            err = move_solid(f, write, p.nth, data + *done, p.len, &n);
        else
            err = move_part(f, write, &p, image, data + *done, &n);
        *done += n;
        if (n < p.len)
            break;
    }
    free(image);
    return err;
}

/* ---- one access -------------------------------------------------------------------------------------------------- */

enum mr_err mr_io_first(const struct mr_file *f, int64_t offset, size_t len, uint64_t *nth)
{
    int64_t first, end;

    if (__builtin_mul_overflow(offset, (int64_t)f->etype->size, &first) ||
        __builtin_add_overflow(first, (int64_t)len, &end) || !mr_tiling_reaches(&f->view, len ? (uint64_t)end : 0))
        return mr_fail(MR_ERR_ARG, "%zu bytes at offset %lld are behind the end of what the view of \"%s\" can show",
                       len, (long long)offset, f->name);
    *nth = (uint64_t)first;
    return MR_SUCCESS;
}

/* With overlaps the end of the file may come anywhere in the data: reading finds it. */
enum mr_err mr_io_clip(struct mr_file *f, uint64_t nth, size_t *len)
{
    const struct mr_disk d = mr_io_disk(f);
    int64_t size;
    enum mr_err err = mr_disk_size(&d, &size);
    uint64_t end;

    if (err || !*len || f->overlaps)
        return err;
    end = mr_tiling_before(&f->view, size);
    *len = end <= nth ? 0 : end - nth < *len ? end - nth : *len;
    return MR_SUCCESS;
}

/* Data in several stretches goes through a buffer. */
static enum mr_err move_staged(struct mr_file *f, bool write, uint64_t nth, const struct mr_io_bytes *b, size_t *done)
{
    char *room = malloc(b->len < STAGE_BYTES ? b->len : STAGE_BYTES);
    enum mr_err err = room ? MR_SUCCESS : mr_fail(MR_ERR_NO_MEM, "no memory for %zu bytes", b->len);

    while (!err && *done < b->len) {
        size_t n = b->len - *done < STAGE_BYTES ? b->len - *done : STAGE_BYTES, moved;

        if (write)
            mr_io_bytes_get(b, *done, n, room);
        err = mr_io_move(f, write, nth + *done, room, n, &moved);
        if (!write)
            mr_io_bytes_put(b, *done, moved, room);
        *done += moved;
        if (moved < n)
            break;
    }
    free(room);
    return err;
}

static enum mr_err move_all(struct mr_file *f, bool write, uint64_t nth, const struct mr_file_data *d, size_t len,
                            size_t *bytes)
{
    struct mr_io_bytes b;
    enum mr_err err = mr_io_bytes_begin(f, write, d, len, &b), end;

    if (err)
        return err;
    err = b.whole || !len ? mr_io_move(f, write, nth, b.whole, len, bytes) : move_staged(f, write, nth, &b, bytes);
    end = mr_io_bytes_end(&b, write, *bytes);
    if (end)
        *bytes = 0;
    return err ? err : end;
}

/* Behind all of the view's bytes [nth, nth + len). */
static int64_t end_of_access(const struct mr_file *f, uint64_t nth, size_t len)
{
    const struct mr_tiling *v = &f->view;
    const uint64_t last = nth + len - 1;

    if (!f->overlaps || mr_tiling_dense(v))
        return mr_tiling_at(v, last) + 1;
    return v->disp + (int64_t)(last / v->type->size) * v->type->extent + v->type->true_lb + v->type->true_extent;
}

enum mr_err mr_file_access(struct mr_file *f, bool write, int64_t offset, const struct mr_file_data *d, size_t *bytes)
{
    const struct mr_disk disk = mr_io_disk(f);
    int64_t etypes, from, to;
    uint64_t nth;
    size_t len;
    enum mr_err err = mr_file_data_size(f, d, &len, &etypes);

    *bytes = 0;
    if (!err)
        err = mr_io_first(f, offset, len, &nth);
    if (err || !len)
        return err;
    from = mr_tiling_at(&f->view, nth);
    to = end_of_access(f, nth, len);
    if (f->atomic && (err = mr_disk_lock(&disk, write, from, to - from)))
        return err;
    if (!write)
        err = mr_io_clip(f, nth, &len);
    if (!err)
        err = move_all(f, write, nth, d, len, bytes);
    *bytes = mr_io_in_memory(f, d, *bytes);
    if (f->atomic)
        mr_disk_unlock(&disk, from, to - from);
    return err;
}
