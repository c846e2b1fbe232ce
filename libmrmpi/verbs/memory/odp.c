/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers all memory at once, without pinning it. */
#include "libmrmpi/verbs/memory/odp.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/verbs/memory/memory.h"

static struct {
    enum mr_odp_use use;
    bool made[2]; /* by access */
    struct mr_reg all[2];
} odp;

const char *mr_odp_missing(bool datagrams)
{
    for (unsigned i = 0; i < mr_verbs.num_devices; i++) {
        const struct mr_device *dev = &mr_verbs.device[i];

        if (!dev->odp || (datagrams && !dev->odp_datagrams))
            return dev->name;
    }
    return NULL;
}

void mr_odp_open(enum mr_odp_use use)
{
    memset(&odp, 0, sizeof odp);
    odp.use = use;
}

bool mr_odp_comes_first(void)
{
    return odp.use == MR_ODP_FIRST;
}

int mr_odp_renew(void)
{
    int err = 0;

    for (unsigned a = 0; a < 2 && !err; a++)
        if (odp.made[a])
            err = mr_memory_add_all(a, &odp.all[a].memory);
    return err;
}

void mr_odp_close(void)
{
    for (unsigned a = 0; a < 2; a++)
        if (odp.made[a])
            mr_memory_deregister(&odp.all[a].memory);
    memset(&odp, 0, sizeof odp);
}

/* Unmapped memory would break the connection; a stack may have to grow. Pinning detects this, and handles it. */
static bool memory_is_mapped(const void *addr, size_t len)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)addr & ~(page - 1);

    return !len || !msync((void *)start, (uintptr_t)addr + len - start, MS_ASYNC);
}

static bool odp_register(enum mr_access access)
{
    int err;

    if (odp.made[access])
        return true;
    err = mr_memory_register_all(access, &odp.all[access].memory);
    odp.made[access] = !err;
    if (err) {
        odp.use = MR_ODP_NEVER; /* registrations in use stay */
        mr_log(MR_LOG_WARN, "all memory cannot be registered on demand (%s): large buffers are pinned", strerror(-err));
    }
    return !err;
}

struct mr_reg *mr_odp_get(const void *addr, size_t len, enum mr_access access, bool pinning_failed)
{
    if (odp.use != (pinning_failed ? MR_ODP_LAST : MR_ODP_FIRST) || !memory_is_mapped(addr, len) ||
        !odp_register(access))
        return NULL;
    mr_stat_add(MR_STAT_REG_ON_DEMAND, 1);
    return &odp.all[access];
}

bool mr_odp_owns(const struct mr_reg *r)
{
    return r == &odp.all[0] || r == &odp.all[1];
}
