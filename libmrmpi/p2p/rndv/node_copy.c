/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages copied by ranks, and their choice: see node_copy.h. */
#include "libmrmpi/p2p/rndv/node_copy.h"

#include <errno.h>
#include <string.h>

#include "libmrmpi/base/copy.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/p2p/rndv/stream.h"

_Static_assert(MR_COPY_SIZES <= sizeof(((struct mr_claims *)0)->mode), "one for each size");

#define GET_CHUNK   (1u << 20) /* read at a time, so that other traffic goes on meanwhile */
#define SPLIT_CHUNK (256u << 10)
#define SILENCE_NS  20000 /* without any DATA of the sender, before a sharing receiver reads by itself */
#define AT_ONCE     3     /* messages of a peer that are received at a time; the others wait for them */

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

/* A process of another job, which the channel reads or not, peer by peer: nothing is learnt from its messages. */
static bool is_guest(const struct mr_vc *vc)
{
    return mr_vc_world_rank(vc) >= mr_guest_first();
}

static bool reads_refused(const struct mr_vc *vc)
{
    return is_guest(vc) ? !(mr_vc_caps(vc, 0) & MR_VC_GET) : mr_rndvs.near.modes.refused & 1u << MR_COPY_READ;
}

static void note_refusal(const struct mr_vc *vc)
{
    if (is_guest(vc))
        return;
    if (!reads_refused(vc))
        mr_log(MR_LOG_INFO, "the kernel refuses single copy between processes; large messages are copied twice");
    mr_copy_mode_refuse(&mr_rndvs.near.modes, MR_COPY_READ);
    mr_copy_mode_refuse(&mr_rndvs.near.modes, MR_COPY_SPLIT);
}

/* All bytes are here. A sender whose memory was open for reading waits for the report. */
static void received(struct mr_rndv *r)
{
    int err = r->copy.shared ? mr_rndv_tell(r, MR_PKT_FIN, 0, NULL, 0) : 0;

    if (r->copy.timed)
        mr_copy_mode_ended(&mr_rndvs.near.modes, &r->copy.choice, mr_clock_ns());
    mr_rndv_finish(r, err ? MR_ERR_PROC_FAILED : MR_SUCCESS);
}

void mr_node_copy_data(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_stream *s = mr_flow_of(r->vc)->stream;
    struct mr_request *req = r->req;
    size_t wanted;

    if ((r->state != MR_RNDV_DRAINING && r->state != MR_RNDV_SPLIT_OPEN) || hdr->len != r->done || !len ||
        r->done >= r->total || len > r->total - r->done)
        return;
    wanted = len < r->copy.back_from - r->done ? len : r->copy.back_from - r->done;
    if (req->type->contiguous)
        mr_copy_in((char *)mr_data_at(req->recv_buf, req->type) + r->done, payload, wanted);
    else
        mr_type_unpack(req->recv_buf, req->count, req->type, r->done, payload, wanted);
    r->done += len;
    if (s)
        s->data_seen++;
    if (r->done >= r->copy.back_from) {
        received(r);
    } else if (r->done - r->told >= 2 * len) {
        r->told = r->done;
        if (mr_rndv_tell(r, MR_PKT_CREDIT, r->done, NULL, 0))
            mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    }
}

/* Read [offset, offset + len) of the peer's data into the buffer, through the scratch memory if that has holes. */
static int get_range(struct mr_rndv *r, uint64_t offset, size_t len)
{
    struct mr_request *req = r->req;
    int err;

    if (req->type->contiguous)
        return mr_vc_get(r->vc, (char *)mr_data_at(req->recv_buf, req->type) + offset, len, &r->remote, offset);
    err = mr_vc_get(r->vc, mr_pt2pt.scratch, len, &r->remote, offset);
    if (!err)
        mr_type_unpack(req->recv_buf, req->count, req->type, offset, mr_pt2pt.scratch, len);
    return err;
}

static void get_failed(struct mr_rndv *r, int err)
{
    mr_error_detail("reading %llu bytes of rank %d: %s", (unsigned long long)r->total, mr_vc_world_rank(r->vc),
                    strerror(-err));
    mr_rndv_tell(r, MR_PKT_FIN, -err, NULL, 0);
    mr_rndv_finish(r, MR_ERR_OTHER);
}

static void get_some(struct mr_rndv *r)
{
    size_t most = r->req->type->contiguous ? GET_CHUNK : MR_SCRATCH;
    size_t len = r->total - r->done < most ? r->total - r->done : most;
    int err = len ? get_range(r, r->done, len) : 0;

    if (err == -EPERM) {
        note_refusal(r->vc);
        mr_rndv_deactivate(r);
        r->copy.timed = false;
        mr_rndv_ask(r, MR_RNDV_DRAINING);
        return;
    }
    if (err) {
        get_failed(r, err);
        return;
    }
    r->done += len;
    if (r->done < r->total)
        return;
    r->copy.shared = true;
    received(r);
}

/* The sender has left the rest to this receiver, which cannot read it. */
static void ask_for_rest(struct mr_rndv *r)
{
    r->copy.shared = false; /* required by the header */
    if (mr_rndv_tell(r, MR_PKT_GO, r->total, NULL, 0))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    else
        r->copy.shared = true; /* the back may be here: a sender that waits for CREDIT to push it gets FIN */
}

void mr_node_copy_left(struct mr_rndv *r)
{
    r->copy.left = true;
    if (r->state == MR_RNDV_DRAINING && r->copy.shared)
        ask_for_rest(r);
}

/*
 * True if DATA is not to be waited for. DATA of the sender's other messages counts: a sender with many under way has
 * yet to come to this one.
 */
static bool sender_is_silent(struct mr_rndv *r)
{
    const struct mr_stream *s = mr_flow_of(r->vc)->stream;
    uint64_t now;

    if (r->copy.left)
        return true;
    if (r->copy.data_seen != s->data_seen) {
        r->copy.data_seen = s->data_seen;
        r->copy.silent_ns = 0;
        return false;
    }
    now = mr_clock_ns();
    if (!r->copy.silent_ns)
        r->copy.silent_ns = now;
    return now - r->copy.silent_ns >= SILENCE_NS;
}

/* The sender has been asked to push. While it does not, read the back of the message. */
static int copy_chunks(struct mr_rndv *r)
{
    size_t len = r->copy.back_from - r->done < SPLIT_CHUNK ? r->copy.back_from - r->done : SPLIT_CHUNK;
    int err;

    if (!sender_is_silent(r))
        return 0;
    err = get_range(r, r->copy.back_from - len, len);
    if (err == -EPERM) {
        note_refusal(r->vc);
        mr_rndv_deactivate(r);
        r->state = MR_RNDV_DRAINING;
        if (r->copy.left) /* otherwise the sender pushes anyway, or reports that it does not */
            ask_for_rest(r);
        return 1;
    }
    if (err) {
        get_failed(r, err);
        return 1;
    }
    r->copy.back_from -= len;
    if (r->done >= r->copy.back_from)
        received(r);
    return 1;
}

/* ---- both sides copy --------------------------------------------------------------------------------------------- */

static uint32_t num_chunks(const struct mr_rndv *r)
{
    return (uint32_t)((r->total + r->copy.chunk - 1) / r->copy.chunk);
}

/* The place and length of the chunk. */
static struct mr_vc_part chunk_at(const struct mr_rndv *r, uint32_t i)
{
    size_t at = (size_t)i * r->copy.chunk, left = r->total - at;

    return (struct mr_vc_part){.at = at, .len = left < r->copy.chunk ? left : r->copy.chunk};
}

/* The sender will not write. It has left its claimed chunks to us. */
void mr_node_copy_refused(struct mr_rndv *r)
{
    r->copy.timed = false;
    mr_copy_mode_refuse(&mr_rndvs.near.modes, MR_COPY_SPLIT);
}

static int halve_some(struct mr_rndv *r)
{
    int64_t i = r->read.error ? -1 : mr_claim_take(r->copy.claim, r->copy.ticket, num_chunks(r), false);
    struct mr_vc_part part;

    if (i >= 0) {
        part = chunk_at(r, (uint32_t)i);
        r->read.error = get_range(r, part.at, part.len);
        if (r->read.error)
            mr_claim_close(r->copy.claim);
        return 1;
    }
    if (!(r->read.error ? mr_claim_is_quiet : mr_claim_over)(r->copy.claim))
        return 0; /* the sender is writing */
    if (!r->read.error) {
        received(r);
    } else if (r->read.error == -EPERM) {
        note_refusal(r->vc);
        mr_rndv_deactivate(r);
        r->copy.timed = false;
        r->read.error = 0;
        mr_rndv_ask(r, MR_RNDV_DRAINING);
    } else {
        get_failed(r, r->read.error);
    }
    return 1;
}

/* NULL: there are none. */
static struct mr_claims *claims_of(struct mr_vc *vc, bool ours)
{
    return mr_shm_reaches(vc) ? mr_shm_claims(vc, ours) : NULL;
}

/* False: there is no claim for it. */
static bool halve(struct mr_rndv *r)
{
    unsigned which = (unsigned)__builtin_ctz(~mr_rndvs.near.claims);
    struct mr_claims *claims = which < MR_CLAIMS ? claims_of(r->vc, true) : NULL;
    uint32_t chunk = mr_claim_chunk(r->total);
    struct mr_remote here;
    struct mr_split_copy split;

    if (!claims || r->total / chunk >= MR_CLAIM_CHUNKS ||
        mr_vc_advertise(r->vc, mr_data_at(r->req->recv_buf, r->req->type), r->total, MR_VC_GET, &r->region, &here))
        return false;
    mr_rndvs.near.claims |= r->copy.claim_bit = 1u << which;
    r->copy.claim = &claims->of[which];
    r->copy.ticket = ++mr_rndvs.near.ticket;
    r->copy.chunk = chunk;
    r->copy.shared = true;
    r->state = MR_RNDV_SPLITTING;
    mr_claim_open(r->copy.claim, r->copy.ticket, num_chunks(r));
    split = (struct mr_split_copy){
        .addr = here.addr, .pid = here.pid, .chunk = r->copy.chunk, .claim = (uint16_t)which, .ticket = r->copy.ticket};
    if (mr_rndv_tell(r, MR_PKT_GO, r->total, &split, sizeof(split)))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    else
        halve_some(r);
    return true;
}

/* ---- choice of the mode ------------------------------------------------------------------------------------------ */

/* With a core for each rank, and another rank to share with. */
static bool one_copy_pays(struct mr_vc *vc)
{
    return !mr_shm_oversubscribed() && mr_vc_world_rank(vc) != mr_launch_info()->rank;
}

static enum mr_copy_load load_of(const struct mr_stream *s)
{
    if (mr_rndvs.near.sends)
        return MR_LOAD_BOTH;
    if (s->queued || mr_rndvs.near.receives > 1 || mr_copy_mode_follows(&mr_rndvs.near.modes, mr_clock_ns()))
        return MR_LOAD_STREAM;
    return MR_LOAD_ONE;
}

/*
 * If both ranks receive, one that tries a mode alone finds it slow as long as the other keeps its core busy with
 * another mode. So of two the lower rank tries, and notes the mode in its memory, and the other follows.
 */
static enum mr_copy_mode follow_copy_mode(struct mr_rndv *r)
{
    const struct mr_claims *theirs = claims_of(r->vc, false);
    uint8_t mode =
        theirs ? __atomic_load_n(&theirs->mode[mr_copy_mode_size(r->total)], __ATOMIC_RELAXED) : MR_COPY_PUSH;

    return mode < MR_COPY_MODES ? mode : MR_COPY_PUSH;
}

static enum mr_copy_mode choose_copy_mode(struct mr_rndv *r, enum mr_copy_load load)
{
    enum mr_copy_mode mode = mr_copy_mode_choose(&mr_rndvs.near.modes, &r->copy.choice, r->total, load);
    struct mr_claims *ours = claims_of(r->vc, true);

    r->copy.timed = true;
    if (load == MR_LOAD_BOTH && ours)
        __atomic_store_n(&ours->mode[mr_copy_mode_size(r->total)], mode, __ATOMIC_RELAXED);
    return mode;
}

static enum mr_copy_mode copy_mode_of(struct mr_rndv *r, const struct mr_stream *s)
{
    enum mr_copy_load load = load_of(s);

    if (is_guest(r->vc))
        return MR_COPY_READ;
    if (mr_rndvs.near.forced)
        return mr_rndvs.near.forced - 1;
    if (!r->total || !one_copy_pays(r->vc))
        return MR_COPY_READ;
    if (!r->req->type->contiguous)
        return MR_COPY_PUSH;
    if (load == MR_LOAD_BOTH && mr_vc_world_rank(r->vc) < mr_launch_info()->rank)
        return follow_copy_mode(r);
    return choose_copy_mode(r, load);
}

/*
 * Some at a time, so that the next one comes while this one is copied. They use the same mode: a message with work for
 * us only would overtake the others, and the times of neither would prove anything.
 */
static bool may_start(struct mr_rndv *r, const struct mr_stream *s)
{
    if (s->started >= AT_ONCE)
        return false;
    if (!r->copy.chosen)
        r->copy.choice.mode = copy_mode_of(r, s);
    r->copy.chosen = true;
    return !s->started || r->copy.choice.mode == s->mode;
}

static void start_copy(struct mr_rndv *r, struct mr_stream *s)
{
    s->mode = r->copy.choice.mode;
    s->started++;
    r->copy.started = true;
    r->state = MR_RNDV_GETTING;
    mr_rndv_activate(r);
    if (r->copy.timed)
        r->copy.choice.begin_ns = mr_clock_ns();
    if (reads_refused(r->vc)) /* meanwhile */
        mr_rndv_ask(r, MR_RNDV_DRAINING);
    else if (s->mode == MR_COPY_PUSH)
        mr_rndv_ask(r, MR_RNDV_SPLIT_OPEN);
    else if (s->mode != MR_COPY_SPLIT || !r->req->type->contiguous || !halve(r))
        get_some(r);
}

bool mr_node_copy_begin(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_stream *s = mr_stream_of(r->vc);

    if (!(hdr->flags & MR_FLAG_GET) || len != sizeof(r->remote) || reads_refused(r->vc) || !s)
        return false;
    memcpy(&r->remote, payload, len);
    r->copy.counted = true;
    mr_rndvs.near.receives++;
    if (!s->queued && may_start(r, s))
        start_copy(r, s);
    else
        mr_rndv_queue(s, r);
    return true;
}

static int start_queued(struct mr_rndv *r)
{
    struct mr_stream *s = mr_flow_of(r->vc)->stream;

    if (!may_start(r, s))
        return 0;
    mr_rndv_unqueue(s);
    start_copy(r, s);
    return 1;
}

int mr_node_copy_progress(struct mr_rndv *r)
{
    switch (r->state) {
    case MR_RNDV_QUEUED:
        return start_queued(r);
    case MR_RNDV_GETTING:
        get_some(r);
        return 1;
    case MR_RNDV_SPLITTING:
        return halve_some(r);
    default:
        return copy_chunks(r);
    }
}

void mr_node_copy_report(void)
{
    static const char *const loads[MR_LOADS] = {"alone", "in a row", "both ways"};
    char line[200];

    for (int l = 0; l < MR_LOADS; l++)
        for (int s = 0; s < MR_COPY_SIZES; s++)
            if (mr_copy_mode_describe(&mr_rndvs.near.modes.cell[l][s], line, sizeof(line)))
                mr_log_print(MR_LOG_INFO, "inside the host, %d KiB %s: %s", 32 << s, loads[l], line);
}

/* ---- sender ------------------------------------------------------------------------------------------------------ */

static void wrote(struct mr_vc_move *m, int error)
{
}

void mr_node_copy_write(struct mr_rndv *r, const struct mr_split_copy *split)
{
    struct mr_claims *claims = claims_of(r->vc, false);

    if (!claims || split->claim >= MR_CLAIMS || split->chunk < MR_CLAIM_LEAST || split->chunk > MR_CLAIM_MOST)
        return; /* never sent by a rank of this library */
    r->copy.claim = &claims->of[split->claim];
    r->copy.ticket = split->ticket;
    r->copy.chunk = split->chunk;
    r->remote = (struct mr_remote){.addr = split->addr, .pid = split->pid, .len = r->total};
    r->copy.shared = true;
    r->state = MR_RNDV_WRITING;
    mr_rndv_activate(r);
    mr_node_copy_write_some(r);
}

/* The receiver reports when it has the rest, too. It may sleep while the sender writes. */
static int stop_at_end(struct mr_rndv *r)
{
    r->state = MR_RNDV_PUSHED;
    mr_rndv_deactivate(r);
    if (mr_shm_bell_rings() && mr_rndv_tell(r, MR_PKT_LEFT, 0, NULL, 0))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    return 1;
}

/* The receiver must do without us, and may request packets then. */
static void stop_writing(struct mr_rndv *r, int err)
{
    mr_claim_return(r->copy.claim);
    mr_copy_mode_refuse(&mr_rndvs.near.modes, MR_COPY_SPLIT);
    mr_rndv_deactivate(r);
    r->state = MR_RNDV_OFFERED;
    if (mr_rndv_tell(r, MR_PKT_FAIL, (uint64_t)-err, NULL, 0))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
}

int mr_node_copy_write_some(struct mr_rndv *r)
{
    int64_t i = mr_claim_take(r->copy.claim, r->copy.ticket, num_chunks(r), true);
    struct mr_vc_move move = {.done = wrote};
    struct mr_remote to = r->remote;
    struct mr_vc_part part;
    int err;

    if (i < 0)
        return stop_at_end(r);
    part = chunk_at(r, (uint32_t)i);
    to.addr += part.at;
    to.len = part.len;
    err = mr_vc_move(r->vc, (char *)mr_data_at(r->req->send_buf, r->req->type) + part.at, part.len, &to, true, &move);
    if (err) {
        stop_writing(r, err);
        return 1;
    }
    mr_claim_wrote(r->copy.claim);
    return mr_claim_over(r->copy.claim) ? stop_at_end(r) : 1;
}
