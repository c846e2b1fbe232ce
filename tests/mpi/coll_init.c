/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.c with persistent functions */
#define FORM PERSISTENT
#include "coll.c"
