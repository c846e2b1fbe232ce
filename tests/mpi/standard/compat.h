/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For test programs compiled for the standard's binary interface: names that the standard's header in C lacks, as the
 * forum's headers for Fortran and for old programs define them, and names of MPICH with a counterpart.
 */
#ifndef TESTS_MPI_STANDARD_COMPAT_H
#define TESTS_MPI_STANDARD_COMPAT_H

#include <mpi.h>
#include <stddef.h>

typedef int MPI_Fint;

#define MPI_Comm_c2f        MPI_Comm_toint
#define MPI_Comm_f2c        MPI_Comm_fromint
#define MPI_Errhandler_c2f  MPI_Errhandler_toint
#define MPI_Errhandler_f2c  MPI_Errhandler_fromint
#define MPI_File_c2f        MPI_File_toint
#define MPI_File_f2c        MPI_File_fromint
#define MPI_Group_c2f       MPI_Group_toint
#define MPI_Group_f2c       MPI_Group_fromint
#define MPI_Info_c2f        MPI_Info_toint
#define MPI_Info_f2c        MPI_Info_fromint
#define MPI_Message_c2f     MPI_Message_toint
#define MPI_Message_f2c     MPI_Message_fromint
#define MPI_Op_c2f          MPI_Op_toint
#define MPI_Op_f2c          MPI_Op_fromint
#define MPI_Request_c2f     MPI_Request_toint
#define MPI_Request_f2c     MPI_Request_fromint
#define MPI_Session_c2f     MPI_Session_toint
#define MPI_Session_f2c     MPI_Session_fromint
#define MPI_Type_c2f        MPI_Type_toint
#define MPI_Type_f2c        MPI_Type_fromint
#define MPI_Win_c2f         MPI_Win_toint
#define MPI_Win_f2c         MPI_Win_fromint
#define PMPI_Comm_c2f       PMPI_Comm_toint
#define PMPI_Comm_f2c       PMPI_Comm_fromint
#define PMPI_Errhandler_c2f PMPI_Errhandler_toint
#define PMPI_Errhandler_f2c PMPI_Errhandler_fromint
#define PMPI_File_c2f       PMPI_File_toint
#define PMPI_File_f2c       PMPI_File_fromint
#define PMPI_Group_c2f      PMPI_Group_toint
#define PMPI_Group_f2c      PMPI_Group_fromint
#define PMPI_Info_c2f       PMPI_Info_toint
#define PMPI_Info_f2c       PMPI_Info_fromint
#define PMPI_Message_c2f    PMPI_Message_toint
#define PMPI_Message_f2c    PMPI_Message_fromint
#define PMPI_Op_c2f         PMPI_Op_toint
#define PMPI_Op_f2c         PMPI_Op_fromint
#define PMPI_Request_c2f    PMPI_Request_toint
#define PMPI_Request_f2c    PMPI_Request_fromint
#define PMPI_Session_c2f    PMPI_Session_toint
#define PMPI_Session_f2c    PMPI_Session_fromint
#define PMPI_Type_c2f       PMPI_Type_toint
#define PMPI_Type_f2c       PMPI_Type_fromint
#define PMPI_Win_c2f        PMPI_Win_toint
#define PMPI_Win_f2c        PMPI_Win_fromint

#define MPI_Errhandler_create MPI_Comm_create_errhandler
#define MPI_Errhandler_get    MPI_Comm_get_errhandler
#define MPI_Errhandler_set    MPI_Comm_set_errhandler
#define MPI_Handler_function  MPI_Comm_errhandler_function

#define MPI_Address       MPI_Get_address
#define MPI_Type_hvector  MPI_Type_create_hvector
#define MPI_Type_hindexed MPI_Type_create_hindexed
#define MPI_Type_struct   MPI_Type_create_struct
#define MPI_Type_extent   compat_extent
#define MPI_Type_lb       compat_lb
#define MPI_Type_ub       compat_ub

static inline int compat_extent(MPI_Datatype type, MPI_Aint *extent)
{
    MPI_Aint lb;
    return MPI_Type_get_extent(type, &lb, extent);
}

static inline int compat_lb(MPI_Datatype type, MPI_Aint *lb)
{
    MPI_Aint extent;
    return MPI_Type_get_extent(type, lb, &extent);
}

static inline int compat_ub(MPI_Datatype type, MPI_Aint *ub)
{
    MPI_Aint lb, extent;
    int code = MPI_Type_get_extent(type, ub ? &lb : NULL, &extent);
    if (code == MPI_SUCCESS)
        *ub = lb + extent;
    return code;
}

#define MPIX_Delete_error_class      MPI_Remove_error_class
#define MPIX_Delete_error_code       MPI_Remove_error_code
#define MPIX_Delete_error_string     MPI_Remove_error_string
#define MPIX_ERR_PROC_FAILED         MPI_ERR_PROC_ABORTED
#define MPIX_ERR_PROC_FAILED_PENDING MPI_ERR_PENDING

#endif
