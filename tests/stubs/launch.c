/* SPDX-License-Identifier: BSD-3-Clause */
/* Weak stubs of libmrmpi/launch: see README.md. */
#include <stddef.h>

#include "libmrmpi/launch/launch.h"
#include "tests/stubs/stub.h"

STUB int mr_launch_failed(void)
{
    return 0;
}

STUB const struct mr_card *mr_guest_card(int number)
{
    return NULL;
}

STUB bool mr_guest_is_held(int number)
{
    return false;
}

STUB void mr_guest_forget(int number, bool again)
{
}

STUB int mr_guest_compare(int a, int b)
{
    return a < b ? -1 : a > b;
}

STUB uint64_t mr_guest_name(int number)
{
    return (uint64_t)number;
}

STUB int mr_launch_fence(void)
{
    return 0;
}
