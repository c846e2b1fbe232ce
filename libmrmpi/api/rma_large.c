/* SPDX-License-Identifier: BSD-3-Clause */
#define API_LARGE
#include "rma.c"
