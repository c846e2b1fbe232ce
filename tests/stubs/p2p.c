/* SPDX-License-Identifier: BSD-3-Clause */
/* Weak stubs of libmrmpi/p2p: see README.md. */
#include "libmrmpi/p2p/p2p.h"
#include "tests/stubs/stub.h"

STUB void mr_derived_finalize(void)
{
}

STUB void mr_pt2pt_end_together(void)
{
}
