/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Levels of the processor's vector instructions. Loops that gain from them (copy_loops.h, core/op_loops.h,
 * core/move_loops.h) are compiled once for each level, as files of their own, without help of the loader and in the
 * same way under every compiler and sanitizer. A file NAME_LEVEL.c sets the flags' macro and includes NAME_loops.inc;
 * module.mk has the flags.
 */
#ifndef MRMPI_VECTORS_H
#define MRMPI_VECTORS_H

enum mr_vectors {
    MR_VECTORS_BASE,   /* the level of every processor of the architecture */
    MR_VECTORS_AVX2,   /* 32 bytes */
    MR_VECTORS_AVX512, /* 64 bytes: F, BW, DQ and VL */
    MR_VECTORS_COUNT,
};

/* The highest level of this processor, which includes all lower levels. */
static inline enum mr_vectors mr_vectors(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return MR_VECTORS_AVX512;
    if (__builtin_cpu_supports("avx2"))
        return MR_VECTORS_AVX2;
#endif
    return MR_VECTORS_BASE;
}

#endif
