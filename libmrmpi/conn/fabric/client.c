/* SPDX-License-Identifier: BSD-3-Clause */
/* The client of fabricd. */
#include "libmrmpi/conn/fabric/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "fabricd/proto/proto_state.h"
#include "libmrmpi/base/base.h"

#define RETRY_NS     50000000ull /* after the first failure, then twice as long each time */
#define RECONNECT_NS 5000000000ull
#define PLACES       32 /* answers waiting to be taken; later answers are requested again */
#define PATHS        64 /* the same of paths */

/* IBTA volume 1, 4.1.3 and 3.5.10 */
#define UNICAST_MAX 0xbfff
#define LMC_MAX     7

enum { RECEIVED_NOTHING, RECEIVED_STATE, RECEIVED_PLACE, RECEIVED_PACE, RECEIVED_PATHS };

_Static_assert(MR_FABRIC_AHEAD_ALL == FD_AHEAD_ALL, "the same unit");
_Static_assert(MR_FABRIC_READS_ALL == FD_READS_ALL && MR_FABRIC_PACE_ALONE == FD_PACE_ALONE, "the same words");
_Static_assert(MR_FABRIC_HEALTHY == FD_HEALTHY, "the same unit");
_Static_assert(MR_FABRIC_PATHS_MAX == FD_PATHS_MAX && FD_PATHS_MAX <= 32, "as many paths, in a set");
_Static_assert(MR_LANES_MAX == FD_LANES_MAX && MR_LEVELS == FD_LEVELS_MAX + 1, "all lanes and levels fit");

static struct {
    int fd; /* -1: none */
    uint32_t seq;
    uint64_t pause_ns, next_try_ns; /* between two attempts to connect */
    bool wanted;                    /* there is an address to ask at */
    bool heard;                     /* the hello has been answered on this connection */
    bool was_heard;                 /* or on an earlier connection */
    struct sockaddr_un addr;
    char job[FD_JOB_MAX];
    unsigned num_rails;
    struct fd_rail rails[FD_RAILS_MAX];
    bool has_health; /* the daemon reports the rails' health */
    struct fd_health health;
    unsigned messages;
    uint32_t pace_kb[FD_RAILS_MAX]; /* of each rail */
    bool pace_news;                 /* changed */
    bool knows_places;
    unsigned num_places;
    struct mr_fabric_place places[PLACES];
    bool knows_paths;
    unsigned num_paths;
    struct mr_fabric_paths paths[PATHS];
} client = {.fd = -1};

void mr_fabric_defaults(struct mr_fabric_qos *qos)
{
    memset(qos, 0, sizeof *qos); /* compared as bytes */
    for (unsigned l = 0; l < MR_LEVELS; l++) {
        qos->level[l].max = UINT32_MAX;
        qos->level[l].num_lanes = 1;
    }
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

static bool terminated(const char *s, size_t size)
{
    return memchr(s, 0, size) != NULL;
}

/* A whole FD_STATE with nothing out of range; anything else is not listened to. */
static bool sane(const struct fd_state *s, size_t len)
{
    int levels = fd_state_num_levels(s, len);
    const struct fd_spread *spread;
    const struct fd_health *health;

    if (levels < 0 || s->h.magic != FD_MAGIC || s->h.version != FD_VERSION || s->h.type != FD_STATE ||
        s->h.length != len)
        return false;
    if (s->sl_small > 15 || !s->num_lanes || s->num_lanes > FD_LANES_MAX ||
        !terminated(s->class_name, sizeof s->class_name))
        return false;
    spread = fd_state_spread(s, len, levels);
    health = fd_state_health(s, len, levels);
    if (spread &&
        (!terminated(spread->small, sizeof spread->small) || !terminated(spread->large, sizeof spread->large)))
        return false;
    for (int i = 0; i < levels; i++)
        if (!fd_level_is_sane(&fd_state_levels(s)[i], i ? fd_state_levels(s)[i - 1].max : s->small_max))
            return false;
    for (unsigned i = 0; i < s->num_lanes; i++)
        if (s->sl_bulk[i] > 15)
            return false;
    for (unsigned i = 0; i < s->num_rails; i++)
        if (!terminated(s->rails[i].device, sizeof s->rails[i].device) ||
            (health && health->rail[i].weight > FD_HEALTHY))
            return false;
    return true;
}

static void take_levels(const struct fd_state *s, struct mr_fabric_level *level)
{
    const struct fd_level *medium = fd_state_levels(s);
    int n = fd_state_num_levels(s, s->h.length);

    level[MR_LEVEL_SMALL].max = s->small_max;
    level[MR_LEVEL_SMALL].sl[0] = s->sl_small;
    level[MR_LEVEL_BULK].num_lanes = s->num_lanes;
    memcpy(level[MR_LEVEL_BULK].sl, s->sl_bulk, s->num_lanes);
    /* no lane of their own: each bulk lane has a part of the share */
    if (memchr(s->sl_bulk, s->sl_small, s->num_lanes)) {
        level[MR_LEVEL_SMALL].num_lanes = s->num_lanes;
        memcpy(level[MR_LEVEL_SMALL].sl, s->sl_bulk, s->num_lanes);
    }
    for (unsigned l = MR_LEVEL_SMALL + 1; l < MR_LEVEL_PACKETS; l++) {
        if (n-- > 0) {
            level[l].max = medium->max;
            level[l].num_lanes = medium->num_lanes;
            memcpy(level[l].sl, medium->sl, medium->num_lanes);
            medium++;
        } else {
            uint32_t max = level[l - 1].max;

            level[l] = level[MR_LEVEL_BULK];
            level[l].max = max;
        }
    }
    level[MR_LEVEL_PACKETS] = level[MR_LEVEL_BULK];
    level[MR_LEVEL_PACKETS].max = level[MR_LEVEL_PACKETS - 1].max;
}

static void take_state(const struct fd_state *s, struct mr_fabric_qos *qos)
{
    int levels = fd_state_num_levels(s, s->h.length);
    const struct fd_spread *spread = fd_state_spread(s, s->h.length, levels);
    const struct fd_health *health = fd_state_health(s, s->h.length, levels);

    mr_fabric_defaults(qos);
    client.has_health = health != NULL;
    if (health)
        client.health = *health;
    client.num_rails = s->num_rails;
    client.messages = s->messages;
    memcpy(client.rails, s->rails, s->num_rails * sizeof s->rails[0]);
    if (s->status)
        return; /* no policy in force */
    take_levels(s, qos->level);
    qos->verified = s->verified;
    qos->generation = s->generation;
    memcpy(qos->class_name, s->class_name, sizeof qos->class_name);
    if (spread) {
        snprintf(qos->spread[0], sizeof qos->spread[0], "%s", spread->small);
        snprintf(qos->spread[1], sizeof qos->spread[1], "%s", spread->large);
    }
}

static void take_pace(const uint32_t rate_kb[FD_RAILS_MAX])
{
    client.pace_news |= memcmp(client.pace_kb, rate_kb, sizeof client.pace_kb) != 0;
    memcpy(client.pace_kb, rate_kb, sizeof client.pace_kb);
}

/* Without a connection, the reads of others are unknown: there is no limit then. */
static void drop_connection(void)
{
    static const uint32_t none[FD_RAILS_MAX];

    if (client.fd >= 0)
        close(client.fd);
    client.fd = -1;
    take_pace(none);
    client.knows_places = client.knows_paths = client.heard = false;
}

static bool is_place_message(const struct fd_place *p, size_t len)
{
    return len == sizeof *p && p->h.magic == FD_MAGIC && p->h.version == FD_VERSION && p->h.type == FD_PLACE &&
           p->h.length == len;
}

static bool is_pace(const struct fd_pace *p, size_t len)
{
    return len == sizeof *p && p->h.magic == FD_MAGIC && p->h.version == FD_VERSION && p->h.type == FD_PACE &&
           p->h.length == len;
}

static bool is_disjoint(const struct fd_disjoint *m, size_t len)
{
    return len == sizeof *m && m->h.magic == FD_MAGIC && m->h.version == FD_VERSION && m->h.type == FD_DISJOINT &&
           m->h.length == len;
}

static int take_paths(const struct fd_disjoint *m)
{
    struct mr_fabric_paths p = {.port = m->port, .lid = m->lid, .status = m->status};

    _Static_assert(sizeof p.device == sizeof m->device, "as long");
    if (!terminated(m->device, sizeof m->device) || (!m->status && (!m->num || m->num > FD_PATHS_MAX || m->path[0])))
        return -EPROTO;
    memcpy(p.device, m->device, sizeof p.device);
    for (unsigned i = 0; i < m->num && !m->status; i++) {
        if (m->path[i] >= FD_PATHS_MAX)
            return -EPROTO;
        p.set |= 1u << m->path[i];
    }
    if (client.num_paths < PATHS)
        client.paths[client.num_paths++] = p;
    return RECEIVED_PATHS;
}

static int keep_place(const struct fd_place *p)
{
    if (!p->status && (!p->lid || p->lid > UNICAST_MAX || p->lmc > LMC_MAX))
        return -EPROTO;
    if (!p->status && client.num_places < PLACES)
        client.places[client.num_places++] = (struct mr_fabric_place){.guid = p->guid, .lid = p->lid, .lmc = p->lmc};
    return RECEIVED_PLACE;
}

/*
 * Negative errno: the connection is of no use any more. Waiting ends with the time limit of the socket, which a signal
 * restarts, but no later than until_ns.
 */
static int receive(int flags, uint64_t until_ns, struct mr_fabric_qos *qos)
{
    union {
        struct fd_state_long state;
        struct fd_place place;
        struct fd_pace pace;
        struct fd_disjoint disjoint;
    } m;
    ssize_t n;

    memset(&m, 0, sizeof m);
    do
        n = recv(client.fd, &m, sizeof m, flags | MSG_TRUNC);
    while (n < 0 && errno == EINTR && (flags & MSG_DONTWAIT || mr_clock_ns() < until_ns));
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? RECEIVED_NOTHING : -errno;
    if (n == 0)
        return -ECONNRESET;
    if (client.knows_places && is_place_message(&m.place, (size_t)n))
        return keep_place(&m.place);
    if (client.knows_paths && is_disjoint(&m.disjoint, (size_t)n))
        return take_paths(&m.disjoint);
    if (client.heard && is_pace(&m.pace, (size_t)n)) {
        take_pace(m.pace.rate_kb);
        return RECEIVED_PACE;
    }
    if ((size_t)n > sizeof m.state || !sane(&m.state.s, (size_t)n))
        return -EPROTO;
    if (m.state.s.h.seq) { /* the answer to the hello */
        client.knows_places = m.state.s.changed & FD_CAN_PLACES;
        client.knows_paths = m.state.s.changed & FD_CAN_PATHS;
    }
    client.heard = client.was_heard = true;
    take_state(&m.state.s, qos);
    return RECEIVED_STATE;
}

static int say_hello(void)
{
    struct fd_hello hello = {
        .h = {.magic = FD_MAGIC, .version = FD_VERSION, .type = FD_HELLO, .length = sizeof hello, .seq = ++client.seq},
        .flags = FD_HELLO_SUBSCRIBE | FD_HELLO_LEVELS | FD_HELLO_PLACES | FD_HELLO_SPREAD | FD_HELLO_PACE |
                 FD_HELLO_HEALTH | FD_HELLO_PATHS,
    };

    memcpy(hello.job, client.job, sizeof hello.job);
    return send(client.fd, &hello, sizeof hello, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof hello ? 0 : -errno;
}

/* ---- connecting ------------------------------------------------------------------------------------------------ */

int mr_fabric_address(const char *path, struct sockaddr_un *addr)
{
    char host[256] = "";
    size_t n = 0;

    if (gethostname(host, sizeof host - 1))
        return -errno;
    *addr = (struct sockaddr_un){.sun_family = AF_UNIX};
    for (const char *p = path; *p; p++) {
        const char *piece = p[0] == '%' && p[1] == 'h' ? host : NULL;
        size_t len = piece ? strlen(piece) : 1;

        if (n + len >= sizeof addr->sun_path)
            return -ENAMETOOLONG;
        memcpy(addr->sun_path + n, piece ? piece : p, len);
        n += len;
        p += piece != NULL;
    }
    return n ? 0 : -ENOENT;
}

static void limit_wait(int option, unsigned ms)
{
    struct timeval t = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};

    setsockopt(client.fd, SOL_SOCKET, option, &t, sizeof t);
}

/* A quarter of the time, if any, is for a place in the daemon's queue, the rest for its answer. */
static int connect_daemon(unsigned timeout_ms)
{
    int err;

    client.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (timeout_ms ? 0 : SOCK_NONBLOCK), 0);
    if (client.fd < 0)
        return -errno;
    if (timeout_ms) {
        limit_wait(SO_SNDTIMEO, timeout_ms / 4 + 1); /* 0 would be without limit */
        limit_wait(SO_RCVTIMEO, timeout_ms - timeout_ms / 4);
    }
    err = connect(client.fd, (struct sockaddr *)&client.addr, sizeof client.addr) ? -errno : say_hello();
    if (err)
        drop_connection();
    return err;
}

/* Without a daemon, or with a daemon of another protocol, nothing will change soon. */
static void try_later(int err, uint64_t now_ns)
{
    uint64_t pause = client.pause_ns ? 2 * client.pause_ns : RETRY_NS;

    if (err == -ENOENT || err == -EPROTO || err == -EACCES || pause > RECONNECT_NS)
        pause = RECONNECT_NS;
    client.pause_ns = pause;
    client.next_try_ns = now_ns + pause;
}

int mr_fabric_open(const char *socket, const char *job, unsigned timeout_ms, struct mr_fabric_qos *qos)
{
    uint64_t until_ns = mr_clock_ns() + timeout_ms * 1000000ull;
    int err;

    mr_fabric_close();
    mr_fabric_defaults(qos);
    if (!socket || !*socket)
        return -ENOENT;
    snprintf(client.job, sizeof client.job, "%s", job ? job : "");
    err = mr_fabric_address(socket, &client.addr);
    if (err)
        return err;
    client.wanted = true;
    err = connect_daemon(timeout_ms);
    if (!err)
        err = receive(0, until_ns, qos);
    if (err == RECEIVED_STATE)
        return 0;
    if (err < 0) {
        drop_connection();
        try_later(err, mr_clock_ns());
    }
    return !err || err == -EAGAIN ? -ETIMEDOUT : err; /* a late answer is news */
}

void mr_fabric_close(void)
{
    drop_connection();
    client.wanted = client.was_heard = false;
    client.num_rails = client.num_places = client.num_paths = client.messages = 0;
    client.has_health = false;
    client.pause_ns = client.next_try_ns = 0;
}

static void lose_daemon(int err, uint64_t now_ns)
{
    if (client.heard) {
        mr_log(MR_LOG_INFO, "lost the connection to fabricd (%s); going on with what is known", strerror(-err));
        client.pause_ns = RECONNECT_NS; /* there is no hurry */
    }
    drop_connection();
    try_later(err, now_ns);
}

bool mr_fabric_news(struct mr_fabric_qos *qos, uint64_t now_ns)
{
    bool news = false, first = !client.heard, again = client.was_heard;
    int got = RECEIVED_NOTHING;

    if (client.fd < 0) {
        if (!client.wanted || now_ns < client.next_try_ns)
            return false;
        got = connect_daemon(0);
        if (got) {
            try_later(got, now_ns);
            return false;
        }
    }
    while (client.num_paths < PATHS && (got = receive(MSG_DONTWAIT, 0, qos)) > 0)
        news |= got == RECEIVED_STATE;
    if (news && first)
        mr_log(MR_LOG_INFO, "fabricd answers %s", again ? "again" : "now");
    if (got < 0)
        lose_daemon(got, now_ns);
    return news;
}

int mr_fabric_ask_place(const char *device, uint8_t port, uint64_t guid)
{
    struct fd_where m = {
        .h = {.magic = FD_MAGIC, .version = FD_VERSION, .type = FD_WHERE, .length = sizeof m, .seq = ++client.seq},
        .port = port,
        .guid = guid,
    };

    if (client.fd < 0 || !client.knows_places || strlen(device) >= sizeof m.device)
        return -EOPNOTSUPP;
    memcpy(m.device, device, strlen(device));
    return send(client.fd, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof m ? 0 : -EAGAIN;
}

bool mr_fabric_place(struct mr_fabric_place *out)
{
    if (!client.num_places)
        return false;
    *out = client.places[0];
    client.num_places--;
    memmove(client.places, client.places + 1, client.num_places * sizeof client.places[0]);
    return true;
}

bool mr_fabric_knows_paths(void)
{
    return client.knows_paths;
}

int mr_fabric_ask_paths(const char *device, uint8_t port, uint16_t lid, uint8_t lmc)
{
    struct fd_paths m = {
        .h = {.magic = FD_MAGIC, .version = FD_VERSION, .type = FD_PATHS, .length = sizeof m, .seq = ++client.seq},
        .port = port,
        .lid = lid,
        .lmc = lmc,
    };

    if (client.fd < 0 || !client.knows_paths || strlen(device) >= sizeof m.device)
        return -EOPNOTSUPP;
    memcpy(m.device, device, strlen(device));
    return send(client.fd, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof m ? 0 : -EAGAIN;
}

bool mr_fabric_paths(struct mr_fabric_paths *out)
{
    if (!client.num_paths)
        return false;
    *out = client.paths[0];
    client.num_paths--;
    memmove(client.paths, client.paths + 1, client.num_paths * sizeof client.paths[0]);
    return true;
}

static const struct fd_rail *find_rail(const char *device, int port)
{
    for (unsigned i = 0; i < client.num_rails; i++)
        if (client.rails[i].port == port && !strcmp(client.rails[i].device, device))
            return &client.rails[i];
    return NULL;
}

bool mr_fabric_rejects(const char *device, int port, void *arg)
{
    const struct fd_rail *r = find_rail(device, port);

    return r && !r->usable;
}

unsigned mr_fabric_ahead(const char *device, int port)
{
    const struct fd_rail *r = find_rail(device, port);

    return r ? r->ahead : 0;
}

unsigned mr_fabric_health(const char *device, int port, const char **state)
{
    static const char *const states[] = {"healthy", "degraded", "bad", "drained"};
    const struct fd_rail *r = client.has_health ? find_rail(device, port) : NULL;
    const struct fd_rail_health *h = r ? &client.health.rail[r - client.rails] : NULL;

    *state = h && h->state < sizeof states / sizeof *states ? states[h->state] : states[0];
    return h ? h->weight : MR_FABRIC_HEALTHY;
}

uint16_t mr_fabric_pkey(const char *device, int port)
{
    const struct fd_rail *r = client.has_health ? find_rail(device, port) : NULL;

    return r ? client.health.rail[r - client.rails].pkey & 0x7fff : 0;
}

bool mr_fabric_rail(unsigned i, const char **device, int *port, unsigned *weight, const char **state)
{
    if (i >= client.num_rails)
        return false;
    *device = client.rails[i].device;
    *port = client.rails[i].port;
    *weight = mr_fabric_health(*device, *port, state);
    return true;
}

unsigned mr_fabric_messages(void)
{
    return client.messages;
}

bool mr_fabric_pace_news(void)
{
    bool news = client.pace_news;

    client.pace_news = false;
    return news;
}

uint32_t mr_fabric_pace(const char *device, int port)
{
    const struct fd_rail *r = find_rail(device, port);

    return r ? client.pace_kb[r - client.rails] : 0;
}

bool mr_fabric_tell_reads(uint32_t kb)
{
    struct fd_reads m = {
        .h = {.magic = FD_MAGIC, .version = FD_VERSION, .type = FD_READS, .length = sizeof m, .seq = ++client.seq},
        .want_kb = kb,
    };

    return client.heard && send(client.fd, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof m;
}

bool mr_fabric_tell_seen(const char *device, uint8_t port, uint32_t broken, uint32_t resent)
{
    struct fd_seen m = {
        .h = {.magic = FD_MAGIC, .version = FD_VERSION, .type = FD_SEEN, .length = sizeof m, .seq = ++client.seq},
        .port = port,
        .broken = broken,
        .resent = resent,
    };

    if (!client.heard || !client.has_health || strlen(device) >= sizeof m.device)
        return false;
    memcpy(m.device, device, strlen(device));
    return send(client.fd, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof m;
}
