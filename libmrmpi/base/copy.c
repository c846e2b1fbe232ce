/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether copies are ours to make: see copy.h. */
#include "libmrmpi/base/base.h"
#include "libmrmpi/base/copy_loops.h"
#include "libmrmpi/base/learn.h"

#include <dlfcn.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

bool mr_copy_watched, mr_copy_by_string;
mr_copy_fn *mr_copy_long = memcpy;

/* True if the processor reports fast string instructions (Intel SDM volume 2, CPUID leaf 7; AMD APM volume 3: ERMS). */
static bool has_fast_strings(void)
{
#ifdef __x86_64__
    unsigned a, b, c, d;

    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 9 & 1;
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

static void copy_by_string(void *to, const void *from, size_t len)
{
#ifdef __x86_64__
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
#else
    memcpy(to, from, len);
#endif
}

enum { BY_MEMCPY = 1, BY_STRING = 2 }; /* bits of ways */

/* Each power of two has a learner of its own: where caches end differs. */
void mr_copy_away_long(void *to, const void *from, size_t len)
{
    static struct mr_learn learners[4];
    unsigned at = 0, way;
    uint64_t begin = mr_clock_ns();

    while (at < 3 && len >= (size_t)MR_COPY_STRING << (at + 1))
        at++;
    way = mr_learn_next(&learners[at], BY_MEMCPY | BY_STRING, MR_LEARN_SAMPLES);
    if (1u << way == BY_STRING)
        copy_by_string(to, from, len);
    else
        memcpy(to, from, len);
    mr_learn_took(&learners[at], way, (mr_clock_ns() - begin) * 1024000 / len);
}
