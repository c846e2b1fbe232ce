/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a datagram's way: the simulated hardware's agents, or a program's, and back with the answer. Also the
 * management plane's life, and its descriptor.
 */
#include "simfab/engine/mgmt/mad.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "simfab/engine/base/text.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/pkey.h"
#include "simfab/engine/mgmt/agent.h"
#include "simfab/engine/mgmt/agents.h"
#include "simfab/engine/mgmt/mad_class.h"
#include "simfab/engine/mgmt/mad_wire.h"
#include "simfab/engine/mgmt/pma.h"
#include "simfab/engine/mgmt/route.h"
#include "simfab/engine/mgmt/sma.h"
#include "simfab/engine/mgmt/timer.h"
#include "simfab/engine/mgmt/trap.h"
#include "simfab/engine/mgmt/umad.h"
#include "simfab/proto.h"

/* ---- delivery ------------------------------------------------------------------------------------------------- */

static void send_mad_answer(struct port *at, const struct mad_packet *request, const uint8_t *resp);

/* A host's kernel answers requests without an agent; so do the agents of a switch. */
static void answer_unsupported(struct port *at, const struct mad_packet *pkt)
{
    uint8_t resp[MAD_BYTES];
    uint64_t method = wire_get(pkt->mad, MAD_METHOD);

    if (method != METHOD_GET && method != METHOD_SET)
        return;
    memcpy(resp, pkt->mad, sizeof resp);
    wire_put(resp, MAD_METHOD, METHOD_GET_RESP);
    wire_put(resp, MAD_STATUS, STATUS_BAD_ATTR);
    send_mad_answer(at, pkt, resp);
}

static bool sma_wants(const struct port *at, const uint8_t *mad)
{
    uint64_t method = wire_get(mad, MAD_METHOD);

    /* SMInfo is the subnet manager's; only a host can have one */
    return (method == METHOD_GET || method == METHOD_SET) &&
           (wire_get(mad, MAD_ATTR) != 0x20 || at->node->kind == NODE_SWITCH);
}

static bool deliver(struct port *at, const struct port *ingress, const struct mad_packet *pkt)
{
    uint8_t resp[MAD_BYTES], class = (uint8_t)wire_get(pkt->mad, MAD_CLASS);
    bool smp = class == CLASS_SMP_LID || class == CLASS_SMP_DR;

    if (smp != (pkt->qpn == 0) || !route_keys_accept(at, pkt))
        return false;
    if (smp && wire_get(pkt->mad, MAD_METHOD) == METHOD_TRAP_REPRESS && trap_repress(at, pkt->mad))
        return true;
    if (!mad_is_response(pkt->mad) && (smp ? sma_wants(at, pkt->mad) : class == CLASS_PERF)) {
        memcpy(resp, pkt->mad, sizeof resp);
        if (smp ? sma_answer(at, ingress, pkt->slid, resp) : pma_answer(at, resp))
            send_mad_answer(at, pkt, resp);
        sma_settle(mad_port_of(at)->mad);
        return true;
    }
    if (agent_deliver(at, pkt))
        return true;
    if (mad_is_response(pkt->mad))
        return false;
    answer_unsupported(at, pkt);
    return true;
}

static void send_mad_answer(struct port *at, const struct mad_packet *request, const uint8_t *resp)
{
    uint8_t mad[MAD_BYTES];
    struct mad_packet pkt = {.mad = mad, .bytes = sizeof mad, .qpn = request->qpn, .sl = request->sl, .qkey = MAD_QKEY};
    int key = request->qpn ? pkey_find(at, request->pkey) : -1;

    memcpy(mad, resp, sizeof mad);
    pkt.slid = request->dlid;
    pkt.dlid = request->slid;
    pkt.pkey = key < 0 ? 0 : at->pkeys[key];
    if (wire_get(mad, MAD_CLASS) == CLASS_SMP_DR) {
        wire_put(mad, SMP_D, 1);
        wire_put(mad, SMP_HOP_PTR, wire_get(mad, SMP_HOP_CNT) + 1);
    }
    mad_send(at, &pkt);
}

/* ---- life ----------------------------------------------------------------------------------------------------- */

static int make_ports(struct mad *m)
{
    struct fabric *f = m->f;
    size_t n = 0;

    for (uint32_t i = 0; i < f->num_nodes; i++)
        n += f->nodes[i]->num_ports + 1;
    m->ports = calloc(n, sizeof *m->ports);
    if (!m->ports)
        return -1;
    n = 0;
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        for (unsigned k = 0; k <= f->nodes[i]->num_ports; k++) {
            struct mad_port *mp = &m->ports[n++];

            mp->mad = m;
            mp->port = &f->nodes[i]->ports[k];
            mp->last_state = mp->port->state;
            mp->lease.fire = sma_lease_expired;
            mp->port->mad = mp;
        }
    }
    return 0;
}

struct mad *mad_new(struct fabric *f)
{
    struct mad *m = calloc(1, sizeof *m);
    struct epoll_event ev = {.events = EPOLLIN};

    if (!m)
        return NULL;
    m->f = f;
    m->deliver = deliver;
    m->timers.prev = m->timers.next = &m->timers;
    m->epfd = epoll_create1(EPOLL_CLOEXEC);
    m->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    m->in = umad_in_new();
    if (!m->in || m->epfd < 0 || m->timerfd < 0 || epoll_ctl(m->epfd, EPOLL_CTL_ADD, m->timerfd, &ev) ||
        make_ports(m)) {
        int e = errno;

        mad_free(m);
        errno = e;
        return NULL;
    }
    return m;
}

void mad_free(struct mad *m)
{
    if (!m)
        return;
    while (m->files)
        umad_close(m->files);
    for (uint32_t i = 0; m->ports && i < m->f->num_nodes; i++) {
        for (unsigned k = 0; k <= m->f->nodes[i]->num_ports; k++) {
            struct port *p = &m->f->nodes[i]->ports[k];

            traps_free(mad_port_of(p));
            timer_cancel(&mad_port_of(p)->lease);
            p->mad = NULL;
        }
    }
    free(m->ports);
    free(m->in);
    if (m->epfd >= 0)
        close(m->epfd);
    if (m->timerfd >= 0)
        close(m->timerfd);
    free(m);
}

int mad_fd(const struct mad *m)
{
    return m->epfd;
}

void mad_run(struct mad *m)
{
    struct epoll_event ev;

    /* one at a time: an event's handler may close the connection of the next event */
    for (int budget = 64; budget > 0 && epoll_wait(m->epfd, &ev, 1, 0) == 1; budget--) {
        if (ev.data.ptr)
            umad_ready(ev.data.ptr, ev.events);
        else
            timers_run(m);
    }
}

void mad_accept(struct mad *m, int fd, const struct sf_hello *hello)
{
    struct epoll_event ev = {.events = EPOLLIN};
    struct umad_file *u = umad_accept(m, fd, hello);

    if (!u)
        return;
    ev.data.ptr = u;
    if (epoll_ctl(m->epfd, EPOLL_CTL_ADD, fd, &ev))
        umad_close(u);
}

void mad_status(const struct mad *m, struct text *t)
{
    uint32_t umads = 0, issms = 0, agents = 0, requests = 0, traps = 0;

    for (const struct umad_file *u = m->files; u; u = u->next) {
        umads += !u->issm;
        issms += u->issm;
        for (unsigned i = 0; i < AGENTS_MAX; i++) {
            agents += u->agents[i] != NULL;
            for (const struct request *r = u->agents[i] ? u->agents[i]->requests : NULL; r; r = r->next)
                requests++;
        }
    }
    for (uint32_t i = 0; i < m->f->num_nodes; i++)
        for (unsigned k = 0; k <= m->f->nodes[i]->num_ports; k++)
            traps += traps_waiting(mad_port_of(&m->f->nodes[i]->ports[k]));
    text_say(t, "management: %u umad, %u issm, %u agents, %u requests, %u traps\n", umads, issms, agents, requests,
             traps);
}
