/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guards: reliable connections that carry nothing, for what unreliable ones and datagrams cannot tell: whether a peer
 * that says nothing computes, or is gone. An adapter answers over them without its process.
 */
#ifndef MRMPI_PEER_GUARD_H
#define MRMPI_PEER_GUARD_H

#include "libmrmpi/conn/conn.h"

/*
 * In the first handshake. make: describe ours in *out, made for it if this is such a peer; req: the peer's request that
 * is answered, NULL: ours. Without room for queue pairs there are none. connect: against what the peer has said; those
 * that it has none for go.
 */
void mr_guard_make(struct mr_peer *p, const struct mr_cm_msg *req, struct mr_cm_msg *out);
void mr_guard_connect(struct mr_peer *p, const struct mr_cm_msg *remote, const struct mr_cm_msg *sls);
/* That rail of the peer has another LID: what leads there is brought up anew. */
void mr_guard_moved(const struct mr_peer *p, unsigned remote);
/* The same of a rail here, whose partitions have other indices in its port's table of P_Keys. */
void mr_guard_keys(const struct mr_peer *p, unsigned rail);
/* A rank on the peer's host that would have guards, and has not been met; -1: none. */
int mr_guard_missing(const struct mr_peer *p);
/*
 * Ask those that can tell of the peer: its own, or, if it has none, those of others on its host. False: there are none.
 * *heard: one has answered since.
 */
bool mr_guard_ask(const struct mr_peer *p, uint64_t now_ns, uint64_t since_ns, bool *heard);
/* At the end, or when the first handshake has failed. */
void mr_guard_free(struct mr_peer *p);
/* The rail's device is gone, and the guard there with it. */
void mr_guard_rail_lost(const struct mr_peer *p, unsigned rail);

#endif
