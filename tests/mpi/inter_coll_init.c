/* SPDX-License-Identifier: BSD-3-Clause */
/* inter_coll.c with persistent functions and large counts */
#define FORM LARGE_PERSISTENT
#include "inter_coll.c"
