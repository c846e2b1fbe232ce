/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of numbers as users write them: 0,4-6. Pure. */
#ifndef MRRUN_RANGES_H
#define MRRUN_RANGES_H

#include <stdbool.h>

bool ranges_valid(const char *text);
/* Of a valid list; others have no number. */
bool ranges_have(const char *text, int number);

#endif
