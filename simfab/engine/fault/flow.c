/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows: sending and results. See flow.h. */
#include "simfab/engine/fault/flow.h"

#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/text.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/engine/hca/transport.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/packet.h"

struct flow {
    struct qp qp; /* the flow to the adapter: first member, never destroyed as a queue pair */
    struct flow *next;
    uint64_t id;
    struct flow_cmd cmd;
    struct port *from, *to;
    uint32_t live;           /* its packets alive */
    uint64_t begin_ps;       /* when the messages are counted from for their rate, */
    uint64_t messages;       /* and how many since */
    uint64_t offset;         /* of the message being sent */
    struct evtimer due, end; /* the next message, or the beginning; the end */
    bool begun, ended;
    uint64_t sent_packets, sent_bytes, got_packets, got_bytes; /* bytes: of data */
    uint64_t first_ps, last_ps, first_bytes;                   /* the first and the last packet received */
};

#define FLOWS_MAX 10000u
#define TELL_MAX  3u /* flows named at the end */

struct flows {
    struct flow *first, **last; /* in the order of their numbers */
    struct flow *gone;          /* taken out, while packets or timers still point to them */
    uint64_t next_id;
    uint32_t num;
};

static struct flow *flow_of(struct qp *qp)
{
    return (struct flow *)qp;
}

/* ---- sending --------------------------------------------------------------------------------------------------- */

static bool has_path(const struct flow *f)
{
    return f->from->state == PORT_ACTIVE && f->to->lid && link_lane(f->from, 0, f->cmd.sl) >= 0;
}

static bool flow_wants_turn(struct qp *qp)
{
    struct flow *f = flow_of(qp);
    struct sim *s = qp->hca->sim;
    uint64_t due;

    if (!f->begun || f->ended || !has_path(f))
        return false;
    due = f->begin_ps + flow_due_ps(f->messages, f->cmd.size, f->cmd.rate_mbps);
    if (f->offset || due <= sim_now(s))
        return true;
    evtimer_set(&s->q, &f->due, due);
    return false;
}

static uint32_t path_mtu(const struct flow *f)
{
    uint32_t mtu = mtu_bytes(f->from->mtu_neighbor), there = mtu_bytes(f->to->mtu_neighbor);

    mtu = there < mtu ? there : mtu;
    return f->cmd.mtu && f->cmd.mtu < mtu ? f->cmd.mtu : mtu;
}

static struct packet *flow_emit(struct qp *qp, struct tx_cost *cost, bool *more)
{
    struct flow *f = flow_of(qp);
    struct packet *p;
    uint64_t left;

    *more = false;
    if (!flow_wants_turn(qp))
        return NULL;
    cost->first = f->offset == 0;
    if (cost->first)
        qp->mtu = path_mtu(f);
    left = f->cmd.size - f->offset;
    p = packet_new();
    packet_is_background(p, &f->live);
    p->op = PKT_SEND;
    p->transport = (uint8_t)QPT_FLOW;
    p->slid = f->from->lid;
    p->dlid = f->to->lid + (f->cmd.path & ((1u << f->to->lmc) - 1));
    p->sl = f->cmd.sl;
    p->vl = (uint8_t)link_lane(f->from, 0, f->cmd.sl);
    p->pkey = f->from->pkeys[0];
    p->flags = (f->offset ? 0 : PKT_FIRST) | (left <= qp->mtu ? PKT_LAST : 0);
    p->payload = cost->memory = (uint32_t)(left < qp->mtu ? left : qp->mtu);
    p->wire_bytes = p->payload + qp->hca->sim->model->packet_overhead_bytes;
    f->sent_packets++;
    f->sent_bytes += p->payload;
    f->offset += p->payload;
    if (f->offset == f->cmd.size) {
        f->offset = 0;
        f->messages++;
    }
    *more = flow_wants_turn(qp);
    return p;
}

/* As the adapter sees a flow. */
static const struct qp_ops flow_ops = {.wants_turn = flow_wants_turn, .lane = transport_lane, .emit = flow_emit};

static void flow_continue(void *obj, uint64_t arg)
{
    struct flow *f = obj;

    qp_ask_turn(&f->qp);
}

/* The time has come to begin: or to begin again, with a clean slate, after there was no way to send. */
static void begin_flow(struct flow *f)
{
    f->begun = true;
    f->begin_ps = sim_now(f->qp.hca->sim);
    f->messages = 0;
    flow_continue(f, 0);
}

static void flow_due(void *obj, uint64_t arg)
{
    struct flow *f = obj;

    if (f->begun)
        flow_continue(f, 0);
    else
        begin_flow(f);
}

static void end(void *obj, uint64_t arg)
{
    struct flow *f = obj;

    if (f->ended)
        return;
    f->ended = true;
    f->qp.hca->sim->background--;
    hca_qp_forget(&f->qp);
    evtimer_stop(&f->due);
    evtimer_stop(&f->end);
}

void flows_port_changed(struct sim *s, const struct port *p)
{
    for (struct flow *f = s->flows ? s->flows->first : NULL; f; f = f->next) {
        if ((f->from != p && f->to != p) || !f->begun || f->ended || f->qp.in_ready)
            continue;
        if (has_path(f) && !evtimer_is_set(&f->due))
            begin_flow(f);
    }
}

void flow_landed(struct sim *s, const struct packet *p)
{
    struct flow *f = (struct flow *)((char *)p->background - offsetof(struct flow, live));

    if (!f->got_packets++) {
        f->first_ps = sim_now(s);
        f->first_bytes = p->payload;
    }
    f->got_bytes += p->payload;
    f->last_ps = sim_now(s);
}

/* ---- making and ending ----------------------------------------------------------------------------------------- */

static bool find_flow_port(const struct sim *s, const char *name, uint32_t num, struct port **out, struct text *t)
{
    struct node *n = fabric_node_by_name(s->fabric, name);

    if (!n || n->kind != NODE_CA) {
        text_say(t, n ? "\"%s\" is no adapter" : "there is no adapter \"%s\" in this fabric; there are:", name);
        for (uint32_t i = 0, said = 0; !n && i < s->fabric->num_nodes && said < 12; i++)
            if (s->fabric->nodes[i]->kind == NODE_CA)
                text_say(t, "%s \"%s\"", said++ ? "," : "", s->fabric->nodes[i]->desc);
        return false;
    }
    for (uint32_t k = 1; !num && k <= n->num_ports; k++)
        if (n->ports[k].peer)
            num = k;
    if (!num || num > n->num_ports || !n->ports[num].peer) {
        text_say(t, "\"%s\" has no cable%s", n->desc, num ? " at that port" : "");
        return false;
    }
    *out = &n->ports[num];
    return true;
}

static struct flow *add_flow(struct sim *s, const struct flow_cmd *c, struct text *t)
{
    struct port *from, *to;
    uint64_t when;
    struct flow *f;

    if (!find_flow_port(s, c->from, c->from_port, &from, t) || !find_flow_port(s, c->to, c->to_port, &to, t))
        return NULL;
    if (from == to) {
        text_say(t, "a flow goes from one port to another, over the network");
        return NULL;
    }
    if (s->flows->num == FLOWS_MAX) {
        text_say(t, "there are %u flows already: simfab flow del ends some", FLOWS_MAX);
        return NULL;
    }
    s->flows->num++;
    f = xcalloc(1, sizeof *f);
    f->id = s->flows->next_id++;
    f->cmd = *c;
    f->from = from;
    f->to = to;
    f->qp.type = QPT_FLOW;
    f->qp.ops = &flow_ops;
    f->qp.hca = from->node->hca;
    f->qp.port = &from->node->hca->ports[from->num];
    f->qp.sl = c->sl;
    f->qp.mtu = path_mtu(f);
    evtimer_init(&f->due, flow_due, f);
    evtimer_init(&f->end, end, f);
    f->due.quiet = f->end.quiet = true;
    *s->flows->last = f;
    s->flows->last = &f->next;
    s->background++;
    when = c->relative ? sim_now(s) + c->when_ps : max_u64(c->when_ps, sim_now(s));
    evtimer_set(&s->q, &f->due, when);
    if (c->for_ps)
        evtimer_set(&s->q, &f->end, when + c->for_ps);
    return f;
}

static void sweep_flows(struct flows *fs)
{
    for (struct flow **at = &fs->gone, *f; (f = *at);) {
        if (f->live || evtimer_queued(&f->due) || evtimer_queued(&f->end)) {
            at = &f->next;
        } else {
            *at = f->next;
            free(f);
        }
    }
}

/* id 0: all. False: there is none. */
static bool delete (struct flows *fs, uint64_t id)
{
    bool found = !id;

    for (struct flow **at = &fs->first, *f; (f = *at);) {
        if (id && f->id != id) {
            at = &f->next;
            continue;
        }
        found = true;
        end(f, 0);
        *at = f->next;
        f->next = fs->gone;
        fs->gone = f;
        fs->num--;
    }
    fs->last = &fs->first;
    while (*fs->last)
        fs->last = &(*fs->last)->next;
    sweep_flows(fs);
    return found;
}

/* ---- commands -------------------------------------------------------------------------------------------------- */

/* Rate of the data between the first packet and the last; a flow with a rate pauses after its last message. */
static double achieved_mbps(const struct flow *f)
{
    uint64_t bytes = f->got_bytes - f->first_bytes, span = f->last_ps - f->first_ps;
    uint64_t due = flow_due_ps(f->messages, f->cmd.size, f->cmd.rate_mbps);

    if (due > span) {
        bytes = f->got_bytes;
        span = due;
    }
    return span ? (double)bytes * 1e6 / (double)span : 0;
}

static const char *state_of(const struct flow *f)
{
    return f->ended                                       ? "ended"
           : !f->begun                                    ? "to come"
           : f->from->state != PORT_ACTIVE || !f->to->lid ? "no path"
           : link_lane(f->from, 0, f->cmd.sl) < 0         ? "no lane"
                                                          : "sending";
}

static void list(const struct sim *s, struct text *t)
{
    if (!s->flows->first)
        text_say(t, "no flows\n");
    for (const struct flow *f = s->flows->first; f; f = f->next) {
        text_say(t, "flow %llu \"%s\" %u -> \"%s\" %u sl %u size %llu rate ", (unsigned long long)f->id,
                 f->from->node->desc, f->from->num, f->to->node->desc, f->to->num, f->cmd.sl,
                 (unsigned long long)f->cmd.size);
        if (f->cmd.rate_mbps > 0)
            text_say(t, "%g", f->cmd.rate_mbps);
        else
            text_say(t, "max");
        text_say(t, ": %s, sent %llu bytes, received %llu bytes, %.3f MB/s (simulated), lost %llu packets\n",
                 state_of(f), (unsigned long long)f->sent_bytes, (unsigned long long)f->got_bytes, achieved_mbps(f),
                 (unsigned long long)(f->sent_packets - f->got_packets - f->live));
    }
}

void flows_tell_missed(const struct sim *s)
{
    uint32_t missed = 0;

    for (const struct flow *f = s->flows->first; f; f = f->next)
        if (!f->begun && !f->ended && missed++ < TELL_MAX)
            engine_notice("flow that did not begin: \"%s\" %u -> \"%s\" %u, due at %.9f s of virtual time, which has "
                          "only come to %.9f s",
                          f->from->node->desc, f->from->num, f->to->node->desc, f->to->num,
                          (double)f->due.deadline_ps / 1e12, (double)sim_now(s) / 1e12);
    if (missed > TELL_MAX)
        engine_notice("and %u more flows that did not begin", missed - TELL_MAX);
}

static void time_has_come(void *obj, uint64_t arg)
{
}

bool flow_command(struct sim *s, const char *line, struct text *t)
{
    struct flow_cmd c;
    struct flow *f;

    if (!flow_parse(line, &c, t))
        return false;
    switch (c.verb) {
    case FLOW_ADD:
        f = add_flow(s, &c, t);
        if (f)
            text_say(t, "flow %llu\n", (unsigned long long)f->id);
        return f;
    case FLOW_DEL:
        if (!delete (s->flows, c.id))
            text_say(t, "there is no flow %llu", (unsigned long long)c.id);
        else
            return true;
        return false;
    case FLOW_LIST:
        list(s, t);
        return true;
    case FLOW_RUN: /* up to this time */
        evq_push(&s->q, sim_now(s) + c.time_ps, time_has_come, NULL, 0);
        text_say(t, "%llu", (unsigned long long)(sim_now(s) + c.time_ps));
        return true;
    case FLOW_REACHED:
        text_say(t, sim_now(s) >= c.time_ps ? "yes" : "no");
        return true;
    }
    return false;
}

/* ---- the model's ----------------------------------------------------------------------------------------------- */

static struct flow_cmd from_model(const struct model_flow *m)
{
    struct flow_cmd c = {.verb = FLOW_ADD,
                         .from_port = m->from_port,
                         .to_port = m->to_port,
                         .sl = (uint8_t)m->sl,
                         .mtu = m->mtu ? mtu_bytes(m->mtu) : 0,
                         .path = m->path,
                         .size = m->size ? m->size : 65536,
                         .rate_mbps = m->rate_mbps,
                         .when_ps = m->at_ps,
                         .for_ps = m->for_ps};

    _Static_assert(sizeof m->from <= sizeof c.from, "a name of the model fits");
    strcpy(c.from, m->from);
    strcpy(c.to, m->to);
    return c;
}

int flows_init(struct sim *s, struct parse_error *err)
{
    s->flows = xcalloc(1, sizeof *s->flows);
    s->flows->last = &s->flows->first;
    s->flows->next_id = 1;
    for (uint32_t i = 0; i < s->model->num_flows; i++) {
        struct flow_cmd c = from_model(&s->model->flows[i]);
        struct text wrong = {0};

        if (add_flow(s, &c, &wrong))
            continue;
        model_error(s->model, &s->model->flows[i].at, err, "%s", wrong.buf);
        text_free(&wrong);
        return -1;
    }
    return 0;
}

static void free_list(struct flow *f)
{
    while (f) {
        struct flow *next = f->next;

        free(f);
        f = next;
    }
}

void flows_fini(struct sim *s)
{
    if (!s->flows)
        return;
    free_list(s->flows->first);
    free_list(s->flows->gone);
    free(s->flows);
    s->flows = NULL;
}
