/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress and waiting. A waiter polls until its condition holds. Without work it spins for a while, then yields the
 * processor, and then sleeps until a peer rings: soon with more ranks than cores or if other programs are seen to use
 * our core, else after a tenth of a second. If the network may bring something, the waiter naps: the network rings for
 * no rank.
 *
 * With several threads one of them polls for all, and hands the lock over between two polls to a thread that the last
 * poll may concern.
 */
#include "libmrmpi/p2p/p2p.h"
#include "libmrmpi/p2p/progress/progress.h"

#include <sched.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/idioms.h"
#include "libmrmpi/base/lock.h"
#include "libmrmpi/channel/channel.h"

/* With more ranks than cores: idle polls before the first yield, and yields before sleeping. */
#define CROWDED_SPINS  4
#define CROWDED_YIELDS 4
/* A sleeper wakes by itself after this time, at first and at most. With a network, no ring announces its packets. */
#define SLEEP_US      1000
#define SLEEP_MOST_US 50000
#define SLEEP_NET_US  50
/* The same at most, if the launcher, which rings for nobody, may tell of the end of a rank. */
#define SLEEP_RECOVER_US 4000
/* The clock is read once in so many idle polls. */
#define CLOCK_EVERY 64
/*
 * Idle polls before the first that pauses: an answer may come meanwhile, and a pause is a tenth of its time, or more.
 */
#define KEEN_POLLS 64
/* Most polls of a test while there is work: a flood must not hold it. */
#define TEST_POLLS     8
#define SPIN_SHIFT_MAX 8
/* A yield of at most this time has found no other user of the core. */
#define YIELDED_NS 20000
/*
 * A yield of this time has found a computing program, most likely there next time, too. Yields do not help against
 * it: some kernels take a time slice of ours for each, or yield to none but the threads of our session.
 */
#define SLICE_NS  500000
#define WANTED_NS 1000000000 /* for this time after the last lost slice, a waiter sleeps as soon as it has spun */
#define ALONE_NS  100000000  /* a waiter with a core of its own sleeps after this time */
/* Where others want our core a waiter spins about as long as it takes to sleep and be woken, or as a nap. */
#define WANTED_SPIN_NS     20000
#define WANTED_SPIN_NET_NS 100000
/* With a network: a nap lasts this part of the time waited so far. */
#define NAP_PART    128
#define NAP_MOST_NS 1000000

struct idle {
    unsigned rounds;
    uint64_t since_ns;
    bool spun;         /* long enough: yield from now on */
    bool yielded_long; /* another program used the yielded core */
    bool dozes;        /* peers ring */
    uint32_t sleep_us;
};

struct poll {
    void *const *pending;
    int (*poll)(void);
};

enum { POLLS = 5 };
struct polls {
    struct poll of[POLLS]; /* unused entries point to nothing */
    unsigned num;
};

static struct {
    struct polls always, in_mpi;
    unsigned spin_shift;            /* how often the time to spin has been halved */
    uint64_t wanted_ns;             /* until then others are taken to want our core */
    const volatile uint32_t *asked; /* an inquiry: mr_progress_inquiry */
    uint32_t answered;
    void (*answer)(uint64_t waited_ns);
} all;

static const uint32_t never_asked;

/* Some lists grow by other threads: the launcher's news (mr_launch_ends). */
static inline void *seen_pending(const struct poll *p)
{
    return __atomic_load_n(p->pending, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) int poll_pending(const struct polls *polls)
{
    int n = 0;

    for (const struct poll *p = polls->of, *end = p + polls->num; p != end; p++)
        if (seen_pending(p))
            n += p->poll();
    return n;
}

/* Mostly nothing is pending: then it is known with two loads for each. */
static inline int poll_all(const struct polls *polls)
{
    _Static_assert(POLLS == 5, "all of them");
    const struct poll *of = polls->of;
    uintptr_t any = (uintptr_t)seen_pending(&of[0]) | (uintptr_t)seen_pending(&of[1]) |
                    (uintptr_t)seen_pending(&of[2]) | (uintptr_t)seen_pending(&of[3]) | (uintptr_t)seen_pending(&of[4]);

    return unlikely(any != 0) ? poll_pending(polls) : 0;
}

unsigned mr_progress_polls;

int mr_progress_aside(void)
{
    int n = mr_vc_poll() + poll_all(&all.always);

    mr_progress_polls++;
    mr_lock_news += n > 0;
    return n;
}

int mr_progress(void)
{
    int n = mr_vc_poll();

    n += poll_all(&all.always);
    n += poll_all(&all.in_mpi);
    mr_progress_polls++;
    mr_lock_news += n > 0;
    return n;
}

/*
 * The result of one poll may be needed by the next: a packet to oneself is answered by another. A fruitless test must
 * not keep a peer on our core from doing its part.
 */
bool mr_progress_try(bool (*done)(void *arg), void *arg)
{
    int n = 1;

    for (int polls = 0; n && polls < TEST_POLLS; polls++) {
        if (done(arg))
            return true;
        n = mr_progress();
    }
    if (done(arg))
        return true;
    if (n == 0 && mr_shm_oversubscribed())
        sched_yield();
    return mr_lock_yield((struct mr_lock_wish){.at_once = true}) && done(arg);
}

static bool never(void *arg)
{
    return false;
}

void mr_progress_some(void)
{
    mr_progress_try(never, NULL);
}

void mr_progress_register(enum mr_progress_when when, void *const *pending, int (*poll)(void))
{
    struct polls *polls = when == MR_PROGRESS_ALWAYS ? &all.always : &all.in_mpi;

    if (polls->num < POLLS)
        polls->of[polls->num++] = (struct poll){pending, poll};
}

void mr_progress_init(void)
{
    static void *const nothing;

    memset(&all, 0, sizeof(all));
    for (int i = 0; i < POLLS; i++)
        all.always.of[i].pending = all.in_mpi.of[i].pending = &nothing;
    all.asked = &never_asked;
    mr_progress_awaited = NULL;
}

void mr_progress_inquiry(const volatile uint32_t *news, void (*answer)(uint64_t waited_ns))
{
    all.asked = news ? news : &never_asked;
    all.answered = *all.asked;
    all.answer = answer;
}

static __attribute__((noinline)) void answer_inquiry(struct idle *idle)
{
    uint64_t now = mr_clock_ns();

    if (!idle->since_ns)
        idle->since_ns = now;
    all.answered = *all.asked;
    all.answer(now - idle->since_ns);
}

static uint32_t longer(uint32_t sleep_us)
{
    if (!sleep_us)
        return SLEEP_US;
    uint32_t most = mr_config.recover ? SLEEP_RECOVER_US : SLEEP_MOST_US;

    return sleep_us * 2 < most ? sleep_us * 2 : most;
}

static void idle_crowded(struct idle *idle, bool (*done)(void *arg), void *arg)
{
    bool network = mr_vc_unrung;

    if (idle->rounds == CROWDED_SPINS + CROWDED_YIELDS)
        idle->since_ns = mr_clock_ns();
    if (idle->rounds <= CROWDED_SPINS)
        mr_relax();
    else if (idle->rounds <= CROWDED_SPINS + CROWDED_YIELDS)
        sched_yield();
    else if (!mr_shm_sleep(network ? SLEEP_NET_US : (idle->sleep_us = longer(idle->sleep_us)), done, arg))
        sched_yield();
}

/* Another program ran on our core meanwhile if it took long. */
static void yield_timed(struct idle *idle, uint64_t before)
{
    uint64_t now, took;

    sched_yield();
    now = mr_clock_ns();
    took = now - before;
    idle->yielded_long |= took > YIELDED_NS;
    if (took > SLICE_NS)
        all.wanted_ns = now + WANTED_NS;
}

static bool shall_sleep(const struct idle *idle, uint64_t now)
{
    return now < all.wanted_ns || now - idle->since_ns > ALONE_NS;
}

static uint64_t wait_nap_ns(uint64_t waited)
{
    uint64_t part = waited / NAP_PART;

    return part < SLEEP_NET_US * 1000 ? SLEEP_NET_US * 1000 : part < NAP_MOST_NS ? part : NAP_MOST_NS;
}

/* Guests of this node wake it. */
static void nap(uint64_t ns)
{
    int fd;

    if (!mr_stream_doze(&fd))
        return;
    mr_lock_nap_by(ns, fd);
    if (fd >= 0)
        mr_stream_rise();
}

static void sleep_or_nap(struct idle *idle, uint64_t now, bool (*done)(void *arg), void *arg)
{
    if (mr_vc_unrung || !mr_shm_can_sleep()) {
        nap(wait_nap_ns(now - idle->since_ns));
        return;
    }
    if (!idle->dozes)
        mr_shm_doze();
    idle->dozes = true;
    if (mr_shm_sleep(longer(idle->sleep_us), done, arg))
        idle->sleep_us = longer(idle->sleep_us);
    else
        yield_timed(idle, now);
}

static __attribute__((noinline)) void yield_or_sleep(struct idle *idle, bool (*done)(void *arg), void *arg)
{
    uint64_t now = mr_clock_ns();

    if (!idle->since_ns)
        idle->since_ns = now;
    if (shall_sleep(idle, now))
        sleep_or_nap(idle, now, done, arg);
    else
        yield_timed(idle, now);
}

static uint64_t spin_ns(uint64_t now)
{
    uint64_t learnt = (uint64_t)mr_config.spin_us * 1000 >> all.spin_shift, wanted;

    if (now >= all.wanted_ns)
        return learnt;
    wanted = mr_vc_unrung ? WANTED_SPIN_NET_NS : WANTED_SPIN_NS;
    return learnt < wanted ? learnt : wanted;
}

/*
 * With a core for each rank: spin, then yield, then sleep. The spinning time is learnt: if another program took the
 * yielded core, the next wait spins shorter; after any other wait the next one spins its full time again. The first
 * CLOCK_EVERY polls always spin.
 */
static void idle_alone(struct idle *idle, bool (*done)(void *arg), void *arg)
{
    uint64_t now;

    if (idle->spun) {
        yield_or_sleep(idle, done, arg);
        return;
    }
    if (idle->rounds > KEEN_POLLS)
        mr_relax();
    if (idle->rounds % CLOCK_EVERY)
        return;
    now = mr_clock_ns();
    if (!idle->since_ns)
        idle->since_ns = now;
    idle->spun = all.spin_shift >= SPIN_SHIFT_MAX || now - idle->since_ns > spin_ns(now);
}

static inline void idle_over(struct idle *idle)
{
    if (!idle->rounds)
        return;
    if (!idle->yielded_long)
        all.spin_shift = 0;
    else if (all.spin_shift < SPIN_SHIFT_MAX)
        all.spin_shift += 2;
    if (idle->dozes)
        mr_shm_rise();
    *idle = (struct idle){0};
}

/* The awaited event has come: by this thread's poll, or by another thread's. */
static inline void idle_end(const struct idle *idle)
{
    if (unlikely(idle->dozes))
        mr_shm_rise();
}

/* done: the waiter's condition beside messages; NULL: none. */
static void idle_round(struct idle *idle, bool (*done)(void *arg), void *arg)
{
    idle->rounds++;
    if (unlikely(*all.asked != all.answered))
        answer_inquiry(idle);
    if (mr_shm_oversubscribed())
        idle_crowded(idle, done, arg);
    else
        idle_alone(idle, done, arg);
}

void mr_progress_until(bool (*done)(void *arg), void *arg)
{
    struct idle idle = {0};
    bool given = false;

    for (;;) {
        struct mr_lock_wish wish = {.seen = mr_lock_news};

        if (done(arg))
            break;
        if (!given && (given = mr_lock_yield(wish)))
            continue; /* and then to the network: the result of done may be news for others, again and again */
        given = false;
        if (mr_progress() == 0)
            idle_round(&idle, done, arg);
        else
            idle_over(&idle);
    }
    idle_end(&idle);
}

struct mr_request *mr_progress_awaited;

void mr_progress_wait(struct mr_request *req, bool polled)
{
    struct mr_request *before = mr_progress_awaited;
    struct idle idle = {0};

    mr_progress_awaited = req;
    if (polled)
        idle_round(&idle, NULL, NULL);
    while (!req->complete) {
        if (mr_lock_yield((struct mr_lock_wish){.complete = &req->complete}))
            continue;
        if (mr_progress() == 0)
            idle_round(&idle, NULL, NULL);
        else
            idle_over(&idle);
    }
    idle_end(&idle);
    mr_progress_awaited = before;
}
