/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of other jobs (guests, launch.h): their acquaintance, packets at doors, which lead from one job to another,
 * and the end of this process, which does not meet guests as it meets the ranks of its job. Guests that have ended are
 * forgotten when the program connects to others, or disconnects: then no other function is using one.
 */
#include <errno.h>

#include "libmrmpi/launch/launch.h"
#include "libmrmpi/net/net.h"
#include "libmrmpi/p2p/fault/fault.h"
#include "libmrmpi/p2p/internal.h"

int mr_guest_open(struct mr_card *ours)
{
    return mr_stream_open(ours);
}

int mr_guest_meet(const struct mr_card *card)
{
    struct mr_card ours;
    int number = mr_vc_meet(card);

    if (number >= mr_guest_first() && !mr_stream_open(&ours) && !mr_cards_share_host(card, &ours) &&
        !mr_vc_open_far()) {
        mr_pt2pt.burst.devices = mr_net_devices();
        mr_stream_offer_rails();
    }
    return number;
}

/* Connections to so few processes are opened at once: their ends are noticed by all. */
#define GREET_MOST 32

void mr_guests_greet(const struct mr_group *g)
{
    for (int i = 0; g->size <= GREET_MOST && i < g->size; i++)
        if (g->world[i] >= mr_guest_first())
            mr_vc_get_peer(g->world[i]);
}

/* Of guests that no communicator names any more. */
void mr_guests_leave(void)
{
    for (int number = mr_guest_first(); number < mr_guest_end(); number++) {
        struct mr_vc *vc = mr_vc_known_peer(number);
        bool named = false;

        if (!vc || mr_vc_lost(vc))
            continue;
        for (const struct mr_comm *c = mr_comms; c && !named; c = c->next_live)
            named = c->rank != MR_RANK_OF_SOURCE && mr_comm_is_mixed(c) &&
                    (mr_group_find(c->group, number) != MR_UNDEFINED ||
                     mr_group_find(mr_comm_peers(c), number) != MR_UNDEFINED);
        if (!named)
            mr_stream_leave(vc);
    }
}

/* ---- guests that have ended -------------------------------------------------------------------------------------- */

struct owner_search {
    const struct mr_vc *vc;
    bool found;
};

static void is_message_of(struct mr_match_entry *e, void *arg)
{
    struct owner_search *s = arg;

    s->found |= ((const struct mr_message *)e->owner)->vc == s->vc;
}

/* Something here is still the guest's: a transfer, a message, or a part of one. */
static bool has_traces(struct mr_vc *vc)
{
    const struct mr_flow *f = mr_flow_of(vc);
    struct owner_search kept = {.vc = vc};

    if (f->held || f->listed || f->coming || vc->in.head || mr_rndv_knows(vc))
        return true;
    if (!mr_match_empty(&mr_pt2pt.unexpected))
        mr_match_each(&mr_pt2pt.unexpected, is_message_of, &kept);
    return kept.found;
}

/* After a failure packets of the process may still be under way on rails: they have its number. */
static bool may_send_late(int number)
{
    const struct mr_vc *vc = mr_vc_known_peer(number);
    struct mr_card ours;

    return vc && mr_vc_lost(vc) && mr_vc_far() && !mr_stream_open(&ours) &&
           !mr_cards_share_host(mr_guest_card(number), &ours);
}

static void forget_guest(int number)
{
    struct mr_vc *vc = mr_vc_known_peer(number);
    bool late = may_send_late(number);

    mr_lost_forget(number);
    mr_agree_forget(number);
    if (vc && mr_pt2pt.ended == vc)
        mr_pt2pt.ended = mr_vc_get_peer(mr_vc_nowhere(mr_launch_info()->size)); /* receives ask on */
    if (vc) {
        mr_rndv_forget(vc);
        mr_stream_forget(vc);
    }
    mr_vc_forget(number);
    mr_guest_forget(number, !late);
}

/* Ways that were closed are freed in any case. */
static void look_at_guest(int number)
{
    struct mr_vc *vc = mr_vc_known_peer(number);
    bool named = mr_guest_is_named(number);

    if (mr_guest_is_held(number) || (vc && has_traces(vc)) || (named && vc && mr_vc_lost(vc)))
        return;
    if (vc && mr_vc_far() && !mr_vc_far()->forget(number))
        return;
    if (!named && (!vc || mr_stream_has_left(vc)))
        forget_guest(number);
}

void mr_guests_forget(void)
{
    for (int number = mr_guest_first(); number < mr_guest_end(); number++)
        if (mr_guest_card(number))
            look_at_guest(number);
}

bool mr_process_lost(int number)
{
    return mr_vc_lost(mr_vc_get_peer(number));
}

/* ---- doors ------------------------------------------------------------------------------------------------------- */

int mr_door_send(int number, enum mr_door_word word, uint64_t door, uint64_t ask)
{
    struct mr_hdr hdr = {.kind = MR_PKT_DOOR, .tag = (int32_t)word, .sreq = ask, .rreq = door};

    return mr_vc_send(mr_vc_get_peer(number), &hdr, NULL, 0);
}

void mr_door_packet(struct mr_vc *vc, const struct mr_hdr *hdr)
{
    int from = mr_vc_world_rank(vc);

    if (mr_p2p_up.door)
        mr_p2p_up.door(from, (enum mr_door_word)hdr->tag, hdr->rreq, hdr->sreq);
    else if (hdr->tag == MR_DOOR_ASK)
        mr_door_send(from, MR_DOOR_CLOSED, hdr->rreq, hdr->sreq);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* No offer of ours waits for a guest: the program may have freed the request. */
static bool guests_have_all(void *arg)
{
    for (uint32_t i = 0; mr_rndvs.pending && i < mr_rndvs.used; i++) {
        const struct mr_rndv *r = mr_rndvs.table[i];

        if (mr_rndv_is_unmet(r) && mr_vc_world_rank(r->vc) >= mr_guest_first() && !mr_vc_lost(r->vc))
            return false;
    }
    return true;
}

void mr_guests_part(void)
{
    for (int number = mr_guest_first(); number < mr_guest_end(); number++) {
        struct mr_vc *vc = mr_vc_known_peer(number);
        struct mr_hdr hdr = {.kind = MR_PKT_PARTS};

        if (vc && !mr_vc_lost(vc) && mr_vc_is_used(vc) && !mr_flow_of(vc)->told)
            mr_vc_send(vc, &hdr, NULL, 0);
    }
    mr_progress_until(guests_have_all, NULL);
}
