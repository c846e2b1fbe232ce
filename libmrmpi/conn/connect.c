/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes and connects peers on demand: decides the handshakes to begin, and does other pending work for peers. */
#include "libmrmpi/conn/internal.h"
#include "libmrmpi/conn/peer/guard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"

#define REQUESTS_MAX   32             /* requests without answer yet */
#define GUEST_ATTEMPTS 12             /* of the first request to a guest: there may be no way at all but TCP */
#define TIMEOUT_MIN_NS 2000000ull     /* before a request is repeated */
#define RESCUE_MAX_NS  8000000ull     /* between two over ways that answer, while nothing is open */
#define SILENCE_NS     10000000000ull /* before the first report of an unanswered request; doubles */

/* ---- a peer's life ----------------------------------------------------------------------------------------------- */

/* Its subchannels are listed. */
static int extend_subs(struct mr_peer *p)
{
    p->connect->subs = calloc(p->num_subs ? p->num_subs : 1, sizeof *p->connect->subs);
    if (!p->connect->subs)
        return -ENOMEM;
    for (unsigned i = 0; i < p->num_subs; i++)
        p->sub[i].connect = &p->connect->subs[i];
    return 0;
}

static void forget_lost(struct mr_peer *p)
{
    mr_ration_lost(p);
    if (p->connect->isolated_ns)
        mr_peers.num_isolated--;
    p->connect->isolated_ns = 0;
}

static void end_connect_wait(struct mr_peer *p)
{
    p->connect->waited_ns = 0;
}

static void free_extensions(struct mr_peer *p)
{
    free(p->connect->questions);
    free(p->connect->subs);
}

static const struct mr_peer_events peer_events = {
    .made = extend_subs, .lost = forget_lost, .answered = end_connect_wait, .freed = free_extensions};

void mr_connect_init(const struct mr_connect_upcalls *up)
{
    mr_recovery_events.confirmed = up->confirmed;
    memset(&mr_connect, 0, sizeof mr_connect);
    mr_peer_subscribe(&peer_events);
}

/* ---- handshakes -------------------------------------------------------------------------------------------------- */

static void watch_handshake(struct mr_peer *p)
{
    if (p->connect->connecting || !(p->connect->queued || mr_cm_waiting(&p->cm)))
        return;
    p->connect->connecting = true;
    p->next_connecting = NULL;
    *(mr_peers.connecting ? mr_connect.connecting_end : &mr_peers.connecting) = p;
    mr_connect.connecting_end = &p->next_connecting;
    mr_peers.attentive = true;
}

static void init_handshake(struct mr_peer *p)
{
    mr_cm_init(&p->cm, &mr_handshake_ops, mr_peers.run, (uint32_t)mr_peers.launch->rank, (uint32_t)p->rank,
               (uint64_t)mr_config.connect_timeout_ms * 1000000,
               mr_config.connect_retries ? (unsigned)mr_config.connect_retries + 1 : 0);
    if (!mr_connect.connect_rtt.min_ns) {
        uint64_t max = (uint64_t)mr_config.connect_timeout_ms * 1000000;

        mr_rtt_init(&mr_connect.connect_rtt, max < TIMEOUT_MIN_NS ? max : TIMEOUT_MIN_NS, max);
    }
}

struct mr_peer *mr_peer_get(int rank)
{
    struct mr_peer *p = mr_peers.peer[rank];

    if (p || rank >= mr_peers.launch->size)
        return p;
    p = mr_peer_make(rank, sizeof *p->connect);
    if (p)
        init_handshake(p);
    return p;
}

struct mr_peer *mr_peer_of(uint32_t rank)
{
    if (rank >= (uint32_t)mr_peers_end() || !mr_peer_is_remote((int)rank))
        return NULL;
    return mr_peer_get((int)rank);
}

/* ---- guests ------------------------------------------------------------------------------------------------------ */

struct mr_peer *mr_peer_meet(int number, const struct mr_guest_terms *t, const struct mr_address *address)
{
    const struct mr_card *card = mr_guest_card(number);
    struct mr_peer *p = NULL;

    if (card && !mr_peers_reach(number) && !mr_peers.peer[number])
        p = mr_peer_make(number, sizeof *p->connect);
    if (!p)
        return NULL;
    init_handshake(p);
    p->guest_run = t->run;
    p->guest_mix = (uint32_t)(mr_guest_name(mr_peers.launch->rank) + mr_guest_name(number));
    p->cm.job = t->run_there;
    p->cm.self = t->number_there;
    p->cm.peer = card->rank;
    p->cm.first = mr_guest_compare(mr_peers.launch->rank, number) < 0;
    p->cm.attempts_max = GUEST_ATTEMPTS;
    p->vc->self = t->number_there;
    if (mr_peer_keep_address(p, address)) {
        mr_peer_lost(p, -ENOMEM);
        return NULL;
    }
    return p;
}

void mr_peer_part(struct mr_peer *p, int error)
{
    mr_peer_lost(p, error);
    mr_cm_abandon(&p->cm);
    mr_cm_abandon_answer(&p->cm);
}

static bool is_listed(const struct mr_peer *p)
{
    return p->connect->connecting || p->connect->recovering;
}

bool mr_peer_forget(int number)
{
    return mr_retired_free(number, is_listed) && (number >= mr_peers_end() || !mr_peers.peer[number]);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

bool mr_handshake_begin(struct mr_peer *p, struct mr_sub *sub)
{
    uint64_t now = mr_clock_ns();
    bool answers = sub && mr_silence_leads(sub); /* so does the peer's process: a missing answer is lost */

    if (mr_cm_waiting(&p->cm) && sub)
        mr_handshake_yield(p, sub, now);
    if (mr_cm_waiting(&p->cm))
        return false;
    p->connect->rescue = sub && p->connect->isolated_ns;
    mr_cm_again(&p->cm, p->connect->rescue || answers ? MR_RESCUE_ATTEMPTS : MR_REOPEN_ATTEMPTS);
    p->cm.yields = true; /* takes the way that the handshake is about, which may be dead */
    p->cm.timeout_ns = p->connect->rescue || answers ? MR_RESCUE_NS : mr_connect.connect_rtt.max_ns;
    p->cm.timeout_max_ns = p->connect->rescue ? RESCUE_MAX_NS : 16 * mr_connect.connect_rtt.max_ns;
    p->connect->handshake_sub = sub;
    mr_cm_start(&p->cm, ++mr_connect.next_id, now);
    watch_handshake(p);
    return true;
}

static void begin_first_handshake(struct mr_peer *p)
{
    p->connect->queued = false;
    mr_verbs_check_events(); /* ports that went down during a computation */
    p->cm.timeout_ns = mr_rtt_timeout(&mr_connect.connect_rtt);
    mr_cm_start(&p->cm, ++mr_connect.next_id, mr_clock_ns());
}

/* Requests go out in order, in a limited number: repeated requests do not hold up others. */
static unsigned num_requested(void)
{
    unsigned n = 0;

    for (const struct mr_peer *p = mr_peers.connecting; p; p = p->next_connecting)
        n += !p->up && p->cm.state == MR_CM_REQ_SENT && !p->cm.attempts;
    return n;
}

/* False: under way. */
static bool connect_peer(struct mr_peer *p)
{
    if (p->cm.state != MR_CM_IDLE || p->connect->queued)
        return false;
    if (num_requested() < REQUESTS_MAX)
        begin_first_handshake(p);
    else
        p->connect->queued = true;
    watch_handshake(p);
    return true;
}

/* Other ranks with guards on a host can tell whether a rank of the host is gone. */
static void connect_guards(const struct mr_peer *p)
{
    int r;

    while ((r = mr_guard_missing(p)) >= 0) {
        struct mr_peer *guard = mr_peer_get(r);

        if (!guard)
            return;
        connect_peer(guard);
    }
}

void mr_peer_connect(struct mr_peer *p)
{
    if (connect_peer(p))
        connect_guards(p);
}

/* The run that messages of this sender name: of the job, or of the acquaintance with a guest. */
static uint32_t run_of_sender(const void *data, size_t len)
{
    uint32_t from, size = (uint32_t)mr_peers.launch->size;
    const struct mr_peer *p =
        mr_peers.num_more && mr_cm_sender(data, len, &from) && from >= size ? mr_peer_of(from) : NULL;

    return p ? p->guest_run : mr_peers.run;
}

void mr_handshake_datagram(const struct mr_rail *rail, const void *data, size_t len)
{
    uint32_t self = (uint32_t)mr_peers.launch->rank, size = (uint32_t)mr_peers_end(), run = run_of_sender(data, len);
    struct mr_cm_msg msg;
    bool ours = mr_cm_check(data, len, run, self, size, &msg);
    bool foreign = !ours && mr_cm_check_foreign(data, len, run, self, size, &msg);
    struct mr_peer *p;

    if (!(ours || foreign) || !mr_peer_is_remote((int)msg.from)) {
        mr_log(MR_LOG_DEBUG, "dropped a datagram of %zu bytes that is not for us", len);
        return;
    }
    p = mr_peer_get((int)msg.from);
    if (!p)
        return;
    p->connect->came = rail;
    p->connect->came_from = ours ? msg.rail : 0;
    p->connect->came_path = ours ? msg.path : 0;
    if (ours && p->up && msg.type == MR_CM_REQ)
        mr_verbs_check_events(); /* port events during a computation are older than subchannels opened now */
    if (ours && p->sub && !mr_cm_is_late(&p->cm, &msg))
        mr_where_learn(p, &msg);
    if (ours && (msg.type == MR_CM_ASK || msg.type == MR_CM_HERE))
        mr_keepalive_datagram(p, &msg);
    else if (ours)
        mr_cm_receive(&p->cm, &msg, mr_clock_ns());
    else
        mr_cm_receive_foreign(&p->cm, &msg);
    watch_handshake(p);
    if (ours && msg.type == MR_CM_REQ)
        connect_guards(p);
}

/* A peer that computes is waited for as long as the job lives. */
static void complain_of_silence(struct mr_peer *p, uint64_t now_ns)
{
    uint64_t waited = now_ns > p->cm.begun_ns ? now_ns - p->cm.begun_ns : 0; /* may have begun just now */
    int err;

    if (p->up || p->error || p->guest_run || p->cm.state != MR_CM_REQ_SENT ||
        waited < (p->connect->silence_ns ? 2 * p->connect->silence_ns : SILENCE_NS))
        return;
    p->connect->silence_ns = waited;
    err = mr_launch_failed();
    if (err) {
        mr_log(MR_LOG_ERROR, "rank %d on %s does not answer the request to connect, and the job ends: %s", p->rank,
               p->address->host, strerror(-err));
        mr_peer_lost(p, err);
        return;
    }
    mr_log(MR_LOG_WARN,
           "rank %d on %s has not answered the request to connect for %u s: it computes, its process hangs, or no path "
           "leads there; it is waited for",
           p->rank, p->address->host, (unsigned)(waited / 1000000000));
}

/* True while there is something to wait for. */
static bool tick_peer(struct mr_peer *p, uint64_t now_ns, unsigned *room)
{
    if (p->connect->queued && p->cm.state != MR_CM_IDLE)
        p->connect->queued = false; /* the peer was first */
    if (p->connect->queued && *room) {
        --*room;
        begin_first_handshake(p);
    }
    mr_cm_tick(&p->cm, now_ns);
    if (p->cm.state == MR_CM_REQ_SENT)
        mr_where_ask(p, now_ns);
    complain_of_silence(p, now_ns);
    return p->connect->queued || mr_cm_waiting(&p->cm);
}

void mr_handshake_tick(void)
{
    unsigned requested = num_requested(), room = requested < REQUESTS_MAX ? REQUESTS_MAX - requested : 0;
    struct mr_peer **at = &mr_peers.connecting, *p;
    uint64_t now = mr_clock_ns();

    mr_addresses_poll();
    while ((p = *at)) {
        if (tick_peer(p, now, &room)) {
            at = &p->next_connecting;
            continue;
        }
        p->connect->connecting = false;
        *at = p->next_connecting;
    }
    mr_connect.connecting_end = at;
}

/* ---- peers with pending work ------------------------------------------------------------------------------------- */

/* Nothing is open: all ways are asked, and the answering ways are opened, in one handshake. */
static void rescue_peer(struct mr_peer *p, uint64_t now_ns)
{
    if (p->error || !p->up || !p->connect->isolated_ns)
        return;
    if (p->connect->round_ns < p->connect->isolated_ns) {
        mr_silence_ask(p, now_ns);
    } else if (!mr_silence_heard(p, now_ns)) {
        mr_where_ask(p, now_ns); /* both ends' LIDs may have changed: then no question arrives */
        return;
    } else {
        mr_handshake_drop_vain(p);
    }
    for (unsigned i = 0; i < p->num_subs; i++)
        if (p->sub[i].state == MR_SUB_CLOSED && mr_sub_is_wanted(&p->sub[i]) && mr_silence_answered(&p->sub[i])) {
            mr_handshake_begin(p, &p->sub[i]);
            return;
        }
}

void mr_peers_poll(void)
{
    struct mr_peer **at = &mr_peers.recovering, *p;
    uint64_t now = mr_clock_ns();

    mr_peers.recovery_due = false;
    while ((p = *at)) {
        bool more = mr_recovery_poll(p, now, mr_handshake_begin);

        rescue_peer(p, now);
        if (!p->error && p->up)
            more |= mr_epoch_poll(p, now, mr_handshake_begin);
        if (more) {
            at = &p->connect->next_recovering;
            continue;
        }
        p->connect->recovering = false;
        *at = p->connect->next_recovering;
    }
}
