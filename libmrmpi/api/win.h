/* SPDX-License-Identifier: BSD-3-Clause */
/* What rma.c wants of win.c. */
#ifndef MRMPI_API_WIN_H
#define MRMPI_API_WIN_H

#include "libmrmpi/api/api.h"

/* Those that an info object names; the others of *h stay. */
enum mr_err api_win_hints(MPI_Info info, struct mr_win_hints *h);

#endif
