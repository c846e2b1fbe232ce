/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of the room. */
#include "libmrmpi/p2p/p2p.h"

#include "libmrmpi/p2p/derived/internal.h"

void mr_derived_finalize(void)
{
    mr_bsend_finalize();
    mr_part_finalize();
}
