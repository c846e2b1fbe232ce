/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of copying (copy_loops.h). For every processor of the architecture: vectors of 16 bytes. */
#define COPY   mr_copy_in_base
#define VECTOR 16
#include "libmrmpi/base/copy_loops.inc"
