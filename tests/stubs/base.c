/* SPDX-License-Identifier: BSD-3-Clause */
/* Weak stubs of libmrmpi/base: see README.md. */
#include "libmrmpi/base/base.h"
#include "libmrmpi/base/lock.h"
#include "tests/stubs/stub.h"

STUB uint64_t mr_clock_ns(void)
{
    return 1;
}

STUB void mr_lock_pass(void)
{
}

STUB void mr_lock_wait(void)
{
}
