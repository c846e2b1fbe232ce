/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of packing (move_loops.h). For x86 processors with AVX2: vectors of 32 bytes. */
#ifdef __x86_64__
#define MOVES mr_moves_avx2
#include "libmrmpi/core/move_loops.inc"
#endif
