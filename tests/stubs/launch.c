/* SPDX-License-Identifier: BSD-3-Clause */
/* Weak stubs of libmrmpi/launch: see README.md. */
#include "libmrmpi/launch/launch.h"
#include "tests/stubs/stub.h"

STUB int mr_launch_failed(void)
{
    return 0;
}

STUB int mr_launch_fence(void)
{
    return 0;
}
