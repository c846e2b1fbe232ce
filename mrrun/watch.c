/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/watch.h"

#include <fcntl.h>
#include <unistd.h>

void watch_want(int set, struct watch *w, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = w};

    if (w->fd < 0 || events == w->events)
        return;
    if (epoll_ctl(set, !events ? EPOLL_CTL_DEL : w->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, w->fd, &e) == 0)
        w->events = events;
}

void watch_close(int set, struct watch *w)
{
    if (w->fd < 0)
        return;
    watch_want(set, w, 0);
    close(w->fd);
    w->fd = -1;
}

bool watch_serve(int set, int timeout_ms)
{
    struct epoll_event e;

    if (epoll_wait(set, &e, 1, timeout_ms) != 1)
        return false;
    struct watch *w = e.data.ptr;
    w->ready(w, e.events);
    return true;
}

int watch_ready_fd(int fd)
{
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return fd;
}
