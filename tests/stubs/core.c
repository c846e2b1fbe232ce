/* SPDX-License-Identifier: BSD-3-Clause */
/* Weak stubs of libmrmpi/core: see README.md. */
#include "libmrmpi/core/core.h"
#include "tests/stubs/stub.h"

STUB void mr_comm_finalize(void)
{
}

STUB int mr_comm_init(const struct mr_launch *l)
{
    return 0;
}

STUB void mr_comm_put(struct mr_comm *c)
{
}

STUB bool mr_guest_is_named(int number)
{
    return false;
}

STUB void mr_type_f90_finalize(void)
{
}
