/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data in one piece at both ends is written and read by RDMA, striped over the rails, or inside a host by a system call
 * that copies from process to process: without the target's processor. The keys of a part are requested at their first
 * use; until they are here operations go in packets. So do operations whose memory here is not worth registering,
 * except short writes, whose data goes with the request.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/rma/internal.h"

/* Data that goes with a request, from any memory: no longer than any adapter allows. */
#define INLINE_MOST 128

struct mover {
    struct mr_vc_move move;
    struct mr_rma_peer *p;
    struct mr_rma_job *job;
    struct mover *next; /* of the free ones */
    /* its data in attached memory, and the keys used: the move may have to be repeated */
    void *buf;
    size_t len;
    uint64_t addr;
    uint32_t keys;
    bool write;
};

static struct mover *free_movers;

static struct mover *take_mover(void)
{
    struct mover *m = free_movers;

    if (m)
        free_movers = m->next;
    return m ? m : malloc(sizeof(*m));
}

static void give_mover(struct mover *m)
{
    m->next = free_movers;
    free_movers = m;
}

void mr_direct_finalize(void)
{
    while (free_movers) {
        struct mover *m = free_movers;

        free_movers = m->next;
        free(m);
    }
}

static mr_direct_again_fn *again;

void mr_direct_init(mr_direct_again_fn *f)
{
    again = f;
}

static void moved(struct mr_vc_move *move, int error)
{
    struct mover *m = container_of(move, struct mover, move);
    enum mr_err err = error ? MR_ERR_PROC_FAILED : MR_SUCCESS;

    if (error == -EACCES && move->attached) {
        mr_attached_refused(m->p, m->keys);
        m->p->again++;
        mr_stat_add(MR_STAT_DETACHED, 1);
        err = again(m->p, m->job, m->buf, m->len, m->addr, m->write);
    }
    m->p->open--;
    if (err && !m->job)
        m->p->refused = err;
    mr_rma_job_part_done(m->job, err);
    give_mover(m);
}

/* ---- short writes ------------------------------------------------------------------------------------------------ */

static bool has_fewer_lists(void *writer)
{
    return ((const struct mr_net_writer *)writer)->open <= MR_LISTS_MOST / 2;
}

void mr_direct_wait(struct mr_net_writer *w)
{
    mr_progress_until(has_fewer_lists, w);
}

/* A list's, to memory that has been detached. */
static void withdrawn(struct mr_net_writer *w, const struct mr_short_write *write, unsigned num, uint32_t serial)
{
    struct mr_rma_peer *p = w->owner;

    mr_attached_refused(p, serial);
    p->again++;
    mr_stat_add(MR_STAT_DETACHED, num);
    for (unsigned i = 0; i < num; i++) {
        enum mr_err err = again(p, NULL, (void *)write[i].data, write[i].len, write[i].addr, true);

        if (err)
            p->refused = err;
    }
}

static void open_writer(struct mr_rma_peer *p, const struct mr_remote *remote)
{
    struct mr_vc *vc = mr_rma_vc(p->win, p->rank);

    p->writer = mr_net_reaches(vc) ? mr_net_writer_open(vc, remote) : NULL;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* The whole part is registered, once for all origins, and stays so. */
void mr_direct_keys_asked(struct mr_rma_peer *p, const struct mr_hdr *asked)
{
    const struct mr_win *w = p->win;
    struct mr_vc *vc = mr_rma_vc(w, p->rank);
    struct mr_remote remote = {0};
    struct mr_hdr hdr = {.kind = MR_PKT_ABOVE, .tag = MR_RMA_KEYS_ARE, .rank = w->comm->rank, .ctx = w->comm->context};

    if (w->flavor == MR_WIN_DYNAMIC) {
        mr_attached_asked(p, asked->sreq);
        return;
    }
    if (p->region) {
        mr_log(MR_LOG_ERROR, "rank %d asks a second time for the keys of a window", p->rank);
        return;
    }
    if (w->size && mr_vc_advertise(vc, w->base, w->size, MR_VC_WINDOW, &p->region, &remote))
        p->region = NULL;
    hdr.len = p->region ? sizeof(remote) : 0;
    mr_vc_send(vc, &hdr, &remote, hdr.len);
}

/* There is one writer for all regions: it begins with this one. */
static void attached_are(struct mr_rma_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    uint32_t serial = mr_attached_are(p, hdr, payload, len);
    struct mr_remote remote;

    if (!serial || p->writer)
        return;
    memcpy(&remote, payload, sizeof(remote));
    open_writer(p, &remote);
    if (!p->writer)
        return;
    p->writer->owner = p;
    p->writer->withdrawn = withdrawn;
    p->writer->serial = p->aimed = serial;
}

void mr_direct_keys_are(struct mr_rma_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    if (p->win->flavor == MR_WIN_DYNAMIC) {
        attached_are(p, hdr, payload, len);
        return;
    }
    if (p->keys || len != sizeof(*p->keys))
        return;
    p->keys = malloc(sizeof(*p->keys));
    if (!p->keys)
        return;
    memcpy(p->keys, payload, sizeof(*p->keys));
    open_writer(p, p->keys);
}

void mr_direct_drop(struct mr_rma_peer *p)
{
    if (p->region)
        mr_vc_withdraw(p->region);
    p->region = NULL;
    if (p->writer)
        mr_net_writer_close(p->writer);
    p->writer = NULL;
    free(p->keys);
    p->keys = NULL;
    mr_attached_forget(p);
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

static bool have_keys(struct mr_rma_peer *p)
{
    if (p->keys || p->keys_asked)
        return p->keys;
    p->keys_asked = true;
    mr_rma_tell(p, MR_RMA_KEYS, (struct mr_hdr){0});
    return false;
}

/*
 * Inside a host two copying ranks are faster than one. The target of a fence or MPI_Win_post is about to be in an MPI
 * function; that of a lock may compute for long.
 */
static bool both_copy(const struct mr_rma_peer *p, unsigned caps)
{
    return caps & MR_VC_GET && !p->wanted;
}

/* The adapters' address of len bytes at addr of p's part. False: not reachable so, or not yet. */
static bool find_remote(struct mr_rma_peer *p, uint64_t addr, size_t len, struct mr_remote *there, uint32_t *keys)
{
    unsigned caps = mr_vc_caps(mr_rma_vc(p->win, p->rank), len);

    if (p->win->flavor == MR_WIN_DYNAMIC)
        return caps & MR_VC_ATTACHED && mr_attached_find(p, addr, len, there, keys);
    if (!(caps & MR_VC_WINDOW) || both_copy(p, caps) || !have_keys(p))
        return false;
    if (addr > p->keys->len || len > p->keys->len - addr)
        return false;
    *there = *p->keys;
    there->addr += addr;
    there->len = len;
    return true;
}

bool mr_direct_moves(struct mr_rma_peer *p, uint64_t addr, size_t len)
{
    struct mr_remote there;
    uint32_t keys;

    return find_remote(p, addr, len, &there, &keys);
}

bool mr_direct_move(struct mr_rma_peer *p, struct mr_rma_job *j, void *buf, size_t len, uint64_t addr, bool write)
{
    struct mr_vc *vc = mr_rma_vc(p->win, p->rank);
    struct mr_remote there;
    uint32_t keys = 0;
    struct mover *m;

    if (!find_remote(p, addr, len, &there, &keys))
        return false;
    if (!(write && len <= INLINE_MOST) && mr_net_reaches(vc) && mr_net_copies(vc, buf, len))
        return false;
    m = take_mover();
    if (!m)
        return false;
    *m = (struct mover){.move = {.done = moved, .attached = p->win->flavor == MR_WIN_DYNAMIC},
                        .p = p,
                        .job = j,
                        .buf = buf,
                        .len = len,
                        .addr = addr,
                        .keys = keys,
                        .write = write};
    p->open++;
    if (j)
        j->parts++;
    if (!mr_vc_move(vc, buf, len, &there, write, &m->move))
        return true;
    p->open--;
    if (j)
        j->parts--;
    give_mover(m);
    return false;
}
