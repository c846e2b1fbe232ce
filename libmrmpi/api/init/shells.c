/* SPDX-License-Identifier: BSD-3-Clause */
/* The shell that the process has loaded: see init.h. */
#include <stdio.h>
#include <string.h>

#include "libmrmpi/api/init/init.h"
#include "libmrmpi/launch/launch.h"

void mr_shell_loaded(const char *library)
{
    static const char *first;
    char why[512];

    if (first && strcmp(first, library)) {
        snprintf(why, sizeof(why),
                 "this process has loaded both %s and %s, whose functions have the same names and other arguments: "
                 "compile the program and its libraries for the same MPI interface (ldd shows which one each of them "
                 "wants)",
                 first, library);
        mr_launch_abort(1, why);
    }
    first = library;
}
