/* SPDX-License-Identifier: BSD-3-Clause */
/* The folder's state, upcalls of the virtual channels, beginning and end. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/launch/launch.h"
#include "libmrmpi/net/net.h"
#include "libmrmpi/p2p/fault/fault.h"
#include "libmrmpi/p2p/internal.h"
#include "libmrmpi/p2p/progress/progress.h"

struct mr_p2p_upcalls mr_p2p_up;

/* ---- from below -------------------------------------------------------------------------------------------------- */

/* One packet is all of the message, or all of its offer. */
static bool is_one_packet(const struct mr_hdr *hdr, size_t len)
{
    return hdr->kind == MR_PKT_RTS ? !hdr->rreq : hdr->len == len;
}

/* Any but a message or its offer. */
static void deliver_answer(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    switch (hdr->kind) {
    case MR_PKT_CANCEL:
        mr_cancel_asked(vc, hdr);
        break;
    case MR_PKT_CANCELLED:
        mr_cancel_done(vc, hdr);
        break;
    case MR_PKT_EAGER_CREDIT:
        mr_flow_credited(vc, hdr->len);
        break;
    case MR_PKT_PARTS:
        mr_flow_of(vc)->parts = true;
        mr_pt2pt.ended = vc;
        mr_rndv_peer_parts(vc);
        mr_recv_peer_lost();
        break;
    case MR_PKT_REVOKE:
        mr_revoke_packet(hdr);
        break;
    case MR_PKT_AGREE:
        mr_agree_packet(vc, hdr, payload, len);
        break;
    case MR_PKT_DOOR:
        mr_door_packet(vc, hdr);
        break;
    case MR_PKT_PREFIX:
        mr_prefix_packet(vc, hdr, payload, len);
        break;
    default:
        if (hdr->kind < MR_PKT_ABOVE)
            mr_rndv_packet(vc, hdr, payload, len);
        else if (mr_p2p_up.packet)
            mr_p2p_up.packet(vc, hdr, payload, len);
    }
}

/* An offer followed by its eager prefix. False: damaged. */
static bool deliver_prefix(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_match_entry *e;

    if (!mr_prefix_offered(vc, hdr))
        return false;
    e = mr_match_take(&mr_pt2pt.posted, hdr->ctx, hdr->rank, hdr->tag);
    if (e) {
        mr_recv_match(e->owner, vc, hdr, payload, len);
    } else {
        mr_prefix_keep(vc, hdr, payload, len);
    }
    return true;
}

static void deliver_message(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_match_entry *e;

    mr_flow_note(vc, hdr->note);
    if (hdr->kind != MR_PKT_EAGER && hdr->kind != MR_PKT_RTS) {
        deliver_answer(vc, hdr, payload, len);
        return;
    }
    if (unlikely(hdr->flags & MR_FLAG_PART || !is_one_packet(hdr, len))) {
        if (hdr->kind == MR_PKT_RTS ? deliver_prefix(vc, hdr, payload, len) : mr_parts_packet(vc, hdr, payload, len))
            return;
        mr_log(MR_LOG_ERROR, "dropped a damaged packet of rank %d: it says %llu bytes and has %zu",
               mr_vc_world_rank(vc), (unsigned long long)hdr->len, len);
        return;
    }
    e = mr_match_take(&mr_pt2pt.posted, hdr->ctx, hdr->rank, hdr->tag);
    if (e) {
        mr_recv_match(e->owner, vc, hdr, payload, len);
    } else {
        mr_message_keep(vc, hdr, payload, len);
    }
}

static void fail_peer(struct mr_vc *vc, int error)
{
    int rank = mr_vc_world_rank(vc);

    mr_pt2pt.ended = vc;
    if (!mr_lost_note(rank))
        mr_launch_abort(1, "out of memory for the failure of a process");
    mr_rndv_fail_peer(vc);
    mr_parts_fail_peer(vc);
    mr_prefix_fail_peer(vc);
    mr_recv_peer_lost();
    if (mr_p2p_up.peer_lost)
        mr_p2p_up.peer_lost(vc, error);
    if (mr_p2p_up.process_lost)
        mr_p2p_up.process_lost();
    mr_revoke_lost(rank);
    mr_agree_lost(rank);
}

static void send_zsend_done(void *cookie)
{
    struct mr_request *req = cookie;

    if (--req->zsends || !req->ended || (req->recalled && mr_cancel_recall(req)))
        return;
    mr_request_end(req);
}

static const struct mr_vc_upcalls upcalls = {
    .vc_size = sizeof(struct mr_flow),
    .deliver = deliver_message,
    .noted = mr_flow_new_note,
    .put_sent = mr_rndv_put_sent,
    .read_done = mr_read_done,
    .zsend_done = send_zsend_done,
    .put_landed = mr_rndv_put_landed,
    .failed = fail_peer,
};

/* ---- beginning and end ------------------------------------------------------------------------------------------- */

static void free_pt2pt(void)
{
    mr_core_up.comm_made = NULL;
    mr_agree_free();
    mr_revoke_free();
    mr_lost_free();
    mr_match_finalize(&mr_pt2pt.posted);
    mr_match_finalize(&mr_pt2pt.unexpected);
    mr_message_pool_free();
    mr_rndv_free();
    free(mr_pt2pt.scratch);
    mr_request_pool_free();
    memset(&mr_pt2pt, 0, sizeof(mr_pt2pt));
    mr_p2p_up = (struct mr_p2p_upcalls){0};
}

/* Without the clock's own time. The memory is mapped already: first touches of pages would cost more than the copy. */
static uint64_t time_copy(const void *buf, size_t len)
{
    static size_t at; /* not the place of the last copy, which is near now */
    uint64_t first, before, took;

    if (!at)
        memset(mr_pt2pt.scratch, 0, MR_SCRATCH);
    first = mr_clock_ns();
    before = mr_clock_ns();
    memcpy(mr_pt2pt.scratch + at, buf, len);
    took = mr_clock_ns() - before;
    at = (at + len) % (MR_SCRATCH / 2);
    took = took > before - first ? took - (before - first) : 0;
    if (took)
        mr_stat_set(MR_STAT_SEEN_COPY_MBPS, (mr_pt2pt.burst.copied + len) * 1000 / (mr_pt2pt.burst.copied_ns + took));
    return took;
}

int mr_pt2pt_init(void)
{
    int err;

    memset(&mr_pt2pt, 0, sizeof(mr_pt2pt));
    mr_p2p_up = (struct mr_p2p_upcalls){0};
    mr_rndv_init();
    mr_pt2pt.burst.model = &mr_model;
    mr_pt2pt.burst.clock_ns = mr_clock_ns;
    mr_pt2pt.burst.copy_ns = time_copy;
    mr_progress_init();
    mr_progress_register(MR_PROGRESS_ALWAYS, (void *const *)&mr_rndvs.active, mr_rndv_progress);
    mr_progress_register(MR_PROGRESS_ALWAYS, (void *const *)&mr_pt2pt.holding, mr_send_progress);
    mr_progress_register(MR_PROGRESS_IN_MPI, (void *const *)&mr_pt2pt.ended, mr_recv_end_awaited);
    mr_flow_init();
    mr_lost_init();
    mr_core_up.comm_made = mr_revoke_made;
    mr_pt2pt.scratch = malloc(MR_SCRATCH);
    err = mr_pt2pt.scratch ? 0 : -ENOMEM;
    if (!err)
        err = mr_match_init(&mr_pt2pt.posted);
    if (!err)
        err = mr_match_init(&mr_pt2pt.unexpected);
    if (!err)
        err = mr_vc_init(mr_launch_info(), &upcalls, &mr_channel_net);
    mr_pt2pt.burst.devices = mr_net_devices();
    mr_pt2pt.burst.is_registered = mr_net_is_registered;
    if (err)
        free_pt2pt();
    return err;
}

static struct mr_unreceived unreceived;

struct mr_unreceived mr_pt2pt_unreceived(void)
{
    return unreceived;
}

static void drop_message(struct mr_match_entry *e, void *arg)
{
    struct mr_message *m = e->owner;

    /* Its four entries are met one by one; the message goes with the last. */
    mr_match_remove(&mr_pt2pt.unexpected, e);
    for (int c = 0; c < 4; c++)
        if (m->match.e[c].queue)
            return;
    if (!unreceived.count++) {
        unreceived.peer = m->hdr.rank;
        unreceived.tag = m->hdr.tag;
    }
    if (mr_config.leaks)
        mr_log_print(MR_LOG_WARN, "leak: nobody received a message from rank %d of context %u with tag %d", m->hdr.rank,
                     m->hdr.ctx, m->hdr.tag);
    mr_message_free(m);
}

void mr_pt2pt_finalize(void)
{
    unreceived = (struct mr_unreceived){0};
    mr_match_each(&mr_pt2pt.unexpected, drop_message, NULL);
    if (mr_config.stats) {
        mr_stats_print();
        mr_near_report();
    }
    mr_vc_quiet();
    free_pt2pt();
}
