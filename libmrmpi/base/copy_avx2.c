/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of copying (copy_loops.h). For x86 processors with AVX2: vectors of 32 bytes. */
#ifdef __x86_64__
#define COPY   mr_copy_in_avx2
#define VECTOR 32
#include "libmrmpi/base/copy_loops.inc"
#endif
