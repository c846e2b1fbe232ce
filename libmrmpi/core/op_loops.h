/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loops of the built-in operations: tables of functions by number kind (core/basic.h) and operation, one for each
 * level of vector instructions (vectors.h).
 *
 * All tables give the same bits: each element is computed alone, and products and sums are never fused. Ranks on
 * different processors therefore agree. Vectors may lie at any address; they must not overlap.
 */
#ifndef MRMPI_CORE_OP_LOOPS_H
#define MRMPI_CORE_OP_LOOPS_H

#include "libmrmpi/base/vectors.h"
#include "libmrmpi/core/core.h"

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

static inline const struct mr_op_loops *mr_op_loops_at(enum mr_vectors level)
{
#ifdef __x86_64__
    if (level != MR_VECTORS_BASE)
        return level == MR_VECTORS_AVX2 ? &mr_op_loops_avx2 : &mr_op_loops_avx512;
#endif
    return &mr_op_loops_base;
}

#endif
