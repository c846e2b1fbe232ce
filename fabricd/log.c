/* SPDX-License-Identifier: BSD-3-Clause */
/* One write for each line, so that lines of other processes on the same terminal do not cut it in two. */
#include "fabricd/log.h"
#include "fabricd/text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void log_line(const char *level, const char *fmt, ...)
{
    struct text t = {0}, out = {0};
    const char *prefix = getenv("JOURNAL_STREAM") ? level : "fabricd: ";
    va_list ap;
    va_start(ap, fmt);
    text_vprintf(&t, fmt, ap);
    va_end(ap);
    for (const char *p = text_str(&t); *p;) {
        size_t n = strcspn(p, "\n");
        text_printf(&out, "%s%.*s\n", prefix, (int)n, p);
        p += n + (p[n] == '\n');
    }
    for (size_t done = 0; done < out.len;) {
        ssize_t n = write(STDERR_FILENO, out.s + done, out.len - done);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    text_free(&t);
    text_free(&out);
}
