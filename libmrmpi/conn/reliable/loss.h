/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fate of packets that links lose, in a send window: the peer's ACKs, lost links, time-outs, and the distinction
 * between a dead link and a computing peer. Part of window.c.
 */
#ifndef MRMPI_LOSS_H
#define MRMPI_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/conn/reliable/window_path.h"

#define MR_WINDOW_BURST    4 /* packets that one time-out repeats */
#define MR_WINDOW_SILENT   5 /* time-outs of a link until it is taken as dead */
#define MR_WINDOW_DOUBTFUL 3 /* time-outs of a link until its peer is to be asked for a sign of life */
#define MR_WINDOW_ANSWERS  2 /* answers that show the peer, or time-outs after others have brought later packets */
#define MR_WINDOW_REORDER  3 /* a packet is lost when a packet posted so much later on its link is acknowledged */

/* The time-outs unless mr_rtt_init(&w->rtt, ...) sets others. */
#define MR_WINDOW_TIMEOUT_MIN_NS 5000000ull
#define MR_WINDOW_TIMEOUT_MAX_NS 1000000000ull

/* All packets on lossy links without a time were sent now. */
void mr_window_check(struct mr_window *w, uint64_t now_ns);

/*
 * The peer has all packets before cum, and bit i of sack: the packet cum + 1 + i. An impossible ACK (with packets that
 * were never sent), or an ACK too old to name any packet in the window, is ignored. now_ns: the time of its arrival, or
 * somewhat later. sample: exactly then, usable as a sample of the round-trip time. A packet of a lossy link overtaken
 * by others of the same link (MR_WINDOW_REORDER) waits again. Returns the packets given back.
 */
struct mr_kept *mr_window_acked(struct mr_window *w, uint32_t cum, uint64_t sack, uint64_t now_ns, bool sample);

/*
 * The link is gone; its unconfirmed packets wait again. Returns their number. The number of the link may be used anew,
 * for a link of either kind; confirmations of the old link must not be reported any more. Its time-outs have not made
 * later ones longer.
 */
unsigned mr_window_link_lost(struct mr_window *w, unsigned link);

/*
 * Packets on lossy links whose time is up wait again: up to MR_WINDOW_BURST, then, until the peer is heard, one at each
 * further time-out, which doubles each time. A computing peer is thus not flooded. Call it when all arrivals were
 * handled, or packets acknowledged long ago are sent again. Returns their number.
 */
unsigned mr_window_expired(struct mr_window *w, uint64_t now_ns);
/*
 * True if this lossy link brings nothing any more, although the peer is there: a number of time-outs (MR_WINDOW_SILENT)
 * in a row on it, some (MR_WINDOW_ANSWERS) of packets with or after which another link took a packet that has come, or
 * while the peer has answered as many questions asked after the first of those, by other means, with a time-out between
 * the answers. One is not enough: the peer may have gone away between two polls, or have just come back.
 */
bool mr_window_link_silent(const struct mr_window *w, unsigned link);
/* Time to ask the peer, at each time-out: the answer to the last question alone counts. */
bool mr_window_link_doubtful(const struct mr_window *w, unsigned link);
/* The peer has answered a question asked at that time, over the way of this link. */
void mr_window_answered(struct mr_window *w, unsigned link, uint64_t asked_ns);
/* When mr_window_expired has something to do; UINT64_MAX: never, for nothing is in flight on a lossy link. */
uint64_t mr_window_deadline(const struct mr_window *w);

#endif
