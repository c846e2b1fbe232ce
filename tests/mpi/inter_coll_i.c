/* SPDX-License-Identifier: BSD-3-Clause */
/* inter_coll.c with nonblocking functions */
#define FORM NONBLOCKING
#include "inter_coll.c"
