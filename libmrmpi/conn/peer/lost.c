/* SPDX-License-Identifier: BSD-3-Clause */
/* How a peer on another host is lost, and all of them are freed at the end. */
#include "libmrmpi/conn/peer/guard.h"
#include "libmrmpi/conn/peer/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/wire.h"
#include "libmrmpi/launch/launch.h"

/* ---- losing a peer ----------------------------------------------------------------------------------------------- */

void mr_peer_lost(struct mr_peer *p, int error)
{
    if (p->error)
        return;
    p->error = error ? error : -EIO;
    p->up = p->fast = false;
    for (unsigned i = 0; i < p->num_subs; i++) {
        p->own->loads[p->sub[i].parity][mr_sub_place(&p->sub[i])].up = false;
        mr_probe_drop(&p->sub[i]);
        for (unsigned l = 0; l < p->sub[i].num_links; l++)
            if (p->sub[i].link[l].state != MR_LINK_CLOSED)
                p->sub[i].link[l].ops->drain(&p->sub[i].link[l]);
    }
    mr_peer_tell_lost(p);
    p->own->failing = true;
    p->own->next_failing = mr_peers.failing;
    mr_peers.failing = p;
}

/* Each pair of rails and path once. */
static bool is_first_of_way(const struct mr_peer *p, unsigned i)
{
    const struct mr_sub *sub = &p->sub[i];

    for (unsigned k = 0; k < i; k++)
        if (p->sub[k].rail == sub->rail && p->sub[k].remote_rail == sub->remote_rail && p->sub[k].path == sub->path)
            return false;
    return !sub->spare;
}

void mr_peer_give_up(struct mr_peer *p, const char *why)
{
    char name[MR_SUB_NAME], keys[MR_SUB_PKEYS];

    mr_log(MR_LOG_ERROR, "rank %d on %s is lost: %s for %d s (MRMPI_PATIENCE)", p->rank, p->address->host, why,
           mr_config.patience);
    for (unsigned i = 0; i < p->num_subs; i++) {
        const struct mr_rail *rail = p->sub[i].rail;
        bool keyless = !rail->down && !mr_sub_pkey(&p->sub[i], 0);

        if (is_first_of_way(p, i))
            mr_log(MR_LOG_ERROR, "rank %d on %s, %s: %s%s", p->rank, p->address->host, mr_sub_name(&p->sub[i], name),
                   rail->dev->fatal ? "the device here is gone"
                   : rail->down     ? "the port here is down"
                   : keyless        ? "no partition in which both can talk is left. "
                                    : "no answer: its host, its process or a link on the way is gone",
                   keyless ? mr_sub_pkeys_text(&p->sub[i], keys) : "");
    }
    mr_peer_lost(p, -ENETDOWN);
}

static bool peer_has_drained(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        for (unsigned l = 0; l < p->sub[i].num_links; l++)
            if (p->sub[i].link[l].state != MR_LINK_CLOSED)
                return false;
    return !p->num_pending;
}

static struct mr_kept *take_packets(struct mr_peer *p)
{
    mr_channel_waiting -= mr_window_waiting(&p->out);
    return mr_window_free(&p->out);
}

static void drop_packets(struct mr_peer *p)
{
    mr_packets_free(take_packets(p));
}

/* Of a guest that is reached by TCP from now on. */
static void hand_over_packets(struct mr_peer *p)
{
    struct mr_kept *all = take_packets(p);

    for (struct mr_kept *k = all; k; k = k->next) {
        struct mr_packet *packet = (struct mr_packet *)k;
        size_t size = packet->size, header;
        struct mr_hdr hdr;

        mr_packet_settle(packet);
        mr_wire_dress(packet->data, 0);
        header = mr_wire_get(packet->data, &size, &hdr);
        mr_stream_send_again(p->vc, &hdr, packet->data + header, size - header);
    }
    mr_packets_free(all);
}

/* Lists may still have the peer: it is freed later (mr_retired_free), or at the end. */
static void retire_peer(struct mr_peer *p)
{
    mr_peers.peer[p->rank] = NULL;
    p->vc->data = NULL;
    p->own->next_failing = mr_peers_own.retired;
    mr_peers_own.retired = p;
}

/* Large messages end with errors, and begin again as packets if the guest is not lost. */
static void report_guest(struct mr_peer *p)
{
    struct mr_vc *vc = p->vc;
    enum mr_unrailed how = mr_stream_unrailed(vc, p->error);

    if (how == MR_UNRAILED_GOES_ON)
        hand_over_packets(p);
    else
        drop_packets(p);
    mr_peer_tell_ended(p);
    if (how == MR_UNRAILED_LOST)
        mr_stream_lose(vc, p->error);
    retire_peer(p);
}

/* Reported when all posts have come back: no adapter writes into the program's buffers afterwards. */
int mr_peers_report(void)
{
    struct mr_peer **at = &mr_peers.failing, *p;
    int n = 0;

    while ((p = *at)) {
        if (!peer_has_drained(p)) {
            at = &p->own->next_failing;
            continue;
        }
        *at = p->own->next_failing;
        p->own->failing = false;
        if (p->guest_run) {
            report_guest(p);
        } else {
            drop_packets(p);
            mr_peer_tell_ended(p);
            mr_vc_failed(p->rank, p->error);
        }
        n++;
    }
    return n;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static void free_whole_peer(struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++) {
        mr_probe_free(&p->sub[i]);
        for (unsigned l = 0; l < p->sub[i].num_links; l++)
            if (p->sub[i].link[l].state != MR_LINK_CLOSED)
                p->sub[i].link[l].ops->close(&p->sub[i].link[l]);
        free(p->sub[i].link);
    }
    drop_packets(p);
    mr_guard_free(p);
    mr_cm_free(&p->cm);
    mr_address_drop(p);
    free(p->steer);
    free(p->granted);
    mr_peer_tell_freed(p);
    free(p->sub);
    free(p->small);
    free(p->own->loads[0]);
    free(p);
}

static bool has_probes(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (p->sub[i].own->probe)
            return true;
    return false;
}

bool mr_retired_free(int number, bool (*listed)(const struct mr_peer *p))
{
    struct mr_peer **at = &mr_peers_own.retired, *p;
    bool all = true;

    while ((p = *at)) {
        bool of_it = p->rank == number;

        if (!of_it || p->backlogged || p->relying || p->own->fetching || has_probes(p) || listed(p)) {
            all &= !of_it;
            at = &p->own->next_failing;
            continue;
        }
        *at = p->own->next_failing;
        free_whole_peer(p);
    }
    return all;
}

void mr_peers_free(void)
{
    for (int r = 0; mr_peers.peer && r < mr_peers_end(); r++)
        if (mr_peers.peer[r])
            free_whole_peer(mr_peers.peer[r]);
    while (mr_peers_own.retired) {
        struct mr_peer *p = mr_peers_own.retired;

        mr_peers_own.retired = p->own->next_failing;
        free_whole_peer(p);
    }
    free(mr_peers.peer);
    mr_peers.peer = NULL;
    memset(&mr_peers_own, 0, sizeof mr_peers_own);
}
