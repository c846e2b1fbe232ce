/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops of reductions (op_loops.h). For every processor of the architecture. */
#define OP_LOOPS mr_op_loops_base
#include "libmrmpi/core/op_loops.inc"
