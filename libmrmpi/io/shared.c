/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared pointer: a number in a window of the first rank, used by all with fetch-and-add. Nothing of it is in the
 * file system, so it works with read-only files, and a killed job leaves nothing behind.
 */
#include "libmrmpi/io/internal.h"

#include <string.h>

#include "libmrmpi/coll/coll.h"
#include "libmrmpi/rma/rma.h"

#define NUMBER (&mr_type_basic[MR_BASIC_INT64_T])

enum mr_err mr_io_shared_open(struct mr_file *f)
{
    const bool first = f->comm->rank == 0;
    const struct mr_win_part part = {
        .size = first ? sizeof(int64_t) : 0, .disp_unit = 1, .hints = {.ordering = MR_ORDER_ALL}};
    enum mr_err err;

    if (mr_io_alone(f))
        return MR_SUCCESS;
    err = mr_win_make(f->comm, MR_WIN_ALLOCATE, &part, MR_SUCCESS, &f->shared);
    if (err)
        return err;
    if (first)
        memset(f->shared->base, 0, sizeof(int64_t));
    err = mr_io_barrier(f);
    if (!err)
        err = mr_win_lock_all(f->shared, MR_MODE_NOCHECK);
    if (err)
        mr_io_shared_abandon(f, err);
    return err;
}

void mr_io_shared_abandon(struct mr_file *f, enum mr_err err)
{
    struct mr_win *w = f->shared;

    f->shared = NULL;
    if (w)
        mr_win_abandon(w, err);
}

enum mr_err mr_io_shared_close(struct mr_file *f)
{
    struct mr_win *w = f->shared;
    enum mr_err err, met;

    if (!w)
        return MR_SUCCESS;
    f->shared = NULL;
    err = mr_win_unlock_all(w);
    met = mr_win_close(w); /* whatever the error: others may still use the pointer */
    return err ? err : met;
}

/* Returns the former value while changing it. */
static enum mr_err update_shared_pointer(struct mr_file *f, int64_t by, enum mr_op_id op, int64_t *was)
{
    enum mr_err err;

    if (!f->shared) {
        *was = f->shared_at;
        f->shared_at = op == MR_OP_REPLACE ? by : op == MR_OP_SUM ? *was + by : *was;
        return MR_SUCCESS;
    }
    err = mr_update_elements(f->shared, &by, was, 1, NUMBER, 0, 0, &mr_op_builtin[op]);
    return err ? err : mr_win_flush(f->shared, 0);
}

enum mr_err mr_file_shared_get(struct mr_file *f, int64_t *offset)
{
    return update_shared_pointer(f, 0, MR_OP_SUM, offset);
}

enum mr_err mr_file_shared_take(struct mr_file *f, int64_t n, int64_t *offset)
{
    return update_shared_pointer(f, n, MR_OP_SUM, offset);
}

enum mr_err mr_file_shared_set(struct mr_file *f, int64_t offset, enum mr_err wrong)
{
    int64_t was, first = offset;
    enum mr_err err = mr_io_tell(f, &first, sizeof(first));

    if (!err && first != offset)
        err = mr_fail(MR_ERR_NOT_SAME, "the shared pointer is to be %lld here and %lld at rank 0", (long long)offset,
                      (long long)first);
    err = mr_io_agree(f, wrong ? wrong : err);
    if (!err && !f->comm->rank)
        err = update_shared_pointer(f, offset, MR_OP_REPLACE, &was);
    return mr_io_agree(f, err);
}

enum mr_err mr_file_shared_take_ordered(struct mr_file *f, int64_t n, int64_t *offset)
{
    struct mr_op *sum = &mr_op_builtin[MR_OP_SUM];
    int64_t upto = n, base = 0;
    const int last = f->comm->size - 1;
    struct mr_schedule *s = NULL;
    enum mr_err err = mr_coll_scan(&n, &upto, 1, NUMBER, sum, false, f->comm, &s), built;

    err = mr_coll_run(err, s);
    if (err)
        return err;
    if (f->comm->rank == last)
        err = update_shared_pointer(f, upto, MR_OP_SUM, &base);
    s = NULL;
    built = mr_coll_bcast(&base, 1, NUMBER, last, f->comm, &s);
    err = mr_coll_run_after(err, built, s);
    *offset = base + upto - n;
    return err;
}
