/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages on stderr (say.h). */
#include "simfab/cmd/say.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void complain(const char *fmt, ...)
{
    va_list ap;

    fputs("simfab: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

void show_tail(const char *path, off_t from)
{
    char buf[4096];
    ssize_t n;
    off_t size;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    size = lseek(fd, 0, SEEK_END);
    if (size - from > (off_t)sizeof buf)
        from = size - (off_t)sizeof buf;
    n = pread(fd, buf, sizeof buf, from);
    close(fd);
    if (n > 0) {
        fprintf(stderr, "--- the last of %s:\n%.*s%s", path, (int)n, buf, buf[n - 1] == '\n' ? "" : "\n");
        fflush(stderr);
    }
}

const char *how_it_ended(int status, char buf[64])
{
    if (WIFEXITED(status))
        snprintf(buf, 64, "ended with status %d", WEXITSTATUS(status));
    else
        snprintf(buf, 64, "was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return buf;
}

int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
