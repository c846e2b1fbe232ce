/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open umad and issm devices: a connection each. A program's requests come in whole messages and are answered on the
 * socket that came with them; datagrams for the program go out as far as its socket has room and wait here otherwise,
 * so that a program that does not read holds up nobody else.
 */
#include "simfab/engine/umad.h"
#include "simfab/engine/util.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define RX_BYTES_MAX  (256u << 20) /* what one program may leave unread before datagrams to it are dropped */
#define REQ_BUF_BYTES (sizeof(struct umad_req) + UMAD_INLINE)
#define CAP_IS_SM     0x00000002u

struct umad_rxq {
    struct umad_rxq *next;
    struct umad_rx head;
    int memfd;
    size_t inline_bytes;
    uint8_t data[];
};

/* ---- to the program ------------------------------------------------------------------------------------------- */

static void watch(struct umad_file *u, bool write)
{
    struct epoll_event ev = {.events = EPOLLIN | (write ? EPOLLOUT : 0), .data.ptr = u};

    if (u->want_write == write)
        return;
    u->want_write = write;
    epoll_ctl(u->mad->epfd, EPOLL_CTL_MOD, u->fd, &ev);
}

static bool rx_send(struct umad_file *u, struct umad_rxq *q)
{
    struct iovec iov[2] = {{&q->head, sizeof q->head}, {q->data, q->inline_bytes}};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

    if (q->memfd >= 0) {
        struct cmsghdr *c;

        msg.msg_control = &control;
        msg.msg_controllen = sizeof control;
        c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &q->memfd, sizeof(int));
    }
    /* any other error means that the program is gone: the hang-up closes the file */
    return sendmsg(u->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno != EAGAIN;
}

static void rx_flush(struct umad_file *u)
{
    while (u->rx && rx_send(u, u->rx)) {
        struct umad_rxq *q = u->rx;

        u->rx = q->next;
        if (!u->rx)
            u->rx_tail = &u->rx;
        u->rx_bytes -= q->head.bytes;
        if (q->memfd >= 0)
            close(q->memfd);
        free(q);
    }
    watch(u, u->rx != NULL);
}

static int make_memfd(const struct ib_user_mad_hdr *hdr, size_t head, const uint8_t *mad, size_t bytes)
{
    int fd = memfd_create("umad", MFD_CLOEXEC);
    size_t at = 0;

    if (fd < 0)
        return -1;
    if (pwrite(fd, hdr, head, 0) != (ssize_t)head)
        goto close_fd;
    while (at < bytes) {
        ssize_t n = pwrite(fd, mad + at, bytes - at, (off_t)(head + at));

        if (n <= 0)
            goto close_fd;
        at += (size_t)n;
    }
    return fd;

close_fd:
    close(fd);
    return -1;
}

void umad_push(struct umad_file *u, const struct ib_user_mad_hdr *hdr, const uint8_t *mad, size_t bytes)
{
    size_t head = u->pkey_abi ? UMAD_HDR : UMAD_HDR_OLD;
    bool large = head + bytes > UMAD_INLINE;
    size_t part = large ? MAD_BYTES : bytes;
    struct umad_rxq *q;

    if (u->rx_bytes + bytes > RX_BYTES_MAX)
        return;
    q = malloc(sizeof *q + head + part);
    if (!q)
        return;
    *q = (struct umad_rxq){
        .head = {.bytes = head + bytes, .hdr_bytes = (uint32_t)head, .flags = large ? UMAD_RX_MEMFD : 0},
        .memfd = -1,
        .inline_bytes = head + part,
    };
    memcpy(q->data, hdr, head);
    memcpy(q->data + head, mad, part);
    if (large) {
        q->memfd = make_memfd(hdr, head, mad, bytes);
        if (q->memfd < 0) {
            free(q);
            return;
        }
    }
    *u->rx_tail = q;
    u->rx_tail = &q->next;
    u->rx_bytes += q->head.bytes;
    if (!u->want_write)
        rx_flush(u);
}

/* ---- from the program ----------------------------------------------------------------------------------------- */

static int do_register(struct umad_file *u, const uint8_t *body, size_t bytes, uint32_t *id)
{
    struct ib_user_mad_reg_req old;
    struct ib_user_mad_reg_req2 req = {0};

    if (bytes != sizeof old)
        return EINVAL;
    memcpy(&old, body, sizeof old);
    req.qpn = old.qpn;
    req.mgmt_class = old.mgmt_class;
    req.mgmt_class_version = old.mgmt_class_version;
    memcpy(req.method_mask, old.method_mask, sizeof req.method_mask);
    req.oui = (uint32_t)old.oui[0] << 16 | (uint32_t)old.oui[1] << 8 | old.oui[2];
    req.rmpp_version = old.rmpp_version;
    return agent_register(u, &req, id);
}

static int do_register2(struct umad_file *u, const uint8_t *body, size_t bytes, struct umad_rep *rep)
{
    struct ib_user_mad_reg_req2 req;
    int err;

    if (bytes != sizeof req)
        return EINVAL;
    memcpy(&req, body, sizeof req);
    if (req.flags & ~(uint32_t)IB_USER_MAD_REG_FLAGS_CAP) {
        rep->flags = IB_USER_MAD_REG_FLAGS_CAP;
        return EINVAL;
    }
    err = agent_register(u, &req, &rep->id);
    if (!err && !u->used)
        u->pkey_abi = true;
    return err;
}

static void serve(struct umad_file *u, const struct umad_req *req, const uint8_t *body, size_t bytes,
                  struct umad_rep *rep)
{
    uint32_t id;

    switch (req->op) {
    case UMAD_OP_WRITE:
        rep->error = agent_write(u, body, bytes);
        break;
    case UMAD_OP_ENABLE_PKEY:
        rep->error = u->used ? EINVAL : 0;
        u->pkey_abi |= !u->used;
        break;
    case UMAD_OP_REGISTER:
        rep->error = do_register(u, body, bytes, &rep->id);
        u->used |= !rep->error;
        break;
    case UMAD_OP_REGISTER2:
        rep->error = do_register2(u, body, bytes, rep);
        u->used |= !rep->error;
        break;
    case UMAD_OP_UNREGISTER:
        if (bytes == sizeof id) {
            memcpy(&id, body, sizeof id);
            rep->error = agent_unregister(u, id);
        } else {
            rep->error = EINVAL;
        }
        break;
    default:
        rep->error = EINVAL;
    }
}

/* A payload too large for a message comes in a memfd. */
static uint8_t *read_memfd(int fd, size_t bytes)
{
    uint8_t *buf;
    size_t at = 0;

    if (fd < 0 || bytes > UMAD_DATA_MAX)
        return NULL;
    buf = malloc(bytes ? bytes : 1);
    while (buf && at < bytes) {
        ssize_t n = pread(fd, buf + at, bytes - at, (off_t)at);

        if (n <= 0) {
            free(buf);
            return NULL;
        }
        at += (size_t)n;
    }
    return buf;
}

static void take_fds(struct msghdr *msg, int fds[2])
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
            if (i < 2 && fds[i] < 0)
                fds[i] = fd;
            else
                close(fd);
        }
    }
}

/* One message; false at the end of the connection or when it makes no sense. */
static bool receive(struct umad_file *u)
{
    uint8_t buf[REQ_BUF_BYTES], *large = NULL;
    const char *wrong = NULL;
    struct iovec iov = {buf, sizeof buf};
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct umad_rep rep = {0};
    struct umad_req req;
    int fds[2] = {-1, -1};
    ssize_t n = recvmsg(u->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    bool ok = false;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    take_fds(&msg, fds);
    if (n == 0)
        goto close_fds; /* closed */
    if (n < (ssize_t)sizeof req || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || u->issm) {
        wrong = u->issm ? "a message on an issm" : "a message of no possible length";
        goto close_fds;
    }
    memcpy(&req, buf, sizeof req);
    if (req.flags & UMAD_REQ_MEMFD)
        large = read_memfd(fds[1], req.bytes);
    if (req.flags & UMAD_REQ_MEMFD ? !large : req.bytes != (size_t)n - sizeof req) {
        wrong = "a message whose payload is not what it says";
        goto close_fds;
    }
    serve(u, &req, large ? large : buf + sizeof req, req.bytes, &rep);
    if (fds[0] >= 0)
        (void)!send(fds[0], &rep, sizeof rep, MSG_DONTWAIT | MSG_NOSIGNAL);
    free(large);
    ok = true;

close_fds:
    if (wrong)
        engine_log("%s%u of %s (pid %d): %s; closed", u->issm ? "issm" : "umad", u->number, u->mp->port->node->desc,
                   (int)u->pid, wrong);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    return ok;
}

void umad_ready(struct umad_file *u, uint32_t events)
{
    if (events & EPOLLOUT)
        rx_flush(u);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !receive(u))
        umad_close(u); /* a hang-up, or nonsense, which receive has named */
}

/* ---- opening and closing -------------------------------------------------------------------------------------- */

static bool welcome(int fd, int error)
{
    struct sf_welcome w = {.magic = SF_MAGIC, .version = SF_VERSION, .error = error};

    return send(fd, &w, sizeof w, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof w;
}

static void issm_changed(struct mad_port *mp, bool held)
{
    struct port *p = mp->port;

    p->cap_mask = held ? p->cap_mask | CAP_IS_SM : p->cap_mask & ~CAP_IS_SM;
    p->changes++;
    p->node->fabric->generation++;
    port_notify(p, PORT_EV_CAPMASK);
}

static void issm_take(struct umad_file *u)
{
    struct umad_file **at;

    if (!u->mp->issm) {
        u->mp->issm = u;
        issm_changed(u->mp, true);
        welcome(u->fd, 0);
        return;
    }
    for (at = &u->mp->issm_waiting; *at; at = &(*at)->next_waiting)
        ;
    *at = u;
}

static void issm_leave(struct umad_file *u)
{
    struct mad_port *mp = u->mp;

    if (mp->issm != u) {
        struct umad_file **at = &mp->issm_waiting;

        while (*at && *at != u)
            at = &(*at)->next_waiting;
        if (*at)
            *at = u->next_waiting;
        return;
    }
    mp->issm = mp->issm_waiting;
    if (!mp->issm) {
        issm_changed(mp, false);
        return;
    }
    mp->issm_waiting = mp->issm->next_waiting;
    mp->issm->next_waiting = NULL;
    welcome(mp->issm->fd, 0);
}

/* umad and issm numbers count the ports of a host's HCAs in their order. */
static struct port *find_port(struct fabric *f, const char *name, uint32_t n)
{
    struct host *h = fabric_host_by_name(f, name);

    for (uint32_t i = 0; h && i < h->num_cas; i++) {
        if (n < h->cas[i]->num_ports)
            return &h->cas[i]->ports[n + 1];
        n -= h->cas[i]->num_ports;
    }
    return NULL;
}

static pid_t peer_of(int fd)
{
    struct ucred cred = {0};
    socklen_t len = sizeof cred;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) ? 0 : cred.pid;
}

struct umad_file *umad_accept(struct mad *m, int fd, const struct sf_hello *hello)
{
    char host[SF_HOST_MAX + 1] = "";
    struct umad_file *u = NULL;
    struct port *p;
    int err = ENODEV;

    memcpy(host, hello->host, SF_HOST_MAX);
    p = find_port(m->f, host, hello->arg & ~SF_UMAD_NONBLOCK);
    if (!p)
        goto refuse;
    if (hello->kind == SF_CONN_ISSM && mad_port_of(p)->issm && (hello->arg & SF_UMAD_NONBLOCK)) {
        err = EAGAIN;
        goto refuse;
    }
    err = ENOMEM;
    u = calloc(1, sizeof *u);
    if (!u)
        goto refuse;
    u->mad = m;
    u->mp = mad_port_of(p);
    u->fd = fd;
    u->issm = hello->kind == SF_CONN_ISSM;
    u->number = hello->arg & ~SF_UMAD_NONBLOCK;
    u->pid = peer_of(fd);
    u->rx_tail = &u->rx;
    u->next = m->files;
    if (u->next)
        u->next->prev = u;
    m->files = u;
    if (u->issm)
        issm_take(u);
    else
        welcome(fd, 0);
    return u;

refuse:
    welcome(fd, err);
    close(fd);
    return NULL;
}

void umad_close(struct umad_file *u)
{
    if (u->prev)
        u->prev->next = u->next;
    else
        u->mad->files = u->next;
    if (u->next)
        u->next->prev = u->prev;
    if (u->issm)
        issm_leave(u);
    agents_free(u);
    while (u->rx) {
        struct umad_rxq *q = u->rx;

        u->rx = q->next;
        if (q->memfd >= 0)
            close(q->memfd);
        free(q);
    }
    close(u->fd);
    free(u);
}
