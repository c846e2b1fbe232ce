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
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/cma.h"
#include "libmrmpi/channel/stream_peer.h"
#include "libmrmpi/launch/launch.h"

#define STREAM_MAGIC    0x6d726d7073747234u /* changes with the frames */
#define STREAM_EAGER    (16u << 10)
#define STREAM_EVENTS   32
#define STREAM_READS    4 /* of one connection in one poll */
#define STREAM_EVERY    8 /* polls, while other channels are busy */
#define STREAM_END_MS   10000
#define STREAM_GUARD    128  /* strangers at a time */
#define STREAM_HELLO_MS 5000 /* of each */
#define STREAM_BATCH    16   /* packets of one ring in one poll */
/* While all packets come through rings, sockets tell of ends only: a waiter polls sockets less often at first. */
#define STREAM_EVERY_RING 32
#define STREAM_KEEN       1024                          /* idle polls */
#define STREAM_BUFFER     (STREAM_PACKET + (32u << 10)) /* more than a frame: several short ones are read at once */

struct mr_stream_state mr_stream = {.epoll = -1, .listen = {.any = -1, .near = -1}};

/* ---- our end ----------------------------------------------------------------------------------------------------- */

int mr_stream_open(struct mr_card *card)
{
    int err = 0;

    if (!mr_stream.open) {
        err = mr_guest_identify(&mr_stream.card);
        if (!err)
            err = mr_guest_random(mr_stream.card.secret, sizeof mr_stream.card.secret);
        if (!err)
            err = mr_stream_listen(&mr_stream.card);
        if (!err)
            err = mr_vc_open_guests(&mr_channel_stream);
        if (err) {
            mr_log(MR_LOG_ERROR, "no socket for processes of other jobs: %s", strerror(-err));
            mr_stream_close_listener();
            return err;
        }
        mr_stream.strangers_end = &mr_stream.strangers;
        mr_stream.open = true;
    }
    *card = mr_stream.card;
    return 0;
}

/* ---- packets to a process ---------------------------------------------------------------------------------------- */

/* ---- rings of ours ----------------------------------------------------------------------------------------------- */

/* ---- connections to a process ------------------------------------------------------------------------------------ */

/* The hello is the first in the queue, and a ring the next. */
static bool begin_out(struct stream_peer *p)
{
    const struct mr_card *card = mr_guest_card(mr_vc_world_rank(p->vc));
    struct stream_hello hello = {
        .magic = STREAM_MAGIC, .card = mr_stream.card, .proof = (uintptr_t)mr_stream.card.secret, .pid = getpid()};

    memcpy(hello.secret, card->secret, sizeof hello.secret);
    p->out.next_address = p->out.tries = 0;
    p->out.leaving = false;
    p->from.byes_before = p->from.byes;
    if (mr_stream_put_off(p, &(struct iovec){&hello, sizeof hello}, 1, 0, false) ||
        !(mr_stream_try_local(p) || mr_stream_try_connecting(p)))
        return false;
    mr_stream_offer_ring(p);
    mr_stream_take_rings(p);
    mr_stream_offer_rails_to(p);
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
        return 0; /* lost with the process: the poll says so */
    p->out.leaving = false;
    mr_stream_stay(p); /* the last frame was not the last */
    if (p->out.fd < 0 && !begin_out(p)) {
        mr_stream_note_failure(p);
        return 0;
    }
    if (!p->out.connecting && !p->out.first) {
        n = sendmsg(p->out.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n == (ssize_t)(sizeof frame + len))
            return 0;
        if (n < 0 && !mr_stream_would_block(errno)) {
            mr_stream_note_failure(p);
            return 0;
        }
    }
    if (mr_stream_put_off(p, part, 2, n > 0 ? (size_t)n : 0, true))
        return -ENOMEM;
    mr_stream_want_room(p);
    return 0;
}

/* ---- rails ------------------------------------------------------------------------------------------------------- */

/* The frames are in the order of the guest's: LOST, what was not confirmed, and OFF or BYE if we leave. */
static void go_on_here(struct stream_peer *p, int error)
{
    uint32_t rank = mr_guest_card(mr_stream_guest_of(p))->rank;

    mr_log(MR_LOG_WARN, "process %u of another job: no rail leads there any more (%s); TCP carries its messages", rank,
           strerror(-error));
    mr_vc_change(p->vc, &mr_channel_stream);
    if (p->out.fd < 0 && !begin_out(p))
        mr_stream_note_failure(p);
    mr_stream_say(p, FRAME_LOST, 0, NULL, 0);
}

enum mr_unrailed mr_stream_unrailed(struct mr_vc *vc, int error)
{
    struct stream_peer *p = vc->stream;
    enum mr_unrailed what = mr_stream_way_is_closed(p, error);

    if (what == MR_UNRAILED_GOES_ON) {
        go_on_here(p, error);
        mr_stream.closing |= mr_stream_leaves(p);
    }
    return what;
}

void mr_stream_send_again(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct stream_peer *p = vc->stream;
    bool leaves = mr_stream_leaves(p);

    if (stream_send(vc, hdr, payload, len))
        mr_stream_note_failure(p);
    if (leaves)
        mr_stream_leave_still(p);
}

void mr_stream_lose(struct mr_vc *vc, int error)
{
    struct stream_peer *p = vc->stream;

    error = mr_stream_drop_way(p, error);
    mr_stream_close_out(p);
    p->failed = true;
    mr_vc_failed(mr_stream_guest_of(p), error);
    mr_vc_change(vc, &mr_channel_stream);
}

/* ---- the end of a connection ------------------------------------------------------------------------------------- */

void mr_stream_leave(struct mr_vc *vc)
{
    struct stream_peer *p = vc->stream;

    if (p->out.fd < 0 || p->out.leaving || p->failed)
        return;
    if (!mr_stream_leave_later(p))
        mr_stream_leave_now(p);
}

bool mr_stream_has_left(const struct mr_vc *vc)
{
    const struct stream_peer *p = vc->stream;

    if (!p || p->out.fd >= 0 || p->from.num_in || mr_stream_has_way(p))
        return false;
    return mr_vc_lost(vc) || (!p->failed && (p->from.gone || !mr_vc_is_used(vc)));
}

void mr_stream_forget(struct mr_vc *vc)
{
    struct stream_peer *p = vc->stream, **at = &mr_stream.peers;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    mr_stream_close_out(p);
    mr_stream_free_way(p);
    free(p);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void stream_fail(struct stream_peer *p, int error)
{
    mr_stream_close_out(p);
    p->failed = true;
    if (!mr_stream_lose_way(p, error))
        mr_vc_failed(mr_stream_guest_of(p), error);
}

/* ---- rings of processes ------------------------------------------------------------------------------------------ */

/* ---- packets from a process -------------------------------------------------------------------------------------- */

static void unlink_in(struct stream_in *in)
{
    struct stream_in **at = in->data ? &mr_stream.ins : &mr_stream.strangers;

    while (*at != in)
        at = &(*at)->next;
    *at = in->next;
    if (in->data) {
        mr_stream.num_ins--;
        return;
    }
    mr_stream.num_strangers--;
    if (!*at)
        mr_stream.strangers_end = at;
}

static void drop_in(struct stream_in *in)
{
    unlink_in(in);
    mr_stream_leave_ring(in);
    if (in->given >= 0)
        close(in->given);
    mr_stream_close_watched(in->fd);
    free(in->data);
    free(in);
}

/* All packets have been delivered, but for those in the ring. */
static void in_ended(struct stream_in *in)
{
    struct stream_peer *p = in->peer;
    bool bye, ends;

    mr_stream_empty_ring(in);
    bye = in->bye;
    ends = in->ends;
    drop_in(in);
    p->from.num_in--;
    p->from.byes += bye;
    if (!bye)
        stream_fail(p, -EOWNERDEAD);
    else if (!p->from.num_in)
        p->from.ended = true;
    p->from.gone |= bye && ends;
    if (bye && !p->from.num_in)
        mr_stream_end_rails(p, ends);
}

/* The sender of the hello is on this node, and its secret can be read where the hello says. */
static bool may_read(const struct stream_hello *h)
{
    const struct mr_remote there = {.addr = h->proof, .len = sizeof h->card.secret, .pid = h->pid};
    uint64_t secret[2];
    int err;

    if (!mr_config.single_copy || !mr_cards_share_host(&h->card, &mr_stream.card))
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

    if (h->magic != STREAM_MAGIC ||
        (h->secret[0] ^ mr_stream.card.secret[0]) | (h->secret[1] ^ mr_stream.card.secret[1]))
        return NULL;
    number = mr_vc_meet(&h->card);
    if (number < mr_guest_first())
        return NULL;
    vc = mr_vc_get_peer(number);
    if (mr_vc_lost(vc))
        return NULL;
    p = vc->stream;
    if (p->from.reads == READS_UNKNOWN) {
        p->from.reads = may_read(h) ? READS_ALLOWED : READS_REFUSED;
        p->from.pid = h->pid;
    }
    return p;
}

/* False: not from a process of ours, or not whole. */
static bool take_frame(struct stream_in *in, const uint8_t *at, const struct stream_frame *f)
{
    struct stream_peer *p = in->peer;

    if (f->what == FRAME_BYE) {
        mr_stream_empty_ring(in);
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
        mr_stream_take_offer(p, at + sizeof *f, f->len);
        return f->len && f->len <= MR_OFFER_MAX;
    case FRAME_ASK:
        mr_stream_say(p, FRAME_COUNT, mr_vc_received(p->vc), NULL, 0);
        return !f->len;
    case FRAME_COUNT:
        mr_stream_take_count(p, f->hdr.seq);
        return !f->len;
    case FRAME_OFF:
        mr_stream_hear_off(p);
        return !f->len;
    case FRAME_LOST:
        mr_stream_hear_of_loss(p);
        return !f->len;
    case FRAME_RING:
        mr_stream_hear_of_ring(in, f->hdr.seq, at + sizeof *f, f->len);
        return true;
    case FRAME_TAKEN:
        mr_stream_use_ring(p, f->hdr.seq);
        return !f->len;
    case FRAME_USED:
        return mr_stream_begin_reading(in) && !f->len;
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

    while (in->have - at >= sizeof(struct stream_frame) && !mr_stream_pauses(in->peer)) {
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
    mr_stream_log_damage(in, "frame");
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

    for (int i = 0; i < STREAM_READS && !mr_stream_pauses(in->peer); i++) {
        ssize_t got = read_socket(in);
        int taken;

        if (got < 0 && mr_stream_would_block(errno))
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

    mr_stream.resumes = false;
    for (struct stream_in *in = mr_stream.ins; in; in = next) {
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

    if (got < 0 && mr_stream_would_block(errno))
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
    in->next = mr_stream.ins;
    mr_stream.ins = in;
    mr_stream.num_ins++;
    p->from.num_in++;
    p->from.ended = p->from.gone = false;
    mr_stream_offer_rails_to(p);
    return 1 + read_in(in);
}

/* Unless its hello has come meanwhile. */
static void drop_oldest_stranger(void)
{
    struct stream_in *in = mr_stream.strangers;

    hear_stranger(in);
    if (mr_stream.strangers == in)
        drop_in(in);
}

static void drop_late_strangers(void)
{
    uint64_t now = mr_clock_ns();

    while (mr_stream.strangers && now - mr_stream.strangers->since > STREAM_HELLO_MS * UINT64_C(1000000))
        drop_oldest_stranger();
}

static bool add_stranger(int fd, bool local)
{
    struct stream_in *in = malloc(sizeof *in);

    if (!in)
        return false;
    *in = (struct stream_in){.end = END_IN, .fd = fd, .local = local, .given = -1, .since = mr_clock_ns()};
    if (mr_stream_watch(EPOLL_CTL_ADD, fd, EPOLLIN, in)) {
        free(in);
        return false;
    }
    mr_stream_set_options(fd);
    *mr_stream.strangers_end = in;
    mr_stream.strangers_end = &in->next;
    mr_stream.num_strangers++;
    return true;
}

static int take_connections_of(int listener, bool local)
{
    int n = 0;

    while (listener >= 0 && n < STREAM_BACKLOG) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0 && mr_stream.strangers && (errno == EMFILE || errno == ENFILE)) {
            drop_oldest_stranger();
            n++;
            continue;
        }
        if (fd < 0)
            break;
        n++;
        if (local && !mr_stream_is_ours(fd)) {
            close(fd);
            continue;
        }
        if (!add_stranger(fd, local)) {
            mr_log(MR_LOG_ERROR, "a connection of another job is refused: no memory");
            close(fd);
        }
        if (mr_stream.num_strangers > STREAM_GUARD)
            drop_oldest_stranger();
    }
    return n;
}

static int take_connections(void)
{
    return take_connections_of(mr_stream.listen.any, false) + take_connections_of(mr_stream.listen.near, true);
}

/* Connections that have come, and their first packets. */
static void hear_new(void)
{
    struct stream_in *next;

    take_connections();
    for (struct stream_in *in = mr_stream.strangers; in; in = next) {
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

    mr_stream_close_out(p);
    hear_new();
    if (!p->from.num_in && (!p->from.ended || lost)) /* else the end of the other connection decides */
        stream_fail(p, -EOWNERDEAD);
}

/*
 * What waits for our connection cannot be sent. A process that has said BYE since the first of it was queued has ended
 * well, and waits for nothing: its connection, with packets for us, may not even be accepted yet.
 */
static void out_failed(struct stream_peer *p, int error)
{
    mr_stream_close_out(p);
    hear_new();
    if (!p->from.num_in && p->from.byes == p->from.byes_before) /* else the end of the other connection decides */
        stream_fail(p, error);
}

static void tell_failures(void)
{
    mr_stream.failing = false;
    for (struct stream_peer *p = mr_stream.peers; p; p = p->next) {
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

    if (p->out.fd < 0)
        return;
    if (p->out.connecting) {
        if (getsockopt(p->out.fd, SOL_SOCKET, SO_ERROR, &err, &len) || err) {
            if (!mr_stream_try_connecting(p))
                out_failed(p, p->out.tries ? -EOWNERDEAD : -EHOSTUNREACH);
            return;
        }
        if (events & (EPOLLRDHUP | EPOLLHUP) && mr_stream_connect_again(p))
            return;
        p->out.connecting = false;
    }
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) || !mr_stream_write_waiting(p))
        out_ended(p);
    else if (p->out.leaving && !p->out.first)
        mr_stream_close_out(p);
}

/* Events of a poll are handled one by one: an event before may have ended the connection of a later one. */
static bool is_there(const void *what)
{
    for (const struct stream_in *in = mr_stream.ins; in; in = in->next)
        if (in == what)
            return true;
    for (const struct stream_in *in = mr_stream.strangers; in; in = in->next)
        if (in == what)
            return true;
    return false;
}

/* Sockets are looked at in each poll of a waiter, unless all packets come through rings. */
static bool is_turn_of_sockets(void)
{
    unsigned every = mr_channel_idle ? 1 : STREAM_EVERY;

    if (mr_stream.num_used && mr_stream.num_used == mr_stream.num_ins && mr_channel_idle < STREAM_KEEN)
        every = STREAM_EVERY_RING;
    if (++mr_stream.rounds % every && !mr_stream.looks)
        return false;
    mr_stream.looks = false;
    return true;
}

/* An event may free the connection of a later event: all kinds of ends are read first. */
static int poll_sockets(void)
{
    struct epoll_event event[STREAM_EVENTS];
    enum stream_end end[STREAM_EVENTS];
    int num, n = 0;

    if (unlikely(mr_stream.failing))
        tell_failures();
    if (unlikely(mr_stream.strangers != NULL))
        drop_late_strangers();
    if (unlikely(mr_stream.closing))
        mr_stream_close_all_rails();
    if (unlikely(mr_stream.resumes))
        n += take_left_frames();
    num = epoll_wait(mr_stream.epoll, event, STREAM_EVENTS, 0);
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

    for (struct stream_in *in = mr_stream.used; in; in = next) {
        int got = mr_stream_read_ring(in, STREAM_BATCH);

        next = in->next_used;
        n += got < 0 ? 1 : got;
        if (got >= 0)
            continue;
        mr_stream_log_damage(in, "packet through shared memory");
        mr_stream_leave_ring(in);
        in->bye = false;
        in_ended(in);
    }
    return n;
}

static int stream_poll(void)
{
    int n = mr_stream.used ? read_rings() : 0;

    if (unlikely(mr_stream.num_in_queue))
        n += mr_stream_write_rings();
    return is_turn_of_sockets() ? n + poll_sockets() : n;
}

/* ---- sleep ------------------------------------------------------------------------------------------------------- */

static bool is_ring_ready(void)
{
    for (const struct stream_in *in = mr_stream.used; in; in = in->next_used)
        if (mr_ring_ready(&in->reader))
            return true;
    return false;
}

/* The network rings for nobody. */
bool mr_stream_doze(int *fd)
{
    *fd = -1;
    if (!mr_stream.open || mr_vc_far() || mr_stream.num_in_queue || mr_stream.failing || mr_stream.closing)
        return true;
    *fd = mr_stream.epoll;
    for (struct stream_in *in = mr_stream.used; in; in = in->next_used)
        mr_job_ring_doze(&in->ring);
    if (!is_ring_ready())
        return true;
    mr_stream_rise();
    return false;
}

void mr_stream_rise(void)
{
    for (struct stream_in *in = mr_stream.used; in; in = in->next_used)
        mr_job_ring_rise(&in->ring);
    mr_stream.looks = true;
}

static bool stream_drained(void)
{
    return !mr_stream.num_waiting;
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

    if (!p || !card || !mr_cards_share_host(card, &mr_stream.card) || !mr_config.single_copy)
        return 0;
    return p->from.reads == READS_REFUSED ? 0 : MR_VC_GET;
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

    if (p->from.reads != READS_ALLOWED)
        return -EPERM;
    there.pid = p->from.pid;
    err = mr_cma_get(vc, buf, len, &there, offset);
    if (err == -EPERM)
        p->from.reads = READS_REFUSED;
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
    p->out.fd = -1;
    p->out.last = &p->out.first;
    p->next = mr_stream.peers;
    mr_stream.peers = p;
    vc->stream = p;
    if (!begin_out(p))
        mr_stream_note_failure(p);
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
        for (struct stream_peer *p = mr_stream.peers; p; p = p->next) {
            mr_stream_write_ring(p);
            if (p->out.fd >= 0 && !p->failed && !p->out.leaving && !p->ring.first && mr_stream_say_bye(p, true))
                mr_stream_close_out(p);
            if (p->out.fd < 0)
                continue;
            if (!p->out.connecting && (!mr_stream_write_waiting(p) || (!p->out.first && !p->ring.first)))
                mr_stream_close_out(p);
            waits |= p->out.fd >= 0;
        }
        num = waits ? epoll_wait(mr_stream.epoll, event, STREAM_EVENTS, mr_stream.num_in_queue ? 1 : 100) : 0;
        for (int i = 0; i < num; i++) {
            struct stream_peer *p = event[i].data.ptr;
            int err = 0;
            socklen_t len = sizeof err;

            if (p->end != END_OUT || !p->out.connecting)
                continue;
            if (!getsockopt(p->out.fd, SOL_SOCKET, SO_ERROR, &err, &len) && !err) {
                if (!(event[i].events & (EPOLLRDHUP | EPOLLHUP)) || !mr_stream_connect_again(p))
                    p->out.connecting = false;
            } else if (!mr_stream_try_connecting(p))
                mr_stream_close_out(p);
        }
    }
}

static void stream_finalize(void)
{
    close(mr_stream.listen.any); /* no news */
    if (mr_stream.listen.near >= 0)
        close(mr_stream.listen.near);
    mr_stream.listen.any = mr_stream.listen.near = -1;
    while (mr_stream.ins)
        drop_in(mr_stream.ins);
    while (mr_stream.strangers)
        drop_in(mr_stream.strangers);
    write_out();
    while (mr_stream.peers) {
        struct stream_peer *p = mr_stream.peers;

        mr_stream.peers = p->next;
        mr_stream_close_out(p);
        mr_stream_free_way(p);
        free(p);
    }
    mr_stream_close_listener();
    free(mr_stream.copy);
    memset(&mr_stream, 0, sizeof mr_stream);
    mr_stream.epoll = mr_stream.listen.any = mr_stream.listen.near = -1;
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
    .send = mr_stream_ring_send,
    .send_short = mr_stream_ring_send_short,
    .advertise = stream_advertise,
    .withdraw = mr_cma_withdraw,
    .get = stream_get,
};
