/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.c with persistent functions with large counts */
#define FORM LARGE_PERSISTENT
#include "coll.c"
