/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/base/idioms.h"

static void send_of_channel(struct channel *c, enum wire_kind kind, const void *body, size_t len)
{
    struct wire_frame f = {.kind = kind, .host = c->host, .arg = c->id, .body = body, .len = len};

    c->base->send(c->base, &f);
}

static void close_channel(struct channel *c)
{
    if (!c->open)
        return;
    watch_close(c->base->set, &c->from);
    watch_close(c->base->set, &c->to);
    free(c->waits);
    c->waits = NULL;
    c->len = 0;
    c->open = false;
    c->base->gone(c->base, c);
}

void channel_end(struct channel *c)
{
    if (!c->open)
        return;
    send_of_channel(c, WIRE_END, NULL, 0);
    close_channel(c);
}

/* ---- from the descriptor ---- */

static void want_input(struct channel *c)
{
    watch_want(c->base->set, &c->from, c->credit && !c->file ? EPOLLIN : 0);
}

/* One read. False: nothing more can be read now, or ever: then the channel may be gone. */
static bool pump_channel(struct channel *c)
{
    char bytes[WIRE_DATA_MAX];
    size_t most = c->credit < sizeof(bytes) ? c->credit : sizeof(bytes);
    ssize_t n = most && c->from.fd >= 0 ? read(c->from.fd, bytes, most) : -1;

    if (!most || c->from.fd < 0)
        return false;
    if (n > 0) {
        c->credit -= (uint32_t)n;
        send_of_channel(c, WIRE_DATA, bytes, (size_t)n);
        want_input(c);
        return true;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        channel_end(c);
    return false;
}

static void channel_can_read(struct watch *w, uint32_t events)
{
    pump_channel(container_of(w, struct channel, from));
}

void channel_drain(struct channel *c)
{
    while (pump_channel(c)) /* false: the channel may be gone */
        continue;
}

/* ---- to the descriptor ---- */

static void flush_channel(struct channel *c)
{
    struct wire_text taken = {0};
    uint32_t written = 0;
    ssize_t n = 0;

    while (c->len && (n = write(c->to.fd, c->waits + c->start, c->len)) > 0) {
        c->start += (size_t)n;
        c->len -= (size_t)n;
        written += (uint32_t)n;
    }
    if (!c->len)
        c->start = 0;
    if (n < 0 && errno != EAGAIN && errno != EINTR) { /* no reader */
        if (c->ended)
            close_channel(c);
        else
            channel_end(c);
        return;
    }
    if (written && !c->ended) {
        wire_put_number(&taken, written);
        send_of_channel(c, WIRE_TAKEN, taken.bytes, taken.len);
        free(taken.bytes);
    }
    watch_want(c->base->set, &c->to, c->len ? EPOLLOUT : 0);
    if (c->ended && !c->len)
        close_channel(c);
}

static void channel_can_write(struct watch *w, uint32_t events)
{
    flush_channel(container_of(w, struct channel, to));
}

static bool take_data(struct channel *c, const struct wire_frame *f)
{
    if (c->to.fd < 0 || c->ended || c->len + f->len > c->base->window)
        return false;
    if (!c->waits && !(c->waits = malloc(c->base->window)))
        abort();
    if (c->start + c->len + f->len > c->base->window) {
        memmove(c->waits, c->waits + c->start, c->len);
        c->start = 0;
    }
    memcpy(c->waits + c->start + c->len, f->body, f->len);
    c->len += f->len;
    flush_channel(c);
    return true;
}

static bool take_credit(struct channel *c, const struct wire_frame *f)
{
    struct wire_reader r = wire_read(f);
    uint32_t more = wire_get_number(&r);

    if (!wire_whole(&r) || more > c->base->window - c->credit)
        return false;
    c->credit += more;
    want_input(c);
    while (c->file && pump_channel(c))
        continue;
    return true;
}

void channel_read_file(struct channel *c)
{
    watch_want(c->base->set, &c->from, 0);
    c->file = true;
    if (c->from.fd < 0)
        channel_end(c);
    while (pump_channel(c))
        continue;
}

bool channel_take(struct channel *c, const struct wire_frame *f)
{
    if (!c->open) /* its end is on the way to the other side */
        return true;
    switch (f->kind) {
    case WIRE_DATA:
        return take_data(c, f);
    case WIRE_TAKEN:
        return take_credit(c, f);
    case WIRE_END:
        c->ended = true;
        if (c->len)
            watch_close(c->base->set, &c->from);
        else
            close_channel(c);
        return true;
    default:
        return false;
    }
}

void channel_open(struct channel *c, const struct channel_base *b, unsigned host, uint32_t id, int from, int to)
{
    *c = (struct channel){.base = b,
                          .host = host,
                          .id = id,
                          .from = {.fd = from, .ready = channel_can_read},
                          .to = {.fd = to, .ready = channel_can_write},
                          .credit = b->window,
                          .open = true};
    if (from >= 0)
        watch_ready_fd(from);
    if (to >= 0)
        watch_ready_fd(to);
    want_input(c);
}
