/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles as integers of Fortran (MPI-4.1 section 19.3.4) and of C (MPI-5.0 section 20.3.3): the same numbers, of any
 * value, so null handles are converted too and nothing can fail. Allowed at any time.
 */
#include "libmrmpi/api/api.h"

#define CONVERSIONS(name, type, handle)                                                                                \
    MPI_FN(MPI_Fint, name##_c2f, (type handle))                                                                        \
    {                                                                                                                  \
        return handle;                                                                                                 \
    }                                                                                                                  \
    MPI_FN(type, name##_f2c, (MPI_Fint handle))                                                                        \
    {                                                                                                                  \
        return handle;                                                                                                 \
    }                                                                                                                  \
    MPI_FN(int, name##_toint, (type handle))                                                                           \
    {                                                                                                                  \
        return handle;                                                                                                 \
    }                                                                                                                  \
    MPI_FN(type, name##_fromint, (int handle))                                                                         \
    {                                                                                                                  \
        return handle;                                                                                                 \
    }
CONVERSIONS(Comm, MPI_Comm, comm) /* MPI_Comm_c2f MPI_Comm_f2c MPI_Comm_toint MPI_Comm_fromint; so with all */
CONVERSIONS(Errhandler, MPI_Errhandler, errhandler)
CONVERSIONS(Group, MPI_Group, group)
CONVERSIONS(Info, MPI_Info, info)
CONVERSIONS(Message, MPI_Message, message)
CONVERSIONS(Op, MPI_Op, op)
CONVERSIONS(Request, MPI_Request, request)
CONVERSIONS(Session, MPI_Session, session)
CONVERSIONS(Type, MPI_Datatype, datatype)
CONVERSIONS(Win, MPI_Win, win)

/* ---- files, whose handles have the type of pointers ---- */

MPI_FN(MPI_Fint, File_c2f, (MPI_File file))
{
    return (MPI_Fint)(uint32_t)(uintptr_t)file;
}

MPI_FN(MPI_File, File_f2c, (MPI_Fint file))
{
    return (MPI_File)(uintptr_t)(uint32_t)file;
}

MPI_FN(int, File_toint, (MPI_File file))
{
    return (int)(uint32_t)(uintptr_t)file;
}

MPI_FN(MPI_File, File_fromint, (int file))
{
    return (MPI_File)(uintptr_t)(uint32_t)file;
}
