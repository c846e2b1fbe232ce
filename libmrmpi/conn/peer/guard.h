/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Guards: reliable connections without traffic, to find out whether a silent peer computes or is gone, which unreliable
 * connections and datagrams cannot tell. An adapter answers over them without its process.
 */
#ifndef MRMPI_PEER_GUARD_H
#define MRMPI_PEER_GUARD_H

#include "libmrmpi/conn/conn.h"

/*
 * In the first handshake. make: describes ours in *out, if this peer is to have guards; req: the peer's request to
 * answer, NULL: ours. Without room for queue pairs there are none. connect: to the peer's guards in its message; guards
 * without a counterpart are freed.
 */
void mr_guard_make(struct mr_peer *p, const struct mr_cm_msg *req, struct mr_cm_msg *out);
void mr_guard_connect(struct mr_peer *p, const struct mr_cm_msg *remote, const struct mr_cm_msg *sls);
/* That rail of the peer has another LID: guards to the rail are brought up anew. */
void mr_guard_moved(const struct mr_peer *p, unsigned remote);
/* The same for a rail here, whose partitions have other indices in its port's P_Key table. */
void mr_guard_keys(const struct mr_peer *p, unsigned rail);
/* A rank on the peer's host that would have guards, and has not been met; -1: none. */
int mr_guard_missing(const struct mr_peer *p);
/*
 * Asks the guards for the peer: its own, or, without any, those of others on its host. False: there are none. *heard:
 * one has answered since.
 */
bool mr_guard_ask(const struct mr_peer *p, uint64_t now_ns, uint64_t since_ns, bool *heard);
/* At the end, or when the first handshake has failed. */
void mr_guard_free(struct mr_peer *p);
/* The rail's device is gone, and the guard there with it. */
void mr_guard_rail_lost(const struct mr_peer *p, unsigned rail);

#endif
