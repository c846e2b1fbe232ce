/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.c with nonblocking functions */
#define FORM NONBLOCKING
#include "coll.c"
