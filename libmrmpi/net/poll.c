/* SPDX-License-Identifier: BSD-3-Clause */
/* The progress of channel net: arrivals, waiting packets, pending work, news of ports and of fabricd, naps. */
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/lock.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/net/internal.h"
#include "libmrmpi/net/view/view.h"

/* Interval of checks for port events, work of broken links, and news of fabricd. An idle poll reads the clock. */
#define NEWS_NS    20000
#define BUSY_CHECK 64 /* other polls: one in this number reads the clock */
#define BUSY_NS    500000
/*
 * While there is no way to a peer: a short sleep after this number of consecutive polls without result in any channel.
 */
#define NAP_CHECK       256
#define NAP_NS          50000
#define NAP_ISOLATED_NS 500000
/* While the first way to a peer is sought, or traffic stands still: after this time, if sooner. */
#define QUIET_NS 100000
/*
 * While packets wait to be acknowledged: the same, but only after this time, and for a small part of the waiting time
 * so far; or where polling does not let time pass.
 */
#define RELY_NAP_NS   1000000
#define RELY_NAP_MOST 1000000
#define RELY_NAP_PART 16
#define POLL_LEAST_NS 2 /* least time of a poll */
/* While parts of large messages are late: the same, and microseconds count. */
#define CATCH_NAP_NS 20000
/* While packets waiting for an ACK do not move: short naps, for this time, as a way may have to be given up. */
#define DOUBT_NS 50000000
/*
 * While packets wait for the peer's pace: a nap that ends this much too late is useless, and another is tried after
 * BLUNT_NS.
 */
#define NAP_LATE_NS 5000
#define BLUNT_NS    1000000000ull
#define RINGS_FIRST 8 /* polls of rings that found something before the completion queues are polled, too */

/* ---- waiting packets --------------------------------------------------------------------------------------------- */

/* True if something still waits. */
static bool flush_peer(struct mr_peer *p)
{
    bool waits;

    mr_net_push(p);
    waits = mr_bulk_resume(p);
    return waits || mr_window_waiting(&p->out);
}

/* A peer that has been read from at our pace comes last the next time. */
static __attribute__((noinline)) void flush_backlog(void)
{
    struct mr_peer **at = &mr_peers.backlogged, *p, *served = NULL, **served_end = &served;

    while ((p = *at)) {
        unsigned parts = mr_peers.paced_parts;
        bool waits = !p->error && flush_peer(p);

        if (waits && parts == mr_peers.paced_parts) {
            at = &p->next_backlogged;
            continue;
        }
        *at = p->next_backlogged;
        if (waits) {
            *served_end = p;
            served_end = &p->next_backlogged;
        } else {
            p->backlogged = false;
        }
    }
    *served_end = NULL;
    *at = served;
}

/* ---- poll -------------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) void poll_news(bool idle, uint64_t now)
{
    struct mr_fabric_qos q;
    bool news, respread;

    mr_net.news_ns = now;
    mr_verbs_check_events();
    mr_view_update(now);
    if (mr_peers.recovering)
        mr_peers_poll();
    if ((mr_peers.rationed || mr_peers.rules.num || mr_net.rings) && mr_budget_tick(now))
        mr_rings_tick();
    if (idle)
        mr_keepalive_silent(now);
    mr_silence_check(now);
    if (mr_peers.paced)
        mr_rates_tell_reads(now);
    mr_net_tell_breaks(now, false);
    news = mr_fabric_news(&q, now);
    mr_where_news();
    mr_paths_news(news);
    if (news) {
        mr_rates_take();
        mr_net_take_health();
    }
    if (mr_fabric_pace_news())
        mr_rates_take_paces(now);
    if (mr_peers.ahead_limited || mr_net.grants.said || mr_peers.paced)
        mr_grant_tick(now);
    if (!news || !memcmp(&q, &mr_peers.qos, sizeof q))
        return;
    if (!mr_peers.launch->rank)
        mr_log(MR_LOG_INFO, "fabricd: class %s now, service levels %u and %u", q.class_name,
               q.level[MR_LEVEL_SMALL].sl[0], q.level[MR_LEVEL_BULK].sl[0]);
    respread = memcmp(q.spread, mr_peers.qos.spread, sizeof q.spread) != 0;
    mr_peers.qos = q;
    mr_net_renew_shorts();
    if (respread) {
        mr_spread_news();
        mr_peers_reweigh();
    }
    mr_epoch_all();
}

/*
 * The time-outs of lossy links are seconds at most: a process without work for a millisecond may sleep a little. So may
 * a process that has polled more often than the time allows: on a simulated fabric, polling alone moves no time.
 */
static bool has_waited(uint64_t ns)
{
    return ns > RELY_NAP_NS || (mr_channel_idle >= NAP_CHECK && ns < (uint64_t)mr_channel_idle * POLL_LEAST_NS);
}

static uint64_t rely_nap_ns(uint64_t part_ns)
{
    return part_ns < NAP_NS ? NAP_NS : part_ns < RELY_NAP_MOST ? part_ns : RELY_NAP_MOST;
}

/*
 * Packets held back by a peer's pace go on time if naps end on time, as on a simulated fabric, where polling alone
 * moves no time. Where they do not, as with most kernels, the process polls. True: the wait is over, and a packet may
 * go.
 */
static bool nap_for_pace(void)
{
    uint64_t before = mr_clock_ns(), ns = mr_net.pace_until_ns > before ? mr_net.pace_until_ns - before : 0, after;

    mr_net.pace_until_ns = 0;
    if (!ns || ns > NAP_NS || (mr_net.blunt_ns && before - mr_net.blunt_ns < BLUNT_NS))
        return false;
    mr_lock_nap(ns);
    after = mr_clock_ns();
    mr_net.blunt_ns = after - before > ns + NAP_LATE_NS ? after : 0;
    return true;
}

/*
 * Time in which nothing can be missed: a peer has no way yet, or any more, or is silent for a while, or parts of large
 * messages are late, or wait for queue pairs. 0: no such reason.
 */
static uint64_t net_nap_ns(uint64_t now)
{
    uint64_t waited = now - mr_net.idle_ns;

    for (const struct mr_peer *p = mr_peers.connecting; p; p = p->next_connecting)
        if (!p->up && (mr_channel_idle >= NAP_CHECK || waited > QUIET_NS))
            return NAP_NS;
    if (waited > CATCH_NAP_NS && mr_bulk_is_late())
        return NAP_NS;
    if (mr_peers.num_isolated && mr_channel_idle >= NAP_CHECK)
        return NAP_ISOLATED_NS;
    if (mr_peers.doubtful && waited > QUIET_NS && waited < DOUBT_NS)
        return NAP_NS;
    if (!mr_peers.relying || !has_waited(waited))
        return 0;
    return rely_nap_ns(waited / RELY_NAP_PART);
}

/*
 * A process that has waited for a while sleeps a little: its peer may share the processor, and on a simulated fabric an
 * idle poll alone moves no time. A thread that calls MPI meanwhile ends the nap.
 */
static __attribute__((noinline)) bool nap_while_waiting(uint64_t now)
{
    uint64_t ns = net_nap_ns(now);

    if (ns)
        mr_lock_nap(ns);
    return ns;
}

/* The datagrams of connecting may be lost, as packets are that are acknowledged. now: 0 if the clock was not read. */
static __attribute__((noinline)) void serve_time(int done, uint64_t now)
{
    uint64_t served;

    if (mr_peers.connecting)
        mr_handshake_tick();
    mr_peers.attentive = mr_net.has_lossy_link || mr_peers.connecting;
    if (mr_peers.relying)
        mr_rely_poll(!done, now);
    else if (now)
        mr_net.clock_ns = now;
    served = mr_bulk_serve();
    if (served)
        mr_net.clock_ns = served;
    if (done || !mr_channel_idle)
        mr_net.idle_ns = mr_net.clock_ns;
}

/*
 * Rings come first. They are polled again after each completion queue, because polling there has taken a while, and
 * before the poll counts as idle, which costs more.
 */
static int poll_rings(void)
{
    int done = mr_rings_poll();

    if (done && ++mr_net.ring_polls % RINGS_FIRST)
        return done;
    done += done ? mr_verbs_poll() : mr_verbs_poll_between(mr_rings_poll);
    return done ? done : mr_rings_poll();
}

static void poll_when_due(int done, uint64_t now)
{
    if (now - mr_net.news_ns >= (done ? BUSY_NS : NEWS_NS))
        poll_news(!done, now);
}

/* After a poll of the network that found nothing, or when something else is due. Returns done, or more. */
static __attribute__((noinline)) int serve_net(int done)
{
    bool timed = mr_peers.connecting || mr_peers.relying || mr_peers.num_isolated || mr_peers.doubtful;
    uint64_t now = !done || ++mr_net.polls % BUSY_CHECK == 0 ? mr_clock_ns() : 0;

    if (!done && !mr_channel_idle)
        mr_net.idle_ns = now;
    if (timed && !done && nap_while_waiting(now)) {
        done = mr_verbs_poll(); /* arrivals of the meantime are not overdue */
        now = mr_clock_ns();
    }
    if (!done)
        mr_bulk_caught_up();
    if (timed)
        serve_time(done, now);
    if (mr_peers.recovery_due)
        mr_peers_poll();
    if (mr_peers.backlogged) {
        flush_backlog();
        if (mr_net.pace_until_ns && nap_for_pace())
            flush_backlog(); /* before a poll that may take longer than the pace leaves */
    }
    if (mr_peers.failing)
        done += mr_peers_report();
    if (now)
        poll_when_due(done, now);
    return done;
}

/* Without a branch for each. */
static inline bool nothing_is_due(void)
{
    uintptr_t lists = (uintptr_t)mr_peers.connecting | (uintptr_t)mr_peers.relying | (uintptr_t)mr_peers.backlogged |
                      (uintptr_t)mr_peers.failing;

    return !(lists | mr_peers.num_isolated | mr_peers.recovery_due);
}

int mr_net_poll(void)
{
    int done;

    if (unlikely(mr_peers.untimed))
        mr_rely_time();
    done = unlikely(mr_rings_num != 0) ? poll_rings() : mr_verbs_poll();
    if (unlikely(!done || !nothing_is_due()))
        return serve_net(done);
    if (unlikely(++mr_net.polls % BUSY_CHECK == 0))
        poll_when_due(done, mr_clock_ns());
    return done;
}
