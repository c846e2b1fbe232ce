/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of packing (move_loops.h). For x86 processors with AVX-512 F, BW, DQ and VL: vectors of 64 bytes. */
#ifdef __x86_64__
#define MOVES mr_moves_avx512
#include "libmrmpi/core/move_loops.inc"
#endif
