/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines from ranks to mrrun's own output. */
#include "mrrun/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- sinks ---- */

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

void sink_init(struct sink *s, int fd)
{
    char path[64];
    struct stat st;

    *s = (struct sink){.fd = fd, .own_fd = -1};
    if (fd < 0 || fstat(fd, &st))
        return;
    s->is_socket = S_ISSOCK(st.st_mode);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (S_ISFIFO(st.st_mode))
        s->own_fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

void sink_clear(struct sink *s)
{
    if (s->own_fd >= 0)
        close(s->own_fd);
    free(s->bytes);
    *s = (struct sink){.fd = -1, .own_fd = -1};
}

static bool room_for_output(struct sink *s, size_t len)
{
    if (s->start && s->start + s->len + len > s->room) {
        memmove(s->bytes, s->bytes + s->start, s->len);
        s->start = 0;
    }
    if (s->len + len <= s->room)
        return true;
    size_t room = s->room ? s->room : 65536;
    while (room < s->len + len)
        room *= 2;
    char *grown = realloc(s->bytes, room);
    if (!grown)
        return false;
    s->bytes = grown;
    s->room = room;
    return true;
}

void sink_put(struct sink *s, const char *bytes, size_t len)
{
    if (s->broken)
        return;
    if (!room_for_output(s, len)) {
        sink_drain(s); /* no memory: take the slow way rather than lose output */
        if (!room_for_output(s, len))
            return;
    }
    memcpy(s->bytes + s->start + s->len, bytes, len);
    s->len += len;
}

bool sink_full(const struct sink *s)
{
    return s->len >= OUTPUT_SINK_HIGH;
}

/*
 * A descriptor may be shared, so its flags stay unchanged. A descriptor writable by poll() takes PIPE_BUF bytes without
 * blocking, unless others write there, too.
 */
static void write_piece(struct sink *s)
{
    const char *bytes = s->bytes + s->start;
    size_t len = s->len < PIPE_BUF ? s->len : PIPE_BUF;
    ssize_t n = s->is_socket ? send(s->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL)
                             : write(s->own_fd >= 0 ? s->own_fd : s->fd, bytes, len);

    if (n > 0) {
        s->moved_ms = now_ms();
        s->start += n;
        s->len -= n;
        if (!s->len)
            s->start = 0;
    } else if (n < 0 && errno != EINTR && errno != EAGAIN) {
        s->broken = true;
        s->error = errno;
        s->len = s->start = 0;
    }
}

void sink_flush(struct sink *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLOUT};

    while (s->len && poll(&p, 1, 0) > 0)
        write_piece(s);
}

void sink_drain(struct sink *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLOUT};

    while (s->len) {
        poll(&p, 1, -1);
        write_piece(s);
    }
}

/* ---- sources ---- */

/* Kept for the report of ranks that had to be ended. Blank lines are skipped. */
static void remember(struct source *src, const char *line, size_t len)
{
    size_t n = len && line[len - 1] == '\n' ? len - 1 : len;

    n = n < sizeof(src->last) ? n : sizeof(src->last) - 1;
    if (!n)
        return;
    memcpy(src->last, line, n);
    src->last[n] = '\0';
}

static void pass_on(struct source *src, const char *bytes, size_t len)
{
    if (src->label[0] && !src->mid_line)
        sink_put(src->sink, src->label, strlen(src->label));
    sink_put(src->sink, bytes, len);
    if (!src->mid_line)
        remember(src, bytes, len);
    src->mid_line = bytes[len - 1] != '\n';
}

/* Keep the start of a line until the rest comes; a line longer than the buffer goes on in pieces. */
static void keep(struct source *src, const char *bytes, size_t len)
{
    while (len) {
        size_t n = OUTPUT_LINE_MAX - src->len < len ? OUTPUT_LINE_MAX - src->len : len;
        if (!src->line && !(src->line = malloc(OUTPUT_LINE_MAX))) {
            pass_on(src, bytes, len);
            return;
        }
        memcpy(src->line + src->len, bytes, n);
        src->len += n;
        bytes += n;
        len -= n;
        if (src->len == OUTPUT_LINE_MAX) {
            pass_on(src, src->line, src->len);
            src->len = 0;
        }
    }
}

void source_feed(struct source *src, const char *bytes, size_t len)
{
    while (len) {
        const char *newline = memchr(bytes, '\n', len);
        if (!newline) {
            keep(src, bytes, len);
            return;
        }
        size_t n = newline + 1 - bytes;
        if (src->len) {
            pass_on(src, src->line, src->len);
            src->len = 0;
        }
        pass_on(src, bytes, n);
        bytes += n;
        len -= n;
    }
}

void source_pass_piece(struct source *src)
{
    if (src->len)
        pass_on(src, src->line, src->len);
    src->len = 0;
}

void source_finish(struct source *src)
{
    source_pass_piece(src);
    if (src->mid_line && src->label[0])
        sink_put(src->sink, "\n", 1);
    src->mid_line = false;
    free(src->line);
    src->line = NULL;
}

void source_close(struct source *src)
{
    if (src->fd < 0 && !src->far)
        return;
    source_finish(src);
    if (src->fd >= 0)
        close(src->fd);
    src->fd = -1;
    src->far = false;
}

void source_take(struct source *src, const char *bytes, size_t len)
{
    src->last_ms = now_ms();
    source_feed(src, bytes, len);
}

bool source_read(struct source *src)
{
    char bytes[65536];
    ssize_t n = src->sink->broken ? 0 : read(src->fd, bytes, sizeof(bytes));

    if (n > 0) {
        src->last_ms = now_ms();
        source_feed(src, bytes, n);
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    source_close(src); /* with a broken sink this tells ranks that there is no reader */
    return false;
}
