/* SPDX-License-Identifier: BSD-3-Clause */
/* One write for each line, so lines of other processes on the same terminal do not cut the line in two. */
#include "fabricd/base/log.h"
#include "fabricd/base/clock.h"
#include "fabricd/base/quota.h"
#include "fabricd/base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

static void write_lines(const char *prefix, const struct text *t)
{
    struct text out = {0};
    for (const char *p = text_str(t); *p;) {
        size_t n = strcspn(p, "\n");
        text_printf(&out, "%s", prefix);
        text_put_visible(&out, p, n);
        text_put(&out, "\n", 1);
        p += n + (p[n] == '\n');
    }
    for (size_t done = 0; done < out.len;) {
        ssize_t n = write(STDERR_FILENO, out.s + done, out.len - done);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    text_free(&out);
}

/* level is "<N>", N a digit. */
static bool send_to_journal(const char *id, const char *level, const struct text *t)
{
    return getenv("JOURNAL_STREAM") && sd_journal_send("MESSAGE=%s", text_str(t), "MESSAGE_ID=%s", id, "PRIORITY=%c",
                                                       level[1], "SYSLOG_IDENTIFIER=fabricd", NULL) >= 0;
}

static void log_text(const char *id, const char *level, const char *fmt, va_list ap)
{
    struct text t = {0};
    text_vprintf(&t, fmt, ap);
    if (!id || !send_to_journal(id, level, &t))
        write_lines(getenv("JOURNAL_STREAM") ? level : "fabricd: ", &t);
    text_free(&t);
}

void log_line(const char *level, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    log_text(NULL, level, fmt, ap);
    va_end(ap);
}

void log_event(const char *id, const char *level, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    log_text(id, level, fmt, ap);
    va_end(ap);
}

static struct quota users;

void log_left_out(void)
{
    uint32_t uid;
    uint64_t n;
    while ((n = quota_left_out(&users, clock_us(), &uid))) {
        if (uid == QUOTA_OTHERS)
            log_warn("%" PRIu64 " more lines about requests of other users are left out", n);
        else
            log_warn("%" PRIu64 " more lines about requests of uid %u are left out", n, uid);
    }
}

void log_by_uid(uint32_t uid, const char *level, const char *fmt, ...)
{
    va_list ap;
    log_left_out();
    if (uid && uid != geteuid() && !quota_take(&users, uid, clock_us()))
        return;
    va_start(ap, fmt);
    log_text(NULL, level, fmt, ap);
    va_end(ap);
}
