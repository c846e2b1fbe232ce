/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is there or the end, and the log. */
#include "simfab/engine/util.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void out_of_memory(size_t bytes)
{
    fprintf(stderr, "simfab-engine: out of memory (%zu bytes wanted); the fabric ends here\n", bytes);
    exit(3);
}

void *xcalloc(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size ? size : 1);

    if (!p)
        out_of_memory(n * size);
    return p;
}

void *xrealloc(void *p, size_t size)
{
    p = realloc(p, size ? size : 1);
    if (!p)
        out_of_memory(size);
    return p;
}

void engine_log(const char *fmt, ...)
{
    struct timespec ts;
    struct tm tm;
    va_list ap;

    clock_gettime(CLOCK_REALTIME, &ts);
    localtime_r(&ts.tv_sec, &tm);
    fprintf(stderr, "%02d:%02d:%02d.%06ld ", tm.tm_hour, tm.tm_min, tm.tm_sec, ts.tv_nsec / 1000);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}
