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
    bool said = room && mr_stream_say(p, FRAME_RAILS, 0, room, far->offer(mr_stream_guest_of(p), p->way.run, room));

    free(room);
    return said;
}

static bool make_run(struct stream_peer *p)
{
    p->way.run = 0;
    return !mr_guest_random(&p->way.run, sizeof p->way.run) && p->way.run;
}

/* The guest may have left before it has read the last offer: it is repeated with each connection. */
void mr_stream_offer_rails_to(struct stream_peer *p)
{
    const struct mr_guest_rails *far = mr_vc_far();

    if (!far || p->way.barred || p->way.state > RAILS_OFFERED ||
        mr_cards_share_host(&mr_stream.card, mr_guest_card(mr_stream_guest_of(p))) || !offers_first(p) ||
        (p->way.state == RAILS_NONE && !make_run(p)))
        return;
    if (say_offer(p, far))
        p->way.state = RAILS_OFFERED;
}

static void keep_offer(struct stream_peer *p, const uint8_t *offer, uint32_t len)
{
    free(p->way.offer);
    p->way.offer = malloc(len ? len : 1);
    p->way.offer_len = p->way.offer ? len : 0;
    if (p->way.offer)
        memcpy(p->way.offer, offer, len);
}

void mr_stream_begin_closing(struct stream_peer *p)
{
    if (p->way.state == RAILS_USED)
        mr_vc_change(p->vc, &mr_channel_stream);
    if (p->way.state == RAILS_OFFERED)
        p->way.state = RAILS_NONE;
    if (p->way.state < RAILS_MET || p->way.state > RAILS_USED)
        return;
    p->way.state = RAILS_CLOSING;
    mr_stream.closing = true;
}

void mr_stream_hear_off(struct stream_peer *p)
{
    p->way.off_heard = true;
    mr_stream_begin_closing(p);
    mr_stream.closing = true;
}

bool mr_stream_leave_later(struct stream_peer *p)
{
    mr_stream_begin_closing(p);
    p->way.leaves = p->way.state == RAILS_CLOSING || p->ring.first;
    mr_stream.closing |= p->way.leaves;
    return p->way.leaves;
}

void mr_stream_leave_still(struct stream_peer *p)
{
    p->way.leaves = true;
}

void mr_stream_take_offer(struct stream_peer *p, const uint8_t *offer, uint32_t len)
{
    const struct mr_guest_rails *far = mr_vc_far();
    bool first = offers_first(p);
    int err;

    if (p->way.barred || p->way.state != (first ? RAILS_OFFERED : RAILS_NONE) || p->out.fd < 0 || p->out.leaving ||
        p->failed)
        return;
    if (!far) {
        keep_offer(p, offer, len);
        return;
    }
    err = first || make_run(p) ? far->meet(p->vc, p->way.run, offer, len, first) : -EIO;
    if (err) {
        mr_log(MR_LOG_INFO, "process %u of another job: its rails are not used: %s",
               mr_guest_card(mr_stream_guest_of(p))->rank, strerror(-err));
        return;
    }
    p->way.state = RAILS_MET;
    p->way.off_heard = p->way.leaves = false;
    if (!first && !say_offer(p, far))
        mr_stream_begin_closing(p);
}

void mr_stream_offer_rails(void)
{
    for (struct stream_peer *p = mr_stream.peers; p; p = p->next) {
        uint8_t *offer = p->way.offer;

        p->way.offer = NULL;
        if (offer)
            mr_stream_take_offer(p, offer, p->way.offer_len);
        else
            mr_stream_offer_rails_to(p);
        free(offer);
    }
}

void mr_stream_railed(struct mr_vc *vc)
{
    struct stream_peer *p = vc->stream;

    if (p->way.state != RAILS_MET)
        return;
    p->way.state = RAILS_OPEN;
    mr_stream_say(p, FRAME_ASK, 0, NULL, 0);
}

void mr_stream_ask(struct mr_vc *vc)
{
    struct stream_peer *p = vc->stream;

    p->way.answers = false;
    p->way.asked = p->way.asked || mr_stream_say(p, FRAME_ASK, 0, NULL, 0);
}

bool mr_stream_answers(const struct mr_vc *vc)
{
    return ((const struct stream_peer *)vc->stream)->way.answers;
}

/* So many packets have been delivered: the others can wait there for their turn. */
void mr_stream_take_count(struct stream_peer *p, uint32_t count)
{
    p->way.answers = p->way.asked;
    p->way.asked = false;
    if (p->way.state != RAILS_OPEN)
        return;
    if (mr_vc_packets(p->vc) - count > STREAM_AHEAD) {
        mr_stream_say(p, FRAME_ASK, 0, NULL, 0);
        return;
    }
    p->way.state = RAILS_USED;
    mr_vc_far()->carry(p->vc);
    mr_log(MR_LOG_DEBUG, "process %u of another job: rails carry its packets",
           mr_guest_card(mr_stream_guest_of(p))->rank);
}

/* The guest's last connection has ended well. While rails carry packets, both say OFF, unless the guest itself ends. */
void mr_stream_end_rails(struct stream_peer *p, bool ends)
{
    if (p->way.state < RAILS_MET || p->way.state >= RAILS_ENDING || (!ends && p->way.state > RAILS_OPEN))
        return;
    if (p->way.state == RAILS_USED)
        mr_vc_change(p->vc, &mr_channel_stream);
    p->way.state = RAILS_ENDING;
    mr_stream.closing = true;
}

/* Packets that are confirmed may still be in queues of the adapter here: they are taken first. */
static void close_rails(struct stream_peer *p)
{
    const struct mr_guest_rails *far = mr_vc_far();

    if (p->way.state == RAILS_CLOSING && far->idle(p->vc)) {
        mr_stream_say(p, FRAME_OFF, 0, NULL, 0);
        p->way.state = RAILS_OFF;
        if (p->way.leaves)
            mr_stream_leave_now(p);
        p->way.leaves = false;
    }
    if ((p->way.state == RAILS_ENDING || (p->way.state == RAILS_OFF && p->way.off_heard)) && mr_channel_idle) {
        p->way.state = RAILS_PARTING;
        far->part(p->vc, -ECONNRESET);
    }
}

void mr_stream_close_all_rails(void)
{
    mr_stream.closing = false;
    for (struct stream_peer *p = mr_stream.peers; p; p = p->next) {
        close_rails(p);
        if (p->way.state == RAILS_NONE && p->way.leaves && !p->ring.first) {
            p->way.leaves = false;
            if (p->out.fd >= 0)
                mr_stream_leave_now(p);
        }
        mr_stream.closing |= p->way.leaves || (p->way.state >= RAILS_CLOSING && p->way.state <= RAILS_ENDING);
    }
}

/* The guest's end of the way is closed. */
void mr_stream_hear_of_loss(struct stream_peer *p)
{
    p->way.barred = true;
    if (p->way.state < RAILS_MET || p->way.state >= RAILS_ENDING)
        return;
    p->way.pauses = true;
    mr_vc_far()->part(p->vc, -ENETDOWN);
}

/* ---- the way has ended ------------------------------------------------------------------------------------------- */

enum mr_unrailed mr_stream_way_is_closed(struct stream_peer *p, int error)
{
    enum stream_rails before = p->way.state;

    mr_stream.resumes |= p->way.pauses;
    p->way.pauses = false;
    if (before == RAILS_LOST)
        return MR_UNRAILED_LOST;
    p->way.state = RAILS_NONE;
    if (before == RAILS_MET || before == RAILS_OPEN)
        mr_log(MR_LOG_INFO, "process %u of another job is reached by TCP: no rails lead there (%s)",
               mr_guest_card(mr_stream_guest_of(p))->rank, strerror(-error));
    if (before != RAILS_USED && before != RAILS_CLOSING)
        return MR_UNRAILED_CLOSED;
    p->way.barred = true;
    return MR_UNRAILED_GOES_ON;
}

bool mr_stream_lose_way(struct stream_peer *p, int error)
{
    if (p->way.state < RAILS_MET)
        return false;
    p->way.state = RAILS_LOST;
    p->way.error = error;
    mr_vc_far()->part(p->vc, error);
    return true;
}

int mr_stream_drop_way(struct stream_peer *p, int error)
{
    p->way.state = RAILS_NONE;
    return p->way.error ? p->way.error : error;
}

void mr_stream_free_way(struct stream_peer *p)
{
    free(p->way.offer);
}
