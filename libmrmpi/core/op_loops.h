/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops of the built-in operations: tables of functions by number kind (core/basic.h) and operation. The same loops
 * (op_loops.inc) are compiled once for each level of the processor's vector instructions, and op.c takes the table of
 * the highest level that there is. Compiled as files of their own, they need nothing of the loader and are the same
 * under every compiler and sanitizer.
 *
 * All tables give the same bits: each element is computed on its own, and products and sums are never fused. So ranks
 * on different processors agree. Vectors may lie at any address; they must not overlap.
 */
#ifndef MRMPI_CORE_OP_LOOPS_H
#define MRMPI_CORE_OP_LOOPS_H

#include "libmrmpi/core/objects.h"

/* y[i] = x[i] op y[i], for n elements */
typedef void (*mr_op_loop)(const void *x, void *y, size_t n);

/* NULL: the operation is not defined on that kind; in all tables alike. */
struct mr_op_loops {
    mr_op_loop of[MR_NUM_COUNT][MR_OP_COUNT];
};

extern const struct mr_op_loops mr_op_loops_base;
#ifdef __x86_64__
extern const struct mr_op_loops mr_op_loops_avx2, mr_op_loops_avx512;
#endif

/* The loops that this processor can run, the fastest first. Returns how many there are. */
enum { MR_OP_LEVELS = 3 };
int mr_op_levels(const struct mr_op_loops *levels[MR_OP_LEVELS]);

#endif
