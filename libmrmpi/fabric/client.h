/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client of fabricd (fabricd/proto.h): which service levels this job has, and which rails of this host are not to
 * be used. The daemon is never waited for longer than a bounded time, is believed in nothing that is out of range, and
 * is never needed: without it everything travels on service level 0.
 *
 * One connection per process, made at init and kept for news. When it breaks, the last that was heard stays in force,
 * and a new connection is tried from time to time. Called with the library's lock held.
 */
#ifndef MRMPI_FABRIC_CLIENT_H
#define MRMPI_FABRIC_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#define MR_LANES_MAX 8

struct mr_fabric_qos {
    uint32_t small_max; /* payloads up to so many bytes travel on sl_small, as all control packets do */
    uint8_t sl_small;
    uint8_t num_lanes; /* 1.. */
    uint8_t sl_bulk[MR_LANES_MAX];
    bool verified;       /* every port of the fabric was found to have the policy's tables */
    uint64_t generation; /* of the policy; 0: none */
    char class_name[32]; /* "" without a policy */
};

/* What holds without a daemon. */
void mr_fabric_defaults(struct mr_fabric_qos *qos);

/*
 * Ask the daemon at socket ("%h" stands for the host's name) about job. 0: *qos is filled. Negative errno, and the
 * defaults in *qos: -ENOENT or -ECONNREFUSED (there is none), -ETIMEDOUT, -EPROTO (it talks nonsense), ...
 */
int mr_fabric_open(const char *socket, const char *job, unsigned timeout_ms, struct mr_fabric_qos *qos);
void mr_fabric_close(void);

/* News since the last look? Then they are in *qos. Does not wait; costs a system call. */
bool mr_fabric_news(struct mr_fabric_qos *qos, uint64_t now_ns);

/* The daemon knows this port and says that it should not be used. (A mr_rail_reject.) */
bool mr_fabric_rejects(const char *device, int port, void *arg);

#endif
