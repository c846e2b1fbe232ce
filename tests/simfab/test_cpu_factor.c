/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes for a while as an actor; prints virtual time passed / processor time used, in percent. For cpu_factor.sh. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <time.h>

static double now(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    double virtual, cpu;
    volatile unsigned long sum = 0;

    if (!list || !list[0] || !ibv_open_device(list[0]))
        return 1;
    virtual = now(CLOCK_MONOTONIC);
    cpu = now(CLOCK_THREAD_CPUTIME_ID);
    while (now(CLOCK_THREAD_CPUTIME_ID) - cpu < 0.05)
        for (unsigned long i = 0; i < 1000; i++)
            sum += i;
    cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
    (void)sum;
    virtual = now(CLOCK_MONOTONIC) - virtual;
    printf("%.0f\n", 100 * virtual / cpu);
    return 0;
}
