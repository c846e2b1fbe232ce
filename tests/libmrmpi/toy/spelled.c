/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A way of bytes into packets that toy.sh adds to a copy of the library: byte by byte. The number of packets is printed
 * when the process ends.
 */
#include <stdio.h>

#include "libmrmpi/p2p/payload/payload.h"
#include "libmrmpi/p2p/request/state.h"

static unsigned spelled;

static void spell(void *to, size_t len, const void *from)
{
    volatile char *at = to;

    for (size_t i = 0; i < len; i++)
        at[i] = ((const char *)from)[i];
}

int mr_payload_spelled(const struct mr_payload *p, struct mr_hdr *hdr, size_t at, size_t len)
{
    spelled++;
    return mr_vc_send_made(p->vc, hdr, len, mr_pt2pt.scratch, spell, (const char *)mr_data_at(p->buf, p->type) + at);
}

static __attribute__((destructor)) void tell_spelled(void)
{
    if (spelled)
        fprintf(stderr, "toy: spelled=%u\n", spelled);
}
