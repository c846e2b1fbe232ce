/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the launcher of a host tells its ranks through a file that they map: the ends of ranks (mrrun --recover), sooner
 * than PMIx does, whose events need a thread of each rank; and inquiries: the launcher asks the ranks of a job without
 * progress for the calls that they wait in. Both cost nothing until then.
 *
 * MRMPI_INQUIRY names a directory of the launcher's. The file MR_INQUIRY_ASKED there is a struct mr_inquiry_board. The
 * launcher adds one to `asked` to ask, notes a rank's end in `ended`, and adds one to `news` afterwards. A rank that
 * waits in an MPI function, or enters one, then writes MR_INQUIRY_ANSWER, as a whole or not at all. A computing rank
 * does not answer, which is an answer too.
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

#include <stdint.h>

/* The rest of the file: room for each rank of the job. */
struct mr_inquiry_board {
    uint32_t news;      /* waiting ranks look whether this has changed */
    uint32_t asked;     /* the number of the latest inquiry */
    uint32_t num_ended; /* stored after the rank */
    int32_t ended[];    /* world ranks, in their order */
};

#define MR_INQUIRY_ASKED  "%s/asked"
#define MR_INQUIRY_ANSWER "%s/rank.%d" /* directory, world rank */

enum { MR_INQUIRY_LISTED = 8 }; /* of each kind */

#endif
