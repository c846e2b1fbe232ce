/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of the forum's header that MPI-5.0 does not name: the count of MPI_Psend_init and MPI_Precv_init is large
 * already.
 */
#include "libmrmpi/api/api.h"

MPI_FN(int, Psend_init_c,
       (const void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
        MPI_Info info, MPI_Request *request))
{
    return PMPI_Psend_init(buf, partitions, count, datatype, dest, tag, comm, info, request);
}

MPI_FN(int, Precv_init_c,
       (void *buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
        MPI_Info info, MPI_Request *request))
{
    return PMPI_Precv_init(buf, partitions, count, datatype, dest, tag, comm, info, request);
}
