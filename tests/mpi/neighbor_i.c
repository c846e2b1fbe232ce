/* SPDX-License-Identifier: BSD-3-Clause */
/* neighbor.c with nonblocking functions */
#define FORM NONBLOCKING
#include "neighbor.c"
