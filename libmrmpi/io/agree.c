/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between the members of a file's communicator. */
#include "libmrmpi/io/internal.h"

#include "libmrmpi/coll/coll.h"

enum mr_err mr_io_barrier(const struct mr_file *f)
{
    struct mr_schedule *s = NULL;
    enum mr_err err;

    if (mr_io_alone(f))
        return MR_SUCCESS;
    err = mr_coll_barrier(f->comm, &s);
    return mr_coll_run(err, s);
}

enum mr_err mr_io_gather(const struct mr_file *f, const void *mine, void *all, size_t bytes)
{
    struct mr_schedule *s = NULL;
    enum mr_err err = mr_coll_allgather(mine, bytes, mr_type_byte, all, bytes, mr_type_byte, f->comm, &s);

    return mr_coll_run(err, s);
}

enum mr_err mr_io_tell(const struct mr_file *f, void *to, size_t bytes)
{
    struct mr_schedule *s = NULL;
    enum mr_err err;

    if (mr_io_alone(f))
        return MR_SUCCESS;
    err = mr_coll_bcast(to, bytes, mr_type_byte, 0, f->comm, &s);
    return mr_coll_run(err, s);
}

/* The class, and behind it its rank: the greatest counts. */
enum mr_err mr_io_agree(const struct mr_file *f, enum mr_err err)
{
    int64_t mine = err ? (int64_t)err << 32 | f->comm->rank : 0, worst = mine;
    struct mr_schedule *s = NULL;
    enum mr_err met;

    if (mr_io_alone(f))
        return err;
    met = mr_coll_allreduce(&mine, &worst, 1, &mr_type_basic[MR_BASIC_INT64_T], &mr_op_builtin[MR_OP_MAX], f->comm, &s);
    met = mr_coll_run(met, s);
    if (err || met)
        return err ? err : met;
    return worst ? mr_fail((enum mr_err)(worst >> 32), "rank %d failed with \"%s\"", (int)(worst & INT32_MAX), f->name)
                 : MR_SUCCESS;
}

enum mr_err mr_io_take_hints(struct mr_file *f, const struct mr_file_hints *hints)
{
    struct mr_file_hints first = *hints;
    enum mr_err err = mr_io_tell(f, &first, sizeof(first));

    if (!err)
        f->hints = first;
    return err;
}
