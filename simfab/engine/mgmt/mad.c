/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way of a datagram: from a port by its LID or its directed route to a node, there to the simulated hardware's
 * agents or to a program's, and back with the answer. Also the management plane's life: timers and their descriptor.
 *
 * SMPs travel on VL 15 as soon as a link is up; other datagrams want every link of their way to be active.
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
#include "simfab/engine/mgmt/agents.h"
#include "simfab/engine/mgmt/mad_wire.h"
#include "simfab/engine/mgmt/umad.h"
#include "simfab/proto.h"

#define HOPS_MAX 64 /* as many as a directed route has; a forwarding loop ends here too */

/* ---- timers --------------------------------------------------------------------------------------------------- */

uint64_t timer_now_ns(void)
{
    return real_ns();
}

static void arm(struct mad *m)
{
    uint64_t at = m->timers.next == &m->timers ? 0 : m->timers.next->deadline_ns;
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at / 1000000000u), .tv_nsec = (long)(at % 1000000000u)}};

    m->armed_ns = at;
    timerfd_settime(m->timerfd, TFD_TIMER_ABSTIME, &when, NULL);
}

void timer_set(struct mad *m, struct timer *t, uint64_t delay_ms)
{
    struct timer *after;

    timer_cancel(t);
    t->mad = m;
    t->deadline_ns = timer_now_ns() + delay_ms * 1000000u;
    /* most deadlines are later than all before */
    for (after = m->timers.prev; after != &m->timers && after->deadline_ns > t->deadline_ns; after = after->prev)
        ;
    t->prev = after;
    t->next = after->next;
    after->next->prev = t;
    after->next = t;
    /* most timers are cancelled long before their time: an expiry that is too soon costs less than arming for each */
    if (!m->armed_ns || t->deadline_ns < m->armed_ns)
        arm(m);
}

void timer_cancel(struct timer *t)
{
    if (!t->next)
        return;
    t->prev->next = t->next;
    t->next->prev = t->prev;
    t->prev = t->next = NULL;
}

static void run_timers(struct mad *m)
{
    uint64_t count, now = timer_now_ns();

    (void)!read(m->timerfd, &count, sizeof count);
    while (m->timers.next != &m->timers && m->timers.next->deadline_ns <= now) {
        struct timer *t = m->timers.next;

        timer_cancel(t);
        t->fire(t);
    }
    arm(m);
}

/* ---- classes -------------------------------------------------------------------------------------------------- */

bool mad_is_response(const uint8_t *mad)
{
    uint64_t method = wire_get(mad, MAD_METHOD);

    return (method & METHOD_RESPONSE) || method == METHOD_TRAP_REPRESS ||
           (wire_get(mad, MAD_CLASS) == CLASS_BM && (wire_get(mad, MAD_MODIFIER) & 1));
}

bool mad_class_has_rmpp(uint8_t c)
{
    return c == CLASS_SA || c == CLASS_DEV_MGT || c == CLASS_DEV_ADM || c == CLASS_BIS || (c >= 0x30 && c <= 0x4f);
}

unsigned mad_header_bytes(uint8_t c)
{
    if (c == CLASS_SA)
        return 56;
    if (c == CLASS_DEV_MGT || c == CLASS_DEV_ADM || c == CLASS_BIS)
        return 64;
    return c >= 0x30 && c <= 0x4f ? 40 : MAD_HDR;
}

/* ---- ways ----------------------------------------------------------------------------------------------------- */

static bool has_lid(const struct port *p, uint16_t lid)
{
    return p->lid && lid >= p->lid && lid < p->lid + (1u << p->lmc);
}

/* The port at the other end, if a datagram can get there. */
static struct port *cross(struct port *p, bool smp)
{
    if (!p->peer || p->phys_state != PHYS_LINKUP)
        return NULL;
    return smp || (p->state == PORT_ACTIVE && p->peer->state == PORT_ACTIVE) ? p->peer : NULL;
}

/* SMPs know no partitions; to queue pair 1 a key must match one of the port's. What does not is counted and told. */
static void bad_key(struct port *at, enum key_kind kind, const struct mad_packet *pkt)
{
    struct bad_key b = {.kind = kind,
                            .key = kind == BAD_PKEY ? pkt->pkey : pkt->qkey,
                            .slid = pkt->slid,
                            .dlid = pkt->dlid,
                            .sl = pkt->sl,
                            .src_qpn = pkt->qpn,
                            .dest_qpn = pkt->qpn};

    mad_bad_key(at, &b);
}

static bool mad_keys_accept(struct port *at, const struct mad_packet *pkt)
{
    if (pkt->qpn == 0)
        return true;
    if (pkey_find(at, pkt->pkey) < 0) {
        at->pkey_violations += at->pkey_violations < UINT16_MAX;
        bad_key(at, BAD_PKEY, pkt);
        return false;
    }
    if (pkt->qkey != MAD_QKEY) {
        at->qkey_violations += at->qkey_violations < UINT16_MAX;
        bad_key(at, BAD_QKEY, pkt);
        return false;
    }
    return true;
}

/* Through a switch whose ports enforce partitions. */
static bool keys_pass(struct port *in, struct port *out, const struct mad_packet *pkt)
{
    if (pkt->qpn == 0)
        return true;
    if (in->num && !pkey_may_enter(in, pkt->pkey)) {
        in->count.rcv_constraint++;
        bad_key(in, BAD_PKEY, pkt);
        return false;
    }
    if (out->num && !pkey_may_leave(out, pkt->pkey)) {
        out->count.xmit_constraint++;
        bad_key(out, BAD_PKEY, pkt);
        return false;
    }
    return true;
}

/*
 * Follow the forwarding tables from a port to the owner of its dlid. *ingress is the port by which it came in.
 */
static struct port *follow_lid(struct port *from, const struct mad_packet *pkt, struct port **ingress)
{
    uint16_t dlid = pkt->dlid;
    bool smp = pkt->qpn == 0;
    struct port *at = from;

    *ingress = from;
    if (dlid == 0 || dlid >= FABRIC_LIDS)
        return NULL;
    if (from->node->kind != NODE_SWITCH) {
        if (has_lid(from, dlid))
            return from;
        at = cross(from, smp);
    }
    for (unsigned hop = 0; at && hop < HOPS_MAX; hop++) {
        struct node *n = at->node;
        unsigned out;

        *ingress = at;
        if (n->kind != NODE_SWITCH)
            return has_lid(at, dlid) ? at : NULL;
        if (has_lid(&n->ports[0], dlid))
            return keys_pass(at, &n->ports[0], pkt) ? &n->ports[0] : NULL;
        out = n->lft[dlid];
        if (dlid > n->lft_top || out == 0 || out > n->num_ports)
            return NULL;
        if (!keys_pass(at, &n->ports[out], pkt))
            return NULL;
        at = cross(&n->ports[out], smp);
    }
    return NULL;
}

/* ---- delivery ------------------------------------------------------------------------------------------------- */

static void send_answer(struct port *at, const struct mad_packet *request, const uint8_t *resp);

/* The kernel of a host answers what nobody there wants; a switch's agents do the same. */
static void refuse(struct port *at, const struct mad_packet *pkt)
{
    uint8_t resp[MAD_BYTES];
    uint64_t method = wire_get(pkt->mad, MAD_METHOD);

    if (method != METHOD_GET && method != METHOD_SET)
        return;
    memcpy(resp, pkt->mad, sizeof resp);
    wire_put(resp, MAD_METHOD, METHOD_GET_RESP);
    wire_put(resp, MAD_STATUS, STATUS_BAD_ATTR);
    send_answer(at, pkt, resp);
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

    if (smp != (pkt->qpn == 0) || !mad_keys_accept(at, pkt))
        return false;
    if (smp && wire_get(pkt->mad, MAD_METHOD) == METHOD_TRAP_REPRESS && trap_repress(at, pkt->mad))
        return true;
    if (!mad_is_response(pkt->mad) && (smp ? sma_wants(at, pkt->mad) : class == CLASS_PERF)) {
        memcpy(resp, pkt->mad, sizeof resp);
        if (smp ? sma_answer(at, ingress, pkt->slid, resp) : pma_answer(at, resp))
            send_answer(at, pkt, resp);
        sma_settle(mad_port_of(at)->mad);
        return true;
    }
    if (agent_deliver(at, pkt))
        return true;
    if (mad_is_response(pkt->mad))
        return false;
    refuse(at, pkt);
    return true;
}

static enum mad_result send_by_lid(struct port *from, const struct mad_packet *pkt)
{
    struct port *ingress, *to = follow_lid(from, pkt, &ingress);

    if (!to)
        return MAD_LOST;
    return deliver(to, to->node->kind == NODE_SWITCH ? ingress : to, pkt) ? MAD_SENT : MAD_LOST;
}

/* ---- directed routes ------------------------------------------------------------------------------------------ */

static struct port *node_port(struct node *n, unsigned num)
{
    return num >= 1 && num <= n->num_ports ? &n->ports[num] : NULL;
}

static struct port *management_port(struct port *p)
{
    return p->node->kind == NODE_SWITCH ? &p->node->ports[0] : p;
}

/* The outward part has ended at a node: what is left of the way goes by LID, or the node is the goal. */
static enum mad_result dr_arrived(struct port *in, struct mad_packet *pkt, uint8_t *mad)
{
    uint16_t dr_dlid = (uint16_t)wire_get(mad, SMP_DR_DLID);
    struct port *at = management_port(in);

    wire_put(mad, SMP_HOP_PTR, wire_get(mad, SMP_HOP_CNT) + 1);
    if (dr_dlid == LID_PERMISSIVE)
        return deliver(at, in, pkt) ? MAD_SENT : MAD_LOST;
    pkt->dlid = dr_dlid;
    return send_by_lid(at, pkt);
}

static enum mad_result dr_outward(struct port *from, struct mad_packet *pkt, uint8_t *mad)
{
    unsigned ptr = (unsigned)wire_get(mad, SMP_HOP_PTR), cnt = (unsigned)wire_get(mad, SMP_HOP_CNT);
    struct port *in, *out;

    if (cnt >= HOPS_MAX || ptr > cnt)
        return MAD_BAD_ROUTE;
    if (wire_get(mad, SMP_DR_SLID) != LID_PERMISSIVE) {
        /* first by LID to the node where the directed part begins */
        struct port *to = follow_lid(from, pkt, &in);

        if (!to || ptr != 0)
            return MAD_LOST;
        if (cnt == 0)
            return dr_arrived(in, pkt, mad);
        out = node_port(to->node, mad[SMP_INITIAL_PATH + 1]);
        if (to->node->kind != NODE_SWITCH && out != to)
            return MAD_LOST;
    } else {
        if (cnt == 0)
            return dr_arrived(from, pkt, mad);
        out = node_port(from->node, mad[SMP_INITIAL_PATH + 1]);
        if (ptr != 0 || (from->node->kind != NODE_SWITCH && out != from))
            return MAD_BAD_ROUTE;
    }
    for (ptr = 1; out && (in = cross(out, true)); ptr++) {
        mad[SMP_RETURN_PATH + ptr] = in->num;
        wire_put(mad, SMP_HOP_PTR, ptr);
        if (ptr == cnt)
            return dr_arrived(in, pkt, mad);
        if (in->node->kind != NODE_SWITCH)
            return MAD_LOST;
        out = node_port(in->node, mad[SMP_INITIAL_PATH + ptr + 1]);
    }
    return MAD_LOST;
}

/* The way back has ended at a node: the requester is here, or is reached by LID. */
static enum mad_result dr_returned(struct port *in, struct mad_packet *pkt, uint8_t *mad)
{
    uint16_t dr_slid = (uint16_t)wire_get(mad, SMP_DR_SLID);
    struct port *at = management_port(in);

    wire_put(mad, SMP_HOP_PTR, 0);
    if (dr_slid == LID_PERMISSIVE)
        return deliver(at, in, pkt) ? MAD_SENT : MAD_LOST;
    pkt->dlid = dr_slid;
    return send_by_lid(at, pkt);
}

static enum mad_result dr_homeward(struct port *from, struct mad_packet *pkt, uint8_t *mad)
{
    unsigned ptr = (unsigned)wire_get(mad, SMP_HOP_PTR), cnt = (unsigned)wire_get(mad, SMP_HOP_CNT);
    struct port *in, *out;

    if (cnt >= HOPS_MAX)
        return MAD_BAD_ROUTE;
    if (wire_get(mad, SMP_DR_DLID) != LID_PERMISSIVE) {
        struct port *to = follow_lid(from, pkt, &in);

        if (!to)
            return MAD_LOST;
        from = to;
    }
    if (cnt == 0)
        return dr_returned(from, pkt, mad);
    if (ptr != cnt + 1)
        return MAD_BAD_ROUTE;
    out = node_port(from->node, mad[SMP_RETURN_PATH + cnt]);
    if (!out || (from->node->kind != NODE_SWITCH && out != from))
        return MAD_BAD_ROUTE;
    for (ptr = cnt; out && (in = cross(out, true)); ptr--) {
        if (ptr == 1)
            return dr_returned(in, pkt, mad);
        if (in->node->kind != NODE_SWITCH)
            return MAD_LOST;
        out = node_port(in->node, mad[SMP_RETURN_PATH + ptr - 1]);
    }
    return MAD_LOST;
}

static enum mad_result send_directed(struct port *from, const struct mad_packet *pkt)
{
    uint8_t mad[MAD_BYTES];
    struct mad_packet moving = *pkt;

    /* the route's fields change on the way; the sender may send its own again */
    memcpy(mad, pkt->mad, sizeof mad);
    moving.mad = mad;
    moving.bytes = sizeof mad;
    if (wire_get(mad, SMP_DR_SLID) == LID_PERMISSIVE && wire_get(mad, SMP_DR_DLID) == LID_PERMISSIVE)
        moving.slid = LID_PERMISSIVE;
    return wire_get(mad, SMP_D) ? dr_homeward(from, &moving, mad) : dr_outward(from, &moving, mad);
}

enum mad_result mad_send(struct port *from, const struct mad_packet *pkt)
{
    if (wire_get(pkt->mad, MAD_CLASS) == CLASS_SMP_DR && pkt->qpn == 0)
        return send_directed(from, pkt);
    return send_by_lid(from, pkt);
}

static void send_answer(struct port *at, const struct mad_packet *request, const uint8_t *resp)
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

    /* one at a time: what an event does may close the connection that the next one is about */
    for (int budget = 64; budget > 0 && epoll_wait(m->epfd, &ev, 1, 0) == 1; budget--) {
        if (ev.data.ptr)
            umad_ready(ev.data.ptr, ev.events);
        else
            run_timers(m);
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
