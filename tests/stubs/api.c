/* SPDX-License-Identifier: BSD-3-Clause */
/* Weak stubs of libmrmpi/api: see README.md. */
#include "libmrmpi/api/init/helper.h"
#include "tests/stubs/stub.h"

STUB int mr_helper_start(void)
{
    return 0;
}

STUB void mr_helper_stop(void)
{
}
