/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of reductions (op_loops.h). For x86 processors with AVX-512 F, BW, DQ and VL: vectors of 64 bytes. */
#ifdef __x86_64__
#define OP_LOOPS mr_op_loops_avx512
#include "libmrmpi/core/op_loops.inc"
#endif
