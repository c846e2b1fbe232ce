/* SPDX-License-Identifier: BSD-3-Clause */
/* Weak stubs of libmrmpi/io: see README.md. */
#include "libmrmpi/io/io.h"
#include "tests/stubs/stub.h"

STUB void mr_io_finalize(void)
{
}
