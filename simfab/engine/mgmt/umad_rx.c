/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams for programs. One system call sends several. Datagrams without room in the program's socket wait here, so a
 * program that does not read delays no other program.
 */
#include "simfab/engine/mgmt/umad_rx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "simfab/engine/mgmt/mad_wire.h"
#include "simfab/engine/mgmt/umad.h"
#include "simfab/umad_proto.h"

#define RX_BYTES_MAX (256u << 20) /* limit of unread datagrams per program; further datagrams are dropped */
#define BATCH        16           /* messages per system call */

struct umad_rxq {
    struct umad_rxq *next;
    struct umad_rx head;
    int memfd;
    size_t inline_bytes;
    uint8_t data[];
};

static void watch_writable(struct umad_file *u, bool write)
{
    struct epoll_event ev = {.events = EPOLLIN | (write ? EPOLLOUT : 0), .data.ptr = u};

    if (u->want_write == write)
        return;
    u->want_write = write;
    epoll_ctl(u->mad->epfd, EPOLL_CTL_MOD, u->fd, &ev);
}

struct out {
    struct iovec iov[2];
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
};

static void lay_out(struct msghdr *msg, struct out *o, struct umad_rxq *q)
{
    struct cmsghdr *c;

    o->iov[0] = (struct iovec){&q->head, sizeof q->head};
    o->iov[1] = (struct iovec){q->data, q->inline_bytes};
    *msg = (struct msghdr){.msg_iov = o->iov, .msg_iovlen = 2};
    if (q->memfd < 0)
        return;
    msg->msg_control = &o->control;
    msg->msg_controllen = sizeof o->control;
    c = CMSG_FIRSTHDR(msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &q->memfd, sizeof(int));
}

/* Send the first messages of the queue; how many have gone, 0 when the socket has no room. */
static unsigned rx_send(struct umad_file *u)
{
    struct mmsghdr msg[BATCH];
    struct out out[BATCH];
    unsigned n = 0;
    int sent;

    for (struct umad_rxq *q = u->rx; q && n < BATCH; q = q->next, n++)
        lay_out(&msg[n].msg_hdr, &out[n], q);
    sent = sendmmsg(u->fd, msg, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0)
        return errno != EAGAIN; /* any other error means that the program is gone: the hang-up closes the file */
    return (unsigned)sent;
}

void umad_flush(struct umad_file *u)
{
    for (unsigned n; u->rx && (n = rx_send(u));) {
        for (; n; n--) {
            struct umad_rxq *q = u->rx;

            u->rx = q->next;
            u->rx_bytes -= q->head.bytes;
            if (q->memfd >= 0)
                close(q->memfd);
            free(q);
        }
    }
    if (!u->rx)
        u->rx_tail = &u->rx;
    watch_writable(u, u->rx != NULL);
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
    if (!u->want_write && !u->corked)
        umad_flush(u);
}

void umad_drop(struct umad_file *u)
{
    while (u->rx) {
        struct umad_rxq *q = u->rx;

        u->rx = q->next;
        if (q->memfd >= 0)
            close(q->memfd);
        free(q);
    }
}
