/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of reductions (op_loops.h). For x86 processors with AVX2: vectors of 32 bytes. */
#ifdef __x86_64__
#define OP_LOOPS mr_op_loops_avx2
#include "libmrmpi/core/op_loops.inc"
#endif
