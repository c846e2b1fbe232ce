/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open umad and issm devices: a connection each. A program's requests come in whole messages. The answer goes to the
 * socket that came with a request, if any. One system call reads several messages.
 */
#include "simfab/engine/mgmt/umad.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/mgmt/agent.h"
#include "simfab/engine/mgmt/agents.h"
#include "simfab/engine/mgmt/mad_wire.h"
#include "simfab/engine/mgmt/umad_page.h"
#include "simfab/engine/mgmt/umad_rx.h"
#include "simfab/proto.h"
#include "simfab/umad_proto.h"

#define REQ_BUF_BYTES (sizeof(struct umad_req) + UMAD_INLINE)
#define BATCH         16 /* messages per system call */
#define CAP_IS_SM     0x00000002u

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
    umad_page_header(u);
    return err;
}

/* The program has counted the datagram: if the datagram waits for a response, agent.c has counted it, too. */
static void uncount(struct umad_file *u, const uint8_t *body, size_t bytes)
{
    size_t head = u->pkey_abi ? UMAD_HDR : UMAD_HDR_OLD;
    uint32_t id;

    if (bytes < head + MAD_HDR)
        return;
    memcpy(&id, body, sizeof id);
    umad_page_count(u, id, body + head, -1);
}

static void serve_umad(struct umad_file *u, const struct umad_req *req, const uint8_t *body, size_t bytes,
                       struct umad_rep *rep)
{
    uint32_t id;

    switch (req->op) {
    case UMAD_OP_WRITE:
        rep->error = agent_write(u, body, bytes);
        if (req->flags & UMAD_REQ_COUNTED)
            uncount(u, body, bytes);
        break;
    case UMAD_OP_ENABLE_PKEY:
        rep->error = u->used ? EINVAL : 0;
        u->pkey_abi |= !u->used;
        umad_page_header(u);
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

/* Messages of a program, as read. */
struct umad_in {
    struct mmsghdr msg[BATCH];
    struct iovec iov[BATCH];
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control[BATCH];
    uint8_t buf[BATCH][REQ_BUF_BYTES];
};

struct umad_in *umad_in_new(void)
{
    return calloc(1, sizeof(struct umad_in));
}

/* How many have come; -1 with errno. */
static int read_messages(struct umad_file *u, struct umad_in *in)
{
    for (unsigned i = 0; i < BATCH; i++) {
        in->iov[i] = (struct iovec){in->buf[i], sizeof in->buf[i]};
        in->msg[i].msg_hdr = (struct msghdr){.msg_iov = &in->iov[i],
                                             .msg_iovlen = 1,
                                             .msg_control = &in->control[i],
                                             .msg_controllen = sizeof in->control[i]};
    }
    return recvmmsg(u->fd, in->msg, BATCH, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL);
}

/* One message of n bytes; false at the end of the connection or when the message makes no sense. */
static bool take_umad_message(struct umad_file *u, struct msghdr *msg, const uint8_t *buf, size_t n)
{
    uint8_t *large = NULL;
    const char *wrong = NULL;
    struct umad_rep rep = {0};
    struct umad_req req;
    int fds[2] = {-1, -1};
    bool ok = false;

    take_fds(msg, fds);
    if (n == 0)
        goto close_fds; /* closed */
    if (n < sizeof req || (msg->msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || u->issm) {
        wrong = u->issm ? "a message on an issm" : "a message of no possible length";
        goto close_fds;
    }
    memcpy(&req, buf, sizeof req);
    if (req.flags & UMAD_REQ_MEMFD)
        large = read_memfd(fds[1], req.bytes);
    if (req.flags & UMAD_REQ_MEMFD ? !large : req.bytes != n - sizeof req) {
        wrong = "a message whose payload is not what it says";
        goto close_fds;
    }
    serve_umad(u, &req, large ? large : buf + sizeof req, req.bytes, &rep);
    if (fds[0] >= 0) {
        if (u->rx && !u->want_write)
            umad_flush(u); /* a response is there when the requesting write returns */
        (void)!send(fds[0], &rep, sizeof rep, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
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

/* The connection has ended before this message. */
static void drop_message(struct msghdr *msg)
{
    int fds[2] = {-1, -1};

    take_fds(msg, fds);
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* False at the end of the connection, or after nonsense. */
static bool receive(struct umad_file *u)
{
    struct umad_in *in = u->mad->in;
    int n = read_messages(u, in);
    bool ok = true;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    u->corked = true;
    for (int i = 0; i < n; i++) {
        if (ok)
            ok = take_umad_message(u, &in->msg[i].msg_hdr, in->buf[i], in->msg[i].msg_len);
        else
            drop_message(&in->msg[i].msg_hdr);
    }
    u->corked = false;
    if (u->rx && !u->want_write)
        umad_flush(u);
    return ok;
}

void umad_ready(struct umad_file *u, uint32_t events)
{
    if (events & EPOLLOUT)
        umad_flush(u);
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !receive(u))
        umad_close(u); /* a hang-up, or invalid data, reported by receive */
}

/* ---- opening and closing -------------------------------------------------------------------------------------- */

/* page: a descriptor to go with the welcome, or -1. */
static void send_umad_welcome(int fd, int error, int page)
{
    struct sf_welcome w = {.magic = SF_MAGIC, .version = SF_VERSION, .error = error};
    struct iovec iov = {&w, sizeof w};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

    if (page >= 0) {
        msg.msg_control = &control;
        msg.msg_controllen = sizeof control;
        control.align =
            (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &page, sizeof page);
    }
    (void)!sendmsg(fd, &msg,
                   MSG_DONTWAIT | MSG_NOSIGNAL); /* a program that is gone needs no answer: the hang-up follows */
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
        send_umad_welcome(u->fd, 0, -1);
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
    send_umad_welcome(mp->issm->fd, 0, -1);
}

/* umad and issm numbers count the ports of a host's HCAs in their order. */
static struct port *find_umad_port(struct fabric *f, const char *name, uint32_t n)
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
    int err = ENODEV, page;

    memcpy(host, hello->host, SF_HOST_MAX);
    p = find_umad_port(m->f, host, hello->arg & ~SF_UMAD_NONBLOCK);
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
    if (u->issm) {
        issm_take(u);
    } else {
        page = umad_page_make(u);
        send_umad_welcome(fd, 0, page);
        if (page >= 0)
            close(page);
    }
    return u;

refuse:
    send_umad_welcome(fd, err, -1);
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
    umad_drop(u);
    umad_page_close(u);
    close(u->fd);
    free(u);
}
