/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping until a peer of this node rings, and ringing.
 *
 * A sender writes its packet and then checks for sleepers; a sleeper announces its sleep and then checks for packets.
 * One of them sees the other's write, if both order the two. With more ranks than cores both do, by a fence: sleeps are
 * many and short. With a core for each rank a fence of the sender would be a tenth of a short message, so the sender
 * has none, and its write may become visible a little later than its check. So the sleeper checks for packets much
 * later (LINGER_NS) than its announcement. If a write is later still, the sleep ends by itself in time. So does a sleep
 * that begins while the last rank of the node comes, which makes more ranks than cores.
 */
#include "libmrmpi/channel/shm_sleep.h"

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/lock.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/channel/shm_segment.h"

/* A store buffer is empty after less than a microsecond. */
#define LINGER_NS 20000

static const uint32_t nobody;
const uint32_t *mr_shm_bell = &nobody;

static struct {
    struct mr_segment *segment; /* NULL: this rank is alone on its node */
    const int *local_of;
    int me;
    struct mr_box *box; /* this rank's */
    bool (*busy)(void);
    int num_asleep;     /* threads of this process in mr_shm_sleep */
    int num_dozing;     /* between mr_shm_doze and mr_shm_rise */
    uint64_t dozing_ns; /* since the announcement in the box */
} own;

void mr_shm_sleep_begin(struct mr_segment *s, const int *local_of, int me, bool (*busy)(void))
{
    own.segment = s;
    own.local_of = local_of;
    own.me = me;
    own.box = &s->boxes[me];
    own.busy = busy;
    mr_shm_bell = &s->header->bell;
}

void mr_shm_sleep_end(void)
{
    while (own.num_dozing)
        mr_shm_rise();
    mr_shm_bell = &nobody;
    own.segment = NULL;
}

bool mr_shm_can_sleep(void)
{
    return own.segment;
}

static void doze_anew(void)
{
    mr_box_doze(own.box);
    own.dozing_ns = mr_clock_ns();
}

void mr_shm_doze(void)
{
    if (!own.segment || own.num_dozing++)
        return;
    __atomic_fetch_add(&own.segment->header->bell, 1, __ATOMIC_SEQ_CST);
    doze_anew();
}

void mr_shm_rise(void)
{
    if (!own.segment || --own.num_dozing)
        return;
    mr_box_rise(own.box);
    __atomic_fetch_sub(&own.segment->header->bell, 1, __ATOMIC_RELAXED);
}

/* True if all peers see that we sleep. With a core for each: they have for a while, and none has rung since. */
static bool all_know(void)
{
    if (mr_segment_is_crowded(own.segment)) {
        mr_box_doze(own.box);
        return true;
    }
    if (!mr_box_dozes(own.box))
        doze_anew();
    return mr_clock_ns() - own.dozing_ns >= LINGER_NS;
}

bool mr_shm_sleep(uint32_t timeout_us, bool (*done)(void *arg), void *arg)
{
    bool sleeps;

    if (!own.segment || !all_know())
        return false;
    own.num_asleep++;
    sleeps = !own.busy() && !(done && done(arg));
    if (sleeps) {
        mr_unlock();
        mr_box_sleep(own.box, timeout_us);
        mr_lock();
    }
    if (--own.num_asleep == 0 && mr_segment_is_crowded(own.segment))
        mr_box_rise(own.box);
    return sleeps;
}

void mr_shm_ring_local(int local)
{
    if (mr_segment_is_crowded(own.segment))
        mr_box_order();
    mr_box_rouse(&own.segment->boxes[local]);
}

void mr_shm_ring_all(const int *world, int n)
{
    if (mr_segment_is_crowded(own.segment))
        mr_box_order();
    for (int i = 0; i < n; i++)
        if (own.local_of[world[i]] != own.me)
            mr_box_rouse(&own.segment->boxes[own.local_of[world[i]]]);
}

void mr_shm_wake(void)
{
    if (own.num_asleep)
        mr_box_wake(own.box);
}
