/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a large message: registered through the cache, or paged on demand. */
#include <errno.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/stripe/keys.h"
#include "libmrmpi/memory/odp.h"
#include "libmrmpi/verbs/verbs.h"

uint32_t mr_bulk_devices(void)
{
    uint32_t set = 0;

    for (unsigned i = 0; i < mr_verbs.num_devices; i++)
        set |= (uint32_t)!mr_verbs.device[i].fatal << i;
    return set;
}

bool mr_bulk_is_known(const void *buf, size_t len)
{
    const struct mr_reg *r;

    if (mr_odp_comes_first())
        return true;
    r = mr_regcache_look(&mr_bulk.regs, buf, len, MR_ACCESS_TARGET);
    return r && !(mr_bulk_devices() & ~mr_memory_devices(&r->memory));
}

int mr_bulk_register_with(void *buf, size_t len, enum mr_access access, bool pinned, struct mr_reg_wish wish,
                          struct mr_reg **out)
{
    int err;

    *out = pinned ? NULL : mr_odp_get(buf, len, access, false);
    if (*out)
        return 0;
    err = mr_regcache_get(&mr_bulk.regs, buf, len, access, wish, out);
    if (err == -ENOMEM && !pinned && (*out = mr_odp_get(buf, len, access, true)))
        return 0;
    if (err)
        mr_log(MR_LOG_ERROR,
               "%zu bytes at %p cannot be registered for %s: %s; is the limit of locked memory too low (ulimit -l)?",
               len, buf, access == MR_ACCESS_TARGET ? "receiving" : "sending", strerror(-err));
    return err;
}

int mr_bulk_register(void *buf, size_t len, enum mr_access access, bool pinned, struct mr_reg **out)
{
    return mr_bulk_register_with(buf, len, access, pinned, (struct mr_reg_wish){.devices = mr_bulk_devices()}, out);
}

void mr_bulk_give_back(const struct mr_memory *m)
{
    mr_bulk_release(container_of((struct mr_memory *)m, struct mr_reg, memory));
}

void mr_bulk_release(struct mr_reg *r)
{
    if (!mr_odp_owns(r))
        mr_regcache_put(&mr_bulk.regs, r);
}
