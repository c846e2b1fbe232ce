/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values that ranks publish for look-ups by key, above all their addresses. libpmix's own store (put, commit, get)
 * leaves a copy in each asking rank, 1.4 KiB for each rank asked about; an answer from here is not kept.
 *
 * Values live as long as the process. All functions are called on libpmix's thread.
 */
#ifndef MRRUN_PUBLISHED_H
#define MRRUN_PUBLISHED_H

#include <stddef.h>

#include <pmix_common.h>

/* The value is copied. PMIX_ERR_DUPLICATE_KEY: it is published already, PMIX_ERR_NOMEM. */
pmix_status_t published_add(const pmix_proc_t *by, const char *key, const pmix_value_t *value);
/* PMIX_ERR_NOT_FOUND: it is not published. */
pmix_status_t published_remove(const char *key);
/* NULL: not published yet. */
const pmix_pdata_t *published_find(const char *key);

#endif
