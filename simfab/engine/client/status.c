/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of `simfab status`: the state of the simulation, the ports, the counters. */
#include "simfab/engine/client/status.h"

#include <stdio.h>
#include <string.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/text.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/tsc.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/object.h"
#include "simfab/engine/hca/qp_cache.h"
#include "simfab/engine/mgmt/mad.h"

static const char *state_name(uint8_t state)
{
    static const char *const names[] = {"NoChange", "Down", "Initialize", "Armed", "Active"};

    return state < sizeof names / sizeof *names ? names[state] : "?";
}

static void say_port(struct text *t, const struct port *p)
{
    text_say(t, "%s %u %s", p->node->desc, p->num, state_name(p->state));
    if (p->lid)
        text_say(t, " lid %u lmc %u", p->lid, p->lmc);
    text_say(t, " vls %u rate %.1f Gbit/s\n", p->op_vls == 5 ? 15 : 1u << (p->op_vls - 1),
             (double)port_rate_bps(p) / 1e9);
}

static double real_seconds(const struct sim *s)
{
    return (double)(real_ns() - s->started_mono_ns) / 1e9;
}

void hosts_text(struct sim *s, struct text *t)
{
    for (uint32_t i = 0; i < s->fabric->num_hosts; i++)
        text_say(t, "%s\n", s->fabric->hosts[i]->name);
}

/* Objects of processes; any left after their processes are a leak of the engine. */
static void say_objects(const struct sim *s, struct text *t)
{
    static const char *const names[] = {[OBJ_CTX] = "contexts",
                                        [OBJ_PD] = "domains",
                                        [OBJ_MR] = "regions",
                                        [OBJ_MW] = "windows",
                                        [OBJ_CHANNEL] = "channels",
                                        [OBJ_CQ] = "completion queues",
                                        [OBJ_SRQ] = "shared receive queues",
                                        [OBJ_QP] = "queue pairs",
                                        [OBJ_AH] = "addresses"};
    uint32_t count[sizeof names / sizeof *names] = {0}, groups = 0;

    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t k = 0; k < s->procs[i]->num_objects; k++)
            if (s->procs[i]->objects[k] && s->procs[i]->objects[k]->kind < sizeof names / sizeof *names)
                count[s->procs[i]->objects[k]->kind]++;
    for (uint32_t i = 0; i < s->fabric->num_nodes; i++)
        groups += s->fabric->nodes[i]->hca ? s->fabric->nodes[i]->hca->num_mcast_groups : 0;
    text_say(t, "objects:");
    for (size_t i = 1; i < sizeof names / sizeof *names; i++)
        text_say(t, " %u %s,", count[i], names[i]);
    text_say(t, " %u multicast groups\n", groups);
}

void status_text(struct sim *s, struct text *t)
{
    const struct fabric *f = s->fabric;
    uint32_t switches = 0;

    for (uint32_t i = 0; i < f->num_nodes; i++)
        switches += f->nodes[i]->kind == NODE_SWITCH;
    text_say(t, "model: %s\n", s->model->name);
    text_say(t, "fabric: %u hosts, %u adapters, %u switches\n", f->num_hosts, f->num_nodes - switches, switches);
    text_say(t, "virtual time: %.9f s\n", (double)sim_now(s) / 1e12);
    text_say(t, "real time: %.3f s\n", real_seconds(s));
    text_say(t, "events: %llu\n", (unsigned long long)s->q.executed);
    text_say(t, "events per second: %.0f (while simulating, %.3f s in all)\n",
             s->busy_ns ? (double)s->q.executed * 1e9 / (double)s->busy_ns : 0.0, (double)s->busy_ns / 1e9);
    text_say(t, "runs of threads: %llu, looks in vain among them: %llu\n", (unsigned long long)s->runs,
             (unsigned long long)s->vain_runs);
    text_say(t, "turns passed on among threads: %llu\n", (unsigned long long)s->relayed);
    text_say(t, "waits for threads: %llu, on one processor with them: %llu\n", (unsigned long long)s->waits,
             (unsigned long long)s->waits_together);
    text_say(t, "looks at threads out of sight: %llu, %.1f us each\n", (unsigned long long)s->world_looks,
             s->world_looks ? (double)s->world_ns / 1e3 / (double)s->world_looks : 0.0);
    text_say(t, "packets: %llu delivered, %llu dropped\n", (unsigned long long)s->packets_delivered,
             (unsigned long long)s->packets_dropped);
    text_say(t, "processes: %u\n", s->num_procs);
    tsc_status(s, t);
    say_objects(s, t);
    mad_status(s->mad, t);
    for (uint32_t i = 0; i < f->num_nodes; i++)
        for (uint32_t n = f->nodes[i]->kind == NODE_SWITCH ? 0 : 1; n <= f->nodes[i]->num_ports; n++)
            if (n == 0 || f->nodes[i]->ports[n].peer || f->nodes[i]->kind == NODE_CA)
                say_port(t, &f->nodes[i]->ports[n]);
}

static void say_counters(struct text *t, const struct port *p)
{
    const struct port_count *c = &p->count;

    for (unsigned vl = 0; vl < FABRIC_VLS; vl++) {
        const struct vl_count *v = &p->vl[vl];

        if (v->xmit_pkts || v->rcv_pkts || v->xmit_wait_ps)
            text_say(t, "%s %u vl %u xmit_data %llu xmit_pkts %llu rcv_data %llu rcv_pkts %llu xmit_wait_ns %llu\n",
                     p->node->desc, p->num, vl, (unsigned long long)v->xmit_data, (unsigned long long)v->xmit_pkts,
                     (unsigned long long)v->rcv_data, (unsigned long long)v->rcv_pkts,
                     (unsigned long long)(v->xmit_wait_ps / 1000));
    }
    if (c->xmit_discards || c->symbol_errors || c->rcv_errors || c->rcv_switch_relay || c->link_downed)
        text_say(t, "%s %u errors xmit_discards %llu symbol %llu rcv %llu rcv_switch_relay %llu link_downed %llu\n",
                 p->node->desc, p->num, (unsigned long long)c->xmit_discards, (unsigned long long)c->symbol_errors,
                 (unsigned long long)c->rcv_errors, (unsigned long long)c->rcv_switch_relay,
                 (unsigned long long)c->link_downed);
}

/* filter: "NODE" or "NODE PORT", NODE being a description, the start of one up to a space, or a netlist name. */
static bool wanted(const struct port *p, const char *filter)
{
    char full[160];
    size_t len = strlen(filter);

    if (!len || !strcmp(filter, p->node->name))
        return true;
    snprintf(full, sizeof full, "%s %u", p->node->desc, p->num);
    return !strncmp(full, filter, len) && (full[len] == 0 || full[len] == ' ');
}

/* An adapter's cache of contexts, if present and used; shown with its first port. */
static void say_contexts(struct text *t, const struct node *n)
{
    const struct qp_cache *c = &n->hca->contexts_held;

    if (c->hits || c->misses)
        text_say(t, "%s contexts hits %llu misses %llu\n", n->desc, (unsigned long long)c->hits,
                 (unsigned long long)c->misses);
}

void counters_text(struct sim *s, const char *filter, struct text *t)
{
    for (uint32_t i = 0; i < s->fabric->num_nodes; i++) {
        const struct node *node = s->fabric->nodes[i];

        if (node->hca && wanted(&node->ports[1], filter))
            say_contexts(t, node);
        for (uint32_t n = 1; n <= node->num_ports; n++)
            if (wanted(&node->ports[n], filter))
                say_counters(t, &node->ports[n]);
    }
}
