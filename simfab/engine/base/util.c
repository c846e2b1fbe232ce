/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is there or the end, and the log. */
#include "simfab/engine/base/util.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

uint64_t clock_ns(int clock)
{
    struct timespec ts;

    syscall(SYS_clock_gettime, clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t real_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t coarse_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int notices = -1;

static void write_log(const char *fmt, va_list ap)
{
    uint64_t now = clock_ns(CLOCK_REALTIME);
    time_t s = (time_t)(now / 1000000000u);
    struct tm tm;

    localtime_r(&s, &tm);
    fprintf(stderr, "%02d:%02d:%02d.%06u ", tm.tm_hour, tm.tm_min, tm.tm_sec, (unsigned)(now / 1000 % 1000000));
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

void engine_log(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    write_log(fmt, ap);
    va_end(ap);
}

void engine_notices_to(int fd)
{
    notices = fd;
}

/* A reader that is not there or does not read must not stop the fabric. */
static void write_notice(const char *fmt, va_list ap)
{
    struct pollfd p = {.fd = notices, .events = POLLOUT};
    char text[512] = "simfab: ";
    size_t used = strlen(text);
    int n = vsnprintf(text + used, sizeof text - used - 1, fmt, ap);

    used += n < 0 ? 0 : (size_t)n < sizeof text - used - 1 ? (size_t)n : sizeof text - used - 2;
    text[used++] = '\n';
    if (poll(&p, 1, 0) == 1 && p.revents & POLLOUT && write(notices, text, used) < 0)
        notices = -1;
}

void engine_notice(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    write_log(fmt, ap);
    va_end(ap);
    va_start(ap, fmt);
    if (notices >= 0)
        write_notice(fmt, ap);
    va_end(ap);
}
