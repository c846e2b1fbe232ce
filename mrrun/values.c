/* SPDX-License-Identifier: BSD-3-Clause */
#include "mrrun/values.h"

#include <stdio.h>
#include <strings.h>

#include "libmrmpi/base/base.h"

unsigned long long value_unasked(void)
{
    return (unsigned long long)mr_config.eager_max * (unsigned)mr_config.eager_packets;
}

const char *value_bytes(unsigned long long n)
{
    static char text[4][32];
    static unsigned next;
    unsigned shift = 0;
    char *out = text[next++ % 4];

    while (shift < 3 && n && n % 1024 == 0) {
        n /= 1024;
        shift++;
    }
    snprintf(out, sizeof text[0], "%llu%.1s", n, &"\0KMG"[shift]);
    return out;
}

static const char *name_kinds(const struct mr_kinds *kinds, char out[MR_KINDS_TEXT])
{
    size_t used = 0;

    *out = '\0';
    for (unsigned k = 0; k < kinds->num && used < MR_KINDS_TEXT; k++)
        used += (size_t)snprintf(out + used, MR_KINDS_TEXT - used, "%s%s", k ? ", " : "", mr_kind_name(kinds->kind[k]));
    return out;
}

static bool packets_in_ring(const struct mr_kinds *kinds, bool by_ring)
{
    return by_ring && mr_kind_is(mr_kinds_bulk(mr_kinds_set(kinds)), MR_IS_RING);
}

bool value_goes_as_datagrams(const struct mr_kinds *kinds, bool by_ring)
{
    unsigned set = mr_kinds_set(kinds);

    return mr_kinds_by_rdma(set, by_ring) == MR_LINK_KINDS && !packets_in_ring(kinds, by_ring) &&
           mr_kinds_that_are(set, MR_IS_DATAGRAM) && mr_config.ud_pool && strcasecmp(mr_config.ud_rndv, "copy");
}

const char *value_without_rdma(const struct mr_kinds *kinds, bool by_ring)
{
    static char text[2 * MR_KINDS_TEXT];
    bool datagrams = value_goes_as_datagrams(kinds, by_ring);
    char names[MR_KINDS_TEXT];

    if (packets_in_ring(kinds, by_ring))
        snprintf(text, sizeof text, "in packets (MRMPI_RING_DESIGN=%s)", mr_config.ring_design);
    else
        snprintf(text, sizeof text, "%s, since there is no RDMA over %s%s",
                 datagrams ? "as datagrams into the receiver's memory (MRMPI_UD_RNDV=zcopy)" : "in packets",
                 name_kinds(kinds, names),
                 datagrams && *mr_config.rules ? "; in packets where a rule gives them a kind of link" : "");
    return text;
}
