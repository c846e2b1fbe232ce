/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p_forms.c with large counts */
#define LARGE
#include "p2p_forms.c"
