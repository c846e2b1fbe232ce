/* SPDX-License-Identifier: BSD-3-Clause */
/* The helper thread: polls often while there is something to do, else ever more seldom. */
#include "libmrmpi/api/init/helper.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/lock.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/p2p/p2p.h"

#define NAP_NS      20000
#define NAP_MOST_NS 500000

static struct {
    pthread_t thread;
    bool runs;
    atomic_bool ends;
} helper;

/* Something was done, or another thread is polling. */
static bool poll_aside(void)
{
    int n;

    if (!mr_lock_try_now())
        return false;
    n = mr_progress_aside();
    mr_unlock();
    return n > 0;
}

static void *help(void *arg)
{
    long nap = NAP_NS;

    while (!helper.ends) {
        if (poll_aside()) {
            nap = NAP_NS;
            continue;
        }
        nanosleep(&(struct timespec){.tv_nsec = nap}, NULL);
        nap = nap * 2 < NAP_MOST_NS ? nap * 2 : NAP_MOST_NS;
    }
    return arg;
}

/* Signals are the program's business. */
int mr_helper_start(void)
{
    sigset_t all, before;
    int err;

    if (!mr_config.async_progress)
        return 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    helper.ends = false;
    mr_threaded = true;
    err = pthread_create(&helper.thread, NULL, help, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    helper.runs = !err;
    return -err;
}

void mr_helper_stop(void)
{
    if (!helper.runs)
        return;
    helper.ends = true;
    pthread_join(helper.thread, NULL);
    helper.runs = false;
}
