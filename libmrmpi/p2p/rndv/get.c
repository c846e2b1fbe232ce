/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single copy inside a node: the receiver reads the sender's memory, GET_CHUNK at a time. And reads of the sender's
 * memory in general, for this and the files above: by a system call that the kernel may refuse.
 *
 *   sender    OFFERED -- FIN --> over
 *   receiver  reads --> all are here: FIN. Refused: the copy protocol
 */
#include <errno.h>
#include <string.h>

#include "libmrmpi/launch/launch.h"
#include "libmrmpi/p2p/rndv/get.h"

#define GET_CHUNK (1u << 20) /* read at a time, so that other traffic goes on meanwhile */

/* A process of another job, which the channel reads or not, peer by peer: nothing is learnt from its messages. */
bool mr_near_is_guest(const struct mr_vc *vc)
{
    return mr_vc_world_rank(vc) >= mr_guest_first();
}

bool mr_near_refuses(const struct mr_vc *vc)
{
    return mr_near_is_guest(vc) ? !(mr_vc_caps(vc, 0) & MR_VC_GET) : mr_rndvs.near.modes.refused & 1u << MR_COPY_READ;
}

void mr_near_note_refusal(const struct mr_vc *vc)
{
    if (mr_near_is_guest(vc))
        return;
    if (!mr_near_refuses(vc))
        mr_log(MR_LOG_INFO, "the kernel refuses single copy between processes; large messages are copied twice");
    mr_copy_mode_refuse(&mr_rndvs.near.modes, MR_COPY_READ);
    mr_copy_mode_refuse(&mr_rndvs.near.modes, MR_COPY_SPLIT);
}

/* Through the scratch memory if the buffer has holes. */
int mr_near_get(struct mr_rndv *r, uint64_t offset, size_t len)
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

void mr_near_get_failed(struct mr_rndv *r, int err)
{
    mr_error_detail("reading %llu bytes of rank %d: %s", (unsigned long long)r->total, mr_vc_world_rank(r->vc),
                    strerror(-err));
    mr_rndv_tell(r, MR_PKT_FIN, -err, NULL, 0);
    mr_rndv_finish(r, MR_ERR_OTHER);
}

void mr_near_in_packets(struct mr_rndv *r)
{
    mr_rndv_deactivate(r);
    r->near.timed = false;
    mr_packets_ask(r);
}

static int get_some(struct mr_rndv *r)
{
    size_t most = r->req->type->contiguous ? GET_CHUNK : MR_SCRATCH;
    size_t len = r->total - r->done < most ? r->total - r->done : most;
    int err = len ? mr_near_get(r, r->done, len) : 0;

    if (err == -EPERM) {
        mr_near_note_refusal(r->vc);
        mr_near_in_packets(r);
        return 1;
    }
    if (err) {
        mr_near_get_failed(r, err);
        return 1;
    }
    r->done += len;
    if (r->done == r->total)
        mr_rndv_received(r, true);
    return 1;
}

void mr_get_begin(struct mr_rndv *r)
{
    mr_rndv_begin(r, &mr_get_protocol);
    get_some(r);
}

const struct mr_protocol mr_get_protocol = {.name = "single copy", .stat = MR_STAT_BY_GET, .progress = get_some};
