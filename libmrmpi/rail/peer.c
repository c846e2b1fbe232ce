/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers on other hosts: made on demand, told of ports that change, lost when nothing leads to them any more. */
#include "libmrmpi/rail/net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/rail/view.h"

#define WINDOW 4096 /* packets to one peer that may be under way */

struct mr_peer *mr_peer_get(int rank)
{
    struct mr_peer *p = mr_net.peer[rank];

    if (p)
        return p;
    p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->rank = rank;
    p->card = &mr_card_none;
    p->vc = mr_channel_up.get(rank);
    mr_window_init(&p->out, WINDOW);
    mr_wireup_init(p);
    mr_net.peer[rank] = p;
    p->vc->data = p;
    return p;
}

/* ---- losing a peer ----------------------------------------------------------------------------------------------- */

void mr_peer_lost(struct mr_peer *p, int error)
{
    if (p->error)
        return;
    p->error = error ? error : -EIO;
    mr_budget_lost(p);
    p->up = false;
    for (unsigned i = 0; i < p->num_subs; i++) {
        p->loads[p->sub[i].side][mr_sub_place(&p->sub[i])].up = false;
        mr_lifeline_drop(&p->sub[i]);
        for (unsigned l = 0; l < p->sub[i].num_links; l++)
            if (p->sub[i].link[l].state != MR_LINK_CLOSED)
                p->sub[i].link[l].ops->drain(&p->sub[i].link[l]);
    }
    mr_view_forget(p);
    mr_zcopy_lost(p);
    if (p->isolated_ns)
        mr_net.num_isolated--;
    p->isolated_ns = 0;
    p->failing = true;
    p->next_failing = mr_net.failing;
    mr_net.failing = p;
}

static bool has_drained(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        for (unsigned l = 0; l < p->sub[i].num_links; l++)
            if (p->sub[i].link[l].state != MR_LINK_CLOSED)
                return false;
    return !p->num_intakes;
}

static void drop_packets(struct mr_peer *p)
{
    mr_channel_waiting -= mr_window_waiting(&p->out);
    mr_packets_free(mr_window_free(&p->out));
}

/* Said upwards when all that was under way has come back: nobody writes into the program's buffers after that. */
int mr_peers_report(void)
{
    struct mr_peer **at = &mr_net.failing, *p;
    int n = 0;

    while ((p = *at)) {
        if (!has_drained(p)) {
            at = &p->next_failing;
            continue;
        }
        *at = p->next_failing;
        p->failing = false;
        drop_packets(p);
        mr_bulk_abandon(p, p->error);
        mr_channel_up.failed(p->rank, p->error);
        n++;
    }
    return n;
}

/* ---- ports ------------------------------------------------------------------------------------------------------- */

static void sub_rail_changed(struct mr_sub *sub)
{
    if (sub->rail->down || sub->rail->dev->fatal) {
        mr_sub_break(sub);
        return;
    }
    mr_cm_resume(&sub->peer->cm, mr_clock_ns()); /* it may be opened, ... */
    mr_mend(sub->peer);                          /* ... or opened again */
}

void mr_peers_rail_changed(struct mr_rail *rail)
{
    mr_view_port(rail);
    for (int r = 0; r < mr_net.launch->size; r++) {
        struct mr_peer *p = mr_net.peer[r];

        for (unsigned i = 0; p && !p->error && i < p->num_subs; i++)
            if (p->sub[i].rail == rail)
                sub_rail_changed(&p->sub[i]);
    }
}

/* What peers know of it leads nowhere: its subchannels are opened anew, and the request says where it is now. */
void mr_peers_rail_moved(struct mr_rail *rail)
{
    for (int r = 0; r < mr_net.launch->size; r++) {
        struct mr_peer *p = mr_net.peer[r];

        for (unsigned i = 0; p && !p->error && i < p->num_subs; i++)
            if (p->sub[i].rail == rail)
                mr_sub_break(&p->sub[i]);
    }
}

/* ---- the end ------------------------------------------------------------------------------------------------------
 */

void mr_peers_free(void)
{
    for (int r = 0; mr_net.peer && r < mr_net.launch->size; r++) {
        struct mr_peer *p = mr_net.peer[r];

        if (!p)
            continue;
        for (unsigned i = 0; i < p->num_subs; i++) {
            mr_lifeline_free(&p->sub[i]);
            for (unsigned l = 0; l < p->sub[i].num_links; l++)
                if (p->sub[i].link[l].state != MR_LINK_CLOSED)
                    p->sub[i].link[l].ops->close(&p->sub[i].link[l]);
            free(p->sub[i].link);
        }
        drop_packets(p);
        mr_cm_free(&p->cm);
        mr_card_drop(p);
        free(p->steer);
        free(p->granted);
        free(p->pace);
        free(p->adapt);
        free(p->feedback);
        mr_view_forget(p);
        mr_zcopy_free(p);
        free(p->sub);
        free(p->loads[0]);
        free(p->packet_turn.due);
        free(p);
    }
    free(mr_net.peer);
    mr_net.peer = NULL;
}
