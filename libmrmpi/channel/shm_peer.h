/* SPDX-License-Identifier: BSD-3-Clause */
/* Channel shm's internal interface, shared by sending (shm.c) and receiving (shm_recv.c). */
#ifndef MRMPI_SHM_PEER_H
#define MRMPI_SHM_PEER_H

#include "libmrmpi/channel/channel.h"
#include "libmrmpi/channel/shm_answer.h"
#include "libmrmpi/base/copier.h"
#include "libmrmpi/channel/shm_ring_writer.h"
#include "libmrmpi/channel/shm_segment.h"
#include "libmrmpi/launch/launch.h"

/*
 * Bytes; shorter payloads go into the ring, those too long for a slot into its data area. A core fetches single lines
 * from another's cache as soon as from the shared one, but many of them later: bandwidth of 1 KiB 4.9 and 6.7 GB/s, of
 * 512 bytes 5.0 and 4.4 (AMD EPYC).
 */
#define MR_SHM_POOL_MIN 1024
/*
 * Messages of less than this number of bytes are sent, and taken, on the fast path, without a virtual channel's checks:
 * 1 KiB in .26 us, not .31, and 4 KiB at 18 GB/s, not 14. Longer messages, if both send, had better not be copied by
 * each posted receive: 16 KiB both ways 27 GB/s, and 19.
 */
#define MR_SHM_FAST_BELOW (4096 + 1)

struct mr_shm_waiting { /* a packet that found its ring full */
    struct mr_shm_waiting *next;
    struct mr_hdr hdr;
    size_t len;
    uint8_t payload[];
};

struct mr_shm_peer {
    struct mr_ring_writer writer;
    struct mr_shm_waiting *first, **last;
    unsigned num_waiting;
    bool announced;
    struct mr_ring_reader reader;
    size_t far;                         /* bytes of the packet last peeked at, if in the pool */
    uint64_t heard_short;               /* packets of its ring read when the last short one went to it, */
    uint64_t heard;                     /* and when a possible answer went into the pool */
    struct mr_answer_copies answers[2]; /* of less than 2 KiB, and longer ones */
    struct mr_pool pool;                /* the peer's: where its long payloads are */
    bool broken;                        /* its ring held nonsense */
    int local;                          /* its rank on the node */
};

struct mr_shm {
    const struct mr_launch *launch;
    int *local_of; /* [size] local rank of a world rank, -1: on another node */
    struct mr_segment segment;
    struct mr_box *box;        /* this rank's */
    struct mr_shm_peer *peers; /* [local_size], this rank's own entry included */
    int *senders;              /* local ranks whose rings are polled */
    int num_senders;
    struct mr_copier copier;    /* into this rank's pool */
    struct mr_pool_user *users; /* of its chunks */
    uint32_t senders_version;
    int num_waiting; /* packets in all queues */
    size_t eager_max;
};
extern MR_OWN struct mr_shm mr_shm;

int mr_shm_receive(void);  /* number of packets */
bool mr_shm_is_busy(void); /* something is to be received, or waits to be sent */
/* len bytes in the pool of that rank of the node, from a chunk on; NULL: there can be none. */
void *mr_shm_in_pool(int local, uint32_t chunk, size_t len);
struct mr_shm_peer *mr_shm_meet(struct mr_vc *vc); /* vc->data, not set yet */
static inline struct mr_shm_peer *mr_shm_peer_of(struct mr_vc *vc)
{
    return likely(vc->data != NULL) ? vc->data : mr_shm_meet(vc);
}

#endif
