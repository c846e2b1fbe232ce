/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client of fabricd (fabricd/proto/proto.h): the service levels of this job, unusable rails of this host, and the
 * present place of ports of other hosts with changed LIDs. Waits for the daemon are bounded, values out of range are
 * ignored, and the daemon is optional: without one all traffic is on service level 0.
 *
 * One connection per process, made at init and kept for news. The late answer of a slow daemon is news. Without a
 * connection, one is tried from time to time, without waiting, and the last state received stays in force. Called with
 * the library's lock held.
 */
#ifndef MRMPI_FABRIC_CLIENT_H
#define MRMPI_FABRIC_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#define MR_LANES_MAX 8

/*
 * Levels by the size of messages: small messages and all control packets, large messages, and those between. A job with
 * fewer levels leaves out places before MR_LEVEL_PACKETS: max is that of the place before, so no message falls into
 * them, and the service levels are those of the place after. MR_LEVEL_PACKETS has the service levels of large messages,
 * for packets sent with them: those longer than all levels before, and those beyond the ahead budget.
 */
enum mr_level { MR_LEVEL_SMALL, MR_LEVEL_PACKETS = 3, MR_LEVEL_BULK, MR_LEVELS };

struct mr_fabric_level {
    uint32_t max;      /* payloads up to so many bytes. Of MR_LEVEL_BULK: without meaning */
    uint8_t num_lanes; /* 1.. service levels, to be used in turn */
    uint8_t sl[MR_LANES_MAX];
};

struct mr_fabric_qos {
    struct mr_fabric_level level[MR_LEVELS];
    bool verified;       /* every port of the fabric was found to have the policy's tables */
    uint64_t generation; /* of the policy; 0: none */
    char class_name[32]; /* "" without a policy */
    char spread[2][96];  /* how small and large messages go over rails (conn/route/policy.h); "": it says nothing */
};

/* The state without a daemon. */
void mr_fabric_defaults(struct mr_fabric_qos *qos);

/* Of the daemon's socket. 0, or a negative errno: no daemon by configuration. */
int mr_fabric_address(const char *path, struct sockaddr_un *addr);

/*
 * Asks the daemon at socket ("%h" stands for the host's name) about job. 0: *qos is filled. Negative errno, and the
 * defaults in *qos: -ENOENT or -ECONNREFUSED (no daemon), -ETIMEDOUT, -EPROTO (invalid answer), ... Except without a
 * daemon by configuration ("", or a name too long), the daemon is asked again until mr_fabric_close().
 */
int mr_fabric_open(const char *socket, const char *job, unsigned timeout_ms, struct mr_fabric_qos *qos);
void mr_fabric_close(void);

/* The level of a packet with this payload. */
static inline enum mr_level mr_fabric_level_of(const struct mr_fabric_qos *q, uint32_t payload)
{
    enum mr_level l = MR_LEVEL_SMALL;

    while (l < MR_LEVEL_PACKETS && payload > q->level[l].max)
        l++;
    return l;
}

/* The level of a message that is offered first, by its length: none is small. */
static inline enum mr_level mr_fabric_level_of_offered(const struct mr_fabric_qos *q, uint64_t len)
{
    for (int l = MR_LEVEL_SMALL + 1; l < MR_LEVEL_PACKETS; l++)
        if (q->level[l].max > q->level[l - 1].max && len <= q->level[l].max)
            return (enum mr_level)l;
    return MR_LEVEL_BULK;
}

/*
 * The part of the port's rate that this process may send on each level before MR_LEVEL_PACKETS, of MR_FABRIC_AHEAD_ALL.
 * 0: no limit, because the daemon has none, or those levels do not go ahead of other classes.
 */
#define MR_FABRIC_AHEAD_ALL 65536u
unsigned mr_fabric_ahead(const char *device, int port);
/*
 * How much of an adapter's message rate its small messages may take, of MR_FABRIC_AHEAD_ALL; with more none of them
 * goes ahead. 0: no limit.
 */
unsigned mr_fabric_messages(void);

/*
 * Health of the port's rail, of MR_FABRIC_HEALTHY, and the daemon's word for its state. MR_FABRIC_HEALTHY if the daemon
 * does not say.
 */
#define MR_FABRIC_HEALTHY 1024u
unsigned mr_fabric_health(const char *device, int port, const char **state);

/* The partition of the job's processes over the port, 15 bits; 0: not set by the daemon. */
uint16_t mr_fabric_pkey(const char *device, int port);

/* Rail i that the daemon knows; false: there are no more. state: as above. */
bool mr_fabric_rail(unsigned i, const char **device, int *port, unsigned *weight, const char **state);

/*
 * Reports the connections over the port's rail that broke, and the packets sent again, since the last report. False: no
 * daemon that wants such reports could be told.
 */
bool mr_fabric_tell_seen(const char *device, uint8_t port, uint32_t broken, uint32_t resent);

/*
 * Limit for reads of this process over the port, in 10^3 bytes a second; 0: no limit. The limit changes as others on
 * this host begin and end to read. MR_FABRIC_PACE_ALONE: none at present, but little should be under way, since a limit
 * may come. True of the news: some of these have changed since the last check.
 */
#define MR_FABRIC_PACE_ALONE UINT32_MAX
uint32_t mr_fabric_pace(const char *device, int port);
bool mr_fabric_pace_news(void);
/*
 * Once there is a limit: reports the reads of this process, or that the limit holds them back. At most a few hundred
 * times a second. False: could not be sent.
 */
#define MR_FABRIC_READS_ALL UINT32_MAX
bool mr_fabric_tell_reads(uint32_t kb);

/*
 * True if there is news since the last check, then in *qos. Does not wait. Costs a system call, or a comparison without
 * a connection. A connection is tried 50 ms after the first failure, after twice as long each time, at most every five
 * seconds; every five seconds from the beginning if there is no socket. now_ns is of mr_clock_ns().
 */
bool mr_fabric_news(struct mr_fabric_qos *qos, uint64_t now_ns);

/*
 * Ask where the port with this GUID is at present, in the subnet of a port of this host. The answer comes with the
 * news. -EOPNOTSUPP: there is no daemon that could tell; -EAGAIN: not now.
 */
int mr_fabric_ask_place(const char *device, uint8_t port, uint64_t guid);

struct mr_fabric_place {
    uint64_t guid;
    uint16_t lid;
    uint8_t lmc;
};

/* Takes an answer that has come, each once; false: none. Questions without a known answer get none. */
bool mr_fabric_place(struct mr_fabric_place *out);

/*
 * Asks for the LID paths from a port of this host, to the port with the 2^lmc LIDs from lid on, without a common cable
 * between switches. The answer comes with the news. -EOPNOTSUPP: no daemon could tell; -EAGAIN: not now.
 */
int mr_fabric_ask_paths(const char *device, uint8_t port, uint16_t lid, uint8_t lmc);

#define MR_FABRIC_PATHS_MAX 8u
struct mr_fabric_paths {
    char device[64];
    uint8_t port;
    uint16_t lid;
    int status;   /* 0; negative errno: nothing is known now */
    uint32_t set; /* of paths that large messages may use, by number: 0 is among them */
};

/* Takes an answer that has come, each once; false: none. */
bool mr_fabric_paths(struct mr_fabric_paths *out);
/* The daemon answers such questions. */
bool mr_fabric_knows_paths(void);

/* The daemon knows this port and advises against its use. (A mr_rail_reject.) */
bool mr_fabric_rejects(const char *device, int port, void *arg);

#endif
