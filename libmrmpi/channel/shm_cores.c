/* SPDX-License-Identifier: BSD-3-Clause */
#include "libmrmpi/channel/shm_cores.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = MR_CORES_MOST / 64 };

/* Where the kernel does not say, all that there are. */
void mr_cores_mine(struct mr_cores *mine)
{
    long online;

    memset(mine, 0, sizeof(*mine));
    if (!sched_getaffinity(0, sizeof(*mine), (cpu_set_t *)mine))
        return;
    online = sysconf(_SC_NPROCESSORS_ONLN);
    for (long i = 0; i < online && i < MR_CORES_MOST; i++)
        mine->of[i / 64] |= UINT64_C(1) << (i % 64);
}

bool mr_cores_join(struct mr_node_cores *c, const struct mr_cores *mine, int ranks)
{
    int num = 0;

    for (int i = 0; i < WORDS; i++)
        if (mine->of[i])
            __atomic_fetch_or(&c->all.of[i], mine->of[i], __ATOMIC_RELAXED);
    if (__atomic_add_fetch(&c->joined, 1, __ATOMIC_ACQ_REL) != (uint32_t)ranks)
        return false;
    syscall(SYS_futex, &c->joined, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    for (int i = 0; i < WORDS; i++)
        num += __builtin_popcountll(c->all.of[i]);
    return ranks > num;
}

/* On a simulated host a time-out moves the clock, so that it must not run out while ranks are slow to start. */
void mr_cores_await(struct mr_node_cores *c, int ranks, bool (*alive)(void))
{
    const struct timespec nap = {.tv_sec = 10};
    uint32_t joined;

    while ((joined = __atomic_load_n(&c->joined, __ATOMIC_ACQUIRE)) < (uint32_t)ranks && alive())
        syscall(SYS_futex, &c->joined, FUTEX_WAIT, joined, &nap, NULL, 0);
}
