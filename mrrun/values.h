/* SPDX-License-Identifier: BSD-3-Clause */
/* mrrun --explain: numbers and effects of settings, in words. */
#ifndef MRRUN_VALUES_H
#define MRRUN_VALUES_H

#include "libmrmpi/verbs/verbs.h"

/* A number of bytes as 8K; the text is one of a few. */
const char *value_bytes(unsigned long long n);
unsigned long long value_unasked(void); /* the longest message between hosts sent eagerly */
/* True if large messages go as datagrams into the receiver's memory. by_ring: as in mr_kinds_by_rdma(). */
bool value_goes_as_datagrams(const struct mr_kinds *kinds, bool by_ring);
/*
 * How large messages go that do not go by RDMA, and why not; the text is overwritten by the next call. by_ring: as in
 * mr_kinds_by_rdma().
 */
const char *value_without_rdma(const struct mr_kinds *kinds, bool by_ring);

#endif
