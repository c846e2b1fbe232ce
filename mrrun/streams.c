/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/streams.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libmrmpi/base/idioms.h"
#include "mrrun/records.h"

struct streams_host {
    struct channel **pmix; /* by number of the connection */
    uint32_t room;
};

struct streams_file {
    struct streams_file *next;
    struct channel channel;
};

static void send_on(struct streams *s, const struct wire_frame *f)
{
    s->base.send(&s->base, f);
}

/* ---- connections to the PMIx server ---- */

static void stream_gone(const struct channel_base *b, struct channel *c)
{
    struct streams *s = container_of(b, struct streams, base);

    if (!(c->id & WIRE_PMIX))
        return;
    s->host[c->host].pmix[c->id & ~WIRE_PMIX] = NULL;
    free(c);
}

static int connect_to_pmix(uint32_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || !connect(fd, (struct sockaddr *)&to, sizeof(to)) || errno == EINPROGRESS)
        return fd;
    close(fd);
    return -1;
}

/* Makes room for the connection's number. False: invalid number. */
static bool room_for_stream(struct streams_host *host, uint32_t number)
{
    uint32_t room = host->room ? host->room : 16;

    if (number >= WIRE_PMIX_MAX)
        return false;
    if (number < host->room)
        return true;
    while (room <= number)
        room *= 2;
    host->pmix = realloc(host->pmix, room * sizeof(struct channel *));
    if (!host->pmix)
        abort();
    memset(host->pmix + host->room, 0, (room - host->room) * sizeof(struct channel *));
    host->room = room;
    return true;
}

/* A rank's first bytes open its connection; a connection refused by the server ends. */
static bool take_pmix(struct streams *s, const struct wire_frame *f)
{
    uint32_t number = f->arg & ~WIRE_PMIX;
    struct streams_host *host = &s->host[f->host];
    struct channel *c;
    int fd;

    if (!room_for_stream(host, number))
        return false;
    c = host->pmix[number];
    if (c)
        return channel_take(c, f);
    if (f->kind != WIRE_DATA)
        return true;
    fd = connect_to_pmix(s->pmix_port);
    c = fd >= 0 ? calloc(1, sizeof(*c)) : NULL;
    if (!c) {
        send_on(s, &(struct wire_frame){.kind = WIRE_END, .host = f->host, .arg = f->arg});
        if (fd >= 0)
            close(fd);
        return true;
    }
    host->pmix[number] = c;
    channel_open(c, &s->base, f->host, f->arg, fd, dup(fd));
    return channel_take(c, f);
}

/* ---- files and output ---- */

static void open_rank_file(struct streams *s, int rank, enum wire_channel which, int from, int to)
{
    struct streams_file *file = calloc(1, sizeof(*file));

    if (!file)
        abort();
    file->next = s->files;
    s->files = file;
    channel_open(&file->channel, &s->base, (unsigned)s->job->place.host_of[rank], WIRE_CHANNEL(rank, which), from, to);
}

static bool take_file(struct streams *s, const struct wire_frame *f)
{
    for (struct streams_file *file = s->files; file; file = file->next)
        if (file->channel.id == f->arg)
            return channel_take(&file->channel, f);
    return f->kind == WIRE_END;
}

static void acknowledge(struct streams *s, int rank, enum wire_channel which, struct source *src)
{
    struct wire_text body = {0};

    wire_put_number(&body, src->owed);
    send_on(s, &(struct wire_frame){.kind = WIRE_TAKEN,
                                    .host = (unsigned)s->job->place.host_of[rank],
                                    .arg = WIRE_CHANNEL(rank, which),
                                    .body = body.bytes,
                                    .len = body.len});
    free(body.bytes);
    src->owed = 0;
}

/* Output not taken yet by a slow reader is not acknowledged; without a reader, the stream ends. */
static void settle_source(struct streams *s, int rank, enum wire_channel which, struct source *src)
{
    if (!src->far)
        return;
    if (src->sink->broken) {
        send_on(s, &(struct wire_frame){.kind = WIRE_END,
                                        .host = (unsigned)s->job->place.host_of[rank],
                                        .arg = WIRE_CHANNEL(rank, which)});
        source_close(src);
    } else if (src->owed && !sink_full(src->sink)) {
        acknowledge(s, rank, which, src);
    }
}

static bool take_output(struct streams *s, int rank, enum wire_channel which, const struct wire_frame *f)
{
    struct source *src = which == WIRE_OUT ? &s->job->ranks[rank].out : &s->job->ranks[rank].err;

    if (f->kind == WIRE_END)
        source_close(src);
    if (f->kind != WIRE_DATA || !src->far)
        return f->kind == WIRE_DATA || f->kind == WIRE_END;
    if (src->owed + f->len > s->base.window)
        return false;
    src->owed += (uint32_t)f->len;
    source_take(src, f->body, f->len);
    settle_source(s, rank, which, src);
    return true;
}

bool streams_take(struct streams *s, const struct wire_frame *f)
{
    uint32_t rank = f->arg / 4, which = f->arg % 4;

    if (f->arg & WIRE_PMIX)
        return take_pmix(s, f);
    if (rank >= (uint32_t)s->job->place.ranks || s->job->place.host_of[rank] != (int)f->host)
        return false;
    return which == WIRE_OUT || which == WIRE_ERR ? take_output(s, (int)rank, which, f) : take_file(s, f);
}

/* ---- life ---- */

void streams_begin(struct streams *s, int rank)
{
    int fd = mrrun_options_reads(s->job->opts, rank) ? input_add(&s->job->input, rank) : -1;

    s->job->ranks[rank].out.far = s->job->ranks[rank].err.far = true;
    if (fd >= 0)
        open_rank_file(s, rank, WIRE_IN, fd, -1);
}

void streams_settle(struct streams *s)
{
    for (int r = 0; r < s->job->place.ranks; r++) {
        settle_source(s, r, WIRE_OUT, &s->job->ranks[r].out);
        settle_source(s, r, WIRE_ERR, &s->job->ranks[r].err);
    }
}

void streams_forget(struct streams *s, unsigned number)
{
    struct streams_host *host = &s->host[number];

    for (uint32_t i = 0; i < host->room; i++)
        if (host->pmix[i])
            channel_end(host->pmix[i]);
    for (struct streams_file *f = s->files; f; f = f->next)
        if (f->channel.host == number)
            channel_end(&f->channel);
}

bool streams_await_record(struct streams *s, int rank)
{
    char number[16], name[sizeof(s->job->scratch.path) + 32];
    int fd;

    snprintf(number, sizeof(number), "%d", rank);
    snprintf(name, sizeof(name), RECORD_FILE, s->job->scratch.path, number);
    fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        open_rank_file(s, rank, WIRE_RECORD, -1, fd);
    return fd >= 0;
}

bool streams_records_open(const struct streams *s)
{
    for (const struct streams_file *f = s->files; f; f = f->next)
        if (f->channel.open && f->channel.id % 4 == WIRE_RECORD)
            return true;
    return false;
}

int streams_open(struct streams *s, struct job *job)
{
    s->job = job;
    s->base.gone = stream_gone;
    s->host = calloc((size_t)job->hosts.count, sizeof(*s->host));
    return s->host ? 0 : -1;
}

void streams_close(struct streams *s)
{
    if (!s->host)
        return;
    for (int h = 0; h < s->job->hosts.count; h++) {
        streams_forget(s, (unsigned)h);
        free(s->host[h].pmix);
    }
    for (struct streams_file *f = s->files, *next; f; f = next) {
        next = f->next;
        free(f);
    }
    s->files = NULL;
    free(s->host);
    s->host = NULL;
}
