/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log: one line per message, written at once, to standard error. Before the rank is known lines carry the process
 * id.
 */
#include "libmrmpi/base/base.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static struct {
    int rank; /* -1: not known yet */
    int local_rank;
    char host[64];
} who = {.rank = -1};

void mr_log_identity(int rank, int local_rank, const char *host)
{
    who.rank = rank;
    who.local_rank = local_rank;
    snprintf(who.host, sizeof(who.host), "%s", host ? host : "");
}

bool mr_log_for_host(void)
{
    return !who.local_rank;
}

void mr_log_print(enum mr_log_level level, const char *fmt, ...)
{
    static const char *const words[] = {"error", "warning", "info", "debug"};
    char line[1024];
    int used, more;
    va_list ap;

    if (who.rank < 0)
        used = snprintf(line, sizeof(line), "mrmpi[pid %d] %s: ", (int)getpid(), words[level]);
    else
        used =
            snprintf(line, sizeof(line), "mrmpi[%d%s%s] %s: ", who.rank, *who.host ? "@" : "", who.host, words[level]);
    va_start(ap, fmt);
    more = vsnprintf(line + used, sizeof(line) - 1 - used, fmt, ap);
    va_end(ap);
    used += more < 0 ? 0 : more;
    if (used > (int)sizeof(line) - 2)
        used = sizeof(line) - 2;
    line[used++] = '\n';
    /* One write, so lines of several ranks do not mix; a failure has no remedy. */
    if (write(STDERR_FILENO, line, used) < 0)
        return;
}

const char *mr_log_memory_advice(int err)
{
    switch (err) {
    case -ENOMEM:
    case -EAGAIN:
        return "; is the limit of locked memory too low (ulimit -l)?";
    case -EFAULT:
        return "; part of it is not mapped, or must not be written: a buffer has to stay until its operation is "
               "complete";
    default:
        return "";
    }
}
