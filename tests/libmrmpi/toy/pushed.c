/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rendezvous protocol that toy.sh adds to a copy of the library: packets, asked for by a flag of its own. Of two
 * messages the receiver takes one in this way. What it received is printed when the process ends.
 */
#include <stdio.h>

#include "libmrmpi/p2p/rndv/protocols.h"

#define TOY 64 /* flag of GO */

extern const struct mr_protocol mr_toy_protocol;

static unsigned offered, received;

static int toy_push(struct mr_rndv *r)
{
    int n;

    if (mr_packets_push(r, &n))
        mr_rndv_finish(r, MR_SUCCESS);
    return n;
}

static bool toy_send(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (!(hdr->flags & TOY))
        return false;
    if (mr_packets_asked(r, hdr, &mr_toy_protocol))
        toy_push(r);
    return true;
}

static bool toy_recv(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_hdr go = mr_rndv_header(r, MR_PKT_GO, r->total);

    if (!r->total || r->prefix.len || offered++ % 2)
        return false;
    go.flags = TOY;
    mr_rndv_begin(r, &mr_toy_protocol);
    r->packets.back_from = r->total;
    if (mr_vc_send(r->vc, &go, NULL, 0))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    return true;
}

static void toy_packet(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (hdr->kind == MR_PKT_CREDIT) {
        mr_packets_credit(r, hdr);
    } else if (hdr->kind == MR_PKT_DATA && mr_packets_take(r, hdr, payload, len)) {
        received++;
        mr_rndv_received(r, false);
    }
}

static __attribute__((destructor)) void tell(void)
{
    if (received)
        fprintf(stderr, "toy: received=%u\n", received);
}

const struct mr_protocol mr_toy_protocol = {.name = "toy",
                                            .stat = MR_STAT_BY_PACKETS,
                                            .start_recv = toy_recv,
                                            .answer = MR_PKT_GO,
                                            .start_send = toy_send,
                                            .packet = toy_packet,
                                            .progress = toy_push};
