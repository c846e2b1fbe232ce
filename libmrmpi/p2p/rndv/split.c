/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Split copy inside a node: the receiver opens its memory (GO, with a claim); the sender writes chunks from the front
 * into the receiver's memory, and the receiver reads chunks from the back. Each side claims what it takes
 * (channel/shm_claim.h).
 *
 *   sender    OFFERED -- GO(split) --> writes --> no chunk is left: waits for FIN
 *             writes, and the kernel refuses: FAIL --> OFFERED once more
 *   receiver  reads --> all are here: FIN
 *             reads, and the kernel refuses --> when the sender has finished its chunks: the copy protocol
 */
#include <errno.h>
#include <string.h>

#include "libmrmpi/p2p/rndv/get.h"

/* Sent with GO. */
struct split_copy {
    uint64_t addr;  /* the receiver's buffer, */
    int32_t pid;    /* and its process */
    uint32_t chunk; /* bytes */
    uint16_t claim, ticket;
    uint32_t rest; /* 0 */
};

static uint32_t num_chunks(const struct mr_rndv *r)
{
    return (uint32_t)((r->total + r->split.chunk - 1) / r->split.chunk);
}

/* The place and length of the chunk. */
static struct mr_vc_part chunk_at(const struct mr_rndv *r, uint32_t i)
{
    size_t at = (size_t)i * r->split.chunk, left = r->total - at;

    return (struct mr_vc_part){.at = at, .len = left < r->split.chunk ? left : r->split.chunk};
}

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

static int read_chunk(struct mr_rndv *r)
{
    int64_t i = r->split.error ? -1 : mr_claim_take(r->split.claim, r->split.ticket, num_chunks(r), false);
    struct mr_vc_part part;

    if (i >= 0) {
        part = chunk_at(r, (uint32_t)i);
        r->split.error = mr_near_get(r, part.at, part.len);
        if (r->split.error)
            mr_claim_close(r->split.claim);
        return 1;
    }
    if (!(r->split.error ? mr_claim_is_quiet : mr_claim_over)(r->split.claim))
        return 0; /* the sender is writing */
    if (!r->split.error) {
        mr_rndv_received(r, true);
    } else if (r->split.error == -EPERM) {
        mr_near_note_refusal(r->vc);
        mr_near_in_packets(r);
    } else {
        mr_near_get_failed(r, r->split.error);
    }
    return 1;
}

bool mr_split_begin(struct mr_rndv *r)
{
    unsigned which = (unsigned)__builtin_ctz(~mr_rndvs.near.claims);
    struct mr_claims *claims = which < MR_CLAIMS ? mr_near_claims(r->vc, true) : NULL;
    uint32_t chunk = mr_claim_chunk(r->total);
    struct mr_remote here;
    struct split_copy split;

    if (!claims || r->total / chunk >= MR_CLAIM_CHUNKS ||
        mr_vc_advertise(r->vc, mr_data_at(r->req->recv_buf, r->req->type), r->total, MR_VC_GET, &r->region, &here))
        return false;
    mr_rndv_begin(r, &mr_split_protocol);
    mr_rndvs.near.claims |= r->near.claim_bit = 1u << which;
    r->split.claim = &claims->of[which];
    r->split.ticket = ++mr_rndvs.near.ticket;
    r->split.chunk = chunk;
    mr_claim_open(r->split.claim, r->split.ticket, num_chunks(r));
    split = (struct split_copy){
        .addr = here.addr, .pid = here.pid, .chunk = chunk, .claim = (uint16_t)which, .ticket = r->split.ticket};
    if (mr_rndv_tell(r, MR_PKT_GO, r->total, &split, sizeof(split)))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    else
        read_chunk(r);
    return true;
}

/* ---- sender ------------------------------------------------------------------------------------------------------ */

static void wrote(struct mr_vc_move *m, int error)
{
}

/* The receiver reports when it has the rest, too. It may sleep while the sender writes. */
static int stop_at_end(struct mr_rndv *r)
{
    mr_rndv_deactivate(r);
    if (mr_shm_bell_rings() && mr_rndv_tell(r, MR_PKT_LEFT, 0, NULL, 0))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
    return 1;
}

/* The receiver must do without us, and may request packets then. */
static void stop_writing(struct mr_rndv *r, int err)
{
    mr_claim_return(r->split.claim);
    mr_copy_mode_refuse(&mr_rndvs.near.modes, MR_COPY_SPLIT);
    mr_rndv_deactivate(r);
    mr_rndv_reopen(r);
    if (mr_rndv_tell(r, MR_PKT_FAIL, (uint64_t)-err, NULL, 0))
        mr_rndv_finish(r, MR_ERR_PROC_FAILED);
}

static int write_chunk(struct mr_rndv *r)
{
    int64_t i = mr_claim_take(r->split.claim, r->split.ticket, num_chunks(r), true);
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
    mr_claim_wrote(r->split.claim);
    return mr_claim_over(r->split.claim) ? stop_at_end(r) : 1;
}

static bool split_send(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_claims *claims;
    struct split_copy split;

    if (len != sizeof(split) || !r->near.counted)
        return false;
    memcpy(&split, payload, len);
    claims = mr_near_claims(r->vc, false);
    if (hdr->len > r->total || !claims || split.claim >= MR_CLAIMS || split.chunk < MR_CLAIM_LEAST ||
        split.chunk > MR_CLAIM_MOST)
        return true; /* never sent by a rank of this library */
    r->peer_id = hdr->rreq;
    r->total = hdr->len;
    mr_rndv_begin(r, &mr_split_protocol);
    r->split.claim = &claims->of[split.claim];
    r->split.ticket = split.ticket;
    r->split.chunk = split.chunk;
    r->remote = (struct mr_remote){.addr = split.addr, .pid = split.pid, .len = r->total};
    mr_rndv_activate(r);
    write_chunk(r);
    return true;
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static void split_packet(struct mr_rndv *r, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (hdr->kind == MR_PKT_FAIL) { /* the sender will not write, and has left its claimed chunks to us */
        r->near.timed = false;
        mr_copy_mode_refuse(&mr_rndvs.near.modes, MR_COPY_SPLIT);
    }
    if (hdr->kind == MR_PKT_GO && !len) { /* the receiver cannot do its half */
        mr_rndv_deactivate(r);
        mr_packets_protocol.start_send(r, hdr, payload, len);
    }
}

static int split_progress(struct mr_rndv *r)
{
    return mr_rndv_sends(r) ? write_chunk(r) : read_chunk(r);
}

const struct mr_protocol mr_split_protocol = {.name = "split copy",
                                              .stat = MR_STAT_BY_SPLIT,
                                              .answer = MR_PKT_GO,
                                              .start_send = split_send,
                                              .packet = split_packet,
                                              .progress = split_progress};
