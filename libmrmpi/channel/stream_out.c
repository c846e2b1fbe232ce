/* SPDX-License-Identifier: BSD-3-Clause */
/* Channel stream: our connection to a process. */
#include "libmrmpi/channel/stream_peer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define STREAM_TRIES 16 /* connections of a process that ended before its hello */

static void drop_bytes(struct stream_peer *p)
{
    struct stream_bytes *b = p->out.first;

    p->out.first = b->next;
    if (!p->out.first)
        p->out.last = &p->out.first;
    if (b->packet) {
        p->num_waiting--;
        mr_stream.num_waiting--;
        mr_channel_waiting--;
    }
    if (b->fd >= 0)
        close(b->fd);
    free(b);
}

void mr_stream_count_queued(struct stream_peer *p, int more)
{
    p->num_waiting += (unsigned)more;
    mr_stream.num_waiting += (unsigned)more;
    mr_stream.num_in_queue += (unsigned)more;
    mr_channel_waiting += (unsigned)more;
}

void mr_stream_drop_packet(struct stream_peer *p)
{
    struct stream_packet *w = p->ring.first;

    p->ring.first = w->next;
    if (!p->ring.first)
        p->ring.last = &p->ring.first;
    mr_stream_count_queued(p, -1);
    free(w);
}

/* The receiver still has the contents, by a mapping of its own. */
void mr_stream_drop_ring(struct stream_peer *p)
{
    if (!p->ring.memory.head)
        return;
    while (p->ring.first)
        mr_stream_drop_packet(p);
    mr_job_ring_leave(&p->ring.memory);
    mr_stream.num_rings--;
    if (p->ring.used)
        mr_vc_change(p->vc, &mr_channel_stream);
    p->ring.used = false;
}

void mr_stream_close_out(struct stream_peer *p)
{
    if (p->out.fd >= 0)
        mr_stream_close_watched(p->out.fd);
    p->out.fd = -1;
    p->out.local = p->out.connecting = p->out.leaving = p->out.wants_room = false;
    while (p->out.first)
        drop_bytes(p);
    mr_stream_drop_ring(p);
}

/* Not from a send: the poll says so. */
void mr_stream_note_failure(struct stream_peer *p)
{
    p->failed = mr_stream.failing = true;
}

int mr_stream_put_off(struct stream_peer *p, const struct iovec *part, int num, size_t done, bool packet)
{
    size_t len = 0, skip = done;
    struct stream_bytes *b;

    for (int i = 0; i < num; i++)
        len += part[i].iov_len;
    b = malloc(sizeof *b + len - done);
    if (!b)
        return -ENOMEM;
    *b = (struct stream_bytes){.packet = packet, .fd = -1};
    for (int i = 0; i < num; i++) {
        size_t from = skip < part[i].iov_len ? skip : part[i].iov_len;

        if (part[i].iov_len > from)
            memcpy(b->data + b->len, (const char *)part[i].iov_base + from, part[i].iov_len - from);
        b->len += part[i].iov_len - from;
        skip -= from;
    }
    *p->out.last = b;
    p->out.last = &b->next;
    if (packet) {
        p->num_waiting++;
        mr_stream.num_waiting++;
        mr_channel_waiting++;
    }
    return 0;
}

/* If the kernel refuses the descriptor, the bytes go without. */
static ssize_t send_bytes(int fd, struct stream_bytes *b)
{
    struct iovec part = {b->data + b->at, b->len - b->at};
    union stream_control control = {.bytes = {0}};
    struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n;

    if (b->fd < 0)
        return send(fd, part.iov_base, part.iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
    *CMSG_FIRSTHDR(&msg) =
        (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof b->fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &b->fd, sizeof b->fd);
    n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && mr_stream_would_block(errno))
        return n;
    close(b->fd);
    b->fd = -1;
    return n < 0 ? send(fd, part.iov_base, part.iov_len, MSG_NOSIGNAL | MSG_DONTWAIT) : n;
}

/* False: the connection is gone. */
bool mr_stream_write_waiting(struct stream_peer *p)
{
    while (p->out.first) {
        struct stream_bytes *b = p->out.first;
        ssize_t n = send_bytes(p->out.fd, b);

        if (n < 0 && mr_stream_would_block(errno))
            break;
        if (n < 0)
            return false;
        b->at += (size_t)n;
        if (b->at == b->len)
            drop_bytes(p);
    }
    if (!p->out.first != !p->out.wants_room) {
        p->out.wants_room = p->out.first;
        mr_stream_watch(EPOLL_CTL_MOD, p->out.fd, EPOLLRDHUP | (p->out.first ? EPOLLOUT : 0), p);
    }
    return true;
}

union stream_address {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
};

static socklen_t write_address(union stream_address *to, const void *address, uint16_t port)
{
    struct in6_addr a;

    memcpy(&a, address, sizeof a);
    if (IN6_IS_ADDR_V4MAPPED(&a)) {
        to->in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        memcpy(&to->in.sin_addr, &a.s6_addr[12], 4);
        return sizeof to->in;
    }
    to->in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = a};
    return sizeof to->in6;
}

/* 0: there are no more. */
static socklen_t next_address(struct stream_peer *p, const struct mr_card *card, union stream_address *to)
{
    static const uint8_t loopback[][16] = {{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}, {[15] = 1}};
    bool near = card->host && card->host == mr_stream.card.host;
    unsigned i = p->out.next_address++, num = near ? 2 : card->num_address;

    if (i >= num || i >= MR_CARD_ADDRESSES)
        return 0;
    return write_address(to, near ? loopback[i] : card->address[i], card->port);
}

/* A host that goes silent: the connection ends as late as a peer on a rail is lost. */
void mr_stream_set_options(int fd)
{
    int one = 1, idle = mr_config.patience / 3 > 0 ? (int)mr_config.patience / 3 : 1, tries = 3,
        limit_ms = (int)mr_config.patience * 1000;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof tries);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof limit_ms);
}

static void close_attempt(struct stream_peer *p)
{
    if (p->out.fd >= 0)
        mr_stream_close_watched(p->out.fd);
    p->out.fd = -1;
    p->out.local = false;
}

/* By the local socket of the process. False: no such socket, another user's, or no room for a connection now. */
bool mr_stream_try_local(struct stream_peer *p)
{
    const struct mr_card *card = mr_guest_card(mr_vc_world_rank(p->vc));
    struct sockaddr_un to;
    socklen_t len = mr_stream_local_address(card, &to);

    if (mr_stream.listen.near < 0 || !mr_cards_share_host(card, &mr_stream.card))
        return false;
    p->out.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    p->out.local = p->out.connecting = p->out.wants_room = true;
    if (p->out.fd >= 0 && !connect(p->out.fd, (struct sockaddr *)&to, len) && mr_stream_is_ours(p->out.fd) &&
        !mr_stream_watch(EPOLL_CTL_ADD, p->out.fd, EPOLLOUT | EPOLLRDHUP, p))
        return true;
    close_attempt(p);
    return false;
}

/* The next address of the process. False: there is none that takes a connection. */
bool mr_stream_try_connecting(struct stream_peer *p)
{
    const struct mr_card *card = mr_guest_card(mr_vc_world_rank(p->vc));
    union stream_address to;
    socklen_t len;

    close_attempt(p);
    while ((len = next_address(p, card, &to))) {
        close_attempt(p);
        p->out.fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (p->out.fd < 0)
            continue; /* of a version that this host has not */
        mr_stream_set_options(p->out.fd);
        p->out.connecting = p->out.wants_room = true;
        if ((!connect(p->out.fd, &to.any, len) || errno == EINPROGRESS) &&
            !mr_stream_watch(EPOLL_CTL_ADD, p->out.fd, EPOLLOUT | EPOLLRDHUP, p))
            return true;
    }
    return false;
}

/* The connection has ended before the hello has left: it took too long. False: as above, or it goes on so. */
bool mr_stream_connect_again(struct stream_peer *p)
{
    p->out.next_address = 0;
    close_attempt(p);
    return p->out.tries++ < STREAM_TRIES && (mr_stream_try_local(p) || mr_stream_try_connecting(p));
}

/* Something waits. */
void mr_stream_want_room(struct stream_peer *p)
{
    if (p->out.connecting || p->out.wants_room)
        return;
    p->out.wants_room = true;
    mr_stream_watch(EPOLL_CTL_MOD, p->out.fd, EPOLLRDHUP | EPOLLOUT, p);
}

/* False: there is no connection, or no memory. */
bool mr_stream_say(struct stream_peer *p, uint32_t what, uint32_t seq, const void *data, size_t len)
{
    struct stream_frame frame = {.what = what, .len = (uint32_t)len, .hdr.seq = seq};
    struct iovec part[2] = {{&frame, sizeof frame}, {(void *)data, len}};

    if (p->out.fd < 0 || p->out.leaving || p->failed || mr_stream_put_off(p, part, 2, 0, false))
        return false;
    mr_stream_want_room(p);
    return true;
}

int mr_stream_say_bye(struct stream_peer *p, bool ends)
{
    struct stream_frame bye = {.what = FRAME_BYE, .hdr.flags = ends};

    p->out.leaving = true;
    return mr_stream_put_off(p, &(struct iovec){&bye, sizeof bye}, 1, 0, false);
}

void mr_stream_leave_now(struct stream_peer *p)
{
    mr_stream_unbar(p);
    if (mr_stream_say_bye(p, false))
        return; /* no memory: the connection stays open until the end */
    if (p->out.connecting)
        return;
    if (!mr_stream_write_waiting(p) || !p->out.first)
        mr_stream_close_out(p);
}
