/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.c with large counts */
#define FORM LARGE
#include "coll.c"
