/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts: nonblocking sends of messages that could go eagerly, one behind the other, before the program has waited for
 * the first. An eager message is copied by both sides, which is soonest where each is waited for: an offer and a read
 * take a round trip more. In a burst the round trips overlap and the copies do not, so that what is left of it may be
 * read from the program's memory once it has had MR_BURST_BYTES, or the one before it had, where rails carry more than
 * a processor copies (docs/design/protocols.md).
 *
 * Where the wire holds a burst up, or a share of it, and not the copies, that cannot be faster. So a few copies are
 * timed, and nothing is offered while eager messages take longer than those. Where it may be faster that depends on who
 * else is on the wire: a window that is read waits for its round trips, copies fill the queues of the adapter
 * meanwhile. So both ways are tried, for each class of loads (trial.h). While such messages come the other way, too,
 * they go eagerly: two that try at the same time measure each other.
 *
 * Both sides register their memory for it, which takes as long for each device as copying MR_BURST_WORTH bytes, or more
 * if a few copies that are timed are found to be faster. So only a buffer that has been copied that much is offered, or
 * sent from, and only one that has been filled that much is read into; and there is but one more on each side in a time
 * of which that is a percent or two, until with an eighth of them reading is seen to pay. The last ones of a burst come
 * last: the round trip of what is read there is hidden by nothing. Whether a buffer is still registered is asked each
 * time: it may have been unmapped, and other memory be there. A receiver that does not read has the bytes sent after
 * all: until one has read, and after one has not, there is one offer at a time, and ever fewer.
 *
 * Pure: one struct for all peers of a process; no packets, and the clock is given.
 */
#ifndef MRMPI_BURST_H
#define MRMPI_BURST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/p2p/choice/trial.h"

#define MR_BURST_LEAST    4096u       /* a shorter message is copied in less than what its offer costs */
#define MR_BURST_BYTES    (64u << 10) /* copied, by both sides, in three round trips */
#define MR_BURST_ZSEND_AT (24u << 10) /* copied in a round trip, which is what a send from its buffer takes */
#define MR_BURST_REST     64u         /* messages that are not offered when one was refused, at first and at most */
#define MR_BURST_RESTS    4096u
#define MR_BURST_WORTH                                                                                                 \
    (128u << 10)                      /* bytes from or into a buffer that are worth its registration, on a device, at  \
                                         least: as many as are copied in MR_BURST_REGISTER_NS, */
#define MR_BURST_REGISTER_NS 10500u   /* which it takes */
#define MR_BURST_COPY_MBPS   12500u   /* at which those are copied */
#define MR_BURST_PACE_NS     1000000u /* from one registration to the next, for each device, */
#define MR_BURST_FAST_NS     100000u  /* and once it is known what they are good for */
#define MR_BURST_SKIP        16u      /* messages between two looks at the clock whether it is time, */
#define MR_BURST_SOON_NS     20000u   /* or fewer if it will be so soon */
#define MR_BURST_SAMPLES     8u       /* copies that are timed, */
#define MR_BURST_SAMPLE      (16u << 10) /* of so many bytes at most */
#define MR_BURST_BUFFERS     1024u       /* that are remembered, of each side */

/* What is believed of a buffer. */
enum mr_burst_memory {
    MR_BURST_PLAIN,  /* it is not registered */
    MR_BURST_WISHED, /* it was to be, */
    MR_BURST_SEEN,   /* and was, when it was used last */
};

struct mr_burst_buffers {
    uint64_t next_ns;  /* when there may be one more that is registered */
    unsigned skip;     /* messages until the clock is looked at for that */
    uint64_t whole_ns; /* the former, for mr_burst_whole */
    struct {
        uintptr_t page;
        uint32_t bytes; /* copied from there, or into there */
        enum mr_burst_memory memory;
    } of[MR_BURST_BUFFERS];
};

struct mr_burst {
    unsigned devices; /* that memory is registered with */
    uint64_t (*clock_ns)(void);
    uint64_t (*copy_ns)(const void *buf, size_t len); /* copies them somewhere: what that took */
    bool (*is_registered)(const void *buf, size_t len);
    unsigned open;              /* sends that the program has not waited for */
    uint64_t now, before;       /* bytes of this burst, and of the last one, */
    uint64_t most, most_before; /* and of those that were open at a time */
    bool trusted, asked;        /* the latest answer was that it was read; an offer is out that will tell */
    unsigned rest, rests;       /* messages that go eagerly still; as many when the next one is refused */
    struct mr_burst_buffers sent, filled;

    struct mr_trials trials; /* eagerly, or read */
    bool begins;             /* no message of this burst has counted there yet */
    bool exchanges;          /* messages came the other way, too, before the last look */
    bool many;               /* half of the messages had registered buffers at the last look */
    unsigned seen, known;    /* messages since the last look, those of them that have, */
    unsigned ready;          /* and those that can be read; */
    unsigned arrived;        /* of others, meanwhile */
    uint64_t copied_ns;      /* what MR_BURST_SAMPLES copies of messages took, */
    size_t copied;           /* and their bytes */
    unsigned samples;
};

/* How a message goes. */
enum mr_send_protocol {
    MR_BURST_COPY,   /* eagerly, from a copy */
    MR_BURST_ANSWER, /* from its buffer, which is registered or is worth that by now, if it is an answer */
    MR_BURST_ZSEND,  /* eagerly from its buffer, whatever came before: enough is under way */
    MR_BURST_OFFER,  /* the receiver reads it */
};
/* A message of len bytes is sent from buf, and counts until mr_burst_leave. can_offer: it might be read. */
enum mr_send_protocol mr_burst_join(struct mr_burst *b, const void *buf, size_t len, bool can_offer);
/* The program knows that its send is complete. */
static inline void mr_burst_leave(struct mr_burst *b)
{
    b->open--;
}
/* The same for one that is waited for, and does not count. */
enum mr_send_protocol mr_burst_alone(struct mr_burst *b, const void *buf, size_t len);
/* As many bytes as are copied at MR_BURST_COPY_MBPS in the time that len take. len: it is not known, or more. */
size_t mr_burst_copies_as(const struct mr_burst *b, size_t len);
/*
 * Messages as this one, from or into buf, of which somebody copies `all` bytes at a time, if they go eagerly. True:
 * that takes longer than to wait until their receivers are ready.
 */
bool mr_burst_delays(struct mr_burst *b, const void *buf, size_t len, size_t all);
/* All of buf is sent, or filled, by several messages at a time. True: it is to be registered, or has been. */
bool mr_burst_whole(struct mr_burst *b, const void *buf, size_t len, bool filled);
/* A message of len bytes has come eagerly, and is copied to buf. */
void mr_burst_filled(struct mr_burst *b, const void *buf, size_t len);
/* Such a message is offered. True: it had better be read. */
bool mr_burst_offered(struct mr_burst *b, const void *buf, size_t len);
/* The receiver has read one that was offered, or wants it sent. */
void mr_burst_taken(struct mr_burst *b, bool read);

#endif
