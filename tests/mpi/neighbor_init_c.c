/* SPDX-License-Identifier: BSD-3-Clause */
/* neighbor.c with persistent functions with large counts */
#define FORM LARGE_PERSISTENT
#include "neighbor.c"
