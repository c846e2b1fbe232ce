/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the tests of bulk/, stripe/ and zcopy/: a peer of rank 1 with two subchannels on two rails, links and pools
 * of queue pairs that only record posts, and a clock moved by the test. fake_setup() begins anew.
 */
#ifndef MRMPI_TESTS_FAKE_BULK_H
#define MRMPI_TESTS_FAKE_BULK_H

#include "libmrmpi/net/bulk/internal.h"
#include "libmrmpi/net/stripe/keys.h"
#include "libmrmpi/net/zcopy/zcopy.h"
#include "libmrmpi/verbs/post.h"

enum { FAKE_SUBS = 2, FAKE_POSTS = 4096, FAKE_CONTROLS = 256, FAKE_QPS = 4, FAKE_PLACES = 64, FAKE_MTU = 1024 };

/* A write, a read or a run of datagrams that was posted. */
struct fake_post {
    unsigned sub;
    bool read, has_imm;
    uint64_t raddr, len;
    uint32_t imm;
    struct mr_tx *tx;
    struct mr_link_run *run;
    struct mr_link_datagram datagram;
    struct mr_atomic atomic;
    uint32_t rkey; /* of a word, or of a list, */
    unsigned num_writes;
    struct mr_short_write write[MR_QP_LIST]; /* with copied data */
};

/* A control message sent. */
struct fake_control {
    struct mr_hdr hdr;
    size_t len;
    union {
        unsigned char bytes[4096];
        struct mr_missing_run missing[1024];
        struct mr_zcopy_clear clear;
    };
};

/* A queue pair of a pool. */
struct fake_qp {
    struct mr_ud_pool_qp base; /* first */
    bool taken, stopped;
    unsigned clean, unclean; /* number of reuses or returns of each kind */
    struct {
        unsigned char *at;
        uint32_t len;
    } place[FAKE_PLACES];
};

struct fake {
    uint64_t now_ns;
    struct mr_bulk_peer *peer;
    unsigned room[FAKE_SUBS]; /* posts that a subchannel takes; writes of a list */
    int list_error;           /* of posting a list, after as many of it as there is room for, or a word */
    unsigned run_max;         /* datagrams that a link takes together */
    struct fake_post post[FAKE_POSTS];
    unsigned num_posts;
    struct fake_control control[FAKE_CONTROLS];
    unsigned num_controls;
    size_t eager_max;
    unsigned puts_sent, reads_done, landed; /* upcalls */
    int error;                              /* of the last post */
    unsigned backlogs, watches, needs, breaks, lost;
    struct mr_sub *broken;
    struct fake_qp qp[FAKE_SUBS][FAKE_QPS];
    unsigned num_qps[FAKE_SUBS]; /* most queue pairs */
    int post_error;              /* of mr_ud_pool_post */
    void (*at_landed)(void);     /* the action of a region's owner */
};
extern struct fake fake;

/* A peer with subchannels of this kind. */
void fake_setup(enum mr_link_kind kind);
/* The work of this post is done. */
void fake_complete(unsigned post);
/* Goes down: its port is not active, and its links are being drained. */
void fake_break(unsigned sub);
/* A datagram of len bytes, filled with fill, comes to the next place of a queue pair. */
void fake_deliver(struct fake_qp *q, uint32_t imm, uint32_t len, unsigned char fill);
/* The queue pair has stopped. */
void fake_stop(struct fake_qp *q);

/* The virtual channel to the peer. */
static inline struct mr_vc *vc_to(struct mr_peer *p)
{
    static struct mr_vc vc;

    vc.data = p;
    return &vc;
}

/* A large message of len bytes to the peer's memory, or from there. */
static inline int transfer_to(struct mr_peer *p, void *buf, size_t len, const struct mr_remote *remote, bool read)
{
    return mr_net_begin_transfer(vc_to(p),
                                 &(struct mr_net_transfer){.read = read, .buf = buf, .size = len, .remote = remote});
}

#endif
