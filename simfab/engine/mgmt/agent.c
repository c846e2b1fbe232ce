/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agents: delivery of datagrams, requests that wait for their response, time-outs and retransmission. The rules are
 * those of the Linux kernel's MAD layer, because programs depend on them: a response finds its agent by the upper half
 * of the transaction id, a request by class, version and method; a request without response comes back with ETIMEDOUT.
 */
#include "simfab/engine/mgmt/agent.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/pkey.h"
#include "simfab/engine/mgmt/agents.h"
#include "simfab/engine/mgmt/mad_class.h"
#include "simfab/engine/mgmt/mad_wire.h"
#include "simfab/engine/mgmt/route.h"
#include "simfab/engine/mgmt/timer.h"
#include "simfab/engine/mgmt/umad.h"
#include "simfab/engine/mgmt/umad_page.h"
#include "simfab/engine/mgmt/umad_rx.h"
#include "simfab/umad_proto.h"

#define CLASS_MAX 0x50

static bool is_oui_class(uint8_t c)
{
    return c >= 0x30 && c <= 0x4f;
}

static bool is_smp_class(uint8_t c)
{
    return c == CLASS_SMP_LID || c == CLASS_SMP_DR;
}

static bool wants_method(const struct agent *a, uint8_t method)
{
    return method < 128 && a->methods[method / 64] >> (method % 64) & 1;
}

/* ---- registration --------------------------------------------------------------------------------------------- */

static bool registration_valid(const struct ib_user_mad_reg_req2 *r)
{
    uint8_t c = r->mgmt_class;

    if (r->qpn > 1 || r->rmpp_version > 1)
        return false;
    if (r->rmpp_version && !mad_class_has_rmpp(c))
        return false;
    if (c == 0)
        return true;
    if (r->mgmt_class_version >= 8 || (c >= CLASS_MAX && c != CLASS_SMP_DR))
        return false;
    if (is_oui_class(c) && !(r->oui & 0xffffff))
        return false;
    return is_smp_class(c) == (r->qpn == 0);
}

static bool registration_taken(const struct mad_port *mp, const struct ib_user_mad_reg_req2 *r)
{
    for (const struct agent *a = mp->agents; a; a = a->next) {
        if (a->mgmt_class != r->mgmt_class || a->version != r->mgmt_class_version)
            continue;
        if (is_oui_class(a->mgmt_class) && a->oui != (r->oui & 0xffffff))
            continue;
        if ((a->methods[0] & r->method_mask[0]) || (a->methods[1] & r->method_mask[1]))
            return true;
    }
    return false;
}

int agent_register(struct umad_file *u, const struct ib_user_mad_reg_req2 *r, uint32_t *id)
{
    struct agent *a;
    uint32_t slot = 0;

    if (!registration_valid(r))
        return EINVAL;
    while (slot < AGENTS_MAX && u->agents[slot])
        slot++;
    if (slot == AGENTS_MAX)
        return ENOMEM;
    if (r->mgmt_class && registration_taken(u->mp, r))
        return EINVAL;
    a = calloc(1, sizeof *a);
    if (!a)
        return ENOMEM;
    a->file = u;
    a->id = slot;
    a->number = ++u->mad->last_agent;
    a->qpn = (uint8_t)r->qpn;
    a->mgmt_class = r->mgmt_class;
    a->version = r->mgmt_class_version;
    a->oui = r->oui & 0xffffff;
    if (r->mgmt_class) {
        a->methods[0] = r->method_mask[0];
        a->methods[1] = r->method_mask[1];
    }
    a->rmpp = r->rmpp_version && !(r->flags & IB_USER_MAD_USER_RMPP);
    a->next = u->mp->agents;
    u->mp->agents = a;
    u->agents[slot] = a;
    umad_page_agent(u, slot, a->rmpp ? UMAD_AGENT_RMPP : UMAD_AGENT_PLAIN);
    *id = slot;
    return 0;
}

static struct request **chain_of(struct umad_file *u, const uint8_t *mad)
{
    return &u->chains[mad[15] % REQUEST_CHAINS]; /* the last byte of the transaction id */
}

static bool same_transaction(const struct request *r, const uint8_t *mad)
{
    return !memcmp(r->mad + 8, mad + 8, 8) && r->mad[1] == mad[1]; /* id and class */
}

static void request_free(struct request *r)
{
    struct umad_file *u = r->agent->file;
    struct request **at = chain_of(u, r->mad);

    while (*at != r)
        at = &(*at)->next_in_chain;
    *at = r->next_in_chain;
    umad_page_count(u, r->agent->id, r->mad, -1);
    timer_cancel(&r->timer);
    if (r->prev)
        r->prev->next = r->next;
    else
        r->agent->requests = r->next;
    if (r->next)
        r->next->prev = r->prev;
    free(r);
}

int agent_unregister(struct umad_file *u, uint32_t id)
{
    struct agent *a = id < AGENTS_MAX ? u->agents[id] : NULL, **at;

    if (!a)
        return EINVAL;
    while (a->requests)
        request_free(a->requests);
    for (at = &u->mp->agents; *at != a; at = &(*at)->next)
        ;
    *at = a->next;
    u->agents[id] = NULL;
    umad_page_agent(u, id, UMAD_AGENT_NONE);
    free(a);
    return 0;
}

void agents_free(struct umad_file *u)
{
    for (uint32_t i = 0; i < AGENTS_MAX; i++)
        if (u->agents[i])
            agent_unregister(u, i);
}

/* ---- sending -------------------------------------------------------------------------------------------------- */

static enum mad_result transmit_mad(struct agent *a, const struct ib_user_mad_hdr *hdr, const uint8_t *mad,
                                    size_t bytes)
{
    struct port *p = a->file->mp->port;
    struct mad_packet pkt = {
        .mad = mad,
        .bytes = bytes,
        .qpn = a->qpn,
        .slid = (uint16_t)(p->lid | (hdr->path_bits & ((1u << p->lmc) - 1))),
        .dlid = ntohs(hdr->lid),
        .sl = hdr->sl & 15,
        .pkey = p->pkeys[hdr->pkey_index < FABRIC_PKEYS ? hdr->pkey_index : 0],
        /* the highest bit stands for the queue key of the sender's queue pair 1 */
        .qkey = ntohl(hdr->qkey) & 0x80000000u ? MAD_QKEY : ntohl(hdr->qkey),
    };

    if (hdr->grh_present) {
        uint64_t guid = p->guids[hdr->gid_index < FABRIC_GUIDS ? hdr->gid_index : 0];

        pkt.grh = true;
        wire_put(pkt.sgid, 0, 64, p->gid_prefix);
        wire_put(pkt.sgid, 64, 64, guid);
        pkt.flow_label = hdr->flow_label;
        pkt.traffic_class = hdr->traffic_class;
        pkt.hop_limit = hdr->hop_limit;
    }
    return mad_send(p, &pkt);
}

static void request_timed_out(struct timer *t)
{
    struct request *r = (struct request *)t;
    struct umad_file *u = r->agent->file;

    if (r->retries_left) {
        r->retries_left--;
        timer_set(t->mad, t, r->hdr.timeout_ms);
        transmit_mad(r->agent, &r->hdr, r->mad, r->bytes); /* an answer ends r at once */
        return;
    }
    r->hdr.status = ETIMEDOUT;
    umad_push(u, &r->hdr, r->mad, MAD_HDR);
    request_free(r);
}

/* True for a request whose response could be confused with the response of another pending request. */
static bool is_duplicate(struct umad_file *u, const uint8_t *mad)
{
    for (const struct request *r = *chain_of(u, mad); r; r = r->next_in_chain)
        if (same_transaction(r, mad) && !mad_is_response(r->mad))
            return true;
    return false;
}

static struct request *request_new(struct agent *a, const struct ib_user_mad_hdr *hdr, const uint8_t *mad, size_t bytes)
{
    struct umad_file *u = a->file;
    struct request *r = malloc(sizeof *r + bytes), **chain = chain_of(u, mad);

    if (!r)
        return NULL;
    memset(r, 0, sizeof *r);
    r->timer.fire = request_timed_out;
    r->agent = a;
    r->hdr = *hdr;
    r->retries_left = hdr->retries;
    r->bytes = bytes;
    memcpy(r->mad, mad, bytes);
    r->next = a->requests;
    if (r->next)
        r->next->prev = r;
    a->requests = r;
    r->next_in_chain = *chain;
    *chain = r;
    umad_page_count(u, a->id, mad, 1);
    timer_set(u->mad, &r->timer, hdr->timeout_ms);
    return r;
}

/* Fills the header of the first (or only) segment, as the kernel does. */
static void fill_rmpp(uint8_t *mad, size_t bytes, unsigned header)
{
    size_t segment = MAD_BYTES - header, data = bytes - header;
    size_t n = data ? (data + segment - 1) / segment : 1, pad = n * segment - data;

    wire_put(mad, RMPP_VERSION, 1);
    wire_put(mad, RMPP_TYPE, RMPP_DATA);
    wire_put(mad, RMPP_FLAGS, RMPP_ACTIVE | RMPP_FIRST | (n == 1 ? RMPP_LAST : 0));
    wire_put(mad, RMPP_STATUS, 0);
    wire_put(mad, RMPP_SEGMENT, 1);
    wire_put(mad, RMPP_PAYLEN, n * (MAD_BYTES - RMPP_HDR) - pad);
}

static int send_mad(struct agent *a, const struct ib_user_mad_hdr *hdr, uint8_t *mad, size_t bytes, bool rmpp_active)
{
    struct request *r = NULL;
    enum mad_result result;

    if (!mad_is_response(mad)) {
        wire_put(mad, 64, 32, a->number);
        if (!rmpp_active && is_duplicate(a->file, mad))
            return EINVAL;
    }
    if (rmpp_active)
        fill_rmpp(mad, bytes, mad_header_bytes((uint8_t)wire_get(mad, MAD_CLASS)));
    if (hdr->timeout_ms && !mad_is_response(mad)) {
        r = request_new(a, hdr, mad, bytes);
        if (!r)
            return ENOMEM;
    }
    result = transmit_mad(a, hdr, mad, bytes);
    if (result == MAD_BAD_ROUTE) {
        if (r)
            request_free(r); /* not delivered, so no answer has freed the request */
        return EINVAL;
    }
    /* a multi-segment response wants acknowledges: unheard, it comes back like a request */
    if (result == MAD_LOST && rmpp_active && hdr->timeout_ms && mad_is_response(mad) &&
        !request_new(a, hdr, mad, bytes))
        return ENOMEM;
    return 0;
}

int agent_write(struct umad_file *u, const uint8_t *buf, size_t bytes)
{
    size_t head = u->pkey_abi ? UMAD_HDR : UMAD_HDR_OLD, n;
    struct ib_user_mad_hdr hdr = {0};
    struct agent *a;
    uint8_t class, *mad;
    bool active;
    int err;

    if (bytes < head + RMPP_HDR)
        return EINVAL;
    memcpy(&hdr, buf, head);
    if (hdr.id >= AGENTS_MAX || hdr.pkey_index >= FABRIC_PKEYS)
        return EINVAL;
    a = u->agents[hdr.id];
    if (!a)
        return EIO;
    n = bytes - head;
    class = (uint8_t)wire_get(buf + head, MAD_CLASS);
    active = a->rmpp && mad_class_has_rmpp(class) && (wire_get(buf + head, RMPP_FLAGS) & RMPP_ACTIVE);
    if (a->rmpp && !mad_class_has_rmpp(class))
        return EINVAL;
    if (!active && n > MAD_BYTES)
        return EINVAL;
    if (active && n < mad_header_bytes(class))
        n = mad_header_bytes(class);
    mad = calloc(1, n < MAD_BYTES ? MAD_BYTES : n);
    if (!mad)
        return ENOMEM;
    memcpy(mad, buf + head, bytes - head);
    hdr.status = 0;
    u->mad->f->management_ns = timer_now_ns();
    err = send_mad(a, &hdr, mad, active ? n : MAD_BYTES, active);
    free(mad);
    return err;
}

/* ---- receiving ------------------------------------------------------------------------------------------------ */

static void hand_over(struct agent *a, const struct mad_packet *pkt)
{
    struct port *p = a->file->mp->port;
    struct ib_user_mad_hdr hdr = {
        .id = a->id,
        .qpn = htonl(pkt->qpn),
        .lid = htons(pkt->slid),
        .sl = pkt->sl,
        .grh_present = pkt->grh,
    };
    size_t bytes = pkt->bytes;
    int pkey_index = pkt->qpn ? pkey_find(p, pkt->pkey) : 0;

    hdr.pkey_index = (uint16_t)(pkey_index < 0 ? 0 : pkey_index);
    /* an agent that does RMPP itself sees segments, and only the first comes unasked */
    if (bytes > MAD_BYTES && !a->rmpp)
        bytes = MAD_BYTES;
    if (pkt->slid == LID_PERMISSIVE)
        hdr.qpn = 0;
    else
        hdr.path_bits = (uint8_t)(pkt->dlid & ((1u << p->lmc) - 1));
    if (pkt->grh) {
        memcpy(hdr.gid, pkt->sgid, sizeof hdr.gid);
        hdr.flow_label = pkt->flow_label;
        hdr.traffic_class = pkt->traffic_class;
        hdr.hop_limit = pkt->hop_limit;
    }
    hdr.length = (uint32_t)((a->file->pkey_abi ? UMAD_HDR : UMAD_HDR_OLD) + bytes);
    umad_push(a->file, &hdr, pkt->mad, bytes);
}

static bool deliver_response(struct mad_port *mp, const struct mad_packet *pkt)
{
    uint64_t tid = wire_get(pkt->mad, MAD_TID);

    for (struct agent *a = mp->agents; a; a = a->next) {
        if (a->number != tid >> 32)
            continue;
        for (struct request *r = *chain_of(a->file, pkt->mad); r; r = r->next_in_chain) {
            if (r->agent == a && same_transaction(r, pkt->mad)) {
                request_free(r);
                hand_over(a, pkt);
                return true;
            }
        }
    }
    return false;
}

bool agent_deliver(struct port *at, const struct mad_packet *pkt)
{
    struct mad_port *mp = mad_port_of(at);
    uint8_t class = (uint8_t)wire_get(pkt->mad, MAD_CLASS);
    uint32_t oui = (uint32_t)wire_get(pkt->mad, 37 * 8, 24);

    if (mad_is_response(pkt->mad))
        return deliver_response(mp, pkt);
    for (struct agent *a = mp->agents; a; a = a->next) {
        if (a->qpn != pkt->qpn || a->mgmt_class != class || a->version != wire_get(pkt->mad, MAD_CLASS_VERSION) ||
            !wants_method(a, (uint8_t)wire_get(pkt->mad, MAD_METHOD)) || (is_oui_class(class) && a->oui != oui))
            continue;
        hand_over(a, pkt);
        return true;
    }
    return false;
}
