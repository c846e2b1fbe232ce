/* SPDX-License-Identifier: BSD-3-Clause */
/* The last fault that a launcher's client found in this thread's call, in a sentence. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libmrmpi/launch/backend.h"
#include "libmrmpi/launch/launch.h"

static _Thread_local char fault[512];

int mr_launch_fail(int err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(fault, sizeof(fault), fmt, ap);
    va_end(ap);
    return err;
}

void mr_launch_clear_fault(void)
{
    *fault = '\0';
}

const char *mr_launch_fault(void)
{
    return *fault ? fault : NULL;
}

const char *mr_launch_why(int err)
{
    return *fault ? fault : strerror(-err);
}
