/* SPDX-License-Identifier: BSD-3-Clause */
/* Channel stream: rails to guests on other hosts. */
#include "libmrmpi/channel/stream_peer.h"

#include <stdlib.h>
#include <string.h>

#define STREAM_AHEAD (MR_REORDER_AHEAD_MAX / 2) /* packets under way here when others begin to go over rails */

/* Of two processes the first by job and rank offers, and the other answers by an offer of its own. */
static bool offers_first(const struct stream_peer *p)
{
    return mr_guest_compare(mr_launch_info()->rank, mr_stream_guest_of(p)) < 0;
}

static bool say_offer(struct stream_peer *p, const struct mr_guest_rails *far)
{
    uint8_t *room = malloc(MR_OFFER_MAX);
    bool said = room && mr_stream_say(p, FRAME_RAILS, 0, room, far->offer(mr_stream_guest_of(p), p->run, room));

    free(room);
    return said;
}

static bool make_run(struct stream_peer *p)
{
    p->run = 0;
    return !mr_guest_random(&p->run, sizeof p->run) && p->run;
}

/* The guest may have left before it has read the last offer: it is repeated with each connection. */
void mr_stream_offer_rails_to(struct stream_peer *p)
{
    const struct mr_guest_rails *far = mr_vc_far();

    if (!far || p->barred || p->rails > RAILS_OFFERED ||
        mr_cards_share_host(&mr_stream.card, mr_guest_card(mr_stream_guest_of(p))) || !offers_first(p) ||
        (p->rails == RAILS_NONE && !make_run(p)))
        return;
    if (say_offer(p, far))
        p->rails = RAILS_OFFERED;
}

static void keep_offer(struct stream_peer *p, const uint8_t *offer, uint32_t len)
{
    free(p->offer);
    p->offer = malloc(len ? len : 1);
    p->offer_len = p->offer ? len : 0;
    if (p->offer)
        memcpy(p->offer, offer, len);
}

void mr_stream_begin_closing(struct stream_peer *p)
{
    if (p->rails == RAILS_USED)
        mr_vc_change(p->vc, &mr_channel_stream);
    if (p->rails == RAILS_OFFERED)
        p->rails = RAILS_NONE;
    if (p->rails < RAILS_MET || p->rails > RAILS_USED)
        return;
    p->rails = RAILS_CLOSING;
    mr_stream.closing = true;
}

void mr_stream_take_offer(struct stream_peer *p, const uint8_t *offer, uint32_t len)
{
    const struct mr_guest_rails *far = mr_vc_far();
    bool first = offers_first(p);
    int err;

    if (p->barred || p->rails != (first ? RAILS_OFFERED : RAILS_NONE) || p->fd < 0 || p->leaving || p->failed)
        return;
    if (!far) {
        keep_offer(p, offer, len);
        return;
    }
    err = first || make_run(p) ? far->meet(p->vc, p->run, offer, len, first) : -EIO;
    if (err) {
        mr_log(MR_LOG_INFO, "process %u of another job: its rails are not used: %s",
               mr_guest_card(mr_stream_guest_of(p))->rank, strerror(-err));
        return;
    }
    p->rails = RAILS_MET;
    p->off_heard = p->leaves = false;
    if (!first && !say_offer(p, far))
        mr_stream_begin_closing(p);
}

void mr_stream_offer_rails(void)
{
    for (struct stream_peer *p = mr_stream.peers; p; p = p->next) {
        uint8_t *offer = p->offer;

        p->offer = NULL;
        if (offer)
            mr_stream_take_offer(p, offer, p->offer_len);
        else
            mr_stream_offer_rails_to(p);
        free(offer);
    }
}

void mr_stream_railed(struct mr_vc *vc)
{
    struct stream_peer *p = vc->stream;

    if (p->rails != RAILS_MET)
        return;
    p->rails = RAILS_OPEN;
    mr_stream_say(p, FRAME_ASK, 0, NULL, 0);
}

void mr_stream_ask(struct mr_vc *vc)
{
    struct stream_peer *p = vc->stream;

    p->answers = false;
    p->asked = p->asked || mr_stream_say(p, FRAME_ASK, 0, NULL, 0);
}

bool mr_stream_answers(const struct mr_vc *vc)
{
    return ((const struct stream_peer *)vc->stream)->answers;
}

/* So many packets have been delivered: the others can wait there for their turn. */
void mr_stream_take_count(struct stream_peer *p, uint32_t count)
{
    p->answers = p->asked;
    p->asked = false;
    if (p->rails != RAILS_OPEN)
        return;
    if (mr_vc_packets(p->vc) - count > STREAM_AHEAD) {
        mr_stream_say(p, FRAME_ASK, 0, NULL, 0);
        return;
    }
    p->rails = RAILS_USED;
    mr_vc_far()->carry(p->vc);
    mr_log(MR_LOG_DEBUG, "process %u of another job: rails carry its packets",
           mr_guest_card(mr_stream_guest_of(p))->rank);
}

void mr_stream_end_rails(struct stream_peer *p)
{
    if (p->rails < RAILS_MET || p->rails >= RAILS_ENDING)
        return;
    if (p->rails == RAILS_USED)
        mr_vc_change(p->vc, &mr_channel_stream);
    p->rails = RAILS_ENDING;
    mr_stream.closing = true;
}

/* Packets that are confirmed may still be in queues of the adapter here: they are taken first. */
static void close_rails(struct stream_peer *p)
{
    const struct mr_guest_rails *far = mr_vc_far();

    if (p->rails == RAILS_CLOSING && far->idle(p->vc)) {
        mr_stream_say(p, FRAME_OFF, 0, NULL, 0);
        p->rails = RAILS_OFF;
        if (p->leaves)
            mr_stream_leave_now(p);
        p->leaves = false;
    }
    if ((p->rails == RAILS_ENDING || (p->rails == RAILS_OFF && p->off_heard)) && mr_channel_idle) {
        p->rails = RAILS_PARTING;
        far->part(p->vc, -ECONNRESET);
    }
}

void mr_stream_close_all_rails(void)
{
    mr_stream.closing = false;
    for (struct stream_peer *p = mr_stream.peers; p; p = p->next) {
        close_rails(p);
        if (p->rails == RAILS_NONE && p->leaves && !p->ring.first) {
            p->leaves = false;
            if (p->fd >= 0)
                mr_stream_leave_now(p);
        }
        mr_stream.closing |= p->leaves || (p->rails >= RAILS_CLOSING && p->rails <= RAILS_ENDING);
    }
}

/* The guest's end of the way is closed. */
void mr_stream_hear_of_loss(struct stream_peer *p)
{
    p->barred = true;
    if (p->rails < RAILS_MET || p->rails >= RAILS_ENDING)
        return;
    p->pauses = true;
    mr_vc_far()->part(p->vc, -ENETDOWN);
}
