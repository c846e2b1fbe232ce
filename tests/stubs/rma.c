/* SPDX-License-Identifier: BSD-3-Clause */
/* Weak stubs of libmrmpi/rma: see README.md. */
#include "libmrmpi/rma/rma.h"
#include "tests/stubs/stub.h"

STUB void mr_rma_finalize(void)
{
}

STUB void mr_rma_init(void)
{
}

STUB void mr_win_put(struct mr_win *w)
{
}
