/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of MPI-1 that MPI-3 has removed: programs from before still call them. */
#include "libmrmpi/api/api.h"

MPI_FN(int, Errhandler_create, (MPI_Handler_function * function, MPI_Errhandler *errhandler))
{
    return PMPI_Comm_create_errhandler(function, errhandler);
}

MPI_FN(int, Errhandler_set, (MPI_Comm comm, MPI_Errhandler errhandler))
{
    return PMPI_Comm_set_errhandler(comm, errhandler);
}

MPI_FN(int, Errhandler_get, (MPI_Comm comm, MPI_Errhandler *errhandler))
{
    return PMPI_Comm_get_errhandler(comm, errhandler);
}

MPI_FN(int, Address, (void *location, MPI_Aint *address))
{
    return PMPI_Get_address(location, address);
}

#define BOUND(name, result, value)                                                                                     \
    MPI_FN(int, name, (MPI_Datatype datatype, MPI_Aint * result))                                                      \
    {                                                                                                                  \
        struct mr_type *t;                                                                                             \
        API_ENTER();                                                                                                   \
        NOT_NULL(result);                                                                                              \
        CHECK(api_type(datatype, &t));                                                                                 \
        *result = value;                                                                                               \
        API_LEAVE(NULL);                                                                                               \
    }
BOUND(Type_extent, extent, t->extent)
BOUND(Type_lb, displacement, t->lb)
BOUND(Type_ub, displacement, t->lb + t->extent)

MPI_FN(int, Type_hvector, (int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype))
{
    return PMPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype);
}

MPI_FN(int, Type_hindexed,
       (int count, int blocklengths[], MPI_Aint displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype))
{
    return PMPI_Type_create_hindexed(count, blocklengths, displacements, oldtype, newtype);
}

MPI_FN(int, Type_struct,
       (int count, int blocklengths[], MPI_Aint displacements[], MPI_Datatype types[], MPI_Datatype *newtype))
{
    return PMPI_Type_create_struct(count, blocklengths, displacements, types, newtype);
}
