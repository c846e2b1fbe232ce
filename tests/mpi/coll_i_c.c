/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.c with nonblocking functions with large counts */
#define FORM LARGE_NONBLOCK
#include "coll.c"
