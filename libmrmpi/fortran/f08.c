/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of mpi_f08. f08_profile.c compiles this file a second time, for the names of pmpi_f08, which call C's
 * PMPI_ functions.
 */
#include <stdlib.h>

#include "libmrmpi/fortran/fortran.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#ifndef F08
#define F08(name)  mpi_##name##_
#define F08X(name) mpix_##name##_
#define C(name)    MPI_##name
#define CX(name)   MPIX_##name
#define PROFILED   false
#endif

#include "f08.inc"

void F08(f_sync_reg_f08ts)(const struct fort_array *buf, MPI_Fint *ierror)
{
    (void)buf;
    fort_return(ierror, MPI_SUCCESS);
}
