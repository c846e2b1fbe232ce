/* SPDX-License-Identifier: BSD-3-Clause */
/* Weak stubs of libmrmpi/net: see README.md. */
#include "libmrmpi/net/bulk/bulk.h"
#include "libmrmpi/net/view/view.h"
#include "tests/stubs/stub.h"

STUB bool mr_bulk_watch(struct mr_peer *p, bool idle, uint64_t now_ns)
{
    return false;
}

STUB void mr_view_close(void)
{
}

STUB void mr_view_open(const struct mr_launch *l)
{
}

STUB void mr_view_record_moved(const struct mr_sub *sub, uint64_t len, bool read)
{
}

STUB void mr_view_record_part(const struct mr_sub *sub, const struct mr_view_part *part)
{
}

STUB void mr_view_weights(struct mr_peer *p)
{
}
