/* SPDX-License-Identifier: BSD-3-Clause */
/* Channel stream's internal interface, shared by its files. */
#ifndef MRMPI_STREAM_PEER_H
#define MRMPI_STREAM_PEER_H

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/uio.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/channel/job_ring.h"
#include "libmrmpi/channel/shm_ring.h"
#include "libmrmpi/channel/shm_ring_writer.h"
#include "libmrmpi/launch/launch.h"

#define STREAM_PACKET  (64u << 10)
#define STREAM_BACKLOG 512

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

/* Our connection to a process (stream_out.c). */
struct stream_out {
    int fd;     /* packets to the process; -1: not open */
    bool local; /* the connection is one of local sockets */
    bool connecting, leaving /* behind BYE */, wants_room;
    unsigned next_address, tries;
    struct stream_bytes *first, **last;
};

/* The connections from a process, and what they have told of it (stream.c). */
struct stream_from {
    unsigned num_in;            /* connections */
    bool ended;                 /* the process has said BYE, and has opened no connection since; */
    bool gone;                  /* the same at its end: none comes */
    unsigned byes, byes_before; /* how often; before the connection to it was begun */
    enum stream_reads reads;    /* of the memory of the process, by this one */
    int32_t pid;                /* if allowed: the process */
};

/* The way over rails to a guest; others than stream_rails.c use the functions below. */
struct stream_way {
    enum stream_rails state;
    bool barred;            /* rails were lost: the stream serves until the two part */
    bool pauses;            /* nothing is taken from the guest until our end of the way is closed */
    uint32_t run;           /* of the last offer of ours */
    bool off_heard, leaves; /* the guest has said OFF; BYE follows ours */
    bool asked, answers;    /* mr_stream_ask() waits for a COUNT; the last one has come */
    int error;              /* RAILS_LOST */
    uint8_t *offer;         /* the guest's, before there are rails here; NULL: none */
    uint32_t offer_len;
};

struct stream_peer {
    enum stream_end end;
    struct mr_vc *vc;
    bool failed;
    unsigned num_waiting; /* packets in out and ring */
    struct stream_out out;
    struct stream_ring ring;
    struct stream_from from;
    struct stream_way way;
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

/* The sockets at which others reach this process (stream_listen.c); -1: none. */
struct stream_listen {
    int any, near; /* TCP; local */
    enum stream_end end;
};

struct mr_stream_state {
    bool open;
    int epoll;
    struct stream_listen listen;
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
};
extern MR_OWN struct mr_stream_state mr_stream;

union stream_control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static inline bool mr_stream_would_block(int err)
{
    return err == EAGAIN || err == EWOULDBLOCK || err == EINTR;
}

static inline int mr_stream_guest_of(const struct stream_peer *p)
{
    return mr_vc_world_rank(p->vc);
}

/* ---- stream_listen.c --------------------------------------------------------------------------------------------- */

int mr_stream_watch(int op, int fd, uint32_t events, void *what);
void mr_stream_close_watched(int fd);
socklen_t mr_stream_local_address(const struct mr_card *card, struct sockaddr_un *at);
bool mr_stream_is_ours(int fd);
int mr_stream_listen(struct mr_card *card);
void mr_stream_close_listener(void);

/* ---- stream_out.c ------------------------------------------------------------------------------------------------ */

void mr_stream_count_queued(struct stream_peer *p, int more);
void mr_stream_drop_packet(struct stream_peer *p);
void mr_stream_drop_ring(struct stream_peer *p);
void mr_stream_close_out(struct stream_peer *p);
void mr_stream_note_failure(struct stream_peer *p);
int mr_stream_put_off(struct stream_peer *p, const struct iovec *part, int num, size_t done, bool packet);
bool mr_stream_write_waiting(struct stream_peer *p);
void mr_stream_set_options(int fd);
bool mr_stream_try_local(struct stream_peer *p);
bool mr_stream_try_connecting(struct stream_peer *p);
bool mr_stream_connect_again(struct stream_peer *p);
void mr_stream_want_room(struct stream_peer *p);
bool mr_stream_say(struct stream_peer *p, uint32_t what, uint32_t seq, const void *data, size_t len);
int mr_stream_say_bye(struct stream_peer *p, bool ends);
void mr_stream_leave_now(struct stream_peer *p);

/* ---- stream_ring.c ----------------------------------------------------------------------------------------------- */

void mr_stream_offer_ring(struct stream_peer *p);
void mr_stream_use_ring(struct stream_peer *p, uint32_t number);
int mr_stream_ring_send(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
bool mr_stream_ring_send_short(struct mr_vc *vc, const void *payload, size_t len, int rank, int tag, uint32_t ctx);
int mr_stream_write_ring(struct stream_peer *p);
int mr_stream_write_rings(void);
void mr_stream_take_rings(struct stream_peer *p);
void mr_stream_leave_ring(struct stream_in *in);
void mr_stream_hear_of_ring(struct stream_in *in, uint32_t number, const uint8_t *at, uint32_t len);
bool mr_stream_begin_reading(struct stream_in *in);
int mr_stream_read_ring(struct stream_in *in, unsigned most);
void mr_stream_log_damage(const struct stream_in *in, const char *what);
void mr_stream_empty_ring(struct stream_in *in);

/* ---- stream_rails.c ---------------------------------------------------------------------------------------------- */

void mr_stream_offer_rails_to(struct stream_peer *p);
void mr_stream_begin_closing(struct stream_peer *p);
void mr_stream_take_offer(struct stream_peer *p, const uint8_t *offer, uint32_t len);
void mr_stream_take_count(struct stream_peer *p, uint32_t count);
void mr_stream_end_rails(struct stream_peer *p, bool ends);
void mr_stream_close_all_rails(void);
void mr_stream_hear_of_loss(struct stream_peer *p);
void mr_stream_hear_off(struct stream_peer *p);
/* True: BYE follows once the way and the ring need no frames any more. */
bool mr_stream_leave_later(struct stream_peer *p);
void mr_stream_leave_still(struct stream_peer *p); /* a packet was sent again: the process leaves nevertheless */
/* The channel to other hosts has closed the way. MR_UNRAILED_GOES_ON: packets follow over our connection. */
enum mr_unrailed mr_stream_way_is_closed(struct stream_peer *p, int error);
/* The guest has failed. True: that is said once the way is closed (mr_stream_lose). */
bool mr_stream_lose_way(struct stream_peer *p, int error);
int mr_stream_drop_way(struct stream_peer *p, int error); /* returns the guest's error, or this */
void mr_stream_free_way(struct stream_peer *p);

static inline bool mr_stream_has_way(const struct stream_peer *p)
{
    return p->way.state != RAILS_NONE;
}

static inline bool mr_stream_pauses(const struct stream_peer *p)
{
    return p->way.pauses;
}

static inline bool mr_stream_leaves(const struct stream_peer *p)
{
    return p->way.leaves;
}

static inline void mr_stream_stay(struct stream_peer *p)
{
    p->way.leaves = false;
}

/* The two part: they may offer rails again. */
static inline void mr_stream_unbar(struct stream_peer *p)
{
    p->way.barred = false;
}

#endif
