/* SPDX-License-Identifier: BSD-3-Clause */
/* Views of files, and pointers into them (MPI-4.1 sections 14.3 and 14.4). */
#include "libmrmpi/api/file.h"

#include <string.h>

/* ---- views (section 14.3) ---------------------------------------------------------------------------------------- */

static enum mr_err datarep_of(const char *name, const struct mr_datarep **to)
{
    *to = name ? mr_datarep_find(name) : NULL;
    if (*to)
        return MR_SUCCESS;
    return mr_fail(MR_ERR_UNSUPPORTED_DATAREP,
                   "datarep is %s%s%s: there are native, internal, external32, and those of MPI_Register_datarep",
                   name ? "\"" : "", name ? name : "a null pointer", name ? "\"" : "");
}

static enum mr_err committed(const struct mr_type *t, const char *name)
{
    return t->committed ? MR_SUCCESS : api_bad_type(t, name);
}

/* MPI_DISPLACEMENT_CURRENT is where the shared pointer is. */
static enum mr_err displacement(struct mr_file *f, MPI_Offset disp, int64_t *to)
{
    int64_t at = 0;
    enum mr_err err = MR_SUCCESS;
    *to = disp;
    if (!(f->amode & MR_FILE_SEQUENTIAL))
        return api_file_not_negative(disp, "disp");
    if (disp != MPI_DISPLACEMENT_CURRENT)
        return mr_fail(MR_ERR_ARG,
                       "disp is not MPI_DISPLACEMENT_CURRENT, and \"%s\" was opened with "
                       "MPI_MODE_SEQUENTIAL",
                       f->name);
    err = mr_file_shared_get(f, &at);
    return err ? err : mr_file_byte_offset(f, at, to);
}

MPI_FN(int, File_set_view,
       (MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype, const char *datarep, MPI_Info info))
{
    struct mr_file *f = NULL;
    struct mr_file_view v;
    enum mr_err wrong = MR_SUCCESS;
    API_ENTER();
    CHECK(api_file(fh, &f));
    struct mr_file_hints hints = f->hints;
    ALSO(api_file_no_split(f));
    ALSO(api_type(etype, &v.etype));
    ALSO(api_type(filetype, &v.filetype));
    ALSO(committed(v.etype, "etype"));
    ALSO(committed(v.filetype, "filetype"));
    ALSO(datarep_of(datarep, &v.datarep));
    ALSO(api_file_hints(info, &hints));
    ALSO(displacement(f, disp, &v.disp));
    err = mr_file_set_view(f, &v, &hints, wrong);
    API_LEAVE_FILE(f);
}

/* MPI's own types are returned themselves, others are copies for the program to free. */
static enum mr_err type_handle(struct mr_type *t, MPI_Datatype *h)
{
    if (t->builtin) {
        *h = abi_handle(MPI_Datatype, t->handle);
        return MR_SUCCESS;
    }
    return api_new_type(mr_type_dup(t), h);
}

MPI_FN(int, File_get_view, (MPI_File fh, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype, char *datarep))
{
    struct mr_file *f = NULL;
    API_ENTER();
    CHECK(api_file(fh, &f));
    NOT_NULL(disp);
    NOT_NULL(etype);
    NOT_NULL(filetype);
    NOT_NULL(datarep);
    CHECK(type_handle(f->given_etype, etype));
    CHECK(type_handle(f->given_filetype, filetype));
    *disp = f->view.disp;
    strcpy(datarep, mr_datarep_name(f->datarep));
    API_LEAVE_FILE(f);
}

MPI_FN(int, File_get_byte_offset, (MPI_File fh, MPI_Offset offset, MPI_Offset *disp))
{
    struct mr_file *f = NULL;
    int64_t bytes;
    API_ENTER();
    CHECK(api_file(fh, &f));
    CHECK(api_file_anywhere(f));
    CHECK(api_file_not_negative(offset, "offset"));
    NOT_NULL(disp);
    CHECK(mr_file_byte_offset(f, offset, &bytes));
    *disp = bytes;
    API_LEAVE_FILE(f);
}

enum mr_err api_file_type_extent(const struct mr_file *f, struct mr_type *t, ptrdiff_t *extent)
{
    enum mr_err err = mr_datarep_measure(f->datarep, t);
    struct mr_type *in_file;

    if (err)
        return err;
    in_file = mr_datarep_type(f->datarep, t);
    if (!in_file)
        return mr_fail(MR_ERR_NO_MEM, "no memory for a datatype");
    *extent = in_file->extent;
    mr_type_put(in_file);
    return MR_SUCCESS;
}

/* ---- pointers ---------------------------------------------------------------------------------------------------- */

/* From `current`, of the individual or the shared pointer. */
static enum mr_err seek(struct mr_file *f, MPI_Offset offset, int whence, int64_t current, int64_t *to)
{
    int64_t from = 0;
    enum mr_err err = MR_SUCCESS;
    if (whence == MPI_SEEK_CUR)
        from = current;
    else if (whence == MPI_SEEK_END)
        err = mr_file_end(f, &from);
    else if (whence != MPI_SEEK_SET)
        err = mr_fail(MR_ERR_ARG, "whence is %d: there are MPI_SEEK_SET, MPI_SEEK_CUR and MPI_SEEK_END", whence);
    if (!err && (__builtin_add_overflow(from, offset, to) || *to < 0))
        err = mr_fail(MR_ERR_ARG, "offset %lld leads from %lld to before the beginning of the view, or too far",
                      (long long)offset, (long long)from);
    return err;
}

MPI_FN(int, File_seek, (MPI_File fh, MPI_Offset offset, int whence))
{
    struct mr_file *f = NULL;
    int64_t to;
    API_ENTER();
    CHECK(api_file(fh, &f));
    CHECK(api_file_anywhere(f));
    CHECK(seek(f, offset, whence, f->at, &to));
    f->at = to;
    API_LEAVE_FILE(f);
}

MPI_FN(int, File_get_position, (MPI_File fh, MPI_Offset *offset))
{
    struct mr_file *f = NULL;
    API_ENTER();
    CHECK(api_file(fh, &f));
    CHECK(api_file_anywhere(f));
    NOT_NULL(offset);
    *offset = f->at;
    API_LEAVE_FILE(f);
}

MPI_FN(int, File_seek_shared, (MPI_File fh, MPI_Offset offset, int whence))
{
    struct mr_file *f = NULL;
    int64_t at = 0, to = 0;
    API_ENTER();
    CHECK(api_file(fh, &f));
    CHECK(api_file_anywhere(f));
    CHECK(mr_file_shared_get(f, &at));
    err = seek(f, offset, whence, at, &to);
    err = mr_file_shared_set(f, to, err);
    API_LEAVE_FILE(f);
}

MPI_FN(int, File_get_position_shared, (MPI_File fh, MPI_Offset *offset))
{
    struct mr_file *f = NULL;
    int64_t at;
    API_ENTER();
    CHECK(api_file(fh, &f));
    NOT_NULL(offset);
    CHECK(mr_file_shared_get(f, &at));
    *offset = at;
    API_LEAVE_FILE(f);
}
