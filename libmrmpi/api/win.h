/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of win.c for rma.c. */
#ifndef MRMPI_API_WIN_H
#define MRMPI_API_WIN_H

#include "libmrmpi/api/api.h"

/* Sets the hints that an info object names; the others of *h stay. */
enum mr_err api_win_hints(MPI_Info info, struct mr_win_hints *h);

#endif
