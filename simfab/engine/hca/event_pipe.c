/* SPDX-License-Identifier: BSD-3-Clause */
/* Pipes of events to programs. */
#include "simfab/engine/hca/event_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "simfab/engine/base/util.h"

/* The same pipe once more, with flags of its own: the program decides whether its end blocks. */
static int open_again(int fd)
{
    char path[40];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

int event_pipe_make(struct event_pipe *p, int *read_end)
{
    int fds[2], err;

    if (pipe2(fds, O_CLOEXEC))
        return errno;
    p->back = open_again(fds[0]);
    if (p->back < 0 || fcntl(fds[1], F_SETFL, O_NONBLOCK)) {
        err = errno;
        if (p->back >= 0)
            close(p->back);
        close(fds[0]);
        close(fds[1]);
        return err;
    }
    *read_end = fds[0];
    p->in = fds[1];
    return 0;
}

void event_pipe_close(struct event_pipe *p)
{
    close(p->in);
    close(p->back);
}

/* A reader that lets 64 KiB of events pile up loses the next ones, never the engine's time. */
void event_pipe_put(const struct event_pipe *p, const void *record, size_t bytes)
{
    if (write(p->in, record, bytes) < 0 && errno != EAGAIN && errno != EPIPE)
        engine_log("event pipe: %s", strerror(errno));
}

void event_pipe_forget(const struct event_pipe *p, uint64_t cookie, size_t bytes, size_t offset)
{
    unsigned char records[65536];
    size_t kept = 0, room = sizeof records / bytes * bytes;
    ssize_t n = read(p->back, records, room); /* a pipe holds no more */

    for (size_t at = 0; n > 0 && at + bytes <= (size_t)n; at += bytes) {
        uint64_t has;

        memcpy(&has, records + at + offset, sizeof has);
        if (has == cookie)
            continue;
        memmove(records + kept, records + at, bytes);
        kept += bytes;
    }
    for (size_t at = 0; at < kept; at += bytes)
        event_pipe_put(p, records + at, bytes);
}
