/* SPDX-License-Identifier: BSD-3-Clause */
/* Weak stubs of libmrmpi/coll: see README.md. */
#include "libmrmpi/coll/coll.h"
#include "tests/stubs/stub.h"

STUB void mr_making_finalize(void)
{
}

STUB void mr_coll_finalize(void)
{
}

STUB int mr_coll_init(void)
{
    return 0;
}
