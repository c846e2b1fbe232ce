/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of copying (copy_loops.h). For x86 processors with AVX-512 F, BW, DQ and VL: vectors of 64 bytes. */
#ifdef __x86_64__
#define COPY   mr_copy_in_avx512
#define VECTOR 64
#include "libmrmpi/base/copy_loops.inc"
#endif
