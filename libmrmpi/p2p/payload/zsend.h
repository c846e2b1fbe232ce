/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zero-copy sends: eager messages and prefixes whose packets are posted from the program's memory, if possible at the
 * moment. mr_request_complete waits until the adapter has delivered the packets; the receiver only has to poll. A
 * zero-copy send saves a copy and waits for a round trip, so two kinds of messages go this way:
 * - messages with many others under way at the same time
 * - answers: a message has arrived since the last send. The program then probably waits for the next answer anyway,
 *   which takes longer than the round trip. A message behind another one would wait for nothing.
 */
#ifndef MRMPI_ZSEND_H
#define MRMPI_ZSEND_H

#include "libmrmpi/p2p/choice/burst.h"
#include "libmrmpi/p2p/p2p.h"
#include "libmrmpi/channel/channel.h"

#define MR_ZSEND_LEAST 2048u /* a copy of fewer bytes takes less time than this choice */

/* The protocol of an eager message of a blocking send. Counts the sends from that memory. */
enum mr_send_protocol mr_zsend_protocol(struct mr_vc *vc, const void *buf, size_t bytes, const struct mr_type *type);
#endif
