/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inquiries: the launcher asks what the ranks of a job that makes no progress wait for. It costs nothing until then.
 *
 * MRMPI_INQUIRY names a directory of the launcher's. The file MR_INQUIRY_ASKED in it holds a number; the launcher adds
 * one to it to ask. A rank that waits in an MPI function, or comes to, then writes MR_INQUIRY_ANSWER, whole or not at
 * all. A rank that computes does not answer: that is an answer, too.
 *
 * An answer is text, a fact in each line, its words divided by tabs; words that come from programs (names) have no
 * control characters:
 *   asked N                                         the number that it answers
 *   function NAME WAITED_MS                         the MPI function; MPI_? if the stack does not show it
 *   comm CONTEXT SIZE COLLECTIVES NAME RANKS        a communicator: how many collective operations it has begun on it,
 *                                                   the world ranks of those who take part, as 0-3,7
 *   recv CONTEXT WORLD RANK TAG BYTES               a receive that no message has met; * is any
 *   send CONTEXT WORLD RANK TAG BYTES STATE         a send that no receive has met, or that waits for room
 *   message CONTEXT WORLD RANK TAG BYTES            a message that has come and that no receive takes
 *   window NAME TEXT                                epochs that are open
 *   more KIND COUNT                                 so many of that kind are not listed
 * CONTEXT is odd for the messages of collectives.
 */
#ifndef MRMPI_API_INQUIRY_H
#define MRMPI_API_INQUIRY_H

#define MR_INQUIRY_ASKED  "%s/asked"
#define MR_INQUIRY_ANSWER "%s/rank.%d" /* directory, world rank */

enum { MR_INQUIRY_LISTED = 8 }; /* of each kind */

#endif
