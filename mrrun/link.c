/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libmrmpi/base/idioms.h"

uint64_t link_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool is_open_link(const struct link *l)
{
    return l->in.fd >= 0;
}

static void break_link(struct link *l, const char *why)
{
    if (!is_open_link(l))
        return;
    watch_close(l->set, &l->in);
    watch_close(l->set, &l->out);
    l->broken(l, why);
}

static void *grow_buffer(char *bytes, size_t *room, size_t need)
{
    while (*room < need)
        *room = *room ? 2 * *room : 4096;
    bytes = realloc(bytes, *room);
    if (!bytes)
        abort();
    return bytes;
}

/* Written bytes stay in front until all are written; a long queue is moved. */
static void flush_link(struct link *l)
{
    while (l->len && l->out.fd >= 0) {
        ssize_t n = write(l->out.fd, l->waits + l->start, l->len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) { /* the reader's end tells the rest */
            watch_close(l->set, &l->out);
            l->len = 0;
        }
        if (n <= 0)
            break;
        l->start += (size_t)n;
        l->len -= (size_t)n;
    }
    if (!l->len)
        l->start = 0;
    watch_want(l->set, &l->out, l->len ? EPOLLOUT : 0);
}

static void link_can_write(struct watch *w, uint32_t events)
{
    flush_link(container_of(w, struct link, out));
}

void link_send_bytes(struct link *l, const void *bytes, size_t len)
{
    if (l->out.fd < 0 || !len)
        return;
    if (l->start && l->start + l->len + len > l->room) {
        memmove(l->waits, l->waits + l->start, l->len);
        l->start = 0;
    }
    if (l->len + len > l->room)
        l->waits = grow_buffer(l->waits, &l->room, l->len + len);
    memcpy(l->waits + l->start + l->len, bytes, len);
    l->len += len;
    l->sent_ms = link_now_ms();
    watch_want(l->set, &l->out, EPOLLOUT);
}

void link_send(struct link *l, const struct wire_frame *f)
{
    unsigned char header[WIRE_HEADER];

    wire_header(f, header);
    link_send_bytes(l, header, sizeof(header));
    link_send_bytes(l, f->body, f->len);
}

void link_ping(struct link *l, uint64_t now_ms)
{
    if (now_ms >= l->sent_ms + LINK_PING_MS && !l->len)
        link_send(l, &(struct wire_frame){.kind = WIRE_PING, .host = WIRE_ALL});
}

/* Whole frames leave the buffer. */
static void take_frames(struct link *l)
{
    size_t at = 0, need = 0;
    struct wire_frame f;

    while (is_open_link(l)) {
        ssize_t n = wire_decode(l->got + at, l->got_len - at, &f, &need);

        if (n == 0)
            break;
        if (n < 0 || !l->frame(l, &f)) {
            break_link(l, "it sent what is no message of this version's");
            return;
        }
        at += (size_t)n;
    }
    if (at && is_open_link(l)) {
        memmove(l->got, l->got + at, l->got_len - at);
        l->got_len -= at;
    }
    if (need > l->got_room)
        l->got = grow_buffer(l->got, &l->got_room, need);
}

void link_feed(struct link *l, const char *bytes, size_t len)
{
    if (!is_open_link(l))
        return;
    if (l->got_len + len > l->got_room)
        l->got = grow_buffer(l->got, &l->got_room, l->got_len + len);
    memcpy(l->got + l->got_len, bytes, len);
    l->got_len += len;
    l->heard_ms = link_now_ms();
    take_frames(l);
}

static void link_can_read(struct watch *w, uint32_t events)
{
    struct link *l = container_of(w, struct link, in);
    char bytes[65536];
    ssize_t n = read(l->in.fd, bytes, sizeof(bytes));

    if (n > 0)
        link_feed(l, bytes, (size_t)n);
    else if (n == 0 || (errno != EAGAIN && errno != EINTR))
        break_link(l, "the connection ended");
}

void link_open(struct link *l, int set, int in_fd, int out_fd)
{
    l->set = set;
    l->in = (struct watch){.fd = in_fd, .ready = link_can_read};
    l->out = (struct watch){.fd = out_fd, .ready = link_can_write};
    l->heard_ms = l->sent_ms = link_now_ms();
    watch_want(set, &l->in, EPOLLIN);
}

void link_close(struct link *l)
{
    flush_link(l);
    watch_close(l->set, &l->in);
    watch_close(l->set, &l->out);
    free(l->got);
    free(l->waits);
    l->got = l->waits = NULL;
    l->got_len = l->got_room = l->len = l->room = l->start = 0;
}
