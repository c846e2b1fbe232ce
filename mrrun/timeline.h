/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mrrun --rails-trace: the events of all ranks as a timeline in the trace event format (JSON) of Perfetto and
 * chrome://tracing. A rank is a process there. A rail has a track for its state, and tracks for parts of large
 * messages, as many as were under way at the same time, because slices of a track may not overlap.
 */
#ifndef MRRUN_TIMELINE_H
#define MRRUN_TIMELINE_H

#include "mrrun/records.h"

/* 0, or -1: no memory; the output is well-formed then, too. */
int timeline_print(FILE *out, const struct records *r);

#endif
