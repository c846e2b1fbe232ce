/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks publish for others to look up, by key: their addresses above all. libpmix's own store (put, commit, get)
 * leaves a copy in each rank that asks, 1.4 KiB for each rank asked about; an answer from here stays nowhere.
 *
 * Values live as long as the process. All is called on libpmix's thread.
 */
#ifndef MRRUN_PUBLISHED_H
#define MRRUN_PUBLISHED_H

#include <stddef.h>

#include <pmix_common.h>

/* The value is copied. PMIX_ERR_DUPLICATE_KEY: it is published already, PMIX_ERR_NOMEM. */
pmix_status_t published_add(const pmix_proc_t *by, const char *key, const pmix_value_t *value);
/* NULL: nobody has published it yet. */
const pmix_pdata_t *published_find(const char *key);

#endif
