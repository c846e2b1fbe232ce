/* SPDX-License-Identifier: BSD-3-Clause */
/* Views: the visible part of a file, and offsets in it. */
#include "libmrmpi/io/internal.h"

#include <stdlib.h>

/* Each member's message to all others about its view. */
struct told {
    uint64_t etype_size, datarep;
    int64_t err;
    int32_t holes, locks, overlaps; /* locks: able to lock its writes */
};

/* The etype and the filetype as they are in the file; references. */
struct in_file {
    struct mr_type *etype, *filetype;
};

static enum mr_err put_in_file(const struct mr_file_view *v, struct in_file *in)
{
    enum mr_err err = mr_datarep_measure(v->datarep, v->etype);

    if (!err)
        err = mr_datarep_measure(v->datarep, v->filetype);
    if (err)
        return err;
    in->etype = mr_datarep_type(v->datarep, v->etype);
    in->filetype = mr_datarep_type(v->datarep, v->filetype);
    return in->etype && in->filetype ? MR_SUCCESS : mr_fail(MR_ERR_NO_MEM, "no memory for a view");
}

static void drop(struct in_file *in)
{
    if (in->etype)
        mr_type_put(in->etype);
    if (in->filetype)
        mr_type_put(in->filetype);
}

/* The standard names no classes for errors of a view: these are ROMIO's, known to programs. */
static enum mr_err fits(const struct mr_file *f, const struct in_file *in)
{
    const enum mr_tiling_order order = mr_tiling_order(in->filetype);

    if (in->filetype->size && (!in->etype->size || in->filetype->size % in->etype->size))
        return mr_fail(MR_ERR_ARG, "filetype has %zu bytes, which is no multiple of the etype's %zu",
                       in->filetype->size, in->etype->size);
    if (order == MR_TILING_DECREASES)
        return mr_fail(MR_ERR_IO, "filetype's displacements are negative, or less than those before them");
    if (order == MR_TILING_OVERLAPS && !(f->amode & MR_FILE_RDONLY))
        return mr_fail(MR_ERR_IO, "filetype's elements overlap, and \"%s\" is not open for reading only", f->name);
    return MR_SUCCESS;
}

/* Consequences of all views: there are holes, and all can lock their writes; there are overlaps. */
struct views {
    bool guard, overlaps;
};

static enum mr_err alike(const struct mr_file *f, const struct told *mine, const struct told *all, struct views *views)
{
    bool holes = false, locks = true;

    for (int i = 0; i < f->comm->size; i++) {
        holes |= all[i].holes;
        locks &= all[i].locks;
        views->guard = holes && locks;
        views->overlaps |= all[i].overlaps;
        if (mine->err)
            continue;
        if (all[i].err)
            return mr_fail((enum mr_err)all[i].err, "rank %d cannot set its view of \"%s\"", i, f->name);
        if (all[i].datarep != mine->datarep)
            return mr_fail(MR_ERR_NOT_SAME, "datarep is not what rank %d has", i);
        if (all[i].etype_size != mine->etype_size)
            return mr_fail(MR_ERR_NOT_SAME, "etype has %llu bytes here and %llu at rank %d",
                           (unsigned long long)mine->etype_size, (unsigned long long)all[i].etype_size, i);
    }
    return (enum mr_err)mine->err;
}

/* Some file systems have no locks (Lustre, by a mount option): then holes are left alone. */
static bool can_lock(const struct mr_file *f)
{
    const struct mr_disk d = mr_io_disk(f);

    return !(f->amode & MR_FILE_RDONLY) && mr_disk_can_lock(&d);
}

/* All send to all: they agree on the result. */
static enum mr_err gather_views(const struct mr_file *f, const struct mr_file_view *v, const struct in_file *in,
                                enum mr_err wrong, struct views *views)
{
    struct told mine = {.err = wrong ? wrong : fits(f, in)}, *all;
    enum mr_err err;

    if (!mine.err) {
        mine.etype_size = in->etype->size;
        mine.datarep = mr_datarep_number(v->datarep);
        mine.holes = in->filetype->size && !in->filetype->contiguous;
        mine.overlaps = mr_tiling_order(in->filetype) == MR_TILING_OVERLAPS;
    }
    mine.locks = can_lock(f);
    all = malloc((size_t)f->comm->size * sizeof(*all));
    if (!all)
        return mr_fail(MR_ERR_NO_MEM, "no memory for the view of %d ranks", f->comm->size);
    err = mr_io_gather(f, &mine, all, sizeof(mine));
    if (!err)
        err = alike(f, &mine, all, views);
    free(all);
    return err;
}

/* How many there are decides whether they are moved with the holes; without memory for a list there are many. */
static uint64_t pieces_of(const struct mr_tiling *t)
{
    struct mr_stretches list = {0};
    uint64_t n = 0;

    if (!t->type->size)
        return 0;
    if (!mr_tiling_stretches(t, 0, t->type->size, &list))
        n = t->type->size;
    for (size_t k = 0; k < list.num; k++)
        n += list.piece[k].count;
    free(list.piece);
    return n;
}

enum mr_err mr_file_set_view(struct mr_file *f, const struct mr_file_view *v, const struct mr_file_hints *hints,
                             enum mr_err wrong)
{
    struct in_file was = {f->etype, f->filetype}, given = {f->given_etype, f->given_filetype}, in = {0};
    struct views views = {0};
    enum mr_err err = wrong ? wrong : put_in_file(v, &in);

    err = gather_views(f, v, &in, err, &views);
    if (!err)
        err = mr_io_take_hints(f, hints);
    if (err) {
        drop(&in);
        return err;
    }
    f->etype = in.etype;
    f->filetype = in.filetype;
    f->given_etype = mr_type_get(v->etype);
    f->given_filetype = mr_type_get(v->filetype);
    f->view = (struct mr_tiling){v->disp, f->filetype};
    f->tile_pieces = pieces_of(&f->view);
    f->datarep = v->datarep;
    f->guarded = views.guard && f->hints.ds_write != MR_NEVER;
    f->overlaps = views.overlaps;
    f->at = 0;
    drop(&was);
    drop(&given);
    return mr_file_shared_set(f, 0, MR_SUCCESS);
}

enum mr_err mr_file_byte_offset(const struct mr_file *f, int64_t offset, int64_t *bytes)
{
    enum mr_err err = MR_SUCCESS;
    uint64_t nth;

    *bytes = f->view.disp;
    if (f->filetype->size && !(err = mr_io_first(f, offset, 1, &nth)))
        *bytes = mr_tiling_at(&f->view, nth);
    return err;
}

enum mr_err mr_file_end(struct mr_file *f, int64_t *offset)
{
    const struct mr_disk d = mr_io_disk(f);
    int64_t size = 0;
    enum mr_err err = mr_disk_size(&d, &size);

    *offset = 0;
    if (!err && f->filetype->size)
        *offset = (int64_t)((mr_tiling_before(&f->view, size) + f->etype->size - 1) / f->etype->size);
    return err;
}
