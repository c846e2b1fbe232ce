/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Upcalls of the adapters: packets and notifications of peers, and confirmations of our packets. All are called by
 * mr_verbs_poll() or mr_rings_poll() (poll.c).
 */
#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/net/internal.h"
#include "libmrmpi/base/wire.h"

void mr_net_packet(struct mr_rail *rail, const void *data, size_t len)
{
    struct mr_hdr hdr;
    size_t header = mr_wire_get(data, &len, &hdr);
    const unsigned char *payload = (const unsigned char *)data + header;

    mr_peers.arrived++;
    if (unlikely(!header))
        mr_log(MR_LOG_WARN, "rail %u: dropped a packet of %zu bytes that is none of ours", rail->index, len);
    else if (unlikely(hdr.form || mr_peers.attentive))
        mr_rely_arrived(&hdr, payload, len - header);
    else
        mr_vc_arrived(&hdr, payload, len - header);
}

void mr_net_segment(struct mr_rail *rail, const void *data, size_t len, const uint32_t *imm)
{
    if (imm)
        data = mr_assemblies_add(&mr_net.assemblies, data, len, *imm, &len);
    if (!data)
        return;
    mr_rail_add(rail, MR_RAIL_PACKETS_RECEIVED, 1);
    mr_rail_add(rail, MR_RAIL_BYTES_RECEIVED, len);
    mr_net_packet(rail, data, len);
}

void mr_net_landed(struct mr_rail *rail, uint32_t imm)
{
    mr_bulk_landed(imm);
}

void mr_net_confirmed(struct mr_link *l, unsigned n)
{
    struct mr_peer *p = ((struct mr_sub *)l->owner)->peer;

    mr_packets_free(mr_window_confirmed(&p->out, l->index, n));
    if (unlikely(mr_window_waiting(&p->out) != 0))
        mr_peer_backlog(p);
}
