/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channel stream: packets between processes of different jobs, over sockets, and through rings inside a node.
 *
 * Each process listens, and writes over the connections that it has opened only, so two processes have one connection
 * for each direction. A connection begins with a hello: the secret of the receiver's card, and the card of the sender.
 * Frames follow: a packet, or BYE, behind which the connection may end. A connection that ends behind a packet means
 * that its sender has failed. A connection is opened when the virtual channel is made, even to a process from which
 * packets are only received: its end is the sign of the failure of that process.
 *
 * Two processes of a user on one node connect by local sockets: a listener has an abstract name made of its card,
 * beside its TCP port. The sender passes a ring of shared memory over the connection (job_ring.h): RING offers the
 * ring, and carries the descriptor. A receiver with a mapping of the ring answers TAKEN, over its own connection. Then
 * the sender says USED, and all later packets of the connection go through the ring. The receiver reads the ring from
 * USED on, and empties the ring before BYE, or the end of the connection, counts: packets stay in order. Without a
 * ring, for whatever reason, packets go on over the socket. WAKE ends the sleep of a receiver.
 *
 * On one node large messages are copied by the receiver from the sender's memory (cma.h). The hello names the sender's
 * process, and the place of the process's secret in its memory: a receiver that reads the secret there has the kernel's
 * leave, and the right process, whatever namespaces the two are in. Otherwise large messages go in packets.
 *
 * Anybody can connect: a connection without a whole, right hello is a stranger. A stranger has no buffer but room for
 * the hello, and is dropped after a time, or before if there are too many, the oldest first. A process that was too
 * slow with its hello connects again.
 *
 * Guests on other hosts offer each other rails, if they have such: struct mr_guest_rails says how. When the channel to
 * other hosts has connected the process, that channel carries the packets, as soon as not too many of those before are
 * still under way here: the receiver counts them (ASK, COUNT). Failures and ends of processes show here all the same.
 * Before a process leaves, its packets go this way again, and when those on rails are confirmed it says OFF. Once both
 * ends have said so the other way is closed.
 *
 * If no rail leads to the guest any more, each end closes its way, says LOST, and sends here what is not confirmed: the
 * virtual channel drops what had come. An end that hears LOST takes nothing more until its own way is closed, so that
 * no write of the guest is under way when its next packets come. The two offer no rails until they have parted.
 *
 * BYE leaves at the end of this process, or when no communicator connects the processes any more; the virtual channel
 * keeps its sequence numbers, and a later packet opens a connection again.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/channel/cma.h"
#include "libmrmpi/channel/job_ring.h"
#include "libmrmpi/channel/shm_ring.h"
#include "libmrmpi/channel/shm_ring_writer.h"
#include "libmrmpi/launch/launch.h"

#define STREAM_MAGIC    0x6d726d7073747234u /* changes with the frames */
#define STREAM_EAGER    (16u << 10)
#define STREAM_PACKET   (64u << 10)
#define STREAM_BUFFER   (STREAM_PACKET + (32u << 10)) /* more than a frame: several short ones are read at once */
#define STREAM_BACKLOG  512
#define STREAM_EVENTS   32
#define STREAM_READS    4 /* of one connection in one poll */
#define STREAM_EVERY    8 /* polls, while other channels are busy */
#define STREAM_END_MS   10000
#define STREAM_GUARD    128                        /* strangers at a time */
#define STREAM_HELLO_MS 5000                       /* of each */
#define STREAM_TRIES    16                         /* connections of a process that ended before its hello */
#define STREAM_AHEAD    (MR_REORDER_AHEAD_MAX / 2) /* packets under way here when others begin to go over rails */
#define STREAM_SHORT    (4096 + 1)                 /* shorter messages take the fast path into a ring */
#define STREAM_BATCH    16                         /* packets of one ring in one poll */
/* While all packets come through rings, sockets tell of ends only: a waiter polls sockets less often at first. */
#define STREAM_EVERY_RING 32
#define STREAM_KEEN       1024 /* idle polls */
/* Rings to few processes are deep; with many, their memory matters more. */
#define STREAM_FEW_RINGS 8
static const struct mr_ring_shape deep_ring = {.num_slots = 64, .data_bytes = 256u << 10};
static const struct mr_ring_shape flat_ring = {.num_slots = 32, .data_bytes = 2 * STREAM_PACKET};

struct stream_hello {
    uint64_t magic, secret[2];
    struct mr_card card;
    uint64_t proof; /* address of the sender's own secret */
    int32_t pid;    /* of the sender */
    uint32_t rest;  /* 0 */
};

enum {
    FRAME_PACKET = 1,
    FRAME_BYE,   /* hdr.flags: 1 at the end of the process */
    FRAME_RAILS, /* an offer */
    FRAME_ASK,
    FRAME_COUNT, /* hdr.seq: packets delivered */
    FRAME_OFF,
    FRAME_LOST,  /* our end of the way over rails is closed: nothing gets through. The packets follow here */
    FRAME_RING,  /* hdr.seq: its number; its shape, and the descriptor */
    FRAME_TAKEN, /* hdr.seq: the number of the receiver's ring */
    FRAME_USED,
    FRAME_WAKE,
};

struct stream_frame {
    uint32_t what, len; /* len: of the payload */
    struct mr_hdr hdr;
};

enum stream_end { END_LISTENER, END_OUT, END_IN }; /* first member of what an event points to */

/* The way over rails to a guest on another host. */
enum stream_rails {
    RAILS_NONE,
    RAILS_OFFERED, /* by this process */
    RAILS_MET,     /* the channel to other hosts has the offer of the guest, and connects */
    RAILS_OPEN,    /* has connected */
    RAILS_USED,    /* carries our packets */
    RAILS_CLOSING, /* none of the next ones; OFF is said once the last is confirmed */
    RAILS_OFF,     /* said */
    RAILS_ENDING,  /* the guest has ended: all that has come from it is taken */
    RAILS_PARTING, /* the channel closes the way */
    RAILS_LOST,    /* and so is the guest then */
};

enum stream_reads { READS_UNKNOWN /* no hello yet */, READS_REFUSED, READS_ALLOWED };

struct stream_bytes { /* not yet written */
    struct stream_bytes *next;
    size_t at, len;
    bool packet;
    int fd; /* goes with the first byte, and is closed then; -1: none */
    uint8_t data[];
};

struct stream_packet { /* of a full ring */
    struct stream_packet *next;
    struct mr_hdr hdr;
    size_t len;
    uint8_t payload[];
};

/* Our ring to a process, which ends with our connection to the process. */
struct stream_ring {
    struct mr_job_ring memory; /* not mapped: none */
    struct mr_ring_writer writer;
    uint32_t number; /* of the last ring to the process */
    bool used;
    struct stream_packet *first, **last; /* packets that wait for room, also among num_waiting */
};

struct stream_peer {
    enum stream_end end;
    struct mr_vc *vc;
    int fd;     /* packets to the process; -1: not open */
    bool local; /* the connection is one of local sockets */
    bool connecting, leaving /* behind BYE */, wants_room, failed;
    unsigned next_address, tries;
    struct stream_bytes *first, **last;
    unsigned num_waiting;       /* packets among them */
    unsigned num_in;            /* connections from the process */
    bool ended;                 /* the process has said BYE, and has opened no connection since; */
    bool gone;                  /* the same at its end: none comes */
    unsigned byes, byes_before; /* how often; before the connection to it was begun */
    enum stream_reads reads;    /* of the memory of the process, by this one */
    int32_t pid;                /* if allowed: the process */
    enum stream_rails rails;
    bool barred;            /* rails were lost: the stream serves until the two part */
    bool pauses;            /* nothing is taken from the guest until our end of the way is closed */
    uint32_t run;           /* of the last offer of ours */
    bool off_heard, leaves; /* the guest has said OFF; BYE follows ours */
    bool asked, answers;    /* mr_stream_ask() waits for a COUNT; the last one has come */
    int error;              /* RAILS_LOST */
    uint8_t *offer;         /* the guest's, before there are rails here; NULL: none */
    uint32_t offer_len;
    struct stream_ring ring;
    struct stream_peer *next;
};

struct stream_in {
    enum stream_end end;
    int fd;
    struct stream_peer *peer; /* NULL: a stranger */
    bool bye, ends;           /* ends: the process */
    bool local;               /* of local sockets */
    struct stream_in *next;
    int given;               /* a descriptor that has come; -1: none */
    struct mr_job_ring ring; /* not mapped: none */
    struct mr_ring_reader reader;
    uint32_t ring_number;
    bool ring_taken, ring_used;  /* TAKEN has been said; USED heard */
    struct stream_in *next_used; /* in stream.used */
    size_t have;                 /* bytes of data, or of the hello */
    uint8_t *data;               /* [STREAM_BUFFER]; NULL: a stranger */
    uint64_t since;              /* ns: when the stranger came */
    struct stream_hello hello;
};

static struct {
    bool open;
    int epoll, listener, local /* -1: none */;
    enum stream_end listens;
    struct mr_card card;
    struct stream_peer *peers;
    struct stream_in *ins;
    struct stream_in *strangers, **strangers_end; /* the oldest first */
    unsigned num_strangers, num_waiting, rounds;
    struct stream_in *used;                              /* those whose packets come through rings */
    unsigned num_ins, num_used, num_rings, num_in_queue; /* rings of ours; packets that wait for room there */
    uint8_t *copy;                                       /* [STREAM_PACKET]; NULL: no ring has been taken yet */
    bool looks;                                          /* at the sockets, in the next poll */
    bool failing;                                        /* some peer has failed in a send: the next poll says so */
    bool closing;                                        /* some peer's rails have to be looked at */
    bool resumes;                                        /* some peer does not pause any more */
} stream = {.epoll = -1, .listener = -1, .local = -1};

/* ---- our end ----------------------------------------------------------------------------------------------------- */

/* Addresses of one link only mean nothing elsewhere. */
static bool card_address(const struct ifaddrs *i, sa_family_t family, struct in6_addr *out)
{
    if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK)
        return false;
    if (family == AF_INET6) {
        *out = ((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;
        return !IN6_IS_ADDR_LINKLOCAL(out);
    }
    *out = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(&out->s6_addr[12], &((const struct sockaddr_in *)i->ifa_addr)->sin_addr, 4);
    return true;
}

static void add_addresses(struct mr_card *card, const struct ifaddrs *all, sa_family_t family, unsigned most)
{
    struct in6_addr a;

    for (const struct ifaddrs *i = all; i && card->num_address < most; i = i->ifa_next)
        if (card_address(i, family, &a))
            memcpy(card->address[card->num_address++], &a, sizeof a);
}

/* In the order in which others try them. There is room for an IPv6 address after any number of others. */
static void list_addresses(struct mr_card *card, sa_family_t listens)
{
    struct ifaddrs *all;

    if (getifaddrs(&all))
        return;
    add_addresses(card, all, AF_INET, MR_CARD_ADDRESSES - (listens == AF_INET6));
    if (listens == AF_INET6)
        add_addresses(card, all, AF_INET6, MR_CARD_ADDRESSES);
    freeifaddrs(all);
}

static int watch_socket(int op, int fd, uint32_t events, void *what)
{
    return epoll_ctl(stream.epoll, op, fd, &(struct epoll_event){.events = events, .data.ptr = what});
}

/* A child that has not executed its program yet holds all descriptors: close() alone might leave the socket watched. */
static void close_watched(int fd)
{
    watch_socket(EPOLL_CTL_DEL, fd, 0, NULL);
    close(fd);
}

/* For both versions, if the host has IPv6. */
static int bind_listener(sa_family_t family, in_port_t *port)
{
    struct sockaddr_in6 at6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in at4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    struct sockaddr *at = family == AF_INET6 ? (struct sockaddr *)&at6 : (struct sockaddr *)&at4;
    socklen_t len = family == AF_INET6 ? sizeof at6 : sizeof at4;
    int no = 0;

    stream.listener = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (stream.listener < 0)
        return -errno;
    if ((family != AF_INET6 || !setsockopt(stream.listener, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no)) &&
        !bind(stream.listener, at, len) && !listen(stream.listener, STREAM_BACKLOG) &&
        !getsockname(stream.listener, at, &len)) {
        *port = family == AF_INET6 ? at6.sin6_port : at4.sin_port;
        return 0;
    }
    no = -errno;
    close(stream.listener);
    stream.listener = -1;
    return no;
}

/* Unique in the namespace of the network, as the port is. Returns the length. */
static socklen_t local_address(const struct mr_card *card, struct sockaddr_un *at)
{
    *at = (struct sockaddr_un){.sun_family = AF_UNIX};
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)snprintf(at->sun_path + 1, sizeof at->sun_path - 1, "mrmpi-%016llx-%u-%u",
                                        (unsigned long long)card->job, card->rank, card->port));
}

/* Without it the processes of this node reach us by TCP. */
static void bind_local(const struct mr_card *card)
{
    struct sockaddr_un at;
    socklen_t len = local_address(card, &at);

    stream.local = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (stream.local >= 0 && !bind(stream.local, (struct sockaddr *)&at, len) &&
        !listen(stream.local, STREAM_BACKLOG) && !watch_socket(EPOLL_CTL_ADD, stream.local, EPOLLIN, &stream.listens))
        return;
    mr_log(MR_LOG_INFO, "no shared memory with processes of other jobs: no local socket: %m");
    if (stream.local >= 0)
        close(stream.local);
    stream.local = -1;
}

/* The process at the other end is of our user. */
static bool is_ours(int fd)
{
    struct ucred who;
    socklen_t len = sizeof who;

    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) && who.uid == geteuid();
}

static int begin_listening(struct mr_card *card)
{
    sa_family_t family = AF_INET6;
    in_port_t port = 0;
    int err = 0;

    stream.epoll = epoll_create1(EPOLL_CLOEXEC);
    stream.listens = END_LISTENER;
    if (stream.epoll < 0)
        return -errno;
    if (bind_listener(family, &port)) {
        family = AF_INET;
        err = bind_listener(family, &port);
    }
    if (!err && watch_socket(EPOLL_CTL_ADD, stream.listener, EPOLLIN, &stream.listens))
        err = -errno;
    card->port = ntohs(port);
    list_addresses(card, family);
    if (!err && card->host)
        bind_local(card);
    return err;
}

static void close_listener(void)
{
    if (stream.listener >= 0)
        close(stream.listener);
    if (stream.local >= 0)
        close(stream.local);
    if (stream.epoll >= 0)
        close(stream.epoll);
    stream.listener = stream.local = stream.epoll = -1;
}

int mr_stream_open(struct mr_card *card)
{
    int err = 0;

    if (!stream.open) {
        err = mr_guest_identify(&stream.card);
        if (!err)
            err = mr_guest_random(stream.card.secret, sizeof stream.card.secret);
        if (!err)
            err = begin_listening(&stream.card);
        if (!err)
            err = mr_vc_open_guests(&mr_channel_stream);
        if (err) {
            mr_log(MR_LOG_ERROR, "no socket for processes of other jobs: %s", strerror(-err));
            close_listener();
            return err;
        }
        stream.strangers_end = &stream.strangers;
        stream.open = true;
    }
    *card = stream.card;
    return 0;
}

/* ---- packets to a process ---------------------------------------------------------------------------------------- */

static void drop_bytes(struct stream_peer *p)
{
    struct stream_bytes *b = p->first;

    p->first = b->next;
    if (!p->first)
        p->last = &p->first;
    if (b->packet) {
        p->num_waiting--;
        stream.num_waiting--;
        mr_channel_waiting--;
    }
    if (b->fd >= 0)
        close(b->fd);
    free(b);
}

static void count_queued(struct stream_peer *p, int more)
{
    p->num_waiting += (unsigned)more;
    stream.num_waiting += (unsigned)more;
    stream.num_in_queue += (unsigned)more;
    mr_channel_waiting += (unsigned)more;
}

static void drop_packet(struct stream_peer *p)
{
    struct stream_packet *w = p->ring.first;

    p->ring.first = w->next;
    if (!p->ring.first)
        p->ring.last = &p->ring.first;
    count_queued(p, -1);
    free(w);
}

/* The receiver still has the contents, by a mapping of its own. */
static void drop_ring(struct stream_peer *p)
{
    if (!p->ring.memory.head)
        return;
    while (p->ring.first)
        drop_packet(p);
    mr_job_ring_leave(&p->ring.memory);
    stream.num_rings--;
    if (p->ring.used)
        mr_vc_change(p->vc, &mr_channel_stream);
    p->ring.used = false;
}

static void close_out(struct stream_peer *p)
{
    if (p->fd >= 0)
        close_watched(p->fd);
    p->fd = -1;
    p->local = p->connecting = p->leaving = p->wants_room = false;
    while (p->first)
        drop_bytes(p);
    drop_ring(p);
}

/* Not from a send: the poll says so. */
static void note_failure(struct stream_peer *p)
{
    p->failed = stream.failing = true;
}

static int put_off(struct stream_peer *p, const struct iovec *part, int num, size_t done, bool packet)
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
    *p->last = b;
    p->last = &b->next;
    if (packet) {
        p->num_waiting++;
        stream.num_waiting++;
        mr_channel_waiting++;
    }
    return 0;
}

static bool would_block(int err)
{
    return err == EAGAIN || err == EWOULDBLOCK || err == EINTR;
}

union stream_control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

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
    if (n < 0 && would_block(errno))
        return n;
    close(b->fd);
    b->fd = -1;
    return n < 0 ? send(fd, part.iov_base, part.iov_len, MSG_NOSIGNAL | MSG_DONTWAIT) : n;
}

/* False: the connection is gone. */
static bool write_waiting(struct stream_peer *p)
{
    while (p->first) {
        struct stream_bytes *b = p->first;
        ssize_t n = send_bytes(p->fd, b);

        if (n < 0 && would_block(errno))
            break;
        if (n < 0)
            return false;
        b->at += (size_t)n;
        if (b->at == b->len)
            drop_bytes(p);
    }
    if (!p->first != !p->wants_room) {
        p->wants_room = p->first;
        watch_socket(EPOLL_CTL_MOD, p->fd, EPOLLRDHUP | (p->first ? EPOLLOUT : 0), p);
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
    bool near = card->host && card->host == stream.card.host;
    unsigned i = p->next_address++, num = near ? 2 : card->num_address;

    if (i >= num || i >= MR_CARD_ADDRESSES)
        return 0;
    return write_address(to, near ? loopback[i] : card->address[i], card->port);
}

/* A host that goes silent: the connection ends as late as a peer on a rail is lost. */
static void set_options(int fd)
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
    if (p->fd >= 0)
        close_watched(p->fd);
    p->fd = -1;
    p->local = false;
}

/* By the local socket of the process. False: no such socket, another user's, or no room for a connection now. */
static bool try_local(struct stream_peer *p)
{
    const struct mr_card *card = mr_guest_card(mr_vc_world_rank(p->vc));
    struct sockaddr_un to;
    socklen_t len = local_address(card, &to);

    if (stream.local < 0 || !mr_cards_share_host(card, &stream.card))
        return false;
    p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    p->local = p->connecting = p->wants_room = true;
    if (p->fd >= 0 && !connect(p->fd, (struct sockaddr *)&to, len) && is_ours(p->fd) &&
        !watch_socket(EPOLL_CTL_ADD, p->fd, EPOLLOUT | EPOLLRDHUP, p))
        return true;
    close_attempt(p);
    return false;
}

/* The next address of the process. False: there is none that takes a connection. */
static bool try_connecting(struct stream_peer *p)
{
    const struct mr_card *card = mr_guest_card(mr_vc_world_rank(p->vc));
    union stream_address to;
    socklen_t len;

    close_attempt(p);
    while ((len = next_address(p, card, &to))) {
        close_attempt(p);
        p->fd = socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (p->fd < 0)
            continue; /* of a version that this host has not */
        set_options(p->fd);
        p->connecting = p->wants_room = true;
        if ((!connect(p->fd, &to.any, len) || errno == EINPROGRESS) &&
            !watch_socket(EPOLL_CTL_ADD, p->fd, EPOLLOUT | EPOLLRDHUP, p))
            return true;
    }
    return false;
}

/* The connection has ended before the hello has left: it took too long. False: as above, or it goes on so. */
static bool connect_again(struct stream_peer *p)
{
    p->next_address = 0;
    close_attempt(p);
    return p->tries++ < STREAM_TRIES && (try_local(p) || try_connecting(p));
}

/* Something waits. */
static void want_room(struct stream_peer *p)
{
    if (p->connecting || p->wants_room)
        return;
    p->wants_room = true;
    watch_socket(EPOLL_CTL_MOD, p->fd, EPOLLRDHUP | EPOLLOUT, p);
}

static int guest_of(const struct stream_peer *p)
{
    return mr_vc_world_rank(p->vc);
}

/* False: there is no connection, or no memory. */
static bool say_frame(struct stream_peer *p, uint32_t what, uint32_t seq, const void *data, size_t len)
{
    struct stream_frame frame = {.what = what, .len = (uint32_t)len, .hdr.seq = seq};
    struct iovec part[2] = {{&frame, sizeof frame}, {(void *)data, len}};

    if (p->fd < 0 || p->leaving || p->failed || put_off(p, part, 2, 0, false))
        return false;
    want_room(p);
    return true;
}

/* ---- rings of ours ----------------------------------------------------------------------------------------------- */

/* Without memory, or memfds, packets go over the socket. */
static void offer_job_ring(struct stream_peer *p)
{
    struct mr_ring_shape shape = stream.num_rings < STREAM_FEW_RINGS ? deep_ring : flat_ring;
    struct stream_frame frame = {.what = FRAME_RING, .len = sizeof shape, .hdr.seq = ++p->ring.number};
    struct iovec part[2] = {{&frame, sizeof frame}, {&shape, sizeof shape}};
    struct stream_bytes *b;
    int fd = p->local ? mr_job_ring_make(&p->ring.memory, shape) : -ENOTSUP;

    if (fd < 0) {
        if (p->local)
            mr_log(MR_LOG_INFO, "process %u of another job: no shared memory with it: %s",
                   mr_guest_card(guest_of(p))->rank, strerror(-fd));
        return;
    }
    stream.num_rings++;
    mr_ring_writer_init(&p->ring.writer, mr_job_ring_packets(&p->ring.memory), shape);
    p->ring.first = NULL;
    p->ring.last = &p->ring.first;
    if (put_off(p, part, 2, 0, false)) {
        close(fd);
        drop_ring(p);
        return;
    }
    b = container_of(p->last, struct stream_bytes, next);
    b->fd = fd;
    want_room(p);
}

/* The receiver has mapped our ring: the packets that follow go there. */
static void use_ring(struct stream_peer *p, uint32_t number)
{
    if (!p->ring.memory.head || p->ring.used || number != p->ring.number || p->leaves ||
        !say_frame(p, FRAME_USED, 0, NULL, 0))
        return;
    p->ring.used = true;
    mr_vc_change(p->vc, &mr_channel_ring);
    p->vc->fast_below = STREAM_SHORT;
    mr_log(MR_LOG_DEBUG, "process %u of another job: shared memory carries its packets",
           mr_guest_card(guest_of(p))->rank);
}

static __attribute__((noinline)) void wake_reader(struct stream_peer *p)
{
    if (say_frame(p, FRAME_WAKE, 0, NULL, 0) && !p->connecting && !write_waiting(p))
        note_failure(p);
}

static inline void tell_reader(struct stream_peer *p)
{
    mr_stat_add(MR_STAT_SHM_JOBS_SENT, 1);
    if (unlikely(mr_job_ring_must_wake(&p->ring.memory)))
        wake_reader(p);
}

static int queue_packet(struct stream_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct stream_packet *w = malloc(sizeof *w + len);

    if (!w)
        return -ENOMEM;
    *w = (struct stream_packet){.hdr = *hdr, .len = len};
    if (len)
        memcpy(w->payload, payload, len);
    *p->ring.last = w;
    p->ring.last = &w->next;
    count_queued(p, 1);
    return 0;
}

static int job_ring_send(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct stream_peer *p = vc->stream;

    p->leaves = false;
    if (unlikely(p->leaving)) { /* BYE was not the last */
        p->leaving = false;
        say_frame(p, FRAME_WAKE, 0, NULL, 0);
    }
    if (p->ring.first || !mr_ring_write(&p->ring.writer, hdr, payload, len))
        return queue_packet(p, hdr, payload, len);
    tell_reader(p);
    return 0;
}

static bool job_ring_send_short(struct mr_vc *vc, const void *payload, size_t len, int rank, int tag, uint32_t ctx)
{
    struct mr_hdr hdr = {.note = vc->note, .seq = vc->next_seq, .rank = rank, .tag = tag, .ctx = ctx};
    struct stream_peer *p = vc->stream;

    if (vc->error || p->leaving || p->leaves || p->ring.first)
        return false;
    if (!mr_ring_write_brief(&p->ring.writer, &hdr, payload, len))
        return false;
    tell_reader(p);
    return true;
}

/* Packets of a full ring. */
static int write_ring(struct stream_peer *p)
{
    int n = 0;

    while (p->ring.first &&
           mr_ring_write(&p->ring.writer, &p->ring.first->hdr, p->ring.first->payload, p->ring.first->len)) {
        drop_packet(p);
        tell_reader(p);
        n++;
    }
    return n;
}

static int write_rings(void)
{
    int n = 0;

    for (struct stream_peer *p = stream.peers; p && stream.num_in_queue; p = p->next)
        n += write_ring(p);
    return n;
}

/* By our own connection to the process, if open yet. */
static void take_ring(struct stream_in *in)
{
    if (in->ring.head && !in->ring_taken)
        in->ring_taken = say_frame(in->peer, FRAME_TAKEN, in->ring_number, NULL, 0);
}

static void take_rings(struct stream_peer *p)
{
    for (struct stream_in *in = stream.ins; in; in = in->next)
        if (in->peer == p)
            take_ring(in);
}

/* ---- connections to a process ------------------------------------------------------------------------------------ */

/* Of two processes the first by job and rank offers, and the other answers by an offer of its own. */
static bool offers_first(const struct stream_peer *p)
{
    return mr_guest_compare(mr_launch_info()->rank, guest_of(p)) < 0;
}

static bool say_offer(struct stream_peer *p, const struct mr_guest_rails *far)
{
    uint8_t *room = malloc(MR_OFFER_MAX);
    bool said = room && say_frame(p, FRAME_RAILS, 0, room, far->offer(guest_of(p), p->run, room));

    free(room);
    return said;
}

static bool make_run(struct stream_peer *p)
{
    p->run = 0;
    return !mr_guest_random(&p->run, sizeof p->run) && p->run;
}

/* The guest may have left before it has read the last offer: it is repeated with each connection. */
static void offer_rails(struct stream_peer *p)
{
    const struct mr_guest_rails *far = mr_vc_far();

    if (!far || p->barred || p->rails > RAILS_OFFERED ||
        mr_cards_share_host(&stream.card, mr_guest_card(guest_of(p))) || !offers_first(p) ||
        (p->rails == RAILS_NONE && !make_run(p)))
        return;
    if (say_offer(p, far))
        p->rails = RAILS_OFFERED;
}

/* The hello is the first in the queue, and a ring the next. */
static bool begin_out(struct stream_peer *p)
{
    const struct mr_card *card = mr_guest_card(mr_vc_world_rank(p->vc));
    struct stream_hello hello = {
        .magic = STREAM_MAGIC, .card = stream.card, .proof = (uintptr_t)stream.card.secret, .pid = getpid()};

    memcpy(hello.secret, card->secret, sizeof hello.secret);
    p->next_address = p->tries = 0;
    p->leaving = false;
    p->byes_before = p->byes;
    if (put_off(p, &(struct iovec){&hello, sizeof hello}, 1, 0, false) || !(try_local(p) || try_connecting(p)))
        return false;
    offer_job_ring(p);
    take_rings(p);
    offer_rails(p);
    return true;
}

static int stream_send(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct stream_peer *p = vc->stream;
    struct stream_frame frame = {.what = FRAME_PACKET, .len = (uint32_t)len, .hdr = *hdr};
    struct iovec part[2] = {{&frame, sizeof frame}, {(void *)payload, len}};
    struct msghdr msg = {.msg_iov = part, .msg_iovlen = len ? 2 : 1};
    ssize_t n = 0;

    if (p->failed)
        return 0;                   /* lost with the process: the poll says so */
    p->leaving = p->leaves = false; /* the last frame was not the last */
    if (p->fd < 0 && !begin_out(p)) {
        note_failure(p);
        return 0;
    }
    if (!p->connecting && !p->first) {
        n = sendmsg(p->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n == (ssize_t)(sizeof frame + len))
            return 0;
        if (n < 0 && !would_block(errno)) {
            note_failure(p);
            return 0;
        }
    }
    if (put_off(p, part, 2, n > 0 ? (size_t)n : 0, true))
        return -ENOMEM;
    want_room(p);
    return 0;
}

static int say_bye(struct stream_peer *p, bool ends)
{
    struct stream_frame bye = {.what = FRAME_BYE, .hdr.flags = ends};

    p->leaving = true;
    return put_off(p, &(struct iovec){&bye, sizeof bye}, 1, 0, false);
}

static void leave_now(struct stream_peer *p)
{
    p->barred = false;
    if (say_bye(p, false))
        return; /* no memory: the connection stays open until the end */
    if (p->connecting)
        return;
    if (!write_waiting(p) || !p->first)
        close_out(p);
}

/* ---- rails ------------------------------------------------------------------------------------------------------- */

static void keep_offer(struct stream_peer *p, const uint8_t *offer, uint32_t len)
{
    free(p->offer);
    p->offer = malloc(len ? len : 1);
    p->offer_len = p->offer ? len : 0;
    if (p->offer)
        memcpy(p->offer, offer, len);
}

static void begin_closing(struct stream_peer *p)
{
    if (p->rails == RAILS_USED)
        mr_vc_change(p->vc, &mr_channel_stream);
    if (p->rails == RAILS_OFFERED)
        p->rails = RAILS_NONE;
    if (p->rails < RAILS_MET || p->rails > RAILS_USED)
        return;
    p->rails = RAILS_CLOSING;
    stream.closing = true;
}

static void take_offer(struct stream_peer *p, const uint8_t *offer, uint32_t len)
{
    const struct mr_guest_rails *far = mr_vc_far();
    bool first = offers_first(p);
    int err;

    if (p->barred || p->rails != (first ? RAILS_OFFERED : RAILS_NONE) || p->fd < 0 || p->leaving || p->failed)
        return;
    if (!far) {
        keep_offer(p, offer, len);
        return;
    }
    err = first || make_run(p) ? far->meet(p->vc, p->run, offer, len, first) : -EIO;
    if (err) {
        mr_log(MR_LOG_INFO, "process %u of another job: its rails are not used: %s", mr_guest_card(guest_of(p))->rank,
               strerror(-err));
        return;
    }
    p->rails = RAILS_MET;
    p->off_heard = p->leaves = false;
    if (!first && !say_offer(p, far))
        begin_closing(p);
}

void mr_stream_offer_rails(void)
{
    for (struct stream_peer *p = stream.peers; p; p = p->next) {
        uint8_t *offer = p->offer;

        p->offer = NULL;
        if (offer)
            take_offer(p, offer, p->offer_len);
        else
            offer_rails(p);
        free(offer);
    }
}

void mr_stream_railed(struct mr_vc *vc)
{
    struct stream_peer *p = vc->stream;

    if (p->rails != RAILS_MET)
        return;
    p->rails = RAILS_OPEN;
    say_frame(p, FRAME_ASK, 0, NULL, 0);
}

void mr_stream_ask(struct mr_vc *vc)
{
    struct stream_peer *p = vc->stream;

    p->answers = false;
    p->asked = p->asked || say_frame(p, FRAME_ASK, 0, NULL, 0);
}

bool mr_stream_answers(const struct mr_vc *vc)
{
    return ((const struct stream_peer *)vc->stream)->answers;
}

/* So many packets have been delivered: the others can wait there for their turn. */
static void take_count(struct stream_peer *p, uint32_t count)
{
    p->answers = p->asked;
    p->asked = false;
    if (p->rails != RAILS_OPEN)
        return;
    if (mr_vc_packets(p->vc) - count > STREAM_AHEAD) {
        say_frame(p, FRAME_ASK, 0, NULL, 0);
        return;
    }
    p->rails = RAILS_USED;
    mr_vc_far()->carry(p->vc);
    mr_log(MR_LOG_DEBUG, "process %u of another job: rails carry its packets", mr_guest_card(guest_of(p))->rank);
}

static void end_rails(struct stream_peer *p)
{
    if (p->rails < RAILS_MET || p->rails >= RAILS_ENDING)
        return;
    if (p->rails == RAILS_USED)
        mr_vc_change(p->vc, &mr_channel_stream);
    p->rails = RAILS_ENDING;
    stream.closing = true;
}

/* Packets that are confirmed may still be in queues of the adapter here: they are taken first. */
static void close_rails(struct stream_peer *p)
{
    const struct mr_guest_rails *far = mr_vc_far();

    if (p->rails == RAILS_CLOSING && far->idle(p->vc)) {
        say_frame(p, FRAME_OFF, 0, NULL, 0);
        p->rails = RAILS_OFF;
        if (p->leaves)
            leave_now(p);
        p->leaves = false;
    }
    if ((p->rails == RAILS_ENDING || (p->rails == RAILS_OFF && p->off_heard)) && mr_channel_idle) {
        p->rails = RAILS_PARTING;
        far->part(p->vc, -ECONNRESET);
    }
}

static void close_all_rails(void)
{
    stream.closing = false;
    for (struct stream_peer *p = stream.peers; p; p = p->next) {
        close_rails(p);
        if (p->rails == RAILS_NONE && p->leaves && !p->ring.first) {
            p->leaves = false;
            if (p->fd >= 0)
                leave_now(p);
        }
        stream.closing |= p->leaves || (p->rails >= RAILS_CLOSING && p->rails <= RAILS_ENDING);
    }
}

/* The frames are in the order of the guest's: LOST, what was not confirmed, and OFF or BYE if we leave. */
static void go_on_here(struct stream_peer *p, int error)
{
    uint32_t rank = mr_guest_card(guest_of(p))->rank;

    mr_log(MR_LOG_WARN, "process %u of another job: no rail leads there any more (%s); TCP carries its messages", rank,
           strerror(-error));
    mr_vc_change(p->vc, &mr_channel_stream);
    p->barred = true;
    if (p->fd < 0 && !begin_out(p))
        note_failure(p);
    say_frame(p, FRAME_LOST, 0, NULL, 0);
}

enum mr_unrailed mr_stream_unrailed(struct mr_vc *vc, int error)
{
    struct stream_peer *p = vc->stream;
    enum stream_rails before = p->rails;

    stream.resumes |= p->pauses;
    p->pauses = false;
    if (before == RAILS_LOST)
        return MR_UNRAILED_LOST;
    p->rails = RAILS_NONE;
    if (before == RAILS_MET || before == RAILS_OPEN)
        mr_log(MR_LOG_INFO, "process %u of another job is reached by TCP: no rails lead there (%s)",
               mr_guest_card(guest_of(p))->rank, strerror(-error));
    if (before != RAILS_USED && before != RAILS_CLOSING)
        return MR_UNRAILED_CLOSED;
    go_on_here(p, error);
    stream.closing |= p->leaves;
    return MR_UNRAILED_GOES_ON;
}

void mr_stream_send_again(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct stream_peer *p = vc->stream;
    bool leaves = p->leaves;

    if (stream_send(vc, hdr, payload, len))
        note_failure(p);
    p->leaves = leaves;
}

void mr_stream_lose(struct mr_vc *vc, int error)
{
    struct stream_peer *p = vc->stream;

    p->rails = RAILS_NONE;
    close_out(p);
    p->failed = true;
    mr_vc_failed(guest_of(p), p->error ? p->error : error);
    mr_vc_change(vc, &mr_channel_stream);
}

/* The guest's end of the way is closed. */
static void hear_of_loss(struct stream_peer *p)
{
    p->barred = true;
    if (p->rails < RAILS_MET || p->rails >= RAILS_ENDING)
        return;
    p->pauses = true;
    mr_vc_far()->part(p->vc, -ENETDOWN);
}

/* ---- the end of a connection ------------------------------------------------------------------------------------- */

void mr_stream_leave(struct mr_vc *vc)
{
    struct stream_peer *p = vc->stream;

    if (p->fd < 0 || p->leaving || p->failed)
        return;
    begin_closing(p);
    p->leaves = p->rails == RAILS_CLOSING || p->ring.first;
    stream.closing |= p->leaves;
    if (!p->leaves)
        leave_now(p);
}

bool mr_stream_has_left(const struct mr_vc *vc)
{
    const struct stream_peer *p = vc->stream;

    if (!p || p->fd >= 0 || p->num_in || p->rails != RAILS_NONE)
        return false;
    return mr_vc_lost(vc) || (!p->failed && (p->gone || !mr_vc_is_used(vc)));
}

void mr_stream_forget(struct mr_vc *vc)
{
    struct stream_peer *p = vc->stream, **at = &stream.peers;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    close_out(p);
    free(p->offer);
    free(p);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void stream_fail(struct stream_peer *p, int error)
{
    close_out(p);
    p->failed = true;
    if (p->rails < RAILS_MET) {
        mr_vc_failed(guest_of(p), error);
        return;
    }
    p->rails = RAILS_LOST;
    p->error = error;
    mr_vc_far()->part(p->vc, error);
}

/* ---- rings of processes ------------------------------------------------------------------------------------------ */

static void leave_ring(struct stream_in *in)
{
    struct stream_in **at = &stream.used;

    if (in->ring_used) {
        while (*at != in)
            at = &(*at)->next_used;
        *at = in->next_used;
        stream.num_used--;
    }
    in->ring_used = false;
    mr_job_ring_leave(&in->ring);
}

static void hear_of_ring(struct stream_in *in, uint32_t number, const uint8_t *at, uint32_t len)
{
    int fd = in->given, err = 0;
    struct mr_ring_shape shape;

    in->given = -1;
    if (!stream.copy)
        stream.copy = malloc(STREAM_PACKET);
    if (in->ring.head || len != sizeof shape || fd < 0 || !stream.copy)
        err = -EPROTO;
    if (!err) {
        memcpy(&shape, at, sizeof shape);
        err = mr_job_ring_join(&in->ring, shape, fd);
    }
    if (fd >= 0)
        close(fd);
    if (err) {
        mr_log(MR_LOG_INFO, "process %u of another job: its shared memory is not used: %s",
               mr_guest_card(guest_of(in->peer))->rank, strerror(-err));
        return;
    }
    mr_ring_reader_init(&in->reader, mr_job_ring_packets(&in->ring), shape, (uint32_t)guest_of(in->peer));
    in->ring_number = number;
    take_ring(in);
}

/* False: there is no such ring. */
static bool begin_reading(struct stream_in *in)
{
    if (!in->ring.head || in->ring_used)
        return false;
    in->ring_used = true;
    in->next_used = stream.used;
    stream.used = in;
    stream.num_used++;
    return true;
}

/*
 * The writer could change a packet after the check. The bytes of eager messages only reach the program; the library
 * reads other packets, from a copy.
 */
static void deliver_from_ring(struct stream_in *in, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (hdr->kind != MR_VC_KIND_EAGER && len)
        payload = memcpy(stream.copy, payload, len);
    in->bye = false;
    mr_vc_arrived_from(in->peer->vc, hdr, payload, len);
}

/* At most so many packets. Returns their number, or -1: the ring is damaged. */
static int read_ring(struct stream_in *in, unsigned most)
{
    struct mr_hdr hdr;
    const void *payload;
    uint32_t far;
    size_t len;
    unsigned n;

    for (n = 0; n < most; n++) {
        int got = mr_ring_peek(&in->reader, &hdr, &payload, &len, &far);

        if (!got) {
            mr_ring_tell(&in->reader);
            break;
        }
        if (got < 0 || !payload || len > STREAM_PACKET)
            return -1;
        deliver_from_ring(in, &hdr, payload, len);
        mr_ring_release(&in->reader);
    }
    return (int)n;
}

static void log_damage(const struct stream_in *in, const char *what)
{
    mr_log(MR_LOG_ERROR, "process %u of another job sent a damaged %s: nothing more is taken from it",
           mr_guest_card(guest_of(in->peer))->rank, what);
}

/* The ring holds no more packets from before the last frame. */
static void empty_ring(struct stream_in *in)
{
    if (!in->ring_used || read_ring(in, in->reader.shape.num_slots) >= 0)
        return;
    log_damage(in, "packet through shared memory");
    in->bye = false;
    leave_ring(in);
}

/* ---- packets from a process -------------------------------------------------------------------------------------- */

static void unlink_in(struct stream_in *in)
{
    struct stream_in **at = in->data ? &stream.ins : &stream.strangers;

    while (*at != in)
        at = &(*at)->next;
    *at = in->next;
    if (in->data) {
        stream.num_ins--;
        return;
    }
    stream.num_strangers--;
    if (!*at)
        stream.strangers_end = at;
}

static void drop_in(struct stream_in *in)
{
    unlink_in(in);
    leave_ring(in);
    if (in->given >= 0)
        close(in->given);
    close_watched(in->fd);
    free(in->data);
    free(in);
}

/* All packets have been delivered, but for those in the ring. */
static void in_ended(struct stream_in *in)
{
    struct stream_peer *p = in->peer;
    bool bye, ends;

    empty_ring(in);
    bye = in->bye;
    ends = in->ends;
    drop_in(in);
    p->num_in--;
    p->byes += bye;
    if (!bye)
        stream_fail(p, -EOWNERDEAD);
    else if (!p->num_in)
        p->ended = true;
    p->gone |= bye && ends;
    if (bye && !p->num_in && (ends || p->rails <= RAILS_OPEN)) /* else both say OFF */
        end_rails(p);
}

/* The sender of the hello is on this node, and its secret can be read where the hello says. */
static bool may_read(const struct stream_hello *h)
{
    const struct mr_remote there = {.addr = h->proof, .len = sizeof h->card.secret, .pid = h->pid};
    uint64_t secret[2];
    int err;

    if (!mr_config.single_copy || !mr_cards_share_host(&h->card, &stream.card))
        return false;
    err = h->pid > 0 ? mr_cma_get(NULL, secret, sizeof secret, &there, 0) : -ESRCH;
    if (!err && secret[0] == h->card.secret[0] && secret[1] == h->card.secret[1])
        return true;
    mr_log(MR_LOG_INFO, "process %u of another job: large messages go by packets, its memory cannot be read: %s",
           h->card.rank, err ? strerror(-err) : "another process has its number here");
    return false;
}

static struct stream_peer *peer_of_hello(const struct stream_hello *h)
{
    int number;
    struct stream_peer *p;
    struct mr_vc *vc;

    if (h->magic != STREAM_MAGIC || (h->secret[0] ^ stream.card.secret[0]) | (h->secret[1] ^ stream.card.secret[1]))
        return NULL;
    number = mr_vc_meet(&h->card);
    if (number < mr_guest_first())
        return NULL;
    vc = mr_vc_get_peer(number);
    if (mr_vc_lost(vc))
        return NULL;
    p = vc->stream;
    if (p->reads == READS_UNKNOWN) {
        p->reads = may_read(h) ? READS_ALLOWED : READS_REFUSED;
        p->pid = h->pid;
    }
    return p;
}

/* False: not from a process of ours, or not whole. */
static bool take_frame(struct stream_in *in, const uint8_t *at, const struct stream_frame *f)
{
    struct stream_peer *p = in->peer;

    if (f->what == FRAME_BYE) {
        empty_ring(in);
        in->bye = true;
        in->ends = f->hdr.flags;
        return !f->len;
    }
    in->bye = false;
    switch (f->what) {
    case FRAME_PACKET:
        mr_vc_arrived_from(p->vc, &f->hdr, at + sizeof *f, f->len);
        return true;
    case FRAME_RAILS:
        take_offer(p, at + sizeof *f, f->len);
        return f->len && f->len <= MR_OFFER_MAX;
    case FRAME_ASK:
        say_frame(p, FRAME_COUNT, mr_vc_received(p->vc), NULL, 0);
        return !f->len;
    case FRAME_COUNT:
        take_count(p, f->hdr.seq);
        return !f->len;
    case FRAME_OFF:
        p->off_heard = true;
        begin_closing(p);
        stream.closing = true;
        return !f->len;
    case FRAME_LOST:
        hear_of_loss(p);
        return !f->len;
    case FRAME_RING:
        hear_of_ring(in, f->hdr.seq, at + sizeof *f, f->len);
        return true;
    case FRAME_TAKEN:
        use_ring(p, f->hdr.seq);
        return !f->len;
    case FRAME_USED:
        return begin_reading(in) && !f->len;
    case FRAME_WAKE:
        return !f->len;
    default:
        return false;
    }
}

/* Returns the number of packets, or -1: the frames are damaged. */
static int take_frames(struct stream_in *in)
{
    size_t at = 0;
    int n = 0;

    while (in->have - at >= sizeof(struct stream_frame) && !in->peer->pauses) {
        struct stream_frame f;

        memcpy(&f, in->data + at, sizeof f);
        if (f.len > STREAM_PACKET)
            return -1;
        if (in->have - at < sizeof f + f.len)
            break;
        if (!take_frame(in, in->data + at, &f))
            return -1;
        at += sizeof f + f.len;
        n++;
    }
    in->have -= at;
    if (at && in->have)
        memmove(in->data, in->data + at, in->have);
    return n;
}

/* As take_frames(); -1: the connection has ended. */
static int take_all_frames(struct stream_in *in)
{
    int taken = take_frames(in);

    if (taken >= 0)
        return taken;
    log_damage(in, "frame");
    in->bye = false;
    in_ended(in);
    return -1;
}

/* Keeps the last descriptor only. */
static ssize_t read_local(struct stream_in *in)
{
    union stream_control control;
    struct iovec part = {in->data + in->have, STREAM_BUFFER - in->have};
    struct msghdr msg = {.msg_iov = &part,
                         .msg_iovlen = 1,
                         .msg_control = &control,
                         .msg_controllen = CMSG_LEN(sizeof in->given)}; /* room for one */
    ssize_t got = recvmsg(in->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *c = got > 0 ? CMSG_FIRSTHDR(&msg) : NULL;

    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof in->given)) {
        if (in->given >= 0)
            close(in->given);
        memcpy(&in->given, CMSG_DATA(c), sizeof in->given);
    }
    return got;
}

static ssize_t read_socket(struct stream_in *in)
{
    return in->local ? read_local(in) : recv(in->fd, in->data + in->have, STREAM_BUFFER - in->have, MSG_DONTWAIT);
}

static int read_in(struct stream_in *in)
{
    int n = 0;

    for (int i = 0; i < STREAM_READS && !in->peer->pauses; i++) {
        ssize_t got = read_socket(in);
        int taken;

        if (got < 0 && would_block(errno))
            break;
        if (got <= 0) {
            in_ended(in);
            return n + 1;
        }
        in->have += (size_t)got;
        taken = take_all_frames(in);
        if (taken < 0)
            return n + 1;
        n += taken;
    }
    return n;
}

/* Frames that had come behind LOST; more of them are read as they are of others. */
static int take_left_frames(void)
{
    struct stream_in *next;
    int n = 0;

    stream.resumes = false;
    for (struct stream_in *in = stream.ins; in; in = next) {
        next = in->next;
        if (in->have)
            n += take_all_frames(in) != 0;
    }
    return n;
}

/* ---- strangers --------------------------------------------------------------------------------------------------- */

/* The rest of the hello. A good one makes the stranger a connection of its process. */
static int hear_stranger(struct stream_in *in)
{
    ssize_t got = recv(in->fd, (uint8_t *)&in->hello + in->have, sizeof in->hello - in->have, MSG_DONTWAIT);
    struct stream_peer *p;
    uint8_t *data;

    if (got < 0 && would_block(errno))
        return 0;
    if (got > 0) {
        in->have += (size_t)got;
        if (in->have < sizeof in->hello)
            return 0;
    }
    p = got > 0 ? peer_of_hello(&in->hello) : NULL;
    data = p ? malloc(STREAM_BUFFER) : NULL;
    if (!data) {
        if (p)
            mr_log(MR_LOG_ERROR, "no memory for a connection of process %u of another job", in->hello.card.rank);
        drop_in(in);
        return 1;
    }
    unlink_in(in);
    in->data = data;
    in->have = 0;
    in->peer = p;
    in->next = stream.ins;
    stream.ins = in;
    stream.num_ins++;
    p->num_in++;
    p->ended = p->gone = false;
    offer_rails(p);
    return 1 + read_in(in);
}

/* Unless its hello has come meanwhile. */
static void drop_oldest_stranger(void)
{
    struct stream_in *in = stream.strangers;

    hear_stranger(in);
    if (stream.strangers == in)
        drop_in(in);
}

static void drop_late_strangers(void)
{
    uint64_t now = mr_clock_ns();

    while (stream.strangers && now - stream.strangers->since > STREAM_HELLO_MS * UINT64_C(1000000))
        drop_oldest_stranger();
}

static bool add_stranger(int fd, bool local)
{
    struct stream_in *in = malloc(sizeof *in);

    if (!in)
        return false;
    *in = (struct stream_in){.end = END_IN, .fd = fd, .local = local, .given = -1, .since = mr_clock_ns()};
    if (watch_socket(EPOLL_CTL_ADD, fd, EPOLLIN, in)) {
        free(in);
        return false;
    }
    set_options(fd);
    *stream.strangers_end = in;
    stream.strangers_end = &in->next;
    stream.num_strangers++;
    return true;
}

static int take_connections_of(int listener, bool local)
{
    int n = 0;

    while (listener >= 0 && n < STREAM_BACKLOG) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && stream.strangers && (errno == EMFILE || errno == ENFILE)) {
            drop_oldest_stranger();
            n++;
            continue;
        }
        if (fd < 0)
            break;
        n++;
        if (local && !is_ours(fd)) {
            close(fd);
            continue;
        }
        if (!add_stranger(fd, local)) {
            mr_log(MR_LOG_ERROR, "a connection of another job is refused: no memory");
            close(fd);
        }
        if (stream.num_strangers > STREAM_GUARD)
            drop_oldest_stranger();
    }
    return n;
}

static int take_connections(void)
{
    return take_connections_of(stream.listener, false) + take_connections_of(stream.local, true);
}

/* Connections that have come, and their first packets. */
static void hear_new(void)
{
    struct stream_in *next;

    take_connections();
    for (struct stream_in *in = stream.strangers; in; in = next) {
        next = in->next;
        hear_stranger(in);
    }
}

/*
 * Our connection has ended at its other end. The process may have ended well, with BYE on the other connection, which
 * is not read yet; packets before that are to be delivered. Without another connection the process has failed.
 */
static void out_ended(struct stream_peer *p)
{
    bool lost = p->num_waiting;

    close_out(p);
    hear_new();
    if (!p->num_in && (!p->ended || lost)) /* else the end of the other connection decides */
        stream_fail(p, -EOWNERDEAD);
}

/*
 * What waits for our connection cannot be sent. A process that has said BYE since the first of it was queued has ended
 * well, and waits for nothing: its connection, with packets for us, may not even be accepted yet.
 */
static void out_failed(struct stream_peer *p, int error)
{
    close_out(p);
    hear_new();
    if (!p->num_in && p->byes == p->byes_before) /* else the end of the other connection decides */
        stream_fail(p, error);
}

static void tell_failures(void)
{
    stream.failing = false;
    for (struct stream_peer *p = stream.peers; p; p = p->next) {
        if (!p->failed || mr_vc_lost(p->vc))
            continue;
        p->failed = false;
        out_failed(p, -ECONNRESET);
    }
}

/* ---- poll -------------------------------------------------------------------------------------------------------- */

static void out_event(struct stream_peer *p, uint32_t events)
{
    int err = 0;
    socklen_t len = sizeof err;

    if (p->fd < 0)
        return;
    if (p->connecting) {
        if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &err, &len) || err) {
            if (!try_connecting(p))
                out_failed(p, p->tries ? -EOWNERDEAD : -EHOSTUNREACH);
            return;
        }
        if (events & (EPOLLRDHUP | EPOLLHUP) && connect_again(p))
            return;
        p->connecting = false;
    }
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) || !write_waiting(p))
        out_ended(p);
    else if (p->leaving && !p->first)
        close_out(p);
}

/* Events of a poll are handled one by one: an event before may have ended the connection of a later one. */
static bool is_there(const void *what)
{
    for (const struct stream_in *in = stream.ins; in; in = in->next)
        if (in == what)
            return true;
    for (const struct stream_in *in = stream.strangers; in; in = in->next)
        if (in == what)
            return true;
    return false;
}

/* Sockets are looked at in each poll of a waiter, unless all packets come through rings. */
static bool is_turn_of_sockets(void)
{
    unsigned every = mr_channel_idle ? 1 : STREAM_EVERY;

    if (stream.num_used && stream.num_used == stream.num_ins && mr_channel_idle < STREAM_KEEN)
        every = STREAM_EVERY_RING;
    if (++stream.rounds % every && !stream.looks)
        return false;
    stream.looks = false;
    return true;
}

/* An event may free the connection of a later event: all kinds of ends are read first. */
static int poll_sockets(void)
{
    struct epoll_event event[STREAM_EVENTS];
    enum stream_end end[STREAM_EVENTS];
    int num, n = 0;

    if (unlikely(stream.failing))
        tell_failures();
    if (unlikely(stream.strangers != NULL))
        drop_late_strangers();
    if (unlikely(stream.closing))
        close_all_rails();
    if (unlikely(stream.resumes))
        n += take_left_frames();
    num = epoll_wait(stream.epoll, event, STREAM_EVENTS, 0);
    for (int i = 0; i < num; i++)
        end[i] = *(enum stream_end *)event[i].data.ptr;
    for (int i = 0; i < num; i++)
        if (end[i] == END_OUT) {
            out_event(event[i].data.ptr, event[i].events);
            n++;
        }
    for (int i = 0; i < num; i++) {
        void *what = event[i].data.ptr;

        if (end[i] == END_LISTENER)
            n += take_connections();
        else if (end[i] == END_IN && is_there(what))
            n += ((struct stream_in *)what)->data ? read_in(what) : hear_stranger(what);
    }
    return n;
}

static int read_rings(void)
{
    struct stream_in *next;
    int n = 0;

    for (struct stream_in *in = stream.used; in; in = next) {
        int got = read_ring(in, STREAM_BATCH);

        next = in->next_used;
        n += got < 0 ? 1 : got;
        if (got >= 0)
            continue;
        log_damage(in, "packet through shared memory");
        leave_ring(in);
        in->bye = false;
        in_ended(in);
    }
    return n;
}

static int stream_poll(void)
{
    int n = stream.used ? read_rings() : 0;

    if (unlikely(stream.num_in_queue))
        n += write_rings();
    return is_turn_of_sockets() ? n + poll_sockets() : n;
}

/* ---- sleep ------------------------------------------------------------------------------------------------------- */

static bool is_ring_ready(void)
{
    for (const struct stream_in *in = stream.used; in; in = in->next_used)
        if (mr_ring_ready(&in->reader))
            return true;
    return false;
}

/* The network rings for nobody. */
bool mr_stream_doze(int *fd)
{
    *fd = -1;
    if (!stream.open || mr_vc_far() || stream.num_in_queue || stream.failing || stream.closing)
        return true;
    *fd = stream.epoll;
    for (struct stream_in *in = stream.used; in; in = in->next_used)
        mr_job_ring_doze(&in->ring);
    if (!is_ring_ready())
        return true;
    mr_stream_rise();
    return false;
}

void mr_stream_rise(void)
{
    for (struct stream_in *in = stream.used; in; in = in->next_used)
        mr_job_ring_rise(&in->ring);
    stream.looks = true;
}

static bool stream_drained(void)
{
    return !stream.num_waiting;
}

static unsigned stream_waiting(struct mr_vc *vc)
{
    return ((struct stream_peer *)vc->stream)->num_waiting;
}

static bool stream_reaches(int number)
{
    return number >= mr_guest_first();
}

/* Packets fit into every ring of ours. */
static void stream_sizes(struct mr_vc *vc)
{
    vc->eager_max = vc->eager_most = STREAM_EAGER;
    vc->packet_max = STREAM_PACKET;
}

/* A sender that knows nothing of its peer yet lets the memory be read: the receiver decides. */
static unsigned stream_caps(int number, size_t len)
{
    const struct mr_card *card = mr_guest_card(number);
    const struct mr_vc *vc = mr_vc_known_peer(number);
    const struct stream_peer *p = vc ? vc->stream : NULL;

    if (!p || !card || !mr_cards_share_host(card, &stream.card) || !mr_config.single_copy)
        return 0;
    return p->reads == READS_REFUSED ? 0 : MR_VC_GET;
}

static int stream_advertise(struct mr_vc *vc, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                            struct mr_remote *out)
{
    return how == MR_VC_GET ? mr_cma_advertise(vc, buf, len, how, region, out) : -EOPNOTSUPP;
}

/* From the process that has proved to be the peer, whatever process the offer names. */
static int stream_get(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *src, uint64_t offset)
{
    struct stream_peer *p = vc->stream;
    struct mr_remote there = *src;
    int err;

    if (p->reads != READS_ALLOWED)
        return -EPERM;
    there.pid = p->pid;
    err = mr_cma_get(vc, buf, len, &there, offset);
    if (err == -EPERM)
        p->reads = READS_REFUSED;
    return err;
}

static void stream_made(struct mr_vc *vc)
{
    struct stream_peer *p = calloc(1, sizeof *p);

    if (!p) {
        vc->error = -ENOMEM;
        return;
    }
    p->end = END_OUT;
    p->vc = vc;
    p->fd = -1;
    p->last = &p->first;
    p->next = stream.peers;
    stream.peers = p;
    vc->stream = p;
    if (!begin_out(p))
        note_failure(p);
}

/* ---- end --------------------------------------------------------------------------------------------------------- */

/* All is written, with BYE, or the time is over: a process that does not read is not waited for. */
static void write_out(void)
{
    uint64_t end = mr_clock_ns() + STREAM_END_MS * UINT64_C(1000000);

    for (bool waits = true; waits && mr_clock_ns() < end;) {
        struct epoll_event event[STREAM_EVENTS];
        int num;

        waits = false;
        for (struct stream_peer *p = stream.peers; p; p = p->next) {
            write_ring(p);
            if (p->fd >= 0 && !p->failed && !p->leaving && !p->ring.first && say_bye(p, true))
                close_out(p);
            if (p->fd < 0)
                continue;
            if (!p->connecting && (!write_waiting(p) || (!p->first && !p->ring.first)))
                close_out(p);
            waits |= p->fd >= 0;
        }
        num = waits ? epoll_wait(stream.epoll, event, STREAM_EVENTS, stream.num_in_queue ? 1 : 100) : 0;
        for (int i = 0; i < num; i++) {
            struct stream_peer *p = event[i].data.ptr;
            int err = 0;
            socklen_t len = sizeof err;

            if (p->end != END_OUT || !p->connecting)
                continue;
            if (!getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &err, &len) && !err) {
                if (!(event[i].events & (EPOLLRDHUP | EPOLLHUP)) || !connect_again(p))
                    p->connecting = false;
            } else if (!try_connecting(p))
                close_out(p);
        }
    }
}

static void stream_finalize(void)
{
    close(stream.listener); /* no news */
    if (stream.local >= 0)
        close(stream.local);
    stream.listener = stream.local = -1;
    while (stream.ins)
        drop_in(stream.ins);
    while (stream.strangers)
        drop_in(stream.strangers);
    write_out();
    while (stream.peers) {
        struct stream_peer *p = stream.peers;

        stream.peers = p->next;
        close_out(p);
        free(p->offer);
        free(p);
    }
    close_listener();
    free(stream.copy);
    memset(&stream, 0, sizeof stream);
    stream.epoll = stream.listener = stream.local = -1;
}

const struct mr_channel_ops mr_channel_stream = {
    .name = "stream",
    .guests = true,
    .finalize = stream_finalize,
    .poll = stream_poll,
    .drained = stream_drained,
    .waiting = stream_waiting,
    .reaches = stream_reaches,
    .made = stream_made,
    .sizes = stream_sizes,
    .caps = stream_caps,
    .send = stream_send,
    .advertise = stream_advertise,
    .withdraw = mr_cma_withdraw,
    .get = stream_get,
};

/* Guests with a ring of ours. The channel stream opens, polls and ends this channel, too. */
const struct mr_channel_ops mr_channel_ring = {
    .name = "ring",
    .guests = true,
    .waiting = stream_waiting,
    .reaches = stream_reaches,
    .sizes = stream_sizes,
    .caps = stream_caps,
    .send = job_ring_send,
    .send_short = job_ring_send_short,
    .advertise = stream_advertise,
    .withdraw = mr_cma_withdraw,
    .get = stream_get,
};
