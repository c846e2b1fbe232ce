/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Eager messages and prefixes that are not copied by their sender: their packets are sent from the program's memory,
 * and the send is complete when the adapter has delivered them, which takes no more of the receiver than that it polls.
 * So it spares a copy and waits for a round trip. So messages go of which many are under way at a time, and of the
 * others those that are answers: something has come since the last one. Then their program is likely to wait for the
 * next answer, which takes longer; what follows another message, and is waited for, would wait for nothing.
 */
#ifndef MRMPI_RNDV_ZSEND_H
#define MRMPI_RNDV_ZSEND_H

#include "libmrmpi/p2p/choice/burst.h"
#include "libmrmpi/p2p/request/request.h"
#include "libmrmpi/channel/channel.h"

#define MR_ZSEND_LEAST 2048u /* what is shorter is copied sooner than it is asked for here */

/* How a blocking send's message goes that is eager. Counts what is sent from that memory. */
enum mr_send_protocol mr_zsend_protocol(struct mr_vc *vc, const void *buf, size_t bytes, const struct mr_type *type);
/* As mr_vc_send, from req's memory if that can be now: then mr_request_complete(req) takes effect when it has left. */
int mr_zsend(struct mr_request *req, struct mr_vc *vc, struct mr_hdr *hdr, const void *payload, size_t len);
#endif
