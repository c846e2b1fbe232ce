/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of the UNIX socket: see server.h. Nothing here blocks; a client that does not read is dropped. */
#include "fabricd/server.h"
#include "fabricd/log.h"
#include "fabricd/message.h"
#include "fabricd/pace.h"
#include "fabricd/state.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define TEXT_CHUNK      16384
#define ROOT_SLOTS      16 /* beyond clients_max, for the administrator */
#define OWN_DESCRIPTORS 32
#define ASKING_MAX      64 /* places, by one client */
/* Reading is divided anew after so long at the earliest, and so much for each client: it may be news for all of them. */
#define PACE_LEAST_US  1000u
#define PACE_CLIENT_US 20u
#define PACE_FINE      8 /* who is not held back by his limit hears of changes by such a part of it */

struct client {
    struct client *next;
    struct server *server;
    int fd;
    sd_event_source *source;
    uint64_t id;
    struct ucred cred;
    uint32_t task_seq; /* of the request that waits for a task */
    bool subscribed;
    bool drop; /* to be freed when the loop is back in server_receive or server_publish */
    char job[FD_JOB_MAX];
    char user[FD_JOB_MAX];     /* name of cred.uid, looked up at the first hello */
    bool levels;               /* it understands levels between small and large */
    bool spread;               /* and struct fd_spread */
    bool paces;                /* and struct fd_pace */
    uint32_t want_kb;          /* how much it reads, as it says */
    struct fd_pace pace;       /* the last that was sent; all 0: none */
    unsigned class_index;      /* by the policy in force */
    unsigned asking;           /* places that it has asked for and not been told yet */
    struct fd_state_long told; /* the last FD_STATE sent */
    uint16_t levels_told;      /* service levels that any of them gave it, a bit each: its queue pairs may have them */
};

struct server {
    struct daemon *daemon;
    int fd;
    sd_event_source *source;
    char path[108]; /* to be removed at the end; empty when systemd made the socket */
    struct client *clients;
    unsigned num_clients;
    unsigned sharers[POLICY_CLASSES_MAX]; /* of the ahead budget of a class: processes here, as powers of two */
    uint64_t next_id;
    bool gone;            /* a client has, since reading was divided */
    uint64_t paced_us;    /* when that was */
    sd_event_source *pace_timer; /* NULL: it need not be done again */
    _Alignas(16) char buffer[FD_MSG_MAX + 16];
};

static bool privileged(const struct client *c)
{
    return c->cred.uid == 0 || c->cred.uid == geteuid();
}

unsigned server_clients(const struct server *s)
{
    return s->num_clients;
}

unsigned server_users(const struct server *s, uint16_t levels)
{
    unsigned n = 0;
    for (const struct client *c = s->clients; c; c = c->next)
        n += (c->levels_told & levels) != 0;
    return n;
}

/* ---- sending ---- */

static void send_message(struct client *c, const void *msg, size_t len)
{
    if (c->drop || send(c->fd, msg, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len)
        return;
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        log_warn("pid %d of uid %u does not read its messages: dropped", c->cred.pid, c->cred.uid);
    c->drop = true;
}

static void send_done(struct client *c, uint32_t seq, int status)
{
    struct fd_done m = {message_header(FD_DONE, sizeof(m), seq), status, 0};
    send_message(c, &m, sizeof(m));
}

static void send_text(struct client *c, uint32_t seq, const char *text, size_t len)
{
    char buf[sizeof(struct fd_header) + TEXT_CHUNK];
    while (len && !c->drop) {
        size_t n = len < TEXT_CHUNK ? len : TEXT_CHUNK;
        struct fd_header h = message_header(FD_TEXT, sizeof(h) + n, seq);
        memcpy(buf, &h, sizeof(h));
        memcpy(buf + sizeof(h), text, n);
        send_message(c, buf, sizeof(h) + n);
        text += n;
        len -= n;
    }
}

static void send_place(struct client *c, uint32_t seq, const struct sa_place *place)
{
    struct fd_place m = {.h = message_header(FD_PLACE, sizeof(m), seq),
                         .guid = place->guid,
                         .status = place->status,
                         .lid = place->status ? 0 : place->lid,
                         .lmc = place->status ? 0 : place->lmc};
    send_message(c, &m, sizeof(m));
}

/*
 * Classes are looked up anew, and those who share one are counted, in powers of two: not everybody is to be told of
 * each that comes. True if a count has changed.
 */
static bool count_sharers(struct server *s)
{
    const struct daemon *d = s->daemon;
    unsigned n[POLICY_CLASSES_MAX] = {0}, before[POLICY_CLASSES_MAX];
    for (struct client *c = s->clients; c; c = c->next)
        if (c->subscribed && d->current.valid) {
            c->class_index = jobs_class(&d->jobs, &d->current.policy, c->job, c->cred.uid, c->user);
            n[c->class_index]++;
        }
    memcpy(before, s->sharers, sizeof(before));
    for (unsigned i = 0; i < POLICY_CLASSES_MAX; i++)
        for (s->sharers[i] = 1; s->sharers[i] < n[i];)
            s->sharers[i] *= 2;
    return memcmp(before, s->sharers, sizeof(before)) != 0;
}

static void client_free(struct client *c)
{
    struct server *s = c->server;
    struct client **p = &s->clients;
    while (*p != c)
        p = &(*p)->next;
    *p = c->next;
    s->num_clients--;
    s->gone |= c->subscribed;
    sd_event_source_unref(c->source);
    close(c->fd);
    free(c);
}

static void free_dropped(struct server *s)
{
    for (struct client *c = s->clients, *next; c; c = next) {
        next = c->next;
        if (c->drop)
            client_free(c);
    }
}

/* ---- the pace of reads ---- */

/* The policy knows classes that could hold each other up. */
static bool paces(const struct server *s)
{
    return s->daemon->current.valid && s->daemon->current.tables.num_classes > 1;
}

/* But no two of them are here. */
static bool is_one_class(const struct server *s)
{
    unsigned classes = 0;
    for (const struct client *c = s->clients; c; c = c->next)
        classes |= c->subscribed ? 1u << c->class_index : 0;
    return !(classes & (classes - 1));
}

/* Can it be told? */
static bool is_paced(const struct client *c)
{
    return c->paces && c->subscribed && !c->drop;
}

/* On rail i, among n processes, into their messages. */
static void divide_rail(const struct server *s, unsigned i, struct pace_process *p, unsigned n, struct fd_pace *next)
{
    const struct daemon *d = s->daemon;
    double share[POLICY_CLASSES_MAX] = {0};
    bool alone = is_one_class(s);
    uint32_t room_kb = pace_room(&d->rails, i);
    for (unsigned k = 0; k < d->current.tables.num_classes; k++)
        share[k] = d->current.tables.classes[k].share;
    if (room_kb)
        pace_divide(share, room_kb, p, n);
    for (unsigned k = 0; k < n && room_kb; k++) {
        uint32_t kb = (uint32_t)(p[k].part * room_kb);
        next[k].rate_kb[i] = alone ? FD_PACE_ALONE : kb ? kb : 1;
    }
}

static bool differs(const struct client *c, const struct fd_pace *next)
{
    for (unsigned i = 0; i < FD_RAILS_MAX; i++) {
        uint32_t a = c->pace.rate_kb[i], b = next->rate_kb[i], off = a > b ? a - b : b - a;
        if (off && (!a || !b || c->want_kb == FD_READS_ALL || off > a / PACE_FINE))
            return true;
    }
    return false;
}

static void tell_pace(struct client *c, const struct fd_pace *next)
{
    if (!differs(c, next))
        return;
    c->pace = *next;
    c->pace.h = message_header(FD_PACE, sizeof(c->pace), 0);
    send_message(c, &c->pace, sizeof(c->pace));
}

static void divide_reading(struct server *s)
{
    bool on = paces(s);
    unsigned n = 0, k = 0;
    struct pace_process *p = calloc(s->num_clients + 1, sizeof(*p));
    struct fd_pace *next = calloc(s->num_clients + 1, sizeof(*next));
    s->pace_timer = sd_event_source_unref(s->pace_timer);
    sd_event_now(s->daemon->event, CLOCK_MONOTONIC, &s->paced_us);
    s->gone = false;
    for (struct client *c = s->clients; p && next && c; c = c->next)
        if (is_paced(c)) {
            c->want_kb = on ? c->want_kb : 0;
            p[n++] = (struct pace_process){.class_index = c->class_index, .want_kb = c->want_kb};
        }
    for (unsigned i = 0; on && n && i < s->daemon->rails.n; i++)
        divide_rail(s, i, p, n, next);
    for (struct client *c = s->clients; n && c; c = c->next)
        if (is_paced(c))
            tell_pace(c, &next[k++]);
    free(next);
    free(p);
}

static int on_pace_timer(sd_event_source *source, uint64_t usec, void *arg)
{
    divide_reading(arg);
    free_dropped(arg);
    return 0;
}

/* At once if that was not done just now. */
static void divide_soon(struct server *s)
{
    uint64_t now, next = s->paced_us + PACE_LEAST_US + PACE_CLIENT_US * s->num_clients;
    if (s->pace_timer)
        return;
    if (sd_event_now(s->daemon->event, CLOCK_MONOTONIC, &now) < 0 || now >= next ||
        sd_event_add_time(s->daemon->event, &s->pace_timer, CLOCK_MONOTONIC, next, 1, on_pace_timer, s) < 0)
        divide_reading(s);
}

static void on_reads(struct client *c, const struct fd_reads *m)
{
    if (c->want_kb == m->want_kb)
        return;
    c->want_kb = m->want_kb;
    divide_soon(c->server);
}

/* Of all rails together. */
static uint64_t rate_of(const struct client *c)
{
    uint64_t kb = 0;
    for (unsigned i = 0; i < FD_RAILS_MAX; i++)
        kb += c->pace.rate_kb[i] == FD_PACE_ALONE ? 0 : c->pace.rate_kb[i];
    return kb;
}

void server_pace_text(const struct server *s, struct text *out)
{
    const struct policy *p = &s->daemon->current.policy;
    bool any = false;
    for (unsigned k = 0; paces(s) && k < p->num_classes; k++) {
        unsigned readers = 0;
        uint64_t kb = 0;
        for (const struct client *c = s->clients; c; c = c->next)
            if (c->class_index == k && rate_of(c) && c->want_kb) {
                readers++;
                kb += c->want_kb == FD_READS_ALL || c->want_kb > rate_of(c) ? rate_of(c) : c->want_kb;
            }
        if (!readers)
            continue;
        text_printf(out, "%s  - {name: ", any ? "" : "reading:\n");
        text_yaml_string(out, p->classes[k].name);
        text_printf(out, ", processes: %u, mbytes_per_s: %" PRIu64 "}\n", readers, kb / 1000);
        any = true;
    }
}

/* ---- states ---- */

static void fill_state(const struct client *c, struct fd_state_long *out)
{
    const struct daemon *d = c->server->daemon;
    struct state_asker who = {
        .job = c->job, .user = c->user, .uid = c->cred.uid, .levels = c->levels, .spread = c->spread};
    state_fill(d, &who, c->server->sharers, out);
}

/* c->told is sent, and its service levels are remembered. */
static void send_state(struct client *c)
{
    const struct fd_state *m = &c->told.s;
    if (!m->status)
        c->levels_told |= state_levels(m);
    send_message(c, m, m->h.length);
}

void server_publish(struct server *s)
{
    count_sharers(s);
    for (struct client *c = s->clients; c; c = c->next) {
        struct fd_state_long m;
        if (!c->subscribed)
            continue;
        fill_state(c, &m);
        m.s.changed = state_changes(&c->told.s, &m.s);
        if (!m.s.changed)
            continue;
        c->told = m;
        send_state(c);
    }
    divide_soon(s);
    free_dropped(s);
}

void server_tick(struct server *s)
{
    if (count_sharers(s)) /* some have left */
        server_publish(s);
}

static struct client *find_client(struct server *s, uint64_t id)
{
    struct client *c = s->clients;
    while (c && c->id != id)
        c = c->next;
    return c;
}

void server_progress(struct server *s, uint64_t client, const char *text, size_t len)
{
    struct client *c = find_client(s, client);
    if (c)
        send_text(c, c->task_seq, text, len);
    free_dropped(s);
}

void server_done(struct server *s, uint64_t client, int status)
{
    struct client *c = find_client(s, client);
    if (c)
        send_done(c, c->task_seq, status);
    free_dropped(s);
}

void server_place(struct server *s, struct sa_asker who, const struct sa_place *place)
{
    struct client *c = find_client(s, who.client);
    if (!c)
        return;
    c->asking--;
    send_place(c, who.seq, place);
}

/* ---- requests ---- */

static void look_up_user(struct client *c)
{
    struct passwd pw, *found = NULL;
    char buf[4096];
    if (c->user[0])
        return;
    if (getpwuid_r(c->cred.uid, &pw, buf, sizeof(buf), &found) || !found)
        snprintf(c->user, sizeof(c->user), "%u", c->cred.uid);
    else
        snprintf(c->user, sizeof(c->user), "%s", pw.pw_name);
}

static void on_hello(struct client *c, const struct fd_hello *m)
{
    look_up_user(c);
    memcpy(c->job, m->job, sizeof(c->job));
    c->subscribed = m->flags & FD_HELLO_SUBSCRIBE;
    c->levels = m->flags & FD_HELLO_LEVELS;
    c->spread = m->flags & FD_HELLO_SPREAD;
    c->paces = m->flags & FD_HELLO_PACE;
    bool others = count_sharers(c->server);
    fill_state(c, &c->told);
    c->told.s.h.seq = m->h.seq;
    c->told.s.changed = m->flags & FD_HELLO_PLACES ? FD_CAN_PLACES : 0;
    send_state(c);
    if (others)
        server_publish(c->server);
    else
        divide_soon(c->server);
}

static bool is_our_rail(const struct daemon *d, const struct fd_where *m)
{
    for (unsigned i = 0; i < d->rails.n; i++)
        if (d->rails.rail[i].port == m->port && !strcmp(d->rails.rail[i].device, m->device))
            return d->rails.rail[i].infiniband;
    return false;
}

/* Anybody may ask: what the answer tells every host of the subnet can be asked by. */
static void on_where(struct client *c, const struct fd_where *m)
{
    struct daemon *d = c->server->daemon;
    int rc = -EBUSY;
    if (c->asking < ASKING_MAX) {
        c->asking++; /* the answer may come at once */
        rc = is_our_rail(d, m) ? sa_ask(d->sa, m->device, m->port, m->guid, (struct sa_asker){c->id, m->h.seq})
                               : -ENODEV;
        if (rc)
            c->asking--;
    }
    if (rc)
        send_place(c, m->h.seq, &(struct sa_place){.guid = m->guid, .status = rc});
}

static int on_apply(struct client *c, const struct fd_apply *m, size_t len)
{
    if (!privileged(c))
        return -EACCES;
    c->task_seq = m->h.seq;
    struct daemon *d = c->server->daemon;
    struct policy_file f = {.name = m->name, .text = (const char *)(m + 1), .lock_len = m->lock_length};
    f.len = len - sizeof(*m) - f.lock_len;
    f.lock = f.text + f.len;
    return m->h.type == FD_DIFF ? daemon_diff(d, &f, c->id) : daemon_apply(d, &f, c->id);
}

static int on_verify(struct client *c, const struct fd_header *h)
{
    if (!privileged(c))
        return -EACCES;
    c->task_seq = h->seq;
    return daemon_verify(c->server->daemon, c->id);
}

static int on_job_set(struct client *c, const struct fd_job *m)
{
    struct daemon *d = c->server->daemon;
    struct job job = {.uid = m->uid};
    if (!privileged(c))
        return -EACCES;
    if (*m->class_name && d->current.valid && policy_class_by_name(&d->current.policy, m->class_name) < 0) {
        struct text t = {0};
        text_printf(&t, "the policy in force has no class '%s'; allowed:", m->class_name);
        for (unsigned i = 0; i < d->current.policy.num_classes; i++)
            text_printf(&t, " %s", d->current.policy.classes[i].name);
        text_put(&t, "\n", 1);
        send_text(c, m->h.seq, t.s, t.len);
        text_free(&t);
        return -EINVAL;
    }
    memcpy(job.id, m->job, sizeof(job.id));
    memcpy(job.class_name, m->class_name, sizeof(job.class_name));
    memcpy(job.account, m->account, sizeof(job.account));
    memcpy(job.name, m->name, sizeof(job.name));
    int rc = jobs_set(&d->jobs, &job);
    if (rc)
        log_error("%s: %s", d->jobs.path, strerror(-rc));
    else
        log_info("job %s: class %s (set by uid %u)", job.id, *job.class_name ? job.class_name : "by the rules",
                 c->cred.uid);
    return rc;
}

static int on_job_del(struct client *c, const struct fd_job *m)
{
    return privileged(c) ? jobs_delete(&c->server->daemon->jobs, m->job) : -EACCES;
}

static int on_forget(struct client *c, const struct fd_class *m)
{
    struct text t = {0};
    if (!privileged(c))
        return -EACCES;
    int rc = daemon_forget(c->server->daemon, m->class_name, &t);
    send_text(c, m->h.seq, text_str(&t), t.len);
    text_free(&t);
    return rc;
}

static void text_request(struct client *c, const struct fd_header *h)
{
    struct daemon *d = c->server->daemon;
    struct text t = {0};
    if (h->type == FD_STATUS)
        daemon_status_text(d, &t, c->cred.uid, privileged(c));
    else if (h->type == FD_LOCK)
        lock_text(&t, &d->current.lock);
    else if (h->type == FD_RAIL_LIST)
        rails_text(&t, &d->rails, "");
    else
        jobs_text(&t, &d->jobs, d->current.valid ? &d->current.policy : NULL, "",
                  privileged(c) ? FD_UID_ANY : c->cred.uid);
    send_text(c, h->seq, text_str(&t), t.len);
    text_free(&t);
    send_done(c, h->seq, 0);
}

static void handle(struct client *c, const void *msg, size_t len)
{
    const struct fd_header *h = msg;
    int rc = message_check(msg, len);
    if (rc) {
        send_done(c, len >= sizeof(*h) ? h->seq : 0, rc);
        c->drop = true;
        return;
    }
    switch (h->type) {
    case FD_HELLO:
        on_hello(c, msg);
        return;
    case FD_WHERE:
        on_where(c, msg);
        return;
    case FD_READS:
        on_reads(c, msg);
        return;
    case FD_APPLY:
    case FD_DIFF:
        rc = on_apply(c, msg, len);
        break;
    case FD_VERIFY:
        rc = on_verify(c, h);
        break;
    case FD_JOB_SET:
        rc = on_job_set(c, msg);
        break;
    case FD_JOB_DEL:
        rc = on_job_del(c, msg);
        break;
    case FD_FORGET:
        rc = on_forget(c, msg);
        break;
    default:
        text_request(c, h);
        return;
    }
    if (rc || h->type == FD_JOB_SET || h->type == FD_JOB_DEL || h->type == FD_FORGET)
        send_done(c, h->seq, rc); /* a task's end is told by server_done */
    if (!rc && (h->type == FD_JOB_SET || h->type == FD_JOB_DEL))
        server_publish(c->server);
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
        handle(c, s->buffer, n > (ssize_t)sizeof(s->buffer) ? sizeof(s->buffer) : (size_t)n);
    free_dropped(s);
    if (s->gone)
        divide_soon(s);
    return 0;
}

static bool admit(const struct server *s, const struct ucred *cred)
{
    const struct conf *conf = &s->daemon->conf;
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
        log_warn("uid %u (pid %d) has too many connections: refused", c->cred.uid, c->cred.pid);
        send_done(c, 0, -EUSERS);
        goto refuse;
    }
    if (sd_event_add_io(s->daemon->event, &c->source, c->fd, EPOLLIN, on_readable, c) < 0)
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

/* A socket file that nobody listens on is left from a daemon that was killed; one that answers is in use. */
static int bind_path(int fd, const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(a.sun_path))
        return -ENAMETOOLONG;
    memcpy(a.sun_path, path, strlen(path));
    if (!bind(fd, (struct sockaddr *)&a, sizeof(a)))
        return 0;
    if (errno != EADDRINUSE)
        return -errno;
    int probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int rc = connect(probe, (struct sockaddr *)&a, sizeof(a)) ? errno : 0;
    close(probe);
    if (rc != ECONNREFUSED)
        return -EADDRINUSE;
    if (unlink(path) || bind(fd, (struct sockaddr *)&a, sizeof(a)))
        return -errno;
    return 0;
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
        /* Everybody may connect; what each may do is decided by its credentials. */
        if (chmod(path, 0666) || listen(fd, 128))
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

struct server *server_start(struct daemon *d, const char *path)
{
    fit_clients(&d->conf);
    struct server *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    s->daemon = d;
    s->fd = open_socket(s, path);
    int rc = s->fd < 0 ? s->fd : sd_event_add_io(d->event, &s->source, s->fd, EPOLLIN, on_connect, s);
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
    while (s->clients)
        client_free(s->clients);
    sd_event_source_unref(s->source);
    sd_event_source_unref(s->pace_timer);
    close(s->fd);
    if (s->path[0])
        unlink(s->path);
    free(s);
}
