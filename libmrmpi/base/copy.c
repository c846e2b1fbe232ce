/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether copies are ours to make: see copy.h. */
#include "libmrmpi/base/copy_loops.h"

#include <dlfcn.h>

bool mr_copy_watched;
mr_copy_fn *mr_copy_long = memcpy;

void mr_copy_init(void)
{
    void *memcpy_used = dlsym(RTLD_DEFAULT, "memcpy"), *strerror_used = dlsym(RTLD_DEFAULT, "strerror");
    Dl_info copies, others;

    mr_copy_watched = memcpy_used && strerror_used && dladdr(memcpy_used, &copies) && dladdr(strerror_used, &others) &&
                      copies.dli_fbase != others.dli_fbase;
    mr_copy_long = mr_copy_watched ? memcpy : mr_copy_loop_at(mr_vectors());
}
