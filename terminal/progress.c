/* SPDX-License-Identifier: BSD-3-Clause */
/* The line on the terminal: see progress.h. */
#include "terminal/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ERASE "\r\033[K"

struct progress progress_begin(void)
{
    const char *kind = getenv("TERM");

    return (struct progress){.on = isatty(STDERR_FILENO) && kind && *kind && strcmp(kind, "dumb") != 0};
}

void progress_show(struct progress *p, const char *fmt, ...)
{
    struct winsize size;
    char line[256];
    va_list ap;

    if (!p->on)
        return;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col ? 80 : size.ws_col;
    fprintf(stderr, ERASE "%.*s", width - 1, line);
    fflush(stderr);
    p->shown = true;
}

void progress_erase(struct progress *p)
{
    if (!p->shown)
        return;
    fputs(ERASE, stderr);
    fflush(stderr);
    p->shown = false;
}
