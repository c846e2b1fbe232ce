/* SPDX-License-Identifier: BSD-3-Clause */
/* Data representations of the program (MPI-4.1 section 14.5.3): registering, and calls of the program's functions. */
#include "libmrmpi/api/file.h"

#include <limits.h>
#include <string.h>

static int call_extent(const struct mr_datarep_calls *calls, const struct mr_type *basic, int64_t *bytes)
{
    MPI_Aint extent = -1;
    int code;

    api_in_callback++;
    code =
        ((MPI_Datarep_extent_function *)calls->extent)(abi_handle(MPI_Datatype, basic->handle), &extent, calls->extra);
    api_in_callback--;
    *bytes = extent;
    return code;
}

static int call_convert(const struct mr_datarep_calls *calls, bool write, void *buf, struct mr_type *type,
                        int64_t items, void *file, int64_t position)
{
    const mr_user_fn fn = write ? calls->write : calls->read;
    int code;

    api_in_callback++;
    code = ((MPI_Datarep_conversion_function *)fn)(buf, abi_handle(MPI_Datatype, type->handle), (int)items, file,
                                                   position, calls->extra);
    api_in_callback--;
    return code;
}

static int call_convert_large(const struct mr_datarep_calls *calls, bool write, void *buf, struct mr_type *type,
                              int64_t items, void *file, int64_t position)
{
    const mr_user_fn fn = write ? calls->write : calls->read;
    int code;

    api_in_callback++;
    code = ((MPI_Datarep_conversion_function_c *)fn)(buf, abi_handle(MPI_Datatype, type->handle), items, file, position,
                                                     calls->extra);
    api_in_callback--;
    return code;
}

static enum mr_err register_datarep(const char *name, const struct mr_datarep_calls *calls)
{
    if (!name)
        return api_null("datarep");
    if (strlen(name) >= MPI_MAX_DATAREP_STRING)
        return mr_fail(MR_ERR_ARG, "datarep has %zu characters, %d are allowed", strlen(name),
                       MPI_MAX_DATAREP_STRING - 1);
    if (!calls->extent)
        return api_null("dtype_file_extent_fn");
    return mr_datarep_register(name, calls);
}

MPI_FN(int, Register_datarep,
       (const char *datarep, MPI_Datarep_conversion_function *read_conversion_fn,
        MPI_Datarep_conversion_function *write_conversion_fn, MPI_Datarep_extent_function *dtype_file_extent_fn,
        void *extra_state))
{
    const struct mr_datarep_calls calls = {.read = (mr_user_fn)read_conversion_fn,
                                           .write = (mr_user_fn)write_conversion_fn,
                                           .extent = (mr_user_fn)dtype_file_extent_fn,
                                           .extra = extra_state,
                                           .items_most = INT_MAX,
                                           .call_extent = call_extent,
                                           .call_convert = call_convert};
    API_ENTER();
    err = register_datarep(datarep, &calls);
    API_LEAVE_FILE(NULL);
}

MPI_FN(int, Register_datarep_c,
       (const char *datarep, MPI_Datarep_conversion_function_c *read_conversion_fn,
        MPI_Datarep_conversion_function_c *write_conversion_fn, MPI_Datarep_extent_function *dtype_file_extent_fn,
        void *extra_state))
{
    const struct mr_datarep_calls calls = {.read = (mr_user_fn)read_conversion_fn,
                                           .write = (mr_user_fn)write_conversion_fn,
                                           .extent = (mr_user_fn)dtype_file_extent_fn,
                                           .extra = extra_state,
                                           .items_most = INT64_MAX,
                                           .call_extent = call_extent,
                                           .call_convert = call_convert_large};
    API_ENTER();
    err = register_datarep(datarep, &calls);
    API_LEAVE_FILE(NULL);
}
