/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The common parts of every file of api/: definition of an MPI function with its PMPI twin, the lock, handles to
 * objects and back, argument checks, and the exit through the error handler. The shape of a function:
 *
 *     MPI_FN(int, Thing, (MPI_Comm comm, int n))
 *     {
 *         struct mr_comm *c = NULL;
 *         API_ENTER();
 *         CHECK(api_comm(comm, &c));
 *         err = mr_thing(c, n);
 *         API_LEAVE(c);      // the label `out`, the unlock, and the error handler of c (the world's if NULL)
 *     }
 */
#ifndef MRMPI_API_H
#define MRMPI_API_H

#include "libmrmpi/api/arguments.h"
#include "libmrmpi/api/enter.h"
#include "libmrmpi/api/handles.h"

#endif
