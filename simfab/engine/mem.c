/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions, and what a DMA engine does: bytes between the engine and the memory of the processes, by
 * process_vm_readv and process_vm_writev. Keys are per HCA: index in its table << 8 | a tag that changes, so that a key
 * of a region that is gone is not the key of the next.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "simfab/engine/proc.h"
#include "simfab/engine/util.h"

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
    return i ? i : 1; /* key 0 belongs to nobody */
}

struct mr *mr_register(struct pd *pd, const struct sf_reg_mr *r, int *err)
{
    const uint32_t remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    struct hca *h = pd->obj.ctx->hca;
    struct mr *mr;
    uint32_t i;

    if (r->addr + r->length < r->addr || r->iova + r->length < r->iova ||
        ((r->access & remote) && !(r->access & IBV_ACCESS_LOCAL_WRITE))) {
        *err = EINVAL;
        return NULL;
    }
    i = free_slot(h);
    if (!i) {
        *err = ENOMEM;
        return NULL;
    }
    mr = xcalloc(1, sizeof *mr);
    *mr = (struct mr){.pd = pd, .addr = r->addr, .length = r->length, .iova = r->iova, .access = r->access};
    mr->key = i << 8 | ++h->mr_tag;
    h->mr_table[i] = mr;
    h->mr_hint = i + 1;
    pd->obj.uses++;
    return mr;
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

static uint64_t pages(const struct mr *mr)
{
    return mr->length ? ((mr->addr + mr->length - 1) >> 12) - (mr->addr >> 12) + 1 : 0;
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

struct mr *mr_check(struct hca *h, uint32_t key, const struct pd *pd, uint64_t addr, uint64_t len, uint32_t access)
{
    uint32_t i = key >> 8;
    struct mr *mr = i < h->mr_table_size ? h->mr_table[i] : NULL;

    if (!mr || mr->key != key || mr->pd != pd || (mr->access & access) != access)
        return NULL;
    if (addr < mr->iova || addr - mr->iova > mr->length || len > mr->length - (addr - mr->iova))
        return NULL;
    return mr;
}

bool sge_check(struct qp *qp, const struct sf_sge *sge, uint32_t n, uint32_t access)
{
    for (uint32_t i = 0; i < n; i++)
        if (sge[i].length && !mr_check(qp->hca, sge[i].lkey, qp->pd, sge[i].addr, sge[i].length, access))
            return false;
    return true;
}

#define PIECES 64u

/* The parts of [offset, offset + len) of a list, at most PIECES; returns their number, *covered the bytes in them. */
static unsigned pieces(const struct sf_sge *sge, uint32_t n, uint32_t offset, uint32_t len, struct iovec *iov,
                       uint32_t *covered)
{
    unsigned used = 0;

    *covered = 0;
    for (uint32_t i = 0; i < n && len && used < PIECES; i++) {
        uint32_t take;

        if (offset >= sge[i].length) {
            offset -= sge[i].length;
            continue;
        }
        take = sge[i].length - offset;
        if (take > len)
            take = len;
        iov[used++] = (struct iovec){(void *)(uintptr_t)(sge[i].addr + offset), take};
        *covered += take;
        len -= take;
        offset = 0;
    }
    return used;
}

static bool move(struct proc *proc, const struct sf_sge *sge, uint32_t n, uint32_t offset, uint8_t *here, uint32_t len,
                 bool read)
{
    while (len) {
        struct iovec remote[PIECES], local;
        uint32_t covered;
        unsigned used = pieces(sge, n, offset, len, remote, &covered);
        ssize_t done;

        if (!used)
            return false;
        local = (struct iovec){here, covered};
        done = read ? process_vm_readv(proc->pid, &local, 1, remote, used, 0)
                    : process_vm_writev(proc->pid, &local, 1, remote, used, 0);
        if (done <= 0) {
            if (done < 0 && errno == EPERM)
                engine_log("process %d: no permission to reach its memory (ptrace scope?)", (int)proc->pid);
            if (done < 0 && errno == ESRCH)
                proc->dead = true; /* killed, and its socket has not told yet: its adapters fall silent now */
            return false;
        }
        here += done;
        offset += (uint32_t)done;
        len -= (uint32_t)done;
    }
    return true;
}

bool mem_gather(struct proc *proc, const struct sf_sge *sge, uint32_t n, uint32_t offset, void *to, uint32_t len)
{
    return move(proc, sge, n, offset, to, len, true);
}

bool mem_scatter(struct proc *proc, const struct sf_sge *sge, uint32_t n, uint32_t offset, const void *from,
                 uint32_t len)
{
    return move(proc, sge, n, offset, (uint8_t *)from, len, false);
}

bool mem_read(struct mr *mr, uint64_t addr, void *to, uint32_t len)
{
    struct sf_sge one = {mr->addr + (addr - mr->iova), len, 0};

    return move(mr->obj.proc, &one, 1, 0, to, len, true);
}

bool mem_write(struct mr *mr, uint64_t addr, const void *from, uint32_t len)
{
    struct sf_sge one = {mr->addr + (addr - mr->iova), len, 0};

    return move(mr->obj.proc, &one, 1, 0, (uint8_t *)from, len, false);
}
