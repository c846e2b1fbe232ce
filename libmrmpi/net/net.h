/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The channel to other hosts: functions for higher subsystems beyond struct mr_channel_ops. All of these need a virtual
 * channel with mr_net_reaches(); the capabilities (enum mr_vc_caps) list the functions that the peer supports. A
 * failing function returns a negative errno, vc->error if the peer is lost.
 */
#ifndef MRMPI_NET_H
#define MRMPI_NET_H

#include "libmrmpi/channel/channel.h"
#include "libmrmpi/net/stripe/writer.h" /* short writes to windows */

struct mr_launch;

extern const struct mr_channel_ops mr_channel_net;

static inline bool mr_net_reaches(const struct mr_vc *vc)
{
    return vc->ops == &mr_channel_net;
}

/* After the last message: peers may still need this process to poll. */
bool mr_net_lingers(void);
/* Its process has ended: the peer is lost once nothing is under way to or from it. */
void mr_net_lose(struct mr_vc *vc);
/* Devices with which memory to be sent or moved is registered at least; at least 1. */
unsigned mr_net_devices(void);
/* The memory is registered, with one of them at least, and stays so. */
bool mr_net_is_registered(const void *buf, size_t len);

/* ---- packets ----------------------------------------------------------------------------------------------------- */

/*
 * Call before the several packets of a message: reserves memory for all of them, if sent at once. Then they are refused
 * only if the peer is unreachable, and the peer never waits for the rest of a message.
 */
int mr_net_reserve(struct mr_vc *vc, unsigned packets);

/* The send of a zero-copy packet. */
struct mr_vc_zsender {
    const void *buf; /* all of its message */
    size_t len;
    bool answers; /* zero-copy only if packets have arrived since the last was sent: otherwise copied */
    void *cookie;
};
/*
 * Like mr_vc_send, from the payload's memory: 1: unchanged until zsend_done(zsender->cookie). 0: copied. Only while
 * vc->zsends.
 */
int mr_net_zsend(struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len,
                 const struct mr_vc_zsender *zsender);

/* ---- large messages ---------------------------------------------------------------------------------------------- */

/*
 * MB/s of a large message now over the rails to the peer: all together, or the fastest of unequal rails, if the message
 * is not cut while all are busy. 0: the message is cut, or the rate is unknown. *whole: with several rails, a shorter
 * piece goes over one of them. without: set of rails here without a key.
 */
unsigned mr_net_rate(const struct mr_vc *vc, size_t len, uint32_t without, size_t *whole);
/* A message to or from this memory takes less in packets than registering the memory would. */
bool mr_net_copies(const struct mr_vc *vc, const void *buf, size_t len);

/* A transfer between memory of the program and advertised memory of the peer, striped over the rails. */
struct mr_net_transfer {
    bool read;                      /* from the peer's memory; else a write into it, and buf stays unchanged */
    void *buf;                      /* the whole message, or the moved part of a window */
    size_t size;                    /* of buf, > 0 */
    struct mr_vc_part part;         /* of buf, at the first bytes of the peer's memory; len 0: all of buf */
    const struct mr_remote *remote; /* the peer's memory; not used after the call */
    void *cookie;                   /* of a message: for read_done or put_sent */
    struct mr_vc_move *move;        /* of a window, in place of cookie; NULL: a message */
};
/*
 * The end is reported by read_done or put_sent, perhaps before the call returns. A written peer's put_landed is called
 * with the value that the peer gave to mr_vc_expect for this region; a read peer is not told. The region for buf is
 * taken and released inside. 0; -EMSGSIZE: longer than the peer's memory; -EPROTO: this memory is invalid; -EOPNOTSUPP:
 * no subchannel has RDMA; -ENOMEM.
 */
int mr_net_begin_transfer(struct mr_vc *vc, const struct mr_net_transfer *t);

/* ---- windows ----------------------------------------------------------------------------------------------------- */

/* An atomic in a peer's memory under way; its owner embeds it. */
struct mr_vc_atomic {
    struct mr_atomic atomic;
    struct mr_vc_move move; /* done: the error is -EIO if it may have been done, or not, and never will be any more */
    uint32_t connection;    /* the connection taken, never 0: atomics over the same one are done in order. Before: the
                               required connection; 0: any */
};
/*
 * Lets the peer's adapter change an atomic in memory that the peer has advertised for this (MR_VC_ATOMIC), and returns
 * the old value. The peer is not told. w->move.done follows, out of mr_vc_poll() only, and *w and its result are the
 * channel's until then. A change is made once at most: over a connection that breaks, it may have been made or not,
 * which only the peer can see. By the time of done it will not be made any more.
 *
 * 0; -EAGAIN: no room now; -EOPNOTSUPP: no connection to the peer has atomics, or not the required one; another
 * negative errno.
 */
int mr_net_atomic(struct mr_vc *vc, const struct mr_remote *remote, struct mr_vc_atomic *w);

/* ---- figures of rails (view/) ------------------------------------------------------------------------------------ */

/* After the channels are open, and before they are closed. */
void mr_view_open(const struct mr_launch *launch);
void mr_view_close(void);
/* Between 0 and 1; negative: rail i leads to no peer. Any thread may ask. */
double mr_view_share(unsigned i);

#endif
