/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The number of queue pairs that an adapter serves at its full rate: contexts of more do not stay in its cache, and
 * each message over another queue pair waits for memory. No device reports the number.
 */
#ifndef MRMPI_VERBS_CONTEXTS_H
#define MRMPI_VERBS_CONTEXTS_H

/* Of an adapter of that type, from sysfs (hca_type, "MT4123"); NULL or unknown: as current adapters. Pure. */
unsigned mr_contexts_of(const char *type);
#define MR_CONTEXTS_CURRENT 16384u

#endif
