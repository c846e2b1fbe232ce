/* SPDX-License-Identifier: BSD-3-Clause */
/* neighbor.c with persistent functions */
#define FORM PERSISTENT
#include "neighbor.c"
