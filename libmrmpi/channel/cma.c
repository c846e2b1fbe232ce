/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single copy inside a node by process_vm_readv and process_vm_writev. There is nothing to register: a region is the
 * address and the process.
 */
#include "libmrmpi/channel/cma.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"

bool mr_cma_refused;

static struct mr_region no_region; /* there is nothing to take back */

int mr_cma_advertise(struct mr_vc *vc, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                     struct mr_remote *out)
{
    *region = &no_region;
    *out = (struct mr_remote){.addr = (uintptr_t)buf, .len = len, .pid = getpid()};
    return 0;
}

void mr_cma_withdraw(struct mr_region *region)
{
}

/* The kernel's refusal: of this process at all, or of this memory. */
static int refusal(void)
{
    return errno == EPERM || errno == ESRCH || errno == ENOSYS ? -EPERM : -errno;
}

static int copy_between(char *here, size_t len, const struct mr_remote *remote, uint64_t offset, bool write)
{
    size_t all = len;

    if (offset > remote->len || len > remote->len - offset)
        return -EFAULT;
    while (len) {
        struct iovec ours = {.iov_base = here, .iov_len = len};
        struct iovec theirs = {.iov_base = (void *)(uintptr_t)(remote->addr + offset), .iov_len = len};
        ssize_t n = write ? process_vm_writev(remote->pid, &ours, 1, &theirs, 1, 0)
                          : process_vm_readv(remote->pid, &ours, 1, &theirs, 1, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n ? refusal() : -EFAULT;
        here += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    mr_stat_add(MR_STAT_SHM_SINGLE_COPY, all);
    return 0;
}

int mr_cma_get(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *src, uint64_t offset)
{
    return copy_between(buf, len, src, offset, false);
}

/* The caller does it by other means if none of it could be done; a partly done move can be repeated. */
int mr_cma_move(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *remote, bool write,
                struct mr_vc_move *m)
{
    int err = copy_between(buf, len, remote, 0, write);

    if (err == -EPERM)
        mr_cma_refused = true;
    if (!err)
        m->done(m, 0);
    return err;
}
