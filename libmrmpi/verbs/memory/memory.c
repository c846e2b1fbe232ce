/* SPDX-License-Identifier: BSD-3-Clause */
/* Registering memory. */
#include "libmrmpi/verbs/memory/memory.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/verbs.h"

static bool has_region(const struct mr_memory *m, unsigned device)
{
    return m->mr[device] && m->mr[device]->pd == mr_verbs.device[device].pd;
}

static int register_on_devices(void *addr, size_t len, int flags, enum mr_access access, uint32_t devices,
                               struct mr_memory *m)
{
    struct mr_memory added = {{NULL}};

    flags |= IBV_ACCESS_REMOTE_READ;
    if (access != MR_ACCESS_SOURCE)
        flags |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    if (access == MR_ACCESS_ATOMIC)
        flags |= IBV_ACCESS_REMOTE_ATOMIC;
    for (unsigned i = 0; i < mr_verbs.num_devices; i++) {
        if (!(devices >> i & 1) || has_region(m, i) || mr_verbs.device[i].fatal)
            continue;
        added.mr[i] = ibv_reg_mr(mr_verbs.device[i].pd, addr, len, flags);
        if (!added.mr[i]) {
            int err = errno ? -errno : -ENOMEM;

            mr_memory_deregister(&added);
            return err;
        }
        mr_verbs.num_memories++;
    }
    for (unsigned i = 0; i < MR_DEVICES_MAX; i++) {
        struct mr_memory old = {{NULL}};

        if (!added.mr[i])
            continue;
        old.mr[i] = m->mr[i];
        mr_memory_deregister(&old);
        m->mr[i] = added.mr[i];
    }
    return 0;
}

int mr_memory_add(void *addr, size_t len, enum mr_access access, uint32_t devices, struct mr_memory *m)
{
    return register_on_devices(addr, len, 0, access, devices, m);
}

int mr_memory_register(void *addr, size_t len, enum mr_access access, struct mr_memory *out)
{
    memset(out, 0, sizeof *out);
    return register_on_devices(addr, len, 0, access, UINT32_MAX, out);
}

int mr_memory_register_all(enum mr_access access, struct mr_memory *out)
{
    memset(out, 0, sizeof *out);
    return mr_memory_add_all(access, out);
}

int mr_memory_add_all(enum mr_access access, struct mr_memory *m)
{
    return register_on_devices(NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND, access, UINT32_MAX, m);
}

void mr_memory_deregister(struct mr_memory *m)
{
    for (unsigned i = 0; i < MR_DEVICES_MAX; i++) {
        if (!m->mr[i])
            continue;
        ibv_dereg_mr(m->mr[i]);
        mr_verbs.num_memories--;
    }
    memset(m, 0, sizeof *m);
}

uint32_t mr_memory_devices(const struct mr_memory *m)
{
    uint32_t set = 0;

    for (unsigned i = 0; i < mr_verbs.num_devices; i++)
        set |= (uint32_t)has_region(m, i) << i;
    return set;
}

bool mr_memory_is_on(const struct mr_memory *m, const struct mr_rail *rail)
{
    return has_region(m, rail->dev->index);
}

uint32_t mr_memory_lkey(const struct mr_memory *m, const struct mr_rail *rail)
{
    const struct ibv_mr *mr = m->mr[rail->dev->index];

    return mr ? mr->lkey : 0;
}

uint32_t mr_memory_rkey(const struct mr_memory *m, const struct mr_rail *rail)
{
    return mr_memory_is_on(m, rail) ? m->mr[rail->dev->index]->rkey : 0;
}
