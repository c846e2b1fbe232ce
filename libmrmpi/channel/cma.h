/* SPDX-License-Identifier: BSD-3-Clause */
/* Copying between the address spaces of two processes of one node, for channels self, shm and stream. */
#ifndef MRMPI_CMA_H
#define MRMPI_CMA_H

#include "libmrmpi/channel/channel.h"

int mr_cma_advertise(struct mr_vc *vc, void *buf, size_t len, enum mr_vc_caps how, struct mr_region **region,
                     struct mr_remote *out);
void mr_cma_withdraw(struct mr_region *region);
/* 0; -EPERM when the kernel does not let us at that process at all; -EFAULT when the memory is not there. */
int mr_cma_get(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *src, uint64_t offset);
extern MR_OWN bool mr_cma_refused; /* a move failed with -EPERM: further moves would fail, too */
/* As mr_vc_move; done when it returns. -EPERM as above. */
int mr_cma_move(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *remote, bool write,
                struct mr_vc_move *m);

#endif
