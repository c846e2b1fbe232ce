/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Barrier (MPI-4.0 section 6.3), the only collective without counts. */
#include "libmrmpi/api/api_coll.h"

COLLECTIVE_AS(MPI_FN, Barrier, Ibarrier, , mr_coll_barrier, )
