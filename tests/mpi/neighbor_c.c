/* SPDX-License-Identifier: BSD-3-Clause */
/* neighbor.c with large counts */
#define FORM LARGE
#include "neighbor.c"
