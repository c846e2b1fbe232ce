/* SPDX-License-Identifier: BSD-3-Clause */
/* Weak stubs of libmrmpi/base: see README.md. */
#include "libmrmpi/base/base.h"
#include "libmrmpi/base/lock.h"
#include "tests/stubs/stub.h"

uint64_t stub_clock_ns = 1;

STUB uint64_t mr_clock_ns(void)
{
    return stub_clock_ns;
}

STUB void mr_lock_pass(void)
{
}

STUB void mr_lock_wait(void)
{
}
