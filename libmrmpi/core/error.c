/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and texts of error classes, and the detail text of the error that a thread is about to return. */
#include "libmrmpi/core/core.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char detail[512];
static _Thread_local bool fresh;

void mr_error_detail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(detail, sizeof(detail), fmt, ap);
    va_end(ap);
    fresh = true;
}

const char *mr_error_take_detail(void)
{
    if (!fresh)
        return "";
    fresh = false;
    return detail;
}

static const struct {
    const char *name, *text;
} classes[] = {
#define E(id, text) [MR_ERR_##id] = {"MPI_ERR_" #id, text}
    [MR_SUCCESS] = {"MPI_SUCCESS", "no error"},
    E(BUFFER, "invalid buffer pointer"),
    E(COUNT, "invalid count"),
    E(TYPE, "invalid datatype"),
    E(TAG, "invalid tag"),
    E(COMM, "invalid communicator"),
    E(RANK, "invalid rank"),
    E(ROOT, "invalid root"),
    E(GROUP, "invalid group"),
    E(OP, "invalid reduction operation"),
    E(TOPOLOGY, "invalid topology"),
    E(DIMS, "invalid dimensions"),
    E(ARG, "invalid argument"),
    E(UNKNOWN, "unknown error"),
    E(TRUNCATE, "message longer than the receive buffer"),
    E(OTHER, "error"),
    E(INTERN, "internal error"),
    E(IN_STATUS, "error codes are in the statuses"),
    E(PENDING, "request not completed yet"),
    E(REQUEST, "invalid request"),
    E(NO_MEM, "out of memory"),
    E(KEYVAL, "invalid attribute key"),
    E(INFO, "invalid info object"),
    E(INFO_KEY, "invalid info key"),
    E(INFO_VALUE, "invalid info value"),
    E(INFO_NOKEY, "info key not set"),
    E(NAME, "name not found"),
    E(UNSUPPORTED_OPERATION, "operation not supported"),
    E(FILE, "invalid file"),
    E(BASE, "invalid base address"),
    E(WIN, "invalid window"),
    E(SESSION, "invalid session"),
    E(ABI, "the Fortran interface has been set already"),
    E(LOCKTYPE, "invalid lock type"),
    E(RMA_CONFLICT, "conflicting accesses to a window"),
    E(RMA_SYNC, "wrong synchronization of a window"),
    E(SIZE, "invalid size"),
    E(DISP, "invalid displacement"),
    E(ASSERT, "invalid assertion"),
    E(RMA_RANGE, "memory outside of the window"),
    E(RMA_ATTACH, "memory cannot be attached"),
    E(RMA_SHARED, "memory cannot be shared"),
    E(RMA_FLAVOR, "wrong kind of window"),
    E(ACCESS, "access to the file is not allowed"),
    E(AMODE, "invalid access mode of a file"),
    E(BAD_FILE, "invalid file name"),
    E(CONVERSION, "data could not be converted"),
    E(DUP_DATAREP, "the data representation is there already"),
    E(FILE_EXISTS, "the file exists"),
    E(FILE_IN_USE, "the file is in use"),
    E(IO, "input or output failed"),
    E(NOT_SAME, "arguments that must be the same on all processes are not"),
    E(NO_SPACE, "no space for the file"),
    E(NO_SUCH_FILE, "there is no such file"),
    E(QUOTA, "the quota is exceeded"),
    E(READ_ONLY, "the file or its file system may only be read"),
    E(UNSUPPORTED_DATAREP, "unsupported data representation"),
    E(PORT, "invalid port name"),
    E(SERVICE, "invalid service name"),
    E(SPAWN, "processes could not be started"),
    E(PROC_FAILED, "a process of the job has failed"),
    E(PROC_FAILED_PENDING, "a process has failed that may be the sender; the receive goes on"),
    E(REVOKED, "the communicator has been revoked"),
#undef E
};

const char *mr_err_text(enum mr_err err)
{
    return (size_t)err < sizeof(classes) / sizeof(classes[0]) ? classes[err].text : "unknown error";
}

const char *mr_err_name(enum mr_err err)
{
    return (size_t)err < sizeof(classes) / sizeof(classes[0]) ? classes[err].name : "MPI_ERR_UNKNOWN";
}
