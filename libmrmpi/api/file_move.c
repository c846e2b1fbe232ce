/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds of access to the data of files (MPI-4.1 section 14.4); file_access.c has all their names. */
#include "libmrmpi/api/file.h"

static enum mr_err may(const struct mr_file *f, const struct api_file_access *a, MPI_Offset offset)
{
    enum mr_err err = a->write ? api_file_may_write(f) : api_file_may_read(f);
    if (!err && a->at != API_FILE_SHARED && a->at != API_FILE_ORDERED)
        err = api_file_anywhere(f);
    if (!err && a->at == API_FILE_AT)
        err = api_file_not_negative(offset, "offset");
    if (!err && a->all)
        err = api_file_no_split(f);
    return err;
}

/* The beginning of the access; the pointer moves behind the access, whatever its result. */
static enum mr_err place_access(struct mr_file *f, enum api_file_at at, MPI_Offset given, int64_t etypes,
                                int64_t *offset)
{
    switch (at) {
    case API_FILE_SHARED:
        return mr_file_shared_take(f, etypes, offset);
    case API_FILE_ORDERED:
        return mr_file_shared_take_ordered(f, etypes, offset);
    case API_FILE_OWN:
        *offset = f->at;
        if (__builtin_add_overflow(f->at, etypes, &f->at))
            f->at = INT64_MAX; /* the access fails */
        return MR_SUCCESS;
    default:
        *offset = given;
        return MR_SUCCESS;
    }
}

/* In a collective access a rank with an error still takes part. */
enum mr_err api_file_move(struct mr_file *f, const struct api_file_access *a, MPI_Offset given,
                          const struct mr_file_data *d, enum mr_err wrong, struct mr_status *st)
{
    int64_t etypes = 0, offset = 0;
    size_t bytes = 0;
    ALSO(may(f, a, given));
    ALSO(mr_file_data_size(f, d, &bytes, &etypes));
    if (wrong && !a->all)
        return wrong;
    enum mr_err err = place_access(f, a->at, given, etypes, &offset);
    if (err)
        return err;
    err = a->all ? mr_file_access_all(f, a->write, offset, d, wrong, &bytes)
                 : mr_file_access(f, a->write, offset, d, &bytes);
    *st = (struct mr_status){.source = MR_ANY_SOURCE, .tag = MR_ANY_TAG, .bytes = bytes};
    if (err || a->split == MR_SPLIT_NONE)
        return err;
    f->split = a->split;
    f->split_buf = d->buf;
    f->split_bytes = bytes;
    return MR_SUCCESS;
}

enum mr_err api_file_start(struct mr_file *f, const struct api_file_access *a, MPI_Offset offset,
                           const struct mr_file_data *d, MPI_Request *request)
{
    struct mr_status st;
    enum mr_err err = api_file_move(f, a, offset, d, MR_SUCCESS, &st);
    return err ? err : api_new_request(mr_request_received(&st), request);
}

enum mr_err api_file_split_end(struct mr_file *f, enum mr_file_split split, const void *buf, MPI_Status *status)
{
    if (f->split != split)
        return mr_fail(MR_ERR_OTHER, "no such split collective access to \"%s\" has begun", f->name);
    if (buf != f->split_buf)
        return mr_fail(MR_ERR_BUFFER, "buf is not that with which the access to \"%s\" has begun", f->name);
    f->split = MR_SPLIT_NONE;
    api_status(status, &(struct mr_status){.source = MR_ANY_SOURCE, .tag = MR_ANY_TAG, .bytes = f->split_bytes});
    return MR_SUCCESS;
}

#define SPLIT_END(name, const_, kind)                                                                                  \
    MPI_FN(int, name, (MPI_File fh, const_ void *buf, MPI_Status *status))                                             \
    {                                                                                                                  \
        struct mr_file *f = NULL;                                                                                      \
        API_ENTER();                                                                                                   \
        CHECK(api_file(fh, &f));                                                                                       \
        NOT_MISSING(status);                                                                                           \
        err = api_file_split_end(f, kind, buf, status);                                                                \
        API_LEAVE_FILE(f);                                                                                             \
    }
SPLIT_END(File_read_all_end, , MR_SPLIT_READ)
SPLIT_END(File_read_at_all_end, , MR_SPLIT_READ_AT)
SPLIT_END(File_read_ordered_end, , MR_SPLIT_READ_ORDERED)
SPLIT_END(File_write_all_end, const, MR_SPLIT_WRITE)
SPLIT_END(File_write_at_all_end, const, MR_SPLIT_WRITE_AT)
SPLIT_END(File_write_ordered_end, const, MR_SPLIT_WRITE_ORDERED)
