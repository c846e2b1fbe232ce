/* SPDX-License-Identifier: BSD-3-Clause */
/* What a change of a port means to the data plane and to the programs that watch it, and on to the management plane. */
#include <endian.h>

#include "simfab/engine/flow.h"
#include "simfab/engine/mad.h"
#include "simfab/engine/proc.h"
#include "simfab/engine/sched.h"
#include "simfab/engine/trace_log.h"

static void tell_programs(struct port *p, enum ibv_event_type ev)
{
    struct hca *h = p->node->hca;

    if (!h)
        return;
    for (struct ctx *c = h->contexts; c; c = c->next) {
        async_event(c, ev, p->num, 0);
        sched_news(c->obj.proc);
    }
}

static void state_changed(struct port *p)
{
    struct hca_port *hp = p->node->hca ? &p->node->hca->ports[p->num] : NULL;
    bool active = p->state == PORT_ACTIVE;

    link_port_changed(p);
    if (p->out && TRACED(p->out->sim))
        trace_log_state(p->out->sim->trace, p);
    if (!hp)
        return;
    hca_port_changed(p);
    if (active != hp->was_active)
        tell_programs(p, active ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
    hp->was_active = active;
}

static void flows_changed(struct port *p)
{
    if (p->node->hca)
        flows_port_changed(p->node->hca->sim, p);
}

/* Before programs hear of it: what they ask then is answered anew. */
static void outdate_answers(struct sim *s)
{
    s->port_events++;
    for (uint32_t i = 0; i < s->num_procs; i++)
        __atomic_store_n(&s->procs[i]->arena->port_events, s->port_events, __ATOMIC_RELEASE);
}

void port_notify(struct port *p, enum port_event ev)
{
    outdate_answers(p->node->fabric->sim);
    switch (ev) {
    case PORT_EV_STATE:
        state_changed(p);
        flows_changed(p);
        break;
    case PORT_EV_LID:
        flows_changed(p);
        tell_programs(p, IBV_EVENT_LID_CHANGE);
        break;
    case PORT_EV_GID:
        tell_programs(p, IBV_EVENT_GID_CHANGE);
        break;
    case PORT_EV_SM_CHANGE:
        tell_programs(p, IBV_EVENT_SM_CHANGE);
        break;
    case PORT_EV_REREG:
        tell_programs(p, IBV_EVENT_CLIENT_REREGISTER);
        break;
    case PORT_EV_PKEY:
        tell_programs(p, IBV_EVENT_PKEY_CHANGE);
        break;
    case PORT_EV_TABLES:
        link_port_changed(p);
        flows_changed(p);
        break;
    case PORT_EV_CAPMASK:
    case PORT_EV_NODE_DESC:
    case PORT_EV_INTEGRITY:
    case PORT_EV_OVERRUN:
    case PORT_EV_WATCHDOG:
        break;
    }
    mad_port_event(p, ev);
}

static void samples_time(void *port, uint64_t arg)
{
    struct port *at = port;

    at->node->fabric->sim->background--;
    samples_due(at);
}

static void samples_later(struct port *at, uint64_t delay_ps)
{
    struct sim *s = at->node->fabric->sim;

    s->background++;
    evq_push_quiet(&s->q, sim_now(s) + delay_ps, samples_time, at, 0);
}

void events_init(struct sim *s)
{
    s->fabric->sim = s;
    s->fabric->samples_later = samples_later;
}
