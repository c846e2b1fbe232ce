/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Access to the data of files (MPI-4.1 section 14.4) by all its names: at an offset, by the individual pointer, by the
 * shared pointer; alone, together, in the order of ranks; blocking, with a request, in two calls.
 */
#include "libmrmpi/api/file.h"

static enum mr_err file_data(void *buf, api_count count, MPI_Datatype datatype, struct mr_file_data *d)
{
    enum mr_err err = api_type(datatype, &d->type);
    if (!err)
        err = api_buffer(buf, count, d->type);
    d->buf = buf;
    d->count = (size_t)count;
    return err;
}

/* const_: whether the data is the program's to keep; the library does not write to it then. */
#define BODY_BLOCKING(offset, ...)                                                                                     \
    {                                                                                                                  \
        struct mr_file *f = NULL;                                                                                      \
        struct mr_file_data d;                                                                                         \
        struct mr_status st;                                                                                           \
        API_ENTER();                                                                                                   \
        CHECK(api_file(fh, &f));                                                                                       \
        enum mr_err wrong = file_data((void *)(uintptr_t)buf, count, datatype, &d);                                    \
        ALSO_NOT_MISSING(status);                                                                                      \
        CHECK(api_file_move(f, &(struct api_file_access){__VA_ARGS__}, offset, &d, wrong, &st));                       \
        api_status(status, &st);                                                                                       \
        API_LEAVE_FILE(f);                                                                                             \
    }
#define BODY_REQUEST(offset, ...)                                                                                      \
    {                                                                                                                  \
        struct mr_file *f = NULL;                                                                                      \
        struct mr_file_data d;                                                                                         \
        API_ENTER();                                                                                                   \
        CHECK(api_file(fh, &f));                                                                                       \
        NOT_NULL(request);                                                                                             \
        CHECK(file_data((void *)(uintptr_t)buf, count, datatype, &d));                                                 \
        err = api_file_start(f, &(struct api_file_access){__VA_ARGS__}, offset, &d, request);                          \
        API_LEAVE_FILE(f);                                                                                             \
    }
#define BODY_BEGIN(offset, ...)                                                                                        \
    {                                                                                                                  \
        struct mr_file *f = NULL;                                                                                      \
        struct mr_file_data d;                                                                                         \
        struct mr_status st;                                                                                           \
        API_ENTER();                                                                                                   \
        CHECK(api_file(fh, &f));                                                                                       \
        const enum mr_err wrong = file_data((void *)(uintptr_t)buf, count, datatype, &d);                              \
        err = api_file_move(f, &(struct api_file_access){__VA_ARGS__}, offset, &d, wrong, &st);                        \
        API_LEAVE_FILE(f);                                                                                             \
    }

#define BLOCKING(name, const_, ...)                                                                                    \
    MPI_COUNT_FN(int, name,                                                                                            \
                 (MPI_File fh, const_ void *buf, api_count count, MPI_Datatype datatype, MPI_Status *status))          \
    BODY_BLOCKING(0, __VA_ARGS__)
#define BLOCKING_AT(name, const_, ...)                                                                                 \
    MPI_COUNT_FN(int, name,                                                                                            \
                 (MPI_File fh, MPI_Offset offset, const_ void *buf, api_count count, MPI_Datatype datatype,            \
                  MPI_Status *status))                                                                                 \
    BODY_BLOCKING(offset, __VA_ARGS__)
#define REQUEST(name, const_, ...)                                                                                     \
    MPI_COUNT_FN(int, name,                                                                                            \
                 (MPI_File fh, const_ void *buf, api_count count, MPI_Datatype datatype, MPI_Request *request))        \
    BODY_REQUEST(0, __VA_ARGS__)
#define REQUEST_AT(name, const_, ...)                                                                                  \
    MPI_COUNT_FN(int, name,                                                                                            \
                 (MPI_File fh, MPI_Offset offset, const_ void *buf, api_count count, MPI_Datatype datatype,            \
                  MPI_Request *request))                                                                               \
    BODY_REQUEST(offset, __VA_ARGS__)
#define BEGIN(name, const_, ...)                                                                                       \
    MPI_COUNT_FN(int, name, (MPI_File fh, const_ void *buf, api_count count, MPI_Datatype datatype))                   \
    BODY_BEGIN(0, __VA_ARGS__)
#define BEGIN_AT(name, const_, ...)                                                                                    \
    MPI_COUNT_FN(int, name,                                                                                            \
                 (MPI_File fh, MPI_Offset offset, const_ void *buf, api_count count, MPI_Datatype datatype))           \
    BODY_BEGIN(offset, __VA_ARGS__)

BLOCKING_AT(File_read_at, , .at = API_FILE_AT)
BLOCKING_AT(File_read_at_all, , .at = API_FILE_AT, .all = true)
BLOCKING_AT(File_write_at, const, .at = API_FILE_AT, .write = true)
BLOCKING_AT(File_write_at_all, const, .at = API_FILE_AT, .write = true, .all = true)
BLOCKING(File_read, , .at = API_FILE_OWN)
BLOCKING(File_read_all, , .at = API_FILE_OWN, .all = true)
BLOCKING(File_write, const, .at = API_FILE_OWN, .write = true)
BLOCKING(File_write_all, const, .at = API_FILE_OWN, .write = true, .all = true)
BLOCKING(File_read_shared, , .at = API_FILE_SHARED)
BLOCKING(File_write_shared, const, .at = API_FILE_SHARED, .write = true)
BLOCKING(File_read_ordered, , .at = API_FILE_ORDERED, .all = true)
BLOCKING(File_write_ordered, const, .at = API_FILE_ORDERED, .write = true, .all = true)

/* A collective access with a request must not wait for others: each rank does its part alone. */
REQUEST_AT(File_iread_at, , .at = API_FILE_AT)
REQUEST_AT(File_iread_at_all, , .at = API_FILE_AT)
REQUEST_AT(File_iwrite_at, const, .at = API_FILE_AT, .write = true)
REQUEST_AT(File_iwrite_at_all, const, .at = API_FILE_AT, .write = true)
REQUEST(File_iread, , .at = API_FILE_OWN)
REQUEST(File_iread_all, , .at = API_FILE_OWN)
REQUEST(File_iwrite, const, .at = API_FILE_OWN, .write = true)
REQUEST(File_iwrite_all, const, .at = API_FILE_OWN, .write = true)
REQUEST(File_iread_shared, , .at = API_FILE_SHARED)
REQUEST(File_iwrite_shared, const, .at = API_FILE_SHARED, .write = true)

BEGIN_AT(File_read_at_all_begin, , .at = API_FILE_AT, .all = true, .split = MR_SPLIT_READ_AT)
BEGIN_AT(File_write_at_all_begin, const, .at = API_FILE_AT, .write = true, .all = true, .split = MR_SPLIT_WRITE_AT)
BEGIN(File_read_all_begin, , .at = API_FILE_OWN, .all = true, .split = MR_SPLIT_READ)
BEGIN(File_write_all_begin, const, .at = API_FILE_OWN, .write = true, .all = true, .split = MR_SPLIT_WRITE)
BEGIN(File_read_ordered_begin, , .at = API_FILE_ORDERED, .all = true, .split = MR_SPLIT_READ_ORDERED)
BEGIN(File_write_ordered_begin, const, .at = API_FILE_ORDERED, .write = true, .all = true,
      .split = MR_SPLIT_WRITE_ORDERED)

#ifdef API_LARGE
#define EXTENT_FN(args) MPI_FN(int, File_get_type_extent_c, args)
#define EXTENT          MPI_Count
#else
#define EXTENT_FN(args) MPI_FN(int, File_get_type_extent, args)
#define EXTENT          MPI_Aint
#endif

EXTENT_FN((MPI_File fh, MPI_Datatype datatype, EXTENT *extent))
{
    struct mr_file *f = NULL;
    struct mr_type *t;
    ptrdiff_t bytes;
    API_ENTER();
    CHECK(api_file(fh, &f));
    CHECK(api_type(datatype, &t));
    NOT_NULL(extent);
    CHECK(api_file_type_extent(f, t, &bytes));
    *extent = bytes;
    API_LEAVE_FILE(f);
}
