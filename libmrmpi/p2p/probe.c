/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes: queries for messages before their receives. */
#include "libmrmpi/p2p/internal.h"

static void describe(const struct mr_message *m, struct mr_status *status)
{
    *status = (struct mr_status){.source = m->hdr.rank, .tag = m->hdr.tag, .bytes = m->hdr.len};
}

static struct mr_message *probe_unexpected(int src, int tag, uint32_t ctx, struct mr_status *status)
{
    struct mr_message *m = mr_message_find(src, tag, ctx);

    if (m)
        describe(m, status);
    return m;
}

struct probe {
    int src, tag;
    struct mr_comm *comm;
    uint32_t ctx;
    struct mr_status *status;
    struct mr_message *found;
    enum mr_err error;
};

static bool seen(void *arg)
{
    struct probe *p = arg;

    p->found = unlikely(p->comm->fault == MR_ERR_REVOKED) ? NULL : probe_unexpected(p->src, p->tag, p->ctx, p->status);
    return p->found != NULL;
}

static bool probed(void *arg)
{
    struct probe *p = arg;

    return seen(p) || (p->error = mr_recv_fate(p->comm, p->src, p->ctx, true, true));
}

bool mr_iprobe(int src, int tag, struct mr_comm *comm, uint32_t ctx, struct mr_status *status)
{
    struct probe p = {.src = src, .tag = tag, .comm = comm, .ctx = ctx, .status = status};

    if (src == MR_PROC_NULL) {
        *status = (struct mr_status){.source = MR_PROC_NULL, .tag = MR_ANY_TAG};
        return true;
    }
    return mr_progress_try(seen, &p);
}

enum mr_err mr_probe(int src, int tag, struct mr_comm *comm, uint32_t ctx, struct mr_status *status)
{
    struct probe p = {.src = src, .tag = tag, .comm = comm, .ctx = ctx, .status = status};

    if (src == MR_PROC_NULL) {
        *status = (struct mr_status){.source = MR_PROC_NULL, .tag = MR_ANY_TAG};
        return MR_SUCCESS;
    }
    mr_progress_until(probed, &p);
    return p.found ? MR_SUCCESS : p.error;
}

enum mr_err mr_probe_fate(int src, struct mr_comm *comm, uint32_t ctx)
{
    const struct mr_vc *vc;

    if (src == MR_PROC_NULL)
        return mr_no_peer_fate(comm, ctx);
    if (!mr_pt2pt.ended)
        return MR_SUCCESS;
    if (comm->fault == MR_ERR_REVOKED && ctx != MR_CTX_FINALIZE)
        return mr_fail(MR_ERR_REVOKED, "the communicator has been revoked");
    if (src == MR_ANY_SOURCE)
        return mr_config.recover && mr_comm_unacked(comm)
                   ? mr_fail(MR_ERR_PROC_FAILED_PENDING, "a process has failed that may be the sender")
                   : MR_SUCCESS;
    vc = mr_vc_known_peer(mr_comm_world_rank(comm, src));
    if (vc && mr_vc_lost(vc))
        return mr_fail(MR_ERR_PROC_FAILED, "rank %d of the communicator has failed", src);
    return MR_SUCCESS;
}

/* Lock held: the message found by the probe is still there. */
enum mr_err mr_mprobe(int src, int tag, struct mr_comm *comm, uint32_t ctx, struct mr_message **msg,
                      struct mr_status *status)
{
    enum mr_err err = mr_probe(src, tag, comm, ctx, status);

    *msg = NULL;
    if (!err)
        *msg = mr_improbe(src, tag, comm, ctx, status);
    return err;
}

struct mr_message *mr_improbe(int src, int tag, struct mr_comm *comm, uint32_t ctx, struct mr_status *status)
{
    struct probe p = {.src = src, .tag = tag, .comm = comm, .ctx = ctx, .status = status};

    if (src == MR_PROC_NULL) {
        *status = (struct mr_status){.source = MR_PROC_NULL, .tag = MR_ANY_TAG};
        return mr_message_no_proc;
    }
    if (mr_progress_try(seen, &p))
        mr_match_remove_quad(&mr_pt2pt.unexpected, &p.found->match);
    return p.found;
}
