/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes a change of a port on to the data plane, the watching programs and the management plane. */
#include "simfab/engine/client/events.h"

#include <endian.h>
#include <infiniband/verbs.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/client/command.h"
#include "simfab/engine/client/server.h"
#include "simfab/engine/clock/sched.h"
#include "simfab/engine/clock/wake.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fault/fault.h"
#include "simfab/engine/fault/flow.h"
#include "simfab/engine/hca/async.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/object.h"
#include "simfab/engine/mgmt/samples.h"
#include "simfab/engine/mgmt/trap.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/packet.h"
#include "simfab/engine/wire/trace_log.h"

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

static void signal_port_state(struct port *p)
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

/* Before programs hear of the change: new questions get new answers. */
static void outdate_answers(struct sim *s)
{
    s->port_events++;
    for (uint32_t i = 0; i < s->num_procs; i++)
        __atomic_store_n(&s->procs[i]->arena->port_events, s->port_events, __ATOMIC_RELEASE);
}

static void port_changed(struct port *p, enum port_event ev)
{
    outdate_answers(p->node->fabric->sim);
    switch (ev) {
    case PORT_EV_STATE:
        signal_port_state(p);
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
    static const struct fabric_upcalls fabric_up = {
        .port_changed = port_changed, .bad_key = mad_bad_key, .samples_later = samples_later};
    static const struct link_end adapter_end = {.packet_arrived = hca_packet_arrived, .lane_drained = hca_lane_drained};
    static const struct hca_upcalls hca_up = {.flow_landed = flow_landed};
    static const struct clock_upcalls clock_up = {.has_input = server_has_input,
                                                  .drain = commands_drain,
                                                  .holds_time = faults_hold_time,
                                                  .packets = packets_foreground};

    s->fabric->sim = s;
    s->fabric->up = &fabric_up;
    s->adapter_end = &adapter_end;
    s->hca_up = &hca_up;
    s->clock_up = &clock_up;
}
