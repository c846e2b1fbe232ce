/* SPDX-License-Identifier: BSD-3-Clause */
#define API_LARGE
#include "file_access.c"
