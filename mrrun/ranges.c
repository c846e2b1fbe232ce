/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/ranges.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

/* The next of "A" and "A-B", separated by commas. False: it is none. */
static bool next_range(const char **at, long *first, long *last)
{
    char *end;

    if (!isdigit((unsigned char)**at))
        return false;
    errno = 0;
    *first = *last = strtol(*at, &end, 10);
    if (*end == '-' && isdigit((unsigned char)end[1]))
        *last = strtol(end + 1, &end, 10);
    if (errno || *first > *last || (*end && (*end != ',' || !end[1])))
        return false;
    *at = *end ? end + 1 : end;
    return true;
}

bool ranges_valid(const char *text)
{
    long first, last;

    while (next_range(&text, &first, &last))
        if (!*text)
            return true;
    return false;
}

bool ranges_have(const char *text, int number)
{
    long first, last;

    while (next_range(&text, &first, &last))
        if (number >= first && number <= last)
            return true;
    return false;
}
