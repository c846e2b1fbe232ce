/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles as integers of C (MPI-5.0 section 20.3.3): their numbers, of any value, so null handles are converted too and
 * nothing can fail. Allowed at any time.
 */
#include "libmrmpi/api/api.h"

#define CONVERSIONS(name, type, handle)                                                                                \
    MPI_FN(int, name##_toint, (type handle))                                                                           \
    {                                                                                                                  \
        return abi_number(handle);                                                                                     \
    }                                                                                                                  \
    MPI_FN(type, name##_fromint, (int handle))                                                                         \
    {                                                                                                                  \
        return abi_handle(type, handle);                                                                               \
    }
CONVERSIONS(Comm, MPI_Comm, comm) /* MPI_Comm_toint MPI_Comm_fromint; so with all */
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
