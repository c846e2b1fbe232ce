/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers are connected on demand, and stay connected: handshakes, recovery, epochs of service levels, budgets of
 * connections, keepalive. This is what other rooms use. All functions are called with the library's lock held.
 */
#ifndef MRMPI_CONNECT_H
#define MRMPI_CONNECT_H

#include "libmrmpi/conn/peer/peer.h"

/* ---- at the start ------------------------------------------------------------------------------------------------ */

/* What conn/ calls above it. */
struct mr_connect_upcalls {
    /* Of a subchannel's link that confirms packets itself: the oldest n packets on the link are with the peer. */
    void (*confirmed)(struct mr_link *l, unsigned n);
};
void mr_connect_init(const struct mr_connect_upcalls *up); /* before others subscribe to what happens to peers */
/*
 * More ranks are on other hosts than one may have connections to. Sets that, if MRMPI_RC_PEERS is 0. The same for all
 * ranks, if they have adapters of one type: else some may use datagrams, too, and others not.
 */
bool mr_budget_exceeded(const struct mr_launch *launch);
void mr_budget_init(void);

/* ---- a peer ------------------------------------------------------------------------------------------------------ */

/* The peer of that rank, made if need be; NULL: no memory. Connecting begins with mr_peer_connect(). */
struct mr_peer *mr_peer_get(int rank);
struct mr_peer *mr_peer_of(uint32_t rank); /* the same; NULL for a number that is no rank on another host */
void mr_peer_connect(struct mr_peer *p);
/* Ask its adapter over links with packets that no later signaled one will confirm: the window is full. */
void mr_keepalive_unsignaled(struct mr_peer *p);
/* Have adapters confirm what native links have sent. True: all is confirmed. */
bool mr_keepalive_confirm(struct mr_peer *p);
/* Ask its process, by a datagram on the path of the subchannel. */
void mr_keepalive_ask(struct mr_sub *sub, uint64_t now_ns);
/* The same, question and answer on this service level. */
void mr_keepalive_ask_on(struct mr_sub *sub, uint8_t sl, uint64_t now_ns);
bool mr_budget_rdma(struct mr_peer *p); /* it has a connection, or will: large messages may go by RDMA */
void mr_budget_need(struct mr_peer *p); /* a large message waits for a connection */
/*
 * A large message of so many bytes goes to the peer or comes from the peer: if they become many, further paths are
 * sought. mr_paths_news: fabricd may have answered; state: it may allow others now.
 */
void mr_paths_note(struct mr_peer *p, uint64_t len);
void mr_paths_news(bool state);
/* It cannot be used any more. Its packets go over others once it has drained. */
void mr_sub_break(struct mr_sub *sub);

/* ---- what comes: true if it was a control message of that file --------------------------------------------------- */

bool mr_budget_control(struct mr_peer *p, const struct mr_hdr *hdr);
bool mr_epoch_control(struct mr_peer *p, const struct mr_hdr *hdr);
void mr_recovery_control(struct mr_peer *p, const struct mr_hdr *hdr); /* asked last */
void mr_handshake_datagram(const struct mr_rail *rail, const void *data, size_t len);
void mr_recovery_rail_changed(struct mr_rail *rail);              /* a port's state */
void mr_recovery_rail_moved(struct mr_rail *rail);                /* its LID or GID */
void mr_recovery_rail_keys(struct mr_rail *rail, uint32_t moved); /* its P_Keys (mr_verbs_handlers) */
void mr_epoch_all(void);                                          /* fabricd has other service levels */

/* ---- poll -------------------------------------------------------------------------------------------------------- */

void mr_peers_poll(void);                  /* while mr_peers.recovery_due, and now and then */
void mr_handshake_tick(void);              /* timers of handshakes */
bool mr_budget_tick(uint64_t now_ns);      /* true: a tick has passed, and packets have been counted */
void mr_keepalive_silent(uint64_t now_ns); /* while this rank waits: ask the adapters of silent peers */
void mr_silence_check(uint64_t now_ns);    /* once in a while: which ways have gone silent? */

#endif
