/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of use.c beyond struct mr_regs (verbs.h): the cache of this process. */
#ifndef MRMPI_MEMORY_USE_H
#define MRMPI_MEMORY_USE_H

#include "libmrmpi/verbs/memory/regcache.h"
#include "libmrmpi/verbs/verbs.h"

struct mr_regs_own {
    struct mr_regcache cache;
    unsigned emptied[MR_RAILS_MAX]; /* mr_rail.emptied when mr_regs.behind was set */
    size_t num_alone;               /* registrations outside of the cache */
};
extern struct mr_regs_own mr_regs_own;

#endif
