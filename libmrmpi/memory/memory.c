/* SPDX-License-Identifier: BSD-3-Clause */
/* Registering memory on all devices at once. */
#include "libmrmpi/memory/memory.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/verbs.h"

static int register_on_all(void *addr, size_t len, int flags, enum mr_access access, struct mr_memory *out)
{
    flags |= IBV_ACCESS_REMOTE_READ;
    if (access == MR_ACCESS_TARGET)
        flags |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < mr_verbs.num_devices; i++) {
        if (mr_verbs.device[i].fatal)
            continue;
        out->mr[i] = ibv_reg_mr(mr_verbs.device[i].pd, addr, len, flags);
        if (!out->mr[i]) {
            int err = errno ? -errno : -ENOMEM;

            mr_memory_deregister(out);
            return err;
        }
        mr_verbs.num_memories++;
    }
    return 0;
}

int mr_memory_register(void *addr, size_t len, enum mr_access access, struct mr_memory *out)
{
    return register_on_all(addr, len, 0, access, out);
}

int mr_memory_register_all(enum mr_access access, struct mr_memory *out)
{
    return register_on_all(NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND, access, out);
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

uint32_t mr_memory_lkey(const struct mr_memory *m, const struct mr_rail *rail)
{
    const struct ibv_mr *mr = m->mr[rail->dev->index];

    return mr ? mr->lkey : 0;
}

uint32_t mr_memory_rkey(const struct mr_memory *m, const struct mr_rail *rail)
{
    const struct ibv_mr *mr = m->mr[rail->dev->index];

    return mr ? mr->rkey : 0;
}
