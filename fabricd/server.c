/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of the UNIX socket: see server.h. */
#include "fabricd/server.h"
#include "fabricd/base/log.h"
#include "fabricd/proto/message.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TEXT_CHUNK      16384
#define ROOT_SLOTS      16 /* beyond clients_max, for the administrator */
#define OWN_DESCRIPTORS 32
#define HELD_US         500000 /* a process waits for its first answer */
#define BACKLOG         1024   /* the processes of a job begin at the same time */

/* A message that waits. */
struct held {
    sd_event_source *timer;
    bool again; /* is being handed over again */
    size_t len;
    _Alignas(16) char msg[];
};

struct server {
    sd_event *event;
    struct conf *conf;
    const struct server_events *events;
    void *arg; /* of events */
    int fd;
    sd_event_source *source;
    char path[108]; /* to be removed at the end; empty when systemd made the socket */
    struct client *clients;
    unsigned num_clients;
    uint64_t next_id;
    _Alignas(16) char buffer[FD_MSG_MAX + 16];
};

bool server_is_privileged(const struct client *c)
{
    return c->cred.uid == 0 || c->cred.uid == geteuid();
}

struct client *server_clients(const struct server *s)
{
    return s->clients;
}

unsigned server_num_clients(const struct server *s)
{
    return s->num_clients;
}

/* ---- sending ---- */

void server_send(struct client *c, const void *msg, size_t len)
{
    if (c->drop || send(c->fd, msg, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len)
        return;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        log_by_uid(c->cred.uid, SD_WARNING, "pid %d of uid %u does not read its messages: dropped", c->cred.pid,
                   c->cred.uid);
    c->drop = true;
}

void server_send_done(struct client *c, uint32_t seq, int status)
{
    struct fd_done m = {message_header(FD_DONE, sizeof(m), seq), status, 0};
    server_send(c, &m, sizeof(m));
}

static void send_text(struct client *c, enum fd_type type, uint32_t seq, const char *text, size_t len)
{
    char buf[sizeof(struct fd_header) + TEXT_CHUNK];
    while (len && !c->drop) {
        size_t n = len < TEXT_CHUNK ? len : TEXT_CHUNK;
        struct fd_header h = message_header(type, sizeof(h) + n, seq);
        memcpy(buf, &h, sizeof(h));
        memcpy(buf + sizeof(h), text, n);
        server_send(c, buf, sizeof(h) + n);
        text += n;
        len -= n;
    }
}

void server_send_text(struct client *c, uint32_t seq, const char *text, size_t len)
{
    send_text(c, FD_TEXT, seq, text, len);
}

void server_send_place(struct client *c, uint32_t seq, const struct sa_place *place)
{
    struct fd_place m = {.h = message_header(FD_PLACE, sizeof(m), seq),
                         .guid = place->guid,
                         .status = place->status,
                         .lid = place->status ? 0 : place->lid,
                         .lmc = place->status ? 0 : place->lmc};
    server_send(c, &m, sizeof(m));
}

static void held_free(struct client *c)
{
    if (c->held)
        sd_event_source_disable_unref(c->held->timer);
    free(c->held);
    c->held = NULL;
}

static void client_free(struct client *c)
{
    held_free(c);
    sd_event_source_unref(c->source);
    close(c->fd);
    claim_free(&c->subscriber.claim);
    free(c);
}

void server_free_dropped(struct server *s)
{
    for (struct client **p = &s->clients, *c; (c = *p);) {
        if (!c->drop) {
            p = &c->next;
            continue;
        }
        *p = c->next;
        s->num_clients--;
        s->events->left(s->arg, c);
        client_free(c);
    }
}

struct client *server_client(const struct server *s, uint64_t id)
{
    struct client *c = s->clients;
    while (c && c->id != id)
        c = c->next;
    return c;
}

void server_progress(struct server *s, uint64_t client, const char *text, size_t len)
{
    struct client *c = server_client(s, client);
    if (c)
        server_send_text(c, c->task_seq, text, len);
    server_free_dropped(s);
}

void server_count(struct server *s, uint64_t client, enum fd_counted what, unsigned done, unsigned of)
{
    struct client *c = server_client(s, client);
    int unread = 0;
    if (!c || ioctl(c->fd, SIOCOUTQ, &unread) || unread)
        return;
    struct fd_count m = {.h = message_header(FD_COUNT, sizeof(m), c->task_seq), .what = what, .done = done, .of = of};
    server_send(c, &m, sizeof(m));
}

void server_found(struct server *s, uint64_t client, const char *text, size_t len)
{
    struct client *c = server_client(s, client);
    if (c)
        send_text(c, FD_FOUND, c->task_seq, text, len);
    server_free_dropped(s);
}

void server_done(struct server *s, uint64_t client, int status)
{
    struct client *c = server_client(s, client);
    if (c)
        server_send_done(c, c->task_seq, status);
    server_free_dropped(s);
}

void server_place(struct server *s, struct sa_asker who, const struct sa_place *place)
{
    struct client *c = server_client(s, who.client);
    if (!c)
        return;
    c->asking--;
    server_send_place(c, who.seq, place);
}

/* ---- messages that wait ---- */

/* The client is there still, but may be marked to be dropped. */
static void hand_over_again(struct client *c)
{
    struct server *s = c->server;
    c->held->again = true;
    if (!c->drop)
        s->events->message(s->arg, c, c->held->msg, c->held->len);
}

static void resume_client(struct client *c)
{
    uint64_t id = c->id;
    struct server *s = c->server;
    hand_over_again(c);
    c = server_client(s, id); /* the message may have freed the client */
    if (c) {
        held_free(c);
        sd_event_source_set_enabled(c->source, SD_EVENT_ON);
    }
}

static int on_held_too_long(sd_event_source *source, uint64_t usec, void *arg)
{
    struct client *c = arg;
    struct server *s = c->server;
    resume_client(c);
    server_free_dropped(s);
    return 0;
}

bool server_hold(struct client *c, const void *msg, size_t len)
{
    if (c->held)
        return false;
    struct held *h = calloc(1, sizeof(*h) + len);
    if (!h ||
        sd_event_add_time_relative(c->server->event, &h->timer, CLOCK_MONOTONIC, HELD_US, 0, on_held_too_long, c) < 0) {
        free(h);
        return false;
    }
    h->len = len;
    memcpy(h->msg, msg, len);
    c->held = h;
    sd_event_source_set_enabled(c->source, SD_EVENT_OFF);
    return true;
}

void server_go_on(struct server *s, bool (*ready)(void *arg, struct client *c, const void *msg), void *arg)
{
    for (struct client *c = s->clients; c;) {
        bool now = c->held && !c->held->again && ready(arg, c, c->held->msg);
        if (now)
            resume_client(c);
        c = now ? s->clients : c->next; /* the list may have changed */
    }
    server_free_dropped(s);
}

/* ---- connections ---- */

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct client *c = arg;
    struct server *s = c->server;
    ssize_t n = recv(fd, s->buffer, sizeof(s->buffer), MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        c->drop = true;
    else
        s->events->message(s->arg, c, s->buffer, n > (ssize_t)sizeof(s->buffer) ? sizeof(s->buffer) : (size_t)n);
    server_free_dropped(s);
    return 0;
}

static bool admit(const struct server *s, const struct ucred *cred)
{
    const struct conf *conf = s->conf;
    unsigned same = 0;
    if (cred->uid == 0 || cred->uid == geteuid())
        return s->num_clients < conf->clients_max + ROOT_SLOTS;
    for (const struct client *c = s->clients; c; c = c->next)
        same += c->cred.uid == cred->uid;
    return same < conf->clients_per_uid && s->num_clients < conf->clients_max;
}

static int on_connect(sd_event_source *source, int fd, uint32_t events, void *arg)
{
    struct server *s = arg;
    struct client *c = calloc(1, sizeof(*c));
    if (!c)
        return 0;
    socklen_t len = sizeof(c->cred);
    c->server = s;
    c->fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (c->fd < 0 || getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &c->cred, &len))
        goto refuse;
    if (!admit(s, &c->cred)) {
        log_by_uid(c->cred.uid, SD_WARNING, "uid %u (pid %d) has too many connections: refused", c->cred.uid,
                   c->cred.pid);
        server_send_done(c, 0, -EUSERS);
        goto refuse;
    }
    if (sd_event_add_io(s->event, &c->source, c->fd, EPOLLIN, on_readable, c) < 0)
        goto refuse;
    c->id = ++s->next_id;
    c->next = s->clients;
    s->clients = c;
    s->num_clients++;
    return 0;

refuse:
    if (c->fd >= 0)
        close(c->fd);
    free(c);
    return 0;
}

/* For everybody from the beginning: a mode that is set by name might be another file's, where others can write. */
static int bind_open(int fd, const struct sockaddr_un *a)
{
    mode_t mask = umask(0);
    int rc = fchmod(fd, 0666) || bind(fd, (const struct sockaddr *)a, sizeof(*a)) ? -errno : 0;
    umask(mask);
    return rc;
}

/* A socket file without a listener is left from a killed daemon; a socket that answers is in use. */
static int bind_path(int fd, const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(a.sun_path))
        return -ENAMETOOLONG;
    memcpy(a.sun_path, path, strlen(path));
    int first = bind_open(fd, &a);
    if (first != -EADDRINUSE)
        return first;
    int probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int rc = connect(probe, (struct sockaddr *)&a, sizeof(a)) ? errno : 0;
    close(probe);
    if (rc != ECONNREFUSED && rc != ENOENT && rc != ELOOP) /* these two: a link that leads nowhere */
        return -EADDRINUSE;
    return unlink(path) ? -errno : bind_open(fd, &a);
}

static int open_socket(struct server *s, const char *path)
{
    if (sd_listen_fds(1) >= 1 && sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_SEQPACKET, 1, NULL, 0) > 0)
        return SD_LISTEN_FDS_START;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int rc = bind_path(fd, path);
    if (!rc) {
        snprintf(s->path, sizeof(s->path), "%s", path);
        if (listen(fd, BACKLOG)) /* everybody may connect; credentials decide permissions */
            rc = -errno;
    }
    if (rc)
        close(fd);
    return rc ? rc : fd;
}

/* Without a descriptor for the next client, the loop would find the socket readable for ever. */
static void fit_clients(struct conf *c)
{
    struct rlimit r;
    rlim_t want = (rlim_t)c->clients_max + ROOT_SLOTS + OWN_DESCRIPTORS;
    if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= want)
        return;
    r.rlim_cur = want < r.rlim_max ? want : r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
    if (r.rlim_cur >= want || r.rlim_cur < ROOT_SLOTS + OWN_DESCRIPTORS + 1)
        return;
    c->clients_max = (uint32_t)(r.rlim_cur - ROOT_SLOTS - OWN_DESCRIPTORS);
    log_warn("the limit of open files allows %u clients", c->clients_max);
}

struct server *server_start(sd_event *event, struct conf *conf, const char *path, const struct server_events *events,
                            void *arg)
{
    fit_clients(conf);
    struct server *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->event = event;
    s->conf = conf;
    s->events = events;
    s->arg = arg;
    s->fd = open_socket(s, path);
    int rc = s->fd < 0 ? s->fd : sd_event_add_io(event, &s->source, s->fd, EPOLLIN, on_connect, s);
    if (rc < 0) {
        log_error("%s: %s", path, rc == -EADDRINUSE ? "another fabricd is serving there" : strerror(-rc));
        if (s->fd >= 0)
            close(s->fd);
        free(s);
        errno = -rc;
        return NULL;
    }
    return s;
}

void server_stop(struct server *s)
{
    for (struct client *c = s->clients, *next; c; c = next) {
        next = c->next;
        client_free(c);
    }
    sd_event_source_unref(s->source);
    close(s->fd);
    if (s->path[0])
        unlink(s->path);
    free(s);
}
