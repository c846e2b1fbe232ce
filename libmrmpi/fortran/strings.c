/* SPDX-License-Identifier: BSD-3-Clause */
/* Strings: Fortran's have a length and blanks at the end. */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/fortran/fortran.h"

char *fort_string(const char *string, size_t length, bool strip)
{
    while (length && string[length - 1] == ' ')
        length--;
    while (strip && length && *string == ' ') {
        string++;
        length--;
    }
    char *copy = malloc(length + 1);
    if (!copy)
        return NULL;
    memcpy(copy, string, length);
    copy[length] = '\0';
    return copy;
}

void fort_pad(char *string, size_t length, const char *from)
{
    const size_t used = strnlen(from, length);
    memcpy(string, from, used);
    memset(string + used, ' ', length - used);
}
