/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's socket and loop: see server.h. */
#include "simfab/engine/client/server.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/text.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/client/attach.h"
#include "simfab/engine/client/request.h"
#include "simfab/engine/client/status.h"
#include "simfab/engine/clock/cpu.h"
#include "simfab/engine/clock/internal.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/relay.h"
#include "simfab/engine/clock/sched.h"
#include "simfab/engine/clock/states.h"
#include "simfab/engine/clock/world.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/fabric/planes.h"
#include "simfab/engine/fault/fault.h"
#include "simfab/engine/fault/flow.h"
#include "simfab/engine/hca/object.h"
#include "simfab/engine/mgmt/mad.h"
#include "simfab/engine/mgmt/sysfs.h"
#include "simfab/engine/wire/fc.h"
#include "simfab/engine/wire/trace_log.h"
#include "simfab/proto.h"

enum source_kind { SRC_LISTEN, SRC_SIGNAL, SRC_MAD, SRC_NEW, SRC_QUERY, SRC_DESC, SRC_PROC, SRC_BELL };

/* A descriptor watched by the loop. */
struct source {
    enum source_kind kind;
    int fd;
    struct proc *proc; /* PROC, BELL */
    struct host *host; /* QUERY, DESC */
    struct node *node; /* DESC, once known */
    struct source *prev, *next;
    bool gone; /* closed; freed at the end of the turn, events of it may still be in hand */
};

struct server {
    struct sim *sim;
    int epoll;
    char path[108];
    struct source *sources;
    int64_t timeout_us;
    struct cpu *cpu;
    bool any_gone; /* of the sources */
    uint8_t in[SF_MSG_MAX], out[sizeof(struct sf_rep) + SF_MSG_MAX];
};

/* ---- sources --------------------------------------------------------------------------------------------------- */

static struct source *watch_fd(struct server *v, enum source_kind kind, int fd)
{
    struct source *src = xcalloc(1, sizeof *src);
    /* every ring of a bell is an edge: the bell need not be read */
    struct epoll_event ev = {.events = kind == SRC_BELL ? EPOLLIN | EPOLLET : EPOLLIN, .data.ptr = src};

    src->kind = kind;
    src->fd = fd;
    if (epoll_ctl(v->epoll, EPOLL_CTL_ADD, fd, &ev)) {
        free(src);
        return NULL;
    }
    src->next = v->sources;
    if (src->next)
        src->next->prev = src;
    v->sources = src;
    return src;
}

static void unwatch(struct server *v, struct source *src)
{
    if (!src || src->gone)
        return;
    epoll_ctl(v->epoll, EPOLL_CTL_DEL, src->fd, NULL);
    src->gone = true;
    v->any_gone = true;
}

static void sweep_sources(struct server *v)
{
    if (!v->any_gone)
        return;
    v->any_gone = false;
    for (struct source *src = v->sources, *next; src; src = next) {
        next = src->next;
        if (!src->gone)
            continue;
        if (src->prev)
            src->prev->next = next;
        else
            v->sources = next;
        if (next)
            next->prev = src->prev;
        free(src);
    }
}

/* ---- set-up ---------------------------------------------------------------------------------------------------- */

static int listen_in(struct server *v, const char *dir)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    int fd;

    if (snprintf(v->path, sizeof v->path, "%s/engine.sock", dir) >= (int)sizeof v->path) {
        engine_log("%s: the path is too long for a socket (at most %zu bytes); use a shorter SIMFAB_DIR", dir,
                   sizeof v->path - sizeof "/engine.sock");
        return -1;
    }
    memcpy(addr.sun_path, v->path, sizeof v->path);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof addr) || chmod(v->path, 0600) || listen(fd, 1024) ||
        !watch_fd(v, SRC_LISTEN, fd)) {
        engine_log("%s: %s", v->path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return 0;
}

static int catch_signals(struct server *v)
{
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd >= 0 && watch_fd(v, SRC_SIGNAL, fd) ? 0 : -1;
}

struct server *server_open(struct sim *s, const char *dir)
{
    struct server *v = xcalloc(1, sizeof *v);
    struct rlimit files;

    /* a process costs up to a dozen descriptors: take as many as the machine gives */
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    v->sim = s;
    s->server = v;
    v->timeout_us = -1;
    v->cpu = cpu_new();
    v->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (v->epoll < 0 || catch_signals(v) || !watch_fd(v, SRC_MAD, mad_fd(s->mad)) || listen_in(v, dir)) {
        server_close(v);
        return NULL;
    }
    return v;
}

void server_close(struct server *v)
{
    while (v->sources) {
        struct source *src = v->sources;

        v->sources = src->next;
        if (src->kind != SRC_MAD && !src->gone)
            close(src->fd);
        free(src);
    }
    if (v->path[0])
        unlink(v->path);
    close(v->epoll);
    cpu_free(v->cpu);
    free(v);
}

/* ---- connections ----------------------------------------------------------------------------------------------- */

static void hang_up(struct server *v, struct source *src)
{
    unwatch(v, src);
    close(src->fd);
}

static void answer_error(struct server *v, struct source *src, int error)
{
    struct sf_welcome w = {.magic = SF_MAGIC, .version = SF_VERSION, .error = error};

    send(src->fd, &w, sizeof w, MSG_NOSIGNAL | MSG_DONTWAIT);
    hang_up(v, src);
}

static bool send_with_fds(int fd, const void *data, size_t len, const int *fds, int nfds)
{
    union {
        char bytes[CMSG_SPACE(3 * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {(void *)data, len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

    if (nfds) {
        struct cmsghdr *c;

        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
        c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
    }
    return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

static struct sf_welcome make_welcome(const struct sim *s)
{
    const struct model *m = s->model;

    return (struct sf_welcome){.magic = SF_MAGIC,
                               .version = SF_VERSION,
                               .arena_bytes = ARENA_BYTES,
                               .epoch_ns = s->epoch_ns,
                               .mono_epoch_ns = s->mono_epoch_ns,
                               .clock_read_ps = m->clock_read_ps,
                               .post_ps = m->post_ps,
                               .poll_ps = m->poll_ps,
                               .poll_empty_ps = m->poll_empty_ps,
                               .cpu_factor_milli = m->cpu_factor_milli,
                               .copy_ps_per_kib = m->copy_mbytes_per_s ? 1024000000u / m->copy_mbytes_per_s : 0};
}

static void attach_process(struct server *v, struct source *src, struct host *host, uint32_t rank)
{
    struct ucred cred;
    socklen_t len = sizeof cred;
    struct proc *p;
    struct source *bell;
    struct sf_welcome w = make_welcome(v->sim);
    int fds[3], nfds = 2;

    if (getsockopt(src->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len)) {
        answer_error(v, src, errno);
        return;
    }
    p = proc_new(v->sim, host, cred.pid, src->fd, rank);
    if (!p) {
        answer_error(v, src, errno);
        return;
    }
    bell = watch_fd(v, SRC_BELL, p->bell);
    p->source = src;
    p->bell_source = bell;
    src->kind = SRC_PROC;
    src->proc = p;
    fds[0] = p->memfd;
    fds[1] = p->bell;
    if (bell)
        bell->proc = p;
    w.seat = p->seat = relay_sit(&v->sim->sched->hosts[host->index], &fds[2]);
    nfds += w.seat != 0;
    if (!bell || !send_with_fds(src->fd, &w, sizeof w, fds, nfds))
        p->dead = true;
}

/* Whoever is at the other end broke the rules; his connection ends. */
static void refuse_nonsense(struct server *v, struct source *src, const char *what)
{
    struct ucred cred = {0};
    socklen_t len = sizeof cred;

    getsockopt(src->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
    engine_log("pid %d: %s; connection closed", (int)cred.pid, what);
    hang_up(v, src);
}

static void greet(struct server *v, struct source *src)
{
    struct sf_hello hello;
    struct host *host;
    ssize_t n = recv(src->fd, &hello, sizeof hello, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        hang_up(v, src);
        return;
    }
    if (n != sizeof hello || hello.magic != SF_MAGIC) {
        refuse_nonsense(v, src, "something else than a hello");
        return;
    }
    hello.host[sizeof hello.host - 1] = 0;
    host = fabric_host_by_name(v->sim->fabric, hello.host);
    if (hello.version != SF_VERSION) {
        answer_error(v, src, EPROTO);
    } else if (hello.kind == SF_CONN_QUERY) {
        struct sf_welcome w = make_welcome(v->sim);

        src->kind = SRC_QUERY;
        src->host = host; /* may be none: status needs no host */
        send(src->fd, &w, sizeof w, MSG_NOSIGNAL | MSG_DONTWAIT);
    } else if (!host) {
        answer_error(v, src, ENOENT);
    } else if (host->dead) {
        answer_error(v, src, EHOSTDOWN);
    } else if (hello.kind == SF_CONN_PROC) {
        attach_process(v, src, host, hello.arg);
    } else if (hello.kind == SF_CONN_DESC) {
        struct sf_welcome w = make_welcome(v->sim);

        src->kind = SRC_DESC;
        src->host = host;
        send(src->fd, &w, sizeof w, MSG_NOSIGNAL | MSG_DONTWAIT);
    } else if (hello.kind == SF_CONN_UMAD || hello.kind == SF_CONN_ISSM) {
        unwatch(v, src);
        mad_accept(v->sim->mad, src->fd, &hello);
    } else {
        answer_error(v, src, EINVAL);
    }
}

/* ---- questions ------------------------------------------------------------------------------------------------- */

/* *fd came with the request; left there if the trace does not take the descriptor. */
static int order_trace(struct sim *s, const char *body, int *fd, struct text *t)
{
    struct trace_request r;
    int e;

    if (!strcmp(body, "stop")) {
        fc_take_all(s);
        return trace_log_stop(s, t);
    }
    if (!trace_request_parse(body, &r) || *fd < 0)
        return EINVAL;
    fc_take_all(s);
    e = trace_log_start(s, *fd, &r);
    if (!e)
        *fd = -1;
    return e;
}

static int announce(struct sim *s, int fd)
{
    struct ucred cred;
    socklen_t len = sizeof cred;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
        return errno;
    world_announce(s->sched->world, cred.pid);
    return 0;
}

/* Answer a question: 0 and the text, or an errno. */
static int answer_query(struct server *v, struct source *src, const struct sf_req *req, const char *body, int *fd,
                        struct text *t)
{
    switch (req->op) {
    case SF_OP_STATUS:
        if (!strcmp(body, "hosts"))
            hosts_text(v->sim, t);
        else if (!strcmp(body, "subnets"))
            subnets_text(v->sim->fabric, t);
        else
            status_text(v->sim, t);
        return 0;
    case SF_OP_COUNTERS:
        counters_text(v->sim, body, t);
        return 0;
    case SF_OP_SYSFS:
        if (src->host)
            t->used = sysfs_answer(src->host, body, text_room(t, SF_BODY_MAX), SF_BODY_MAX);
        return t->used ? 0 : ENOENT;
    case SF_OP_FAULT:
        text_say(t, "+");
        if (!fault_command(v->sim, body, t))
            *t->buf = '-';
        return 0;
    case SF_OP_FLOW:
        text_say(t, "+");
        if (!flow_command(v->sim, body, t))
            *t->buf = '-';
        return 0;
    case SF_OP_STOP:
        v->sim->stop = true;
        return 0;
    case SF_OP_COMING:
        return announce(v->sim, src->fd);
    case SF_OP_TRACE:
        return order_trace(v->sim, body, fd, t);
    default:
        return EOPNOTSUPP;
    }
}

/* A text too long for a message goes into a memfd, whose descriptor the message carries. */
static void send_long(int to, const struct sf_rep *rep, const struct text *t)
{
    int fd = memfd_create("simfab-answer", MFD_CLOEXEC);

    if (fd < 0 || write(fd, t->buf, t->used) != (ssize_t)t->used || !send_with_fds(to, rep, sizeof *rep, &fd, 1))
        engine_log("an answer of %zu bytes could not be given: %s", t->used, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static void send_client_answer(struct server *v, int to, const struct sf_rep *rep, const struct text *t)
{
    if (t->used > SF_BODY_MAX) {
        send_long(to, rep, t);
        return;
    }
    memcpy(v->out, rep, sizeof *rep);
    if (t->used)
        memcpy(v->out + sizeof *rep, t->buf, t->used);
    send(to, v->out, sizeof *rep + t->used, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Receives a message, and its first descriptor (else -1); closes further descriptors. */
static ssize_t receive_with_fd(int from, void *data, size_t cap, int *fd)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec iov = {data, cap};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(from, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = n >= 0 ? CMSG_FIRSTHDR(&msg) : NULL;

    *fd = -1;
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
        return n;
    for (size_t at = 0; at + sizeof(int) <= c->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
        int got;

        memcpy(&got, CMSG_DATA(c) + at, sizeof got);
        if (*fd < 0)
            *fd = got;
        else
            close(got);
    }
    return n;
}

static void serve_query(struct server *v, struct source *src)
{
    struct sf_req req;
    int fd;
    ssize_t n = receive_with_fd(src->fd, v->in, sizeof v->in - 1, &fd);
    struct text t = {0};
    struct sf_rep rep;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < (ssize_t)sizeof req) {
        if (fd >= 0)
            close(fd);
        if (n > 0)
            refuse_nonsense(v, src, "a question that is too short");
        else
            hang_up(v, src);
        return;
    }
    memcpy(&req, v->in, sizeof req);
    v->in[n] = 0; /* the body is text */
    rep = (struct sf_rep){.op = req.op, .seq = req.seq};
    rep.error = answer_query(v, src, &req, (const char *)v->in + sizeof req, &fd, &t);
    if (fd >= 0)
        close(fd);
    rep.body_bytes = (uint32_t)t.used;
    send_client_answer(v, src->fd, &rep, &t);
    text_free(&t);
}

/* Hello and question are usually there already: served now, they need no turns of the engine. */
static void accept_one(struct server *v, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct source *src = fd >= 0 ? watch_fd(v, SRC_NEW, fd) : NULL;

    if (src)
        greet(v, src);
    else if (fd >= 0)
        close(fd);
    if (src && !src->gone && src->kind == SRC_QUERY)
        serve_query(v, src);
}

/* A program writes into the file node_desc of an adapter. */
static void serve_description(struct server *v, struct source *src)
{
    ssize_t n = recv(src->fd, v->in, sizeof v->in - 1, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        hang_up(v, src);
        return;
    }
    v->in[n] = 0;
    if (src->node) {
        node_describe(src->node, (const char *)v->in, (size_t)n);
        return;
    }
    for (uint32_t i = 0; i < src->host->num_cas; i++)
        if (!strcmp(src->host->cas[i]->dev_name, (const char *)v->in))
            src->node = src->host->cas[i];
    if (!src->node)
        refuse_nonsense(v, src, "a description of an adapter that there is not");
}

/* ---- processes ------------------------------------------------------------------------------------------------- */

static void serve_process(struct server *v, struct source *src)
{
    struct proc *p = src->proc;
    ssize_t n = recv(src->fd, v->in, sizeof v->in, MSG_DONTWAIT);
    size_t out;
    int fd = -1;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        p->dead = true;
        return;
    }
    sched_scan(p);
    out = request_handle(p, v->in, (size_t)n, v->out, sizeof v->out, &fd);
    if (!out || !send_with_fds(src->fd, v->out, out, &fd, fd >= 0))
        p->dead = true;
    if (fd >= 0)
        close(fd);
}

void server_detach(struct proc *p)
{
    struct server *v = p->sim->server;

    unwatch(v, p->source);
    unwatch(v, p->bell_source);
    cpu_let_go(p);
    sched_proc_gone(p);
    proc_free(p);
}

static void detach_dead(struct sim *s)
{
    for (uint32_t i = 0; i < s->num_procs;) {
        if (s->procs[i]->dead)
            server_detach(s->procs[i]);
        else
            i++;
    }
}

/* ---- the loop -------------------------------------------------------------------------------------------------- */

static void serve_source(struct server *v, struct source *src)
{
    switch (src->kind) {
    case SRC_LISTEN:
        accept_one(v, src->fd);
        break;
    case SRC_SIGNAL:
        v->sim->stop = true;
        break;
    case SRC_MAD:
        mad_run(v->sim->mad);
        break;
    case SRC_NEW:
        greet(v, src);
        break;
    case SRC_QUERY:
        serve_query(v, src);
        break;
    case SRC_DESC:
        serve_description(v, src);
        break;
    case SRC_PROC:
        serve_process(v, src);
        break;
    case SRC_BELL:
        sched_scan(src->proc);
        break;
    }
}

bool server_has_input(const struct server *v)
{
    struct pollfd p = {.fd = v->epoll, .events = POLLIN};

    return poll(&p, 1, 0) > 0;
}

static int wait_for_events(struct server *v, struct epoll_event *ev, int max)
{
    struct timespec ts = {v->timeout_us / 1000000, v->timeout_us % 1000000 * 1000};
    int n = epoll_pwait2(v->epoll, ev, max, v->timeout_us < 0 ? NULL : &ts, NULL);

    if (n < 0 && errno == ENOSYS) /* a kernel before 5.11 counts in milliseconds */
        n = epoll_wait(v->epoll, ev, max, v->timeout_us < 0 ? -1 : (int)((v->timeout_us + 999) / 1000));
    return n;
}

void server_turn(struct server *v)
{
    struct epoll_event ev[64];
    uint32_t running = sched_running_now(v->sim);
    int n = wait_for_events(v, ev, 64);
    bool changed = false;

    cpu_waited(v->cpu, v->sim, running, n > 0);

    for (int i = 0; i < n; i++) {
        struct source *src = ev[i].data.ptr;

        if (src->gone || (src->proc && src->proc->dead))
            continue;
        changed |= src->kind == SRC_PROC || src->kind == SRC_BELL;
        serve_source(v, src);
    }
    detach_dead(v->sim);
    sweep_sources(v);
    if (TRACED(v->sim))
        trace_log_tick(v->sim);
    v->timeout_us = sched_run(v->sim, !changed && n == 0 && v->timeout_us > 0, changed);
}
