/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this version has not got: files, processes that come later, going on after a failure. The functions are there,
 * so that programs that could call them link and run; each gives MPI_ERR_UNSUPPORTED_OPERATION to the error handler of
 * its communicator, of files, or of the world, and leaves null handles and zeros in what it would return. Since no file
 * can be made, the handles of such are not looked at.
 */
#include "libmrmpi/api/api.h"

#include <string.h>

#include "libmrmpi/api/life.h"

#define NONE(out, value)                                                                                               \
    if (out)                                                                                                           \
        *(out) = (value);
#define NO_TEXT(out) NONE(out, '\0')
#define NO_STATUS(out)                                                                                                 \
    if (out)                                                                                                           \
        api_status_empty(out);
#define NO_MEMORY(out)                                                                                                 \
    if (out)                                                                                                           \
        memset((out), 0, sizeof(void *));

static enum mr_err absent(void)
{
    return mr_fail(MR_ERR_UNSUPPORTED_OPERATION, "mrmpi %s has not got this function", MRMPI_VERSION);
}

#define BODY_WORLD(...)                                                                                                \
    {                                                                                                                  \
        API_ENTER();                                                                                                   \
        __VA_ARGS__                                                                                                    \
        CHECK(absent());                                                                                               \
        API_LEAVE(NULL);                                                                                               \
    }
#define BODY_FILE(...)                                                                                                 \
    {                                                                                                                  \
        API_ENTER();                                                                                                   \
        __VA_ARGS__                                                                                                    \
        err = absent();                                                                                                \
        return api_fail_file(err, __func__ + 1);                                                                       \
    }
#define BODY_COMM(...)                                                                                                 \
    {                                                                                                                  \
        struct mr_comm *c = NULL;                                                                                      \
        API_ENTER();                                                                                                   \
        __VA_ARGS__                                                                                                    \
        CHECK(api_comm(comm, &c));                                                                                     \
        err = absent();                                                                                                \
        API_LEAVE(c);                                                                                                  \
    }
#define ABSENT_WORLD(name, args, ...) MPI_FN(int, name, args) BODY_WORLD(__VA_ARGS__)
#define ABSENT_FILE(name, args, ...)  MPI_FN(int, name, args) BODY_FILE(__VA_ARGS__)
#define ABSENT_COMM(name, args, ...)  MPI_FN(int, name, args) BODY_COMM(__VA_ARGS__)
#define XABSENT_COMM(name, args, ...) MPIX_FN(int, name, args) BODY_COMM(__VA_ARGS__)

/* ---- Dynamic processes (chapter 11) ---- */

ABSENT_WORLD(Close_port, (const char *port_name))
ABSENT_COMM(Comm_accept, (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),
            NONE(newcomm, MPI_COMM_NULL))
ABSENT_COMM(Comm_connect, (const char *port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *newcomm),
            NONE(newcomm, MPI_COMM_NULL))
ABSENT_WORLD(Comm_join, (int fd, MPI_Comm *intercomm), NONE(intercomm, MPI_COMM_NULL))
ABSENT_COMM(Comm_spawn,
            (const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm,
             MPI_Comm *intercomm, int array_of_errcodes[]),
            NONE(intercomm, MPI_COMM_NULL))
ABSENT_COMM(Comm_spawn_multiple,
            (int count, char *array_of_commands[], char **array_of_argv[], const int array_of_maxprocs[],
             const MPI_Info array_of_info[], int root, MPI_Comm comm, MPI_Comm *intercomm, int array_of_errcodes[]),
            NONE(intercomm, MPI_COMM_NULL))
ABSENT_WORLD(Lookup_name, (const char *service_name, MPI_Info info, char *port_name), NO_TEXT(port_name))
ABSENT_WORLD(Open_port, (MPI_Info info, char *port_name), NO_TEXT(port_name))
ABSENT_WORLD(Publish_name, (const char *service_name, MPI_Info info, const char *port_name))
ABSENT_WORLD(Unpublish_name, (const char *service_name, MPI_Info info, const char *port_name))

/* ---- Files (chapter 14) ---- */

ABSENT_FILE(File_close, (MPI_File * fh))
ABSENT_FILE(File_delete, (const char *filename, MPI_Info info))
ABSENT_FILE(File_get_amode, (MPI_File fh, int *amode), NONE(amode, 0))
ABSENT_FILE(File_get_atomicity, (MPI_File fh, int *flag), NONE(flag, 0))
ABSENT_FILE(File_get_byte_offset, (MPI_File fh, MPI_Offset offset, MPI_Offset *disp), NONE(disp, 0))
ABSENT_FILE(File_get_group, (MPI_File fh, MPI_Group *group), NONE(group, MPI_GROUP_NULL))
ABSENT_FILE(File_get_info, (MPI_File fh, MPI_Info *info_used), NONE(info_used, MPI_INFO_NULL))
ABSENT_FILE(File_get_position, (MPI_File fh, MPI_Offset *offset), NONE(offset, 0))
ABSENT_FILE(File_get_position_shared, (MPI_File fh, MPI_Offset *offset), NONE(offset, 0))
ABSENT_FILE(File_get_size, (MPI_File fh, MPI_Offset *size), NONE(size, 0))
ABSENT_FILE(File_get_type_extent, (MPI_File fh, MPI_Datatype datatype, MPI_Aint *extent), NONE(extent, 0))
ABSENT_FILE(File_get_type_extent_c, (MPI_File fh, MPI_Datatype datatype, MPI_Count *extent), NONE(extent, 0))
ABSENT_FILE(File_get_view, (MPI_File fh, MPI_Offset *disp, MPI_Datatype *etype, MPI_Datatype *filetype, char *datarep),
            NONE(disp, 0) NONE(etype, MPI_DATATYPE_NULL) NONE(filetype, MPI_DATATYPE_NULL) NO_TEXT(datarep))
ABSENT_FILE(File_iread, (MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iread_all, (MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iread_all_c, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iread_at,
            (MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iread_at_all,
            (MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iread_at_all_c,
            (MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iread_at_c,
            (MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iread_c, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iread_shared, (MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iread_shared_c, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iwrite, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iwrite_all, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iwrite_all_c,
            (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iwrite_at,
            (MPI_File fh, MPI_Offset offset, const void *buf, int count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iwrite_at_all,
            (MPI_File fh, MPI_Offset offset, const void *buf, int count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iwrite_at_all_c,
            (MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count, MPI_Datatype datatype,
             MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iwrite_at_c,
            (MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count, MPI_Datatype datatype,
             MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iwrite_c, (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iwrite_shared, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_iwrite_shared_c,
            (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Request *request),
            NONE(request, MPI_REQUEST_NULL))
ABSENT_FILE(File_open, (MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh),
            NONE(fh, MPI_FILE_NULL))
ABSENT_FILE(File_preallocate, (MPI_File fh, MPI_Offset size))
ABSENT_FILE(File_read, (MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_read_all, (MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_read_all_begin, (MPI_File fh, void *buf, int count, MPI_Datatype datatype))
ABSENT_FILE(File_read_all_begin_c, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype))
ABSENT_FILE(File_read_all_c, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_read_all_end, (MPI_File fh, void *buf, MPI_Status *status), NO_STATUS(status))
ABSENT_FILE(File_read_at,
            (MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_read_at_all,
            (MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_read_at_all_begin, (MPI_File fh, MPI_Offset offset, void *buf, int count, MPI_Datatype datatype))
ABSENT_FILE(File_read_at_all_begin_c,
            (MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count, MPI_Datatype datatype))
ABSENT_FILE(File_read_at_all_c,
            (MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_read_at_all_end, (MPI_File fh, void *buf, MPI_Status *status), NO_STATUS(status))
ABSENT_FILE(File_read_at_c,
            (MPI_File fh, MPI_Offset offset, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_read_c, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_read_ordered, (MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_read_ordered_begin, (MPI_File fh, void *buf, int count, MPI_Datatype datatype))
ABSENT_FILE(File_read_ordered_begin_c, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype))
ABSENT_FILE(File_read_ordered_c, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_read_ordered_end, (MPI_File fh, void *buf, MPI_Status *status), NO_STATUS(status))
ABSENT_FILE(File_read_shared, (MPI_File fh, void *buf, int count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_read_shared_c, (MPI_File fh, void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_seek, (MPI_File fh, MPI_Offset offset, int whence))
ABSENT_FILE(File_seek_shared, (MPI_File fh, MPI_Offset offset, int whence))
ABSENT_FILE(File_set_atomicity, (MPI_File fh, int flag))
ABSENT_FILE(File_set_info, (MPI_File fh, MPI_Info info))
ABSENT_FILE(File_set_size, (MPI_File fh, MPI_Offset size))
ABSENT_FILE(File_set_view, (MPI_File fh, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                            const char *datarep, MPI_Info info))
ABSENT_FILE(File_sync, (MPI_File fh))
ABSENT_FILE(File_write, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_write_all, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_write_all_begin, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype))
ABSENT_FILE(File_write_all_begin_c, (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype))
ABSENT_FILE(File_write_all_c,
            (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_write_all_end, (MPI_File fh, const void *buf, MPI_Status *status), NO_STATUS(status))
ABSENT_FILE(File_write_at,
            (MPI_File fh, MPI_Offset offset, const void *buf, int count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_write_at_all,
            (MPI_File fh, MPI_Offset offset, const void *buf, int count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_write_at_all_begin,
            (MPI_File fh, MPI_Offset offset, const void *buf, int count, MPI_Datatype datatype))
ABSENT_FILE(File_write_at_all_begin_c,
            (MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count, MPI_Datatype datatype))
ABSENT_FILE(File_write_at_all_c,
            (MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count, MPI_Datatype datatype,
             MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_write_at_all_end, (MPI_File fh, const void *buf, MPI_Status *status), NO_STATUS(status))
ABSENT_FILE(File_write_at_c,
            (MPI_File fh, MPI_Offset offset, const void *buf, MPI_Count count, MPI_Datatype datatype,
             MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_write_c, (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_write_ordered, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_write_ordered_begin, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype))
ABSENT_FILE(File_write_ordered_begin_c, (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype))
ABSENT_FILE(File_write_ordered_c,
            (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_write_ordered_end, (MPI_File fh, const void *buf, MPI_Status *status), NO_STATUS(status))
ABSENT_FILE(File_write_shared, (MPI_File fh, const void *buf, int count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(File_write_shared_c,
            (MPI_File fh, const void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Status *status),
            NO_STATUS(status))
ABSENT_FILE(Register_datarep, (const char *datarep, MPI_Datarep_conversion_function *read_conversion_fn,
                               MPI_Datarep_conversion_function *write_conversion_fn,
                               MPI_Datarep_extent_function *dtype_file_extent_fn, void *extra_state))
ABSENT_FILE(Register_datarep_c, (const char *datarep, MPI_Datarep_conversion_function_c *read_conversion_fn,
                                 MPI_Datarep_conversion_function_c *write_conversion_fn,
                                 MPI_Datarep_extent_function *dtype_file_extent_fn, void *extra_state))

/* ---- Going on after a failure ---- */

XABSENT_COMM(Comm_agree, (MPI_Comm comm, int *flag), NONE(flag, 0))
XABSENT_COMM(Comm_failure_ack, (MPI_Comm comm))
XABSENT_COMM(Comm_failure_get_acked, (MPI_Comm comm, MPI_Group *failedgrp), NONE(failedgrp, MPI_GROUP_NULL))
XABSENT_COMM(Comm_revoke, (MPI_Comm comm))
XABSENT_COMM(Comm_shrink, (MPI_Comm comm, MPI_Comm *newcomm), NONE(newcomm, MPI_COMM_NULL))
