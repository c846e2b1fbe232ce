/* SPDX-License-Identifier: BSD-3-Clause */
/* neighbor.c with nonblocking functions with large counts */
#define FORM LARGE_NONBLOCK
#include "neighbor.c"
