/* SPDX-License-Identifier: BSD-3-Clause */
/* How far the rails are from this process. */
#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/distance.h"
#include "libmrmpi/verbs/internal.h"

static unsigned list_devices(struct ibv_device *dev[MR_RAILS_MAX])
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        dev[i] = mr_verbs.rail[i].dev->ctx->device;
    return mr_verbs.num_rails;
}

bool mr_rails_are_apart(void)
{
    struct ibv_device *dev[MR_RAILS_MAX];

    return mr_distances_may_differ(dev, list_devices(dev));
}

void mr_rails_distances(unsigned out[MR_RAILS_MAX])
{
    struct ibv_device *dev[MR_RAILS_MAX];

    if (!mr_distances_of(dev, list_devices(dev), out))
        mr_log(MR_LOG_WARN, "hwloc cannot tell on which processors this process may run: all rails count as near");
}
