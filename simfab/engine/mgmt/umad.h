/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open umad and issm devices, and the agents registered on them. A file owns its agents, an agent its requests; the
 * port's list of agents only refers.
 */
#ifndef SIMFAB_UMAD_H
#define SIMFAB_UMAD_H

#include <rdma/ib_user_mad.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "simfab/engine/mgmt/agents.h"
#include "simfab/proto.h"
#include "simfab/umad_proto.h"

#define AGENTS_MAX     UMAD_AGENTS
#define REQUEST_CHAINS 64

struct umad_rxq;

struct umad_file {
    struct mad *mad;
    struct umad_file *prev, *next;
    struct mad_port *mp;
    int fd;
    pid_t pid;       /* the opening process */
    uint32_t number; /* its N, of umadN or issmN */
    bool issm;
    struct umad_file *next_waiting; /* issm: the next holder */
    bool pkey_abi, used;            /* kind of header; an agent was ever registered */
    struct agent *agents[AGENTS_MAX];
    struct request *chains[REQUEST_CHAINS]; /* requests of all agents, by transaction id */
    struct umad_page *page;                 /* NULL: refused by the machine */
    struct umad_rxq *rx, **rx_tail;         /* data for the program beyond the room in its socket */
    size_t rx_bytes;
    bool want_write;
    bool corked; /* requests are being served: datagrams for the program go out together */
};

struct request {        /* waits for its response, or for its time */
    struct timer timer; /* first: the timer is the request */
    struct request *prev, *next;
    struct request *next_in_chain;
    struct agent *agent;
    struct ib_user_mad_hdr hdr;
    uint32_t retries_left;
    size_t bytes;
    uint8_t mad[];
};

struct agent {
    struct umad_file *file;
    struct agent *next;  /* of the same port */
    uint32_t id, number; /* in its file; in the fabric: the upper half of its transaction ids */
    uint8_t qpn, mgmt_class, version;
    uint32_t oui;
    uint64_t methods[2];
    bool rmpp; /* the engine does RMPP for it, as a kernel would */
    struct request *requests;
};

struct umad_in *umad_in_new(void);
struct umad_file *umad_accept(struct mad *m, int fd, const struct sf_hello *hello);
void umad_ready(struct umad_file *u, uint32_t events);
void umad_close(struct umad_file *u);

#endif
