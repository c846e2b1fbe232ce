/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions, and the work of DMA engines: bytes between the engine and the memory of the processes, by
 * process_vm_readv and process_vm_writev. Keys are per HCA: index in its table << 8 | a changing tag, so the key of a
 * destroyed region is not the key of the next.
 */
#include "simfab/engine/hca/mem.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/threads.h"
#include "simfab/engine/clock/wake.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/object.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/proto.h"

#define MR_TABLE_MAX (1u << 24)

static uint32_t free_slot(struct hca *h)
{
    uint32_t i;

    for (i = h->mr_hint; i < h->mr_table_size; i++)
        if (!h->mr_table[i])
            return i;
    i = h->mr_table_size;
    if (i >= MR_TABLE_MAX)
        return 0;
    h->mr_table_size = i ? 2 * i : 64;
    h->mr_table = xrealloc(h->mr_table, h->mr_table_size * sizeof *h->mr_table);
    memset(h->mr_table + i, 0, (h->mr_table_size - i) * sizeof *h->mr_table);
    return i ? i : 1; /* key 0 has no owner */
}

struct mr *mr_add_key(struct pd *pd, int *err)
{
    struct hca *h = pd->obj.ctx->hca;
    uint32_t i = h->objects[OBJ_MR] + h->objects[OBJ_MW] < h->sim->model->max_mr ? free_slot(h) : 0;
    struct mr *mr;

    if (!i) {
        *err = ENOMEM;
        return NULL;
    }
    mr = xcalloc(1, sizeof *mr);
    mr->pd = pd;
    mr->key = i << 8 | ++h->mr_tag;
    h->mr_table[i] = mr;
    h->mr_hint = i + 1;
    pd->obj.uses++;
    return mr;
}

struct mr *mr_of_key(const struct hca *h, uint32_t key)
{
    uint32_t i = key >> 8;
    struct mr *mr = i < h->mr_table_size ? h->mr_table[i] : NULL;

    return mr && mr->key == key ? mr : NULL;
}

/* Valid combinations of rights of a region: remote write requires local write. */
static bool access_valid(uint32_t access)
{
    const uint32_t remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    const uint32_t known = remote | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND |
                           IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB | IBV_ACCESS_ON_DEMAND;

    return !(access & ~known) && (!(access & remote) || (access & IBV_ACCESS_LOCAL_WRITE));
}

static bool range_valid(const struct sf_reg_mr *r)
{
    return r->length && r->addr + r->length > r->addr && r->iova + r->length > r->iova;
}

struct mr *mr_register(struct pd *pd, const struct sf_reg_mr *r, int *err)
{
    struct mr *mr;

    *err = EOPNOTSUPP;
    if ((r->access & IBV_ACCESS_ON_DEMAND) && !pd->obj.ctx->hca->sim->model->odp)
        return NULL;
    *err = EINVAL;
    if (!range_valid(r) || !access_valid(r->access) || !(mr = mr_add_key(pd, err)))
        return NULL;
    mr->addr = r->addr;
    mr->length = r->length;
    mr->iova = r->iova;
    mr->access = r->access;
    return mr;
}

struct mr *mr_null(struct pd *pd, int *err)
{
    struct mr *mr = mr_add_key(pd, err);

    if (mr) {
        mr->null = true;
        mr->length = UINT64_MAX;
        mr->access = IBV_ACCESS_LOCAL_WRITE;
    }
    return mr;
}

/* The same handle for other memory, rights or another domain. Old keys are dead: packets under way may still have them.
 */
int mr_reregister(struct mr *mr, struct pd *pd, const struct sf_rereg_mr *r)
{
    struct hca *h = mr->obj.ctx->hca;

    if (mr->window || mr->null || (r->flags & ~(uint32_t)IBV_REREG_MR_FLAGS_SUPPORTED) || !r->flags ||
        ((r->flags & IBV_REREG_MR_CHANGE_TRANSLATION) && !range_valid(&r->to)) ||
        ((r->flags & IBV_REREG_MR_CHANGE_ACCESS) && !access_valid(r->to.access)))
        return EINVAL;
    if (mr->obj.uses)
        return EBUSY; /* windows are bound to the region */
    if (r->flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
        mr->addr = r->to.addr;
        mr->length = r->to.length;
        mr->iova = r->to.iova;
    }
    if (r->flags & IBV_REREG_MR_CHANGE_ACCESS)
        mr->access = r->to.access;
    if (r->flags & IBV_REREG_MR_CHANGE_PD) {
        mr->pd->obj.uses--;
        mr->pd = pd;
        pd->obj.uses++;
    }
    mr->key = (mr->key & ~0xffu) | (++h->mr_tag & 0xff);
    return 0;
}

void mr_deregister(struct mr *mr)
{
    struct hca *h = mr->obj.ctx->hca;
    uint32_t i = mr->key >> 8;

    h->mr_table[i] = NULL;
    if (i < h->mr_hint)
        h->mr_hint = i;
    mr->pd->obj.uses--;
    free(mr);
}

/* Number of pinned pages. */
static uint64_t pages(const struct mr *mr)
{
    return mr->length && !mr->null && !(mr->access & IBV_ACCESS_ON_DEMAND)
               ? ((mr->addr + mr->length - 1) >> 12) - (mr->addr >> 12) + 1
               : 0;
}

uint64_t mr_register_ps(const struct mr *mr)
{
    const struct model *m = mr->pd->obj.ctx->hca->sim->model;

    return m->reg_mr_ps + pages(mr) * m->reg_mr_page_ps;
}

uint64_t mr_deregister_ps(const struct mr *mr)
{
    const struct model *m = mr->pd->obj.ctx->hca->sim->model;

    return m->dereg_mr_ps + pages(mr) * m->dereg_mr_page_ps;
}

static bool covers(const struct mr *mr, uint64_t addr, uint64_t len)
{
    return addr >= mr->iova && addr - mr->iova <= mr->length && len <= mr->length - (addr - mr->iova);
}

/*
 * Regions on demand, as real adapters support them (odp_caps of do_query_device): a queue pair must be able to wait for
 * a missing page, so only reliable connections may write to such a region; a datagram being sent can wait, too.
 */
static bool waits_for_pages(const struct qp *qp, const struct mr *mr, bool written)
{
    if (mr->window && mr->region)
        mr = mr->region;
    return !(mr->access & IBV_ACCESS_ON_DEMAND) || qp->type == IBV_QPT_RC || (qp->type == IBV_QPT_UD && !written);
}

struct mr *mr_check(const struct qp *qp, uint32_t key, uint64_t addr, uint64_t len, uint32_t access)
{
    struct mr *mr = mr_of_key(qp->hca, key);

    if (!mr || mr->pd != qp->pd || (mr->access & access) != access || !covers(mr, addr, len))
        return NULL;
    if (mr->window && (!mr->region || (mr->qp && mr->qp != qp)))
        return NULL;
    return waits_for_pages(qp, mr, access != IBV_ACCESS_REMOTE_READ) ? mr : NULL;
}

/* The region of a local key; windows have no local key. */
static struct mr *local(const struct qp *qp, const struct pd *pd, const struct sf_sge *sge, uint32_t access)
{
    struct mr *mr = mr_of_key(qp->hca, sge->lkey);

    if (!mr || mr->window || mr->pd != pd || (mr->access & access) != access || !covers(mr, sge->addr, sge->length))
        return NULL;
    return waits_for_pages(qp, mr, access) ? mr : NULL;
}

bool sge_check(const struct qp *qp, const struct pd *pd, const struct sf_sge *sge, uint32_t n, uint32_t access)
{
    for (uint32_t i = 0; i < n; i++)
        if (sge[i].length && !local(qp, pd, &sge[i], access))
            return false;
    return true;
}

/* ---- movement -------------------------------------------------------------------------------------------------- */

#define PIECES        64u
#define THREADS_TRIED 4 /* threads of a process to try, as some may be about to end */

/* Memory is reached through a thread; after its end, through another thread. */
static bool other_thread(struct proc *p)
{
    pid_t tid = thread_living(p->pid, p->mem_tid);

    if (tid)
        p->mem_tid = tid;
    return tid;
}

/* As many bytes as go at once; -1 with errno. Memory outside the first thread may belong to another process by now. */
static ssize_t reach(struct proc *p, const struct iovec *here, const struct iovec *remote, unsigned n, bool read)
{
    for (int i = 0; i < THREADS_TRIED; i++) {
        bool ours = p->mem_tid == p->pid || !syscall(SYS_tgkill, p->pid, p->mem_tid, 0);
        ssize_t done = !ours  ? -1
                       : read ? process_vm_readv(p->mem_tid, here, 1, remote, n, 0)
                              : process_vm_writev(p->mem_tid, here, 1, remote, n, 0);

        if (done >= 0 || errno != ESRCH)
            return done;
        if (!other_thread(p))
            break;
    }
    p->dead = true; /* killed, and its socket has not told yet: its adapters fall silent now */
    errno = ESRCH;
    return -1;
}

/* Between len bytes here and the pieces of the process's memory that make up as many. */
static bool transfer(struct proc *proc, struct iovec *remote, unsigned n, uint8_t *here, size_t len, bool read)
{
    if (!read)
        sched_landing(proc);
    while (len) {
        struct iovec local = {here, len};
        ssize_t done = reach(proc, &local, remote, n, read);

        if (done <= 0) {
            if (done < 0 && errno == EPERM)
                engine_log("process %d: no permission to reach its memory (ptrace scope?)", (int)proc->pid);
            return false;
        }
        here += done;
        len -= (size_t)done;
        for (size_t skip = (size_t)done; skip;) {
            size_t part = skip < remote->iov_len ? skip : remote->iov_len;

            remote->iov_base = (uint8_t *)remote->iov_base + part;
            remote->iov_len -= part;
            skip -= part;
            if (!remote->iov_len) {
                remote++;
                n--;
            }
        }
    }
    return true;
}

/* A list being walked: the segments collected for the next transfer. */
struct walk {
    const struct qp *qp;
    const struct pd *pd;
    uint32_t access;
    bool read;
    uint8_t *here;
    struct iovec iov[PIECES];
    unsigned used;
    size_t collected;
};

static bool walk_flush(struct walk *w)
{
    bool ok = !w->used || transfer(w->qp->obj.proc, w->iov, w->used, w->here, w->collected, w->read);

    w->here += w->collected;
    w->used = 0;
    w->collected = 0;
    return ok;
}

static bool walk_add(struct walk *w, const struct sf_sge *sge, uint32_t skip, uint32_t len)
{
    const struct mr *mr = local(w->qp, w->pd, sge, w->access);

    if (!mr)
        return false;
    if (mr->null) {
        if (!walk_flush(w))
            return false;
        if (w->read)
            memset(w->here, 0, len);
        w->here += len;
        return true;
    }
    if (w->used == PIECES && !walk_flush(w))
        return false;
    w->iov[w->used++] = (struct iovec){(void *)(uintptr_t)(mr->addr + (sge->addr - mr->iova) + skip), len};
    w->collected += len;
    return true;
}

static bool walk_sges(struct walk *w, const struct sf_sge *sge, uint32_t n, uint32_t offset, uint32_t len)
{
    for (uint32_t i = 0; i < n && len; i++) {
        uint32_t take;

        if (offset >= sge[i].length) {
            offset -= sge[i].length;
            continue;
        }
        take = sge[i].length - offset < len ? sge[i].length - offset : len;
        if (!walk_add(w, &sge[i], offset, take))
            return false;
        len -= take;
        offset = 0;
    }
    return !len && walk_flush(w);
}

bool mem_gather(const struct qp *qp, const struct sf_sge *sge, uint32_t n, uint32_t offset, void *to, uint32_t len)
{
    struct walk w = {.qp = qp, .pd = qp->pd, .read = true, .here = to};

    return walk_sges(&w, sge, n, offset, len);
}

bool mem_scatter(const struct qp *qp, const struct pd *pd, const struct sf_sge *sge, uint32_t n, uint32_t offset,
                 const void *from, uint32_t len)
{
    struct walk w = {.qp = qp, .pd = pd, .access = IBV_ACCESS_LOCAL_WRITE, .here = (uint8_t *)from};

    return walk_sges(&w, sge, n, offset, len);
}

static bool direct(const struct mr *mr, uint64_t addr, uint8_t *here, uint32_t len, bool read)
{
    struct iovec one = {(void *)(uintptr_t)(mr->addr + (addr - mr->iova)), len};

    return transfer(mr->obj.proc, &one, 1, here, len, read);
}

bool mem_read(const struct mr *mr, uint64_t addr, void *to, uint32_t len)
{
    return direct(mr, addr, to, len, true);
}

bool mem_write(const struct mr *mr, uint64_t addr, const void *from, uint32_t len)
{
    return direct(mr, addr, (uint8_t *)from, len, false);
}
