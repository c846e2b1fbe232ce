/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles and statuses of Fortran as C has them, and back (MPI-4.1 sections 19.3.4 and 19.3.5). Handles are the same
 * numbers, of any value, and may be converted at any time.
 */
#include <string.h>

#include "libmrmpi/api/api.h"

#define CONVERSIONS(name, type, handle)                                                                                \
    MPI_FN(MPI_Fint, name##_c2f, (type handle))                                                                        \
    {                                                                                                                  \
        return abi_number(handle);                                                                                     \
    }                                                                                                                  \
    MPI_FN(type, name##_f2c, (MPI_Fint handle))                                                                        \
    {                                                                                                                  \
        return abi_handle(type, handle);                                                                               \
    }
CONVERSIONS(Comm, MPI_Comm, comm) /* MPI_Comm_c2f MPI_Comm_f2c; so with all */
CONVERSIONS(Errhandler, MPI_Errhandler, errhandler)
CONVERSIONS(File, MPI_File, file)
CONVERSIONS(Group, MPI_Group, group)
CONVERSIONS(Info, MPI_Info, info)
CONVERSIONS(Message, MPI_Message, message)
CONVERSIONS(Op, MPI_Op, op)
CONVERSIONS(Request, MPI_Request, request)
CONVERSIONS(Session, MPI_Session, session)
CONVERSIONS(Type, MPI_Datatype, datatype)
CONVERSIONS(Win, MPI_Win, win)

/* Statuses of Fortran, as arrays and as derived types of Fortran 2008, are the same five integers. */
_Static_assert(sizeof(MPI_Status) == 5 * sizeof(MPI_Fint), "status in Fortran");
_Static_assert(sizeof(MPI_Status) == sizeof(MPI_F08_status), "status in Fortran 2008");

#define CONVERT(name, from_type, from, to_type, to)                                                                    \
    MPI_FN(int, name, (const from_type *from, to_type *to))                                                            \
    {                                                                                                                  \
        API_ENTER();                                                                                                   \
        NOT_NULL(from);                                                                                                \
        NOT_NULL(to);                                                                                                  \
        if ((const void *)from == MPI_STATUS_IGNORE)                                                                   \
            CHECK(mr_fail(MR_ERR_ARG, #from " is MPI_STATUS_IGNORE, which has no content to convert"));                \
        memcpy(to, from, sizeof(MPI_Status));                                                                          \
        API_LEAVE(NULL);                                                                                               \
    }
CONVERT(Status_c2f, MPI_Status, c_status, MPI_Fint, f_status)
CONVERT(Status_f2c, MPI_Fint, f_status, MPI_Status, c_status)
CONVERT(Status_c2f08, MPI_Status, c_status, MPI_F08_status, f08_status)
CONVERT(Status_f082c, MPI_F08_status, f08_status, MPI_Status, c_status)
CONVERT(Status_f2f08, MPI_Fint, f_status, MPI_F08_status, f08_status)
CONVERT(Status_f082f, MPI_F08_status, f08_status, MPI_Fint, f_status)
