/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether copies are ours to make: see copy.h. */
#include "libmrmpi/base/copy_loops.h"

#include <dlfcn.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

bool mr_copy_watched, mr_copy_by_string;
mr_copy_fn *mr_copy_long = memcpy;

/* An AMD that says its string instructions are fast (APM volume 3, function 7: ERMS). */
static bool has_fast_strings(void)
{
#ifdef __x86_64__
    unsigned a, b, c, d;

    __builtin_cpu_init();
    return __builtin_cpu_is("amd") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 9 & 1;
#else
    return false;
#endif
}

void mr_copy_init(void)
{
    void *memcpy_used = dlsym(RTLD_DEFAULT, "memcpy"), *strerror_used = dlsym(RTLD_DEFAULT, "strerror");
    Dl_info copies, others;

    mr_copy_watched = memcpy_used && strerror_used && dladdr(memcpy_used, &copies) && dladdr(strerror_used, &others) &&
                      copies.dli_fbase != others.dli_fbase;
    mr_copy_long = mr_copy_watched ? memcpy : mr_copy_loop_at(mr_vectors());
    mr_copy_by_string = !mr_copy_watched && has_fast_strings();
}

void mr_copy_away_long(void *to, const void *from, size_t len)
{
#ifdef __x86_64__
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
#else
    memcpy(to, from, len);
#endif
}
