/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Channel stream: packets between processes of different jobs, over TCP.
 *
 * Each process listens, and writes over the connections that it has opened only, so two processes have one connection
 * for each direction. A connection begins with a hello: the secret of the receiver's card, and the card of the sender.
 * Frames follow: a packet, or BYE, behind which the connection may end. A connection that ends behind a packet means
 * that its sender has failed. A connection is opened when the virtual channel is made, even to a process from which
 * packets are only received: its end is the sign of the failure of that process.
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
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/channel/cma.h"
#include "libmrmpi/launch/launch.h"

#define STREAM_MAGIC    0x6d726d7073747233u /* changes with the frames */
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
    FRAME_LOST, /* our end of the way over rails is closed: nothing gets through. The packets follow here */
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
    uint8_t data[];
};

struct stream_peer {
    enum stream_end end;
    struct mr_vc *vc;
    int fd; /* packets to the process; -1: not open */
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
    struct stream_peer *next;
};

struct stream_in {
    enum stream_end end;
    int fd;
    struct stream_peer *peer; /* NULL: a stranger */
    bool bye, ends;           /* ends: the process */
    struct stream_in *next;
    size_t have;    /* bytes of data, or of the hello */
    uint8_t *data;  /* [STREAM_BUFFER]; NULL: a stranger */
    uint64_t since; /* ns: when the stranger came */
    struct stream_hello hello;
};

static struct {
    bool open;
    int epoll, listener;
    enum stream_end listens;
    struct mr_card card;
    struct stream_peer *peers;
    struct stream_in *ins;
    struct stream_in *strangers, **strangers_end; /* the oldest first */
    unsigned num_strangers, num_waiting, rounds;
    bool failing; /* some peer has failed in a send: the next poll says so */
    bool closing; /* some peer's rails have to be looked at */
    bool resumes; /* some peer does not pause any more */
} stream = {.epoll = -1, .listener = -1};

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
    return err;
}

static void close_listener(void)
{
    if (stream.listener >= 0)
        close(stream.listener);
    if (stream.epoll >= 0)
        close(stream.epoll);
    stream.listener = stream.epoll = -1;
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
    free(b);
}

static void close_out(struct stream_peer *p)
{
    if (p->fd >= 0)
        close_watched(p->fd);
    p->fd = -1;
    p->connecting = p->leaving = p->wants_room = false;
    while (p->first)
        drop_bytes(p);
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
    *b = (struct stream_bytes){.packet = packet};
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

/* False: the connection is gone. */
static bool write_waiting(struct stream_peer *p)
{
    while (p->first) {
        struct stream_bytes *b = p->first;
        ssize_t n = send(p->fd, b->data + b->at, b->len - b->at, MSG_NOSIGNAL | MSG_DONTWAIT);

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

/* The next address of the process. False: there is none that takes a connection. */
static bool try_connecting(struct stream_peer *p)
{
    const struct mr_card *card = mr_guest_card(mr_vc_world_rank(p->vc));
    union stream_address to;
    socklen_t len;

    while ((len = next_address(p, card, &to))) {
        if (p->fd >= 0)
            close_watched(p->fd);
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
    return p->tries++ < STREAM_TRIES && try_connecting(p);
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

/* The hello is the first in the queue. */
static bool begin_out(struct stream_peer *p)
{
    const struct mr_card *card = mr_guest_card(mr_vc_world_rank(p->vc));
    struct stream_hello hello = {
        .magic = STREAM_MAGIC, .card = stream.card, .proof = (uintptr_t)stream.card.secret, .pid = getpid()};

    memcpy(hello.secret, card->secret, sizeof hello.secret);
    p->next_address = p->tries = 0;
    p->leaving = false;
    p->byes_before = p->byes;
    if (put_off(p, &(struct iovec){&hello, sizeof hello}, 1, 0, false) || !try_connecting(p))
        return false;
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
        if (p->rails == RAILS_NONE && p->leaves && p->fd >= 0)
            leave_now(p);
        p->leaves &= p->rails != RAILS_NONE;
        stream.closing |= p->rails >= RAILS_CLOSING && p->rails <= RAILS_ENDING;
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
    if (p->rails == RAILS_CLOSING)
        p->leaves = true;
    else
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

/* ---- packets from a process -------------------------------------------------------------------------------------- */

static void unlink_in(struct stream_in *in)
{
    struct stream_in **at = in->data ? &stream.ins : &stream.strangers;

    while (*at != in)
        at = &(*at)->next;
    *at = in->next;
    if (in->data)
        return;
    stream.num_strangers--;
    if (!*at)
        stream.strangers_end = at;
}

static void drop_in(struct stream_in *in)
{
    unlink_in(in);
    close_watched(in->fd);
    free(in->data);
    free(in);
}

/* All packets have been delivered. */
static void in_ended(struct stream_in *in)
{
    struct stream_peer *p = in->peer;
    bool bye = in->bye, ends = in->ends;

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
    mr_log(MR_LOG_ERROR, "process %u of another job sent a damaged frame: nothing more is taken from it",
           mr_guest_card(mr_vc_world_rank(in->peer->vc))->rank);
    in->bye = false;
    in_ended(in);
    return -1;
}

static int read_in(struct stream_in *in)
{
    int n = 0;

    for (int i = 0; i < STREAM_READS && !in->peer->pauses; i++) {
        ssize_t got = recv(in->fd, in->data + in->have, STREAM_BUFFER - in->have, MSG_DONTWAIT);
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

static bool add_stranger(int fd)
{
    struct stream_in *in = malloc(sizeof *in);

    if (!in)
        return false;
    *in = (struct stream_in){.end = END_IN, .fd = fd, .since = mr_clock_ns()};
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

static int take_connections(void)
{
    int n = 0;

    while (n < STREAM_BACKLOG) {
        int fd = accept4(stream.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && stream.strangers && (errno == EMFILE || errno == ENFILE)) {
            drop_oldest_stranger();
            n++;
            continue;
        }
        if (fd < 0)
            break;
        n++;
        if (!add_stranger(fd)) {
            mr_log(MR_LOG_ERROR, "a connection of another job is refused: no memory");
            close(fd);
        }
        if (stream.num_strangers > STREAM_GUARD)
            drop_oldest_stranger();
    }
    return n;
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
    bool lost = p->first;

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

/* An event may free the connection of a later event: all kinds of ends are read first. */
static int stream_poll(void)
{
    struct epoll_event event[STREAM_EVENTS];
    enum stream_end end[STREAM_EVENTS];
    int num, n = 0;

    if (!mr_channel_idle && ++stream.rounds % STREAM_EVERY)
        return 0;
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

    for (struct stream_peer *p = stream.peers; p; p = p->next)
        if (p->fd >= 0 && !p->failed && !p->leaving && say_bye(p, true))
            close_out(p);
    for (bool waits = true; waits && mr_clock_ns() < end;) {
        struct epoll_event event[STREAM_EVENTS];
        int num;

        waits = false;
        for (struct stream_peer *p = stream.peers; p; p = p->next) {
            if (p->fd < 0)
                continue;
            if (!p->connecting && (!write_waiting(p) || !p->first))
                close_out(p);
            waits |= p->fd >= 0;
        }
        num = waits ? epoll_wait(stream.epoll, event, STREAM_EVENTS, 100) : 0;
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
    stream.listener = -1;
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
    memset(&stream, 0, sizeof stream);
    stream.epoll = stream.listener = -1;
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
