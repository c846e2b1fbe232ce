/* SPDX-License-Identifier: BSD-3-Clause */
/* Process sets (session.c), for functions outside of session.c. */
#ifndef MRMPI_API_SESSION_H
#define MRMPI_API_SESSION_H

#include "libmrmpi/api/api.h"

struct mr_group *api_pset(const char *name); /* NULL: there is no set of this name */

#endif
