/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of packing (move_loops.h). For every processor of the architecture. */
#define MOVES mr_moves_base
#include "libmrmpi/core/move_loops.inc"
