/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of mpif.h and of the module mpi. Each function has the names that Fortran compilers give to externals,
 * as MPICH's library has them: all stand for pmpi_NAME_, and all but the P names may be replaced by a profiling
 * library.
 */
#include <stdlib.h>

#include "libmrmpi/fortran/fortran.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define FORT_ALIAS(name, of) extern __typeof__(of) name __attribute__((weak, alias(#of)))
#define FORT_NAMES(low, high)                                                                                          \
    FORT_ALIAS(low##_, p##low##_);                                                                                     \
    FORT_ALIAS(low##__, p##low##_);                                                                                    \
    FORT_ALIAS(low, p##low##_);                                                                                        \
    FORT_ALIAS(high, p##low##_);                                                                                       \
    FORT_ALIAS(p##low##__, p##low##_);                                                                                 \
    FORT_ALIAS(p##low, p##low##_);                                                                                     \
    FORT_ALIAS(P##high, p##low##_);

#define PROFILED false
#include "f77.inc"

/* Keeps the compiler from moving accesses of the buffer over the call; nothing else to do. */
void pmpi_f_sync_reg_(void *buf)
{
    (void)buf;
}
FORT_NAMES(mpi_f_sync_reg, MPI_F_SYNC_REG)
