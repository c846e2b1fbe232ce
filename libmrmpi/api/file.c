/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files (MPI-4.1 chapter 14): hints, opening and closing, queries of whole files. Views and pointers are in
 * file_view.c, data in file_move.c and file_access.c.
 */
#include "libmrmpi/api/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/api/life.h"

/* ---- hints (MPI-4.1 section 14.2.8) ------------------------------------------------------------------------------ */

static void read_file_size_hint(const struct mr_info *i, const char *key, int64_t *to)
{
    const char *value = mr_info_find(i, key);
    char *end;
    long long n = value ? strtoll(value, &end, 10) : 0;
    if (value && end != value && !*end && n > 0 && n <= INT32_MAX)
        *to = n;
}

static const char *const when_names[] = {
    [MR_WHEN_IT_PAYS] = "automatic", [MR_ALWAYS] = "enable", [MR_NEVER] = "disable"};

static void read_when(const struct mr_info *i, const char *key, enum mr_when *to)
{
    const char *value = mr_info_find(i, key);
    for (int w = 0; value && w < 3; w++)
        if (!strcmp(value, when_names[w]))
            *to = (enum mr_when)w;
}

/* Unknown or meaningless hints are ignored. */
static void read_file_hints(const struct mr_info *i, struct mr_file_hints *h)
{
    const char *collective = mr_info_find(i, "collective_buffering");
    int64_t nodes = h->cb_nodes;
    if (collective && (!strcmp(collective, "true") || !strcmp(collective, "false")))
        h->cb_read = h->cb_write = *collective == 't' ? MR_WHEN_IT_PAYS : MR_NEVER;
    read_file_size_hint(i, "cb_buffer_size", &h->cb_buffer_size);
    read_file_size_hint(i, "cb_nodes", &nodes);
    h->cb_nodes = (int)nodes;
    read_file_size_hint(i, "striping_unit", &h->striping_unit);
    read_file_size_hint(i, "ind_rd_buffer_size", &h->read_size);
    read_file_size_hint(i, "ind_wr_buffer_size", &h->write_size);
    read_when(i, "romio_cb_read", &h->cb_read);
    read_when(i, "romio_cb_write", &h->cb_write);
    read_when(i, "romio_ds_read", &h->ds_read);
    read_when(i, "romio_ds_write", &h->ds_write);
}

enum mr_err api_file_hints(MPI_Info info, struct mr_file_hints *h)
{
    struct mr_info *i;
    enum mr_err err = info == MPI_INFO_NULL ? MR_SUCCESS : api_info(info, &i);
    if (!err && info != MPI_INFO_NULL)
        read_file_hints(i, h);
    return err;
}

static bool set_number(struct mr_info *i, const char *key, int64_t n)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)n);
    return mr_info_set(i, key, text);
}

static struct mr_info *list_file_hints(const struct mr_file *f)
{
    const struct mr_file_hints *h = &f->hints;
    struct mr_info *i = mr_info_new();
    if (i && set_number(i, "cb_buffer_size", h->cb_buffer_size) && set_number(i, "cb_nodes", f->num_aggregators) &&
        set_number(i, "ind_rd_buffer_size", h->read_size) && set_number(i, "ind_wr_buffer_size", h->write_size) &&
        mr_info_set(i, "romio_cb_read", when_names[h->cb_read]) &&
        mr_info_set(i, "romio_cb_write", when_names[h->cb_write]) &&
        mr_info_set(i, "romio_ds_read", when_names[h->ds_read]) &&
        mr_info_set(i, "romio_ds_write", when_names[h->ds_write]) &&
        (!h->striping_unit || set_number(i, "striping_unit", h->striping_unit)))
        return i;
    mr_info_put(i);
    return NULL;
}

MPI_FN(int, File_set_info, (MPI_File fh, MPI_Info info))
{
    struct mr_file *f = NULL;
    API_ENTER();
    CHECK(api_file(fh, &f));
    struct mr_file_hints hints = f->hints;
    err = mr_file_set_hints(f, &hints, api_file_hints(info, &hints));
    API_LEAVE_FILE(f);
}

MPI_FN(int, File_get_info, (MPI_File fh, MPI_Info *info_used))
{
    struct mr_file *f = NULL;
    API_ENTER();
    CHECK(api_file(fh, &f));
    NOT_NULL(info_used);
    err = api_new_info(list_file_hints(f), info_used);
    API_LEAVE_FILE(f);
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

/* as: the program's number for it */
static enum mr_err check_amode(unsigned amode, int as)
{
    const unsigned known = 2 * MR_FILE_SEQUENTIAL - 1,
                   access = amode & (MR_FILE_RDONLY | MR_FILE_WRONLY | MR_FILE_RDWR);
    if (amode & ~known)
        return mr_fail(MR_ERR_AMODE, "amode is 0x%x, which has bits that no mode has", (unsigned)as);
    if (access != MR_FILE_RDONLY && access != MR_FILE_WRONLY && access != MR_FILE_RDWR)
        return mr_fail(MR_ERR_AMODE, "amode is 0x%x: one of MPI_MODE_RDONLY, MPI_MODE_WRONLY, MPI_MODE_RDWR is needed",
                       (unsigned)as);
    if (access == MR_FILE_RDONLY && amode & (MR_FILE_CREATE | MR_FILE_EXCL))
        return mr_fail(MR_ERR_AMODE, "amode is 0x%x: what may only be read cannot be created", (unsigned)as);
    if (access == MR_FILE_RDWR && amode & MR_FILE_SEQUENTIAL)
        return mr_fail(MR_ERR_AMODE, "amode is 0x%x: MPI_MODE_SEQUENTIAL is for reading or for writing", (unsigned)as);
    return MR_SUCCESS;
}

static enum mr_err new_handle(struct mr_file *f, MPI_File *fh)
{
    f->handle = api_handle_new(ABI_FILE, f);
    *fh = f->handle ? api_file_handle(f) : MPI_FILE_NULL;
    return f->handle ? MR_SUCCESS : mr_fail(MR_ERR_NO_MEM, "no memory for a new file");
}

MPI_FN(int, File_open, (MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh))
{
    struct mr_comm *c = NULL;
    struct mr_file *f;
    struct mr_file_hints hints;
    enum mr_err wrong = MR_SUCCESS;
    const unsigned modes = abi_amode_in(amode);
    API_ENTER();
    if (fh)
        *fh = MPI_FILE_NULL;
    CHECK(api_comm(comm, &c));
    CHECK(api_intra(c));
    ALSO_NOT_NULL(fh);
    ALSO_NOT_NULL(filename);
    ALSO(check_amode(modes, amode));
    mr_file_default_hints(&hints);
    ALSO(api_file_hints(info, &hints));
    CHECK(mr_file_open(c, filename, modes, &hints, api_file_null_handler(), wrong, &f));
    err = new_handle(f, fh);
    API_LEAVE_FILE(NULL);
}

enum mr_err api_file_no_split(const struct mr_file *f)
{
    return f->split == MR_SPLIT_NONE
               ? MR_SUCCESS
               : mr_fail(MR_ERR_OTHER, "a split collective access to \"%s\" has begun, and not ended", f->name);
}

MPI_FN(int, File_close, (MPI_File * fh))
{
    struct mr_file *f = NULL;
    API_ENTER();
    NOT_NULL(fh);
    CHECK(api_file(*fh, &f));
    CHECK(api_file_no_split(f));
    struct mr_errhandler *h = mr_errhandler_get(f->errhandler);
    err = mr_file_close(f);
    f = NULL;
    api_handle_free(ABI_FILE, abi_number(*fh));
    *fh = MPI_FILE_NULL;
    if (!err) {
        mr_errhandler_put(h);
        goto out;
    }
    int code = api_fail_with(h, NULL, err, __func__ + 1);
    api_lock();
    mr_errhandler_put(h);
    api_unlock();
    return code;
    API_LEAVE_FILE(f);
}

MPI_FN(int, File_delete, (const char *filename, MPI_Info info))
{
    API_ENTER();
    NOT_NULL(filename);
    CHECK(api_hints(info));
    err = mr_file_delete(filename);
    API_LEAVE_FILE(NULL);
}

/* ---- whole files ------------------------------------------------------------------------------------------------- */

enum mr_err api_file_may_write(const struct mr_file *f)
{
    return f->amode & MR_FILE_RDONLY ? mr_fail(MR_ERR_READ_ONLY, "\"%s\" is open for reading only", f->name)
                                     : MR_SUCCESS;
}

enum mr_err api_file_may_read(const struct mr_file *f)
{
    return f->amode & MR_FILE_WRONLY ? mr_fail(MR_ERR_ACCESS, "\"%s\" is open for writing only", f->name) : MR_SUCCESS;
}

/* With MPI_MODE_SEQUENTIAL only the shared pointer leads anywhere. */
enum mr_err api_file_anywhere(const struct mr_file *f)
{
    return f->amode & MR_FILE_SEQUENTIAL
               ? mr_fail(MR_ERR_UNSUPPORTED_OPERATION, "\"%s\" was opened with MPI_MODE_SEQUENTIAL", f->name)
               : MR_SUCCESS;
}

enum mr_err api_file_not_negative(MPI_Offset n, const char *name)
{
    return n < 0 ? mr_fail(MR_ERR_ARG, "%s is %lld", name, (long long)n) : MR_SUCCESS;
}

#define RESIZES(name, what)                                                                                            \
    MPI_FN(int, name, (MPI_File fh, MPI_Offset size))                                                                  \
    {                                                                                                                  \
        struct mr_file *f = NULL;                                                                                      \
        API_ENTER();                                                                                                   \
        CHECK(api_file(fh, &f));                                                                                       \
        CHECK(api_file_may_write(f));                                                                                  \
        err = what(f, size, api_file_not_negative(size, "size"));                                                      \
        API_LEAVE_FILE(f);                                                                                             \
    }
RESIZES(File_set_size, mr_file_set_size)
RESIZES(File_preallocate, mr_file_preallocate)

MPI_FN(int, File_get_size, (MPI_File fh, MPI_Offset *size))
{
    struct mr_file *f = NULL;
    int64_t bytes;
    API_ENTER();
    CHECK(api_file(fh, &f));
    NOT_NULL(size);
    CHECK(mr_file_size(f, &bytes));
    *size = bytes;
    API_LEAVE_FILE(f);
}

MPI_FN(int, File_sync, (MPI_File fh))
{
    struct mr_file *f = NULL;
    API_ENTER();
    CHECK(api_file(fh, &f));
    err = mr_file_sync(f);
    API_LEAVE_FILE(f);
}

MPI_FN(int, File_get_group, (MPI_File fh, MPI_Group *group))
{
    struct mr_file *f = NULL;
    API_ENTER();
    CHECK(api_file(fh, &f));
    NOT_NULL(group);
    err = api_new_group(mr_group_get(f->comm->group), group);
    API_LEAVE_FILE(f);
}

MPI_FN(int, File_get_amode, (MPI_File fh, int *amode))
{
    struct mr_file *f = NULL;
    API_ENTER();
    CHECK(api_file(fh, &f));
    NOT_NULL(amode);
    *amode = abi_amode_out(f->amode);
    API_LEAVE_FILE(f);
}

MPI_FN(int, File_set_atomicity, (MPI_File fh, int flag))
{
    struct mr_file *f = NULL;
    API_ENTER();
    CHECK(api_file(fh, &f));
    err = mr_file_set_atomic(f, flag);
    API_LEAVE_FILE(f);
}

MPI_FN(int, File_get_atomicity, (MPI_File fh, int *flag))
{
    struct mr_file *f = NULL;
    API_ENTER();
    CHECK(api_file(fh, &f));
    NOT_NULL(flag);
    *flag = f->atomic;
    API_LEAVE_FILE(f);
}
