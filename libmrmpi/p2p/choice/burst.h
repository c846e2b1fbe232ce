/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts: nonblocking sends of messages short enough for eager, one behind the other, before the program has waited for
 * the first. An eager message is copied by both sides, which is soonest if each is waited for: an offer and a read take
 * a round trip more. In a burst the round trips overlap and the copies do not, so the rest of a burst may be read from
 * the program's memory after burst_at bytes (model.h), or if the burst before had as many, where rails carry more than
 * a processor copies (docs/design/protocols.md).
 *
 * If the wire, or a share of it, limits a burst, and not the copies, reading cannot be faster. So a few copies are
 * timed, and nothing is offered while eager messages take longer than the copies. Otherwise the result depends on other
 * users of the wire: a window that is read waits for its round trips, while copies fill the queues of the adapter. So
 * both protocols are tried, for each class of loads (trial.h). While such messages come the other way, too, they are
 * sent eagerly, because two simultaneous trials measure each other.
 *
 * Both sides register their memory, which takes as long for each device as copying register_at bytes, or more if a
 * few timed copies are found to be faster. So only a buffer with as many bytes copied is offered, or sent from, and
 * only a buffer filled with as many is read into. Each side registers one more buffer per interval, at a cost of a
 * percent or two, until reading is found to pay with an eighth of the buffers. The buffers at the end of a burst come
 * last: nothing hides the round trip of a read there. Whether a buffer is still registered is checked each time: it may
 * have been unmapped and replaced. A receiver that does not read has the bytes sent after all: until one has read, and
 * after one has not, there is one offer at a time, and fewer and fewer.
 *
 * Pure: one struct for all peers of a process; no packets, and the clock is given.
 */
#ifndef MRMPI_BURST_H
#define MRMPI_BURST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/backoff.h"
#include "libmrmpi/base/model.h"
#include "libmrmpi/p2p/choice/trial.h"

#define MR_BURST_PACE_NS 1000000u    /* interval of registrations, for each device, */
#define MR_BURST_FAST_NS 100000u     /* and once their gain is known */
#define MR_BURST_SKIP    16u         /* messages between two readings of the clock whether it is time, */
#define MR_BURST_SOON_NS 20000u      /* or fewer if registration is due that soon */
#define MR_BURST_SAMPLES 8u          /* timed copies, */
#define MR_BURST_SAMPLE  (16u << 10) /* of at most this number of bytes */
#define MR_BURST_BUFFERS 1024u       /* buffers remembered, of each side */

/* The assumed state of a buffer. */
enum mr_burst_memory {
    MR_BURST_UNREGISTERED, /* not registered */
    MR_BURST_WISHED,       /* registration was wanted, */
    MR_BURST_SEEN,         /* and existed at the last use */
};

struct mr_burst_buffers {
    uint64_t next_ns;  /* time of the next allowed registration */
    unsigned skip;     /* messages until the next reading of the clock */
    uint64_t whole_ns; /* the former, for mr_burst_whole */
    struct {
        uintptr_t page;
        uint32_t bytes; /* copied from there, or into there */
        enum mr_burst_memory memory;
    } of[MR_BURST_BUFFERS];
};

struct mr_burst {
    const struct mr_model *model;
    unsigned devices; /* devices that memory is registered with */
    uint64_t (*clock_ns)(void);
    uint64_t (*copy_ns)(const void *buf, size_t len); /* copies them somewhere: returns the time */
    bool (*is_registered)(const void *buf, size_t len);
    unsigned open;              /* sends not yet waited for */
    uint64_t now, before;       /* bytes of this burst, and of the last one, */
    uint64_t most, most_before; /* and the most open at a time */
    bool trusted, asked;        /* the last answer was a read; an offer is out that will tell */
    struct mr_backoff eager;    /* of offers */
    struct mr_burst_buffers sent, filled;

    struct mr_trials trials; /* eagerly, or read */
    bool begins;             /* no message of this burst has counted there yet */
    bool exchanges;          /* messages came in the other direction, too, before the last check */
    bool many;               /* half of the messages had registered buffers at the last check */
    unsigned seen, known;    /* messages since the last check, those with a known buffer, */
    unsigned ready;          /* and those that can be read */
    unsigned arrived;        /* of others, meanwhile */
    uint64_t copied_ns;      /* time of MR_BURST_SAMPLES copies of messages, */
    size_t copied;           /* and their bytes */
    unsigned samples;
};

/* How a message goes. */
enum mr_send_protocol {
    MR_BURST_COPY,   /* eagerly, from a copy */
    MR_BURST_ANSWER, /* zero-copy, from a buffer registered or worth it by now, if it is an answer */
    MR_BURST_ZSEND,  /* eagerly from its buffer, whatever came before: enough is under way */
    MR_BURST_OFFER,  /* read by the receiver */
};
/* A message of len bytes is sent from buf, and counts until mr_burst_leave. can_offer: it might be read. */
enum mr_send_protocol mr_burst_join(struct mr_burst *b, const void *buf, size_t len, bool can_offer);
/* The program knows that its send is complete. */
static inline void mr_burst_leave(struct mr_burst *b)
{
    b->open--;
}
/* The same for a message waited for, which does not count. */
enum mr_send_protocol mr_burst_alone(struct mr_burst *b, const void *buf, size_t len);
/* The bytes copied at the model's rate in the time of copying len. len: unknown, or more. */
size_t mr_burst_copies_as(const struct mr_burst *b, size_t len);
/*
 * Messages like this one, from or into buf, of which a rank copies `all` bytes at a time, if sent eagerly. True: this
 * takes longer than waiting until their receivers are ready.
 */
bool mr_burst_delays(struct mr_burst *b, const void *buf, size_t len, size_t all);
/* All of buf is sent, or filled, by several messages at a time. True: it is to be registered, or has been. */
bool mr_burst_whole(struct mr_burst *b, const void *buf, size_t len, bool filled);
/* A message of len bytes has come eagerly, and is copied to buf. Those below offer_at do not count. */
void mr_burst_filled(struct mr_burst *b, const void *buf, size_t len);
/* Such a message is offered. True: it had better be read. */
bool mr_burst_offered(struct mr_burst *b, const void *buf, size_t len);
/* The receiver has read an offered message, or wants it sent. */
void mr_burst_taken(struct mr_burst *b, bool read);

#endif
