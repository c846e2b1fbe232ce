/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inquiries: the launcher asks the ranks of a job without progress for the calls that they wait in. An inquiry costs
 * nothing until then.
 *
 * MRMPI_INQUIRY names a directory of the launcher's. The file MR_INQUIRY_ASKED there holds a number; the launcher adds
 * one to ask. A rank that waits in an MPI function, or enters one, then writes MR_INQUIRY_ANSWER, as a whole or not at
 * all. A computing rank does not answer, which is an answer too.
 *
 * An answer is text, a fact in each line, its words divided by tabs; words from programs (names) have no control
 * characters:
 *     asked N                                         the answered number
 *     function NAME WAITED_MS                         the MPI function; MPI_? if the stack does not show it
 *     comm CONTEXT SIZE COLLECTIVES NAME RANKS        a communicator: the number of collective operations begun there,
 *                                                     the world ranks of the members, as 0-3,7
 *     recv CONTEXT WORLD RANK TAG BYTES               a receive without a message; * is any
 *     send CONTEXT WORLD RANK TAG BYTES STATE         a send without a receive, or waiting for room
 *     message CONTEXT WORLD RANK TAG BYTES            an arrived message without a receive
 *     window NAME TEXT                                open epochs
 *     more KIND COUNT                                 so many more of the kind, not listed
 * CONTEXT is odd for the messages of collectives.
 */
#ifndef MRMPI_API_INQUIRY_H
#define MRMPI_API_INQUIRY_H

#define MR_INQUIRY_ASKED  "%s/asked"
#define MR_INQUIRY_ANSWER "%s/rank.%d" /* directory, world rank */

enum { MR_INQUIRY_LISTED = 8 }; /* of each kind */

#endif
