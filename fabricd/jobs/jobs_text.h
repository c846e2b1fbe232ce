/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs for people: the class of each, and its source. */
#ifndef FABRICD_JOBS_JOBS_TEXT_H
#define FABRICD_JOBS_JOBS_TEXT_H

#include "fabricd/daemon.h"

/*
 * The jobs that uid may see (FD_UID_ANY: all), one line of YAML each, in the order of their ids: the jobs after an id
 * ("": from the first on), up to most bytes. Returns the id of the last if there are more, else NULL.
 */
const char *jobs_text(struct text *out, const struct daemon *d, const char *indent, uint32_t uid, const char *after,
                      size_t most);

#endif
