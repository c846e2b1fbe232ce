/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults, applied: now, when their time has come, and undone. See fault.h. */
#include "simfab/engine/fault/fault.h"

#include <fnmatch.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/text.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/wake.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/async.h"
#include "simfab/engine/hca/cq.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/object.h"
#include "simfab/engine/mgmt/subnet.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/link_error.h"

#define CAP_IS_SM 2u /* PortInfo.CapabilityMask */

/* How long time stands still for the subnet manager, in real time: */
#define UNHEARD_NS 5000000000ull  /* longest wait for a manager without any activity */
#define QUIET_NS   300000000ull   /* silence after which the manager is done */
#define HOLD_NS    30000000000ull /* at most: a sweep that has failed is made again after 10 s */

_Static_assert(FAULT_DROPS_MAX == LINK_LOSE_MAX, "a command names as many packets as a link can lose");

#define PENDING_MAX 65536u
#define NAMED_MAX   12 /* nodes or hosts in a message */

static void apply(struct sim *s, const struct fault_cmd *c);

/* ---- waiting for the subnet manager ------------------------------------------------------------------------------ */

static bool somebody_manages(const struct fabric *f)
{
    for (uint32_t i = 0; i < f->num_nodes; i++)
        for (uint32_t k = 1; f->nodes[i]->kind == NODE_CA && k <= f->nodes[i]->num_ports; k++)
            if (f->nodes[i]->ports[k].cap_mask & CAP_IS_SM)
                return true;
    return false;
}

/* Links have come up or gone. A subnet without a manager is configured again by itself. */
static void links_changed(struct sim *s, const struct fault_cmd *c)
{
    if (s->static_subnet) {
        subnet_configure(s->fabric, s->static_lmc);
    } else if (!(c->has & FAULT_NOWAIT) && somebody_manages(s->fabric)) {
        s->holding = true;
        s->faults->hold_since_ns = real_ns();
    }
}

/* True if a link is up and waits for a manager to make the link Active. */
static bool links_wait(const struct fabric *f)
{
    for (uint32_t i = 0; i < f->num_nodes; i++)
        for (uint32_t k = 1; k <= f->nodes[i]->num_ports; k++) {
            const struct port *p = &f->nodes[i]->ports[k];

            if (p->peer && p->cable_up && (p->state == PORT_INIT || p->state == PORT_ARMED))
                return true;
        }
    return false;
}

bool faults_hold_time(struct sim *s)
{
    uint64_t now, since, heard;

    if (!s->holding)
        return false;
    now = real_ns();
    since = s->faults->hold_since_ns;
    heard = s->fabric->management_ns;
    if (heard <= since)
        s->holding = now - since < UNHEARD_NS;
    else
        s->holding = now - since < HOLD_NS && (now - heard < QUIET_NS || links_wait(s->fabric));
    return s->holding;
}

/* ---- targets ----------------------------------------------------------------------------------------------------- */

static bool names_node(const struct fault_cmd *c, const struct node *n)
{
    return !fnmatch(c->name, n->desc, 0) || !fnmatch(c->name, n->name, 0);
}

static bool names_port(const struct fault_cmd *c, const struct port *p)
{
    return p->peer && (!c->port || c->port == p->num) && names_node(c, p->node);
}

static void say_what_exists(const struct sim *s, const struct fault_cmd *c, struct text *t)
{
    bool hosts = c->target == FAULT_HOST;
    uint32_t n = hosts ? s->fabric->num_hosts : s->fabric->num_nodes;

    text_say(t, "there is no %s \"%s\" in this fabric; there are:", hosts ? "host" : "node", c->name);
    for (uint32_t i = 0; i < n && i < NAMED_MAX; i++)
        if (hosts)
            text_say(t, " %s", s->fabric->hosts[i]->name);
        else
            text_say(t, "%s \"%s\"", i ? "," : "", s->fabric->nodes[i]->desc);
    if (n > NAMED_MAX)
        text_say(t, " and %u more", n - NAMED_MAX);
}

/* Could the link still train if the fault were there? */
static bool can_train(const struct port *p, const struct fault_cmd *c)
{
    const struct port *q = p->peer;
    uint8_t width = p->width_supported & q->width_supported & (uint8_t)~c->width_denied;
    uint8_t speed = p->speed_supported & q->speed_supported & (uint8_t)~c->speed_denied;

    return (!(c->has & FAULT_WIDTH) || width) && (!(c->has & FAULT_SPEED) || speed);
}

static bool check_links(const struct sim *s, const struct fault_cmd *c, struct text *t)
{
    const struct fabric *f = s->fabric;
    const struct node *named = NULL;
    bool found = false;

    for (uint32_t i = 0; i < f->num_nodes; i++) {
        if (!names_node(c, f->nodes[i]))
            continue;
        named = f->nodes[i];
        for (uint32_t k = 1; k <= named->num_ports; k++) {
            const struct port *p = &named->ports[k];

            if (!names_port(c, p))
                continue;
            found = true;
            if (!can_train(p, c)) {
                text_say(t, "the link at \"%s\" %u cannot run so: its ends have no such width or speed in common",
                         named->desc, k);
                return false;
            }
        }
    }
    if (!named)
        say_what_exists(s, c, t);
    else if (!found && c->port > named->num_ports)
        text_say(t, "\"%s\" has no port %u: it has %u", named->desc, c->port, named->num_ports);
    else if (!found)
        text_say(t, "\"%s\" has no cable%s", named->desc, c->port ? " at that port" : "");
    return found;
}

/* Checks that the command has targets and can be done. If not, the text lists the existing targets. */
bool fault_check(const struct sim *s, const struct fault_cmd *c, struct text *t)
{
    if (c->target == FAULT_LINK)
        return check_links(s, c, t);
    for (uint32_t i = 0; c->target == FAULT_NODE && i < s->fabric->num_nodes; i++)
        if (names_node(c, s->fabric->nodes[i]))
            return true;
    for (uint32_t i = 0; c->target == FAULT_HOST && i < s->fabric->num_hosts; i++)
        if (!fnmatch(c->name, s->fabric->hosts[i]->name, 0))
            return true;
    say_what_exists(s, c, t);
    return false;
}

/* ---- links ----------------------------------------------------------------------------------------------------- */

/* True if the link's state has changed. */
static bool fault_link(struct port *p, const struct fault_cmd *c)
{
    struct port *q = p->peer;
    bool retrain = false, changed;

    if (c->has & FAULT_LOSS)
        p->out->loss = q->out->loss = c->loss;
    if (c->has & FAULT_LOSS_OUT)
        p->out->loss = c->loss_out;
    if (c->has & FAULT_CORRUPT)
        p->out->corrupt = q->out->corrupt = c->corrupt;
    if (c->has & FAULT_OVERRUN)
        p->out->overrun = q->out->overrun = c->overrun;
    if (c->has & FAULT_DROP)
        link_lose(p->out, c->drop);
    if (c->has & FAULT_FC) {
        link_flow_control(p->out, c->fc_off);
        link_flow_control(q->out, c->fc_off);
    }
    if (c->has & FAULT_WIDTH) {
        retrain |= p->width_denied != c->width_denied;
        p->width_denied = q->width_denied = c->width_denied;
    }
    if (c->has & FAULT_SPEED) {
        retrain |= p->speed_denied != c->speed_denied || p->ext_speed_denied != c->ext_speed_denied;
        p->speed_denied = q->speed_denied = c->speed_denied;
        p->ext_speed_denied = q->ext_speed_denied = c->ext_speed_denied;
    }
    if (c->has & FAULT_DOWN)
        p->unplugged = true;
    if (c->has & FAULT_UP)
        p->unplugged = q->unplugged = false;
    changed = port_cable_settle(p);
    if (retrain && !changed && p->cable_up) {
        port_retrain(p);
        changed = true;
    }
    return changed;
}

static void fault_links(struct sim *s, const struct fault_cmd *c)
{
    bool changed = false;

    for (uint32_t i = 0; i < s->fabric->num_nodes; i++)
        for (uint32_t k = 1; k <= s->fabric->nodes[i]->num_ports; k++)
            if (names_port(c, &s->fabric->nodes[i]->ports[k]))
                changed |= fault_link(&s->fabric->nodes[i]->ports[k], c);
    if (changed)
        links_changed(s, c);
}

/* ---- nodes and hosts ------------------------------------------------------------------------------------------- */

/* True if the state changed. A node that comes back has forgotten all settings. */
static bool node_power(struct node *n, bool on)
{
    if (n->dead == !on)
        return false;
    if (on)
        node_power_on(n);
    n->dead = !on;
    for (uint32_t k = 1; k <= n->num_ports; k++)
        port_cable_settle(&n->ports[k]);
    return true;
}

/* The failure of an adapter alone leaves programs behind, which must hear of the failure. */
static void tell_fatal(const struct node *n)
{
    for (struct ctx *c = n->hca ? n->hca->contexts : NULL; c; c = c->next) {
        c->lost = true;
        async_event(c, IBV_EVENT_DEVICE_FATAL, 0, 0);
        sched_news(c->obj.proc);
    }
}

static void fault_nodes(struct sim *s, const struct fault_cmd *c)
{
    bool changed = false;

    for (uint32_t i = 0; i < s->fabric->num_nodes; i++) {
        struct node *n = s->fabric->nodes[i];

        if (!names_node(c, n) || (n->host && n->host->dead) || !node_power(n, c->has & FAULT_UP))
            continue;
        changed = true;
        if (n->dead)
            tell_fatal(n);
    }
    if (changed)
        links_changed(s, c);
}

static bool fault_host(struct sim *s, struct host *h, const struct fault_cmd *c)
{
    bool changed = false;

    for (uint32_t i = 0; c->has & FAULT_SLOW && i < h->num_cas; i++)
        hca_slow(h->cas[i]->hca, (uint32_t)(c->slow * 1000 + 0.5));
    if (!(c->has & (FAULT_UP | FAULT_DOWN)) || h->dead == !!(c->has & FAULT_DOWN))
        return false;
    h->dead = c->has & FAULT_DOWN;
    for (uint32_t i = 0; i < h->num_cas; i++)
        changed |= node_power(h->cas[i], !h->dead);
    if (h->dead)
        fault_kill_processes(s, h);
    return changed;
}

static void fault_hosts(struct sim *s, const struct fault_cmd *c)
{
    bool changed = false;

    for (uint32_t i = 0; i < s->fabric->num_hosts; i++)
        if (!fnmatch(c->name, s->fabric->hosts[i]->name, 0))
            changed |= fault_host(s, s->fabric->hosts[i], c);
    if (changed)
        links_changed(s, c);
}

/* ---- later, and for how long ----------------------------------------------------------------------------------- */

static void forget_fault(struct sim *s, uint32_t i)
{
    s->faults->pending[i] = s->faults->pending[--s->faults->num];
    s->background--;
}

static void fault_due(void *obj, uint64_t id)
{
    struct sim *s = obj;
    struct faults *f = s->faults;

    for (uint32_t i = 0; i < f->num; i++)
        if (f->pending[i].id == id) {
            struct fault_cmd c = f->pending[i].cmd;

            forget_fault(s, i);
            apply(s, &c);
            return;
        }
    /* cleared meanwhile */
}

static void apply_later(struct sim *s, const struct fault_cmd *c, uint64_t at_ps, bool repair)
{
    struct faults *f = s->faults;

    if (f->num == f->cap) {
        f->cap = f->cap ? 2 * f->cap : 16;
        f->pending = xrealloc(f->pending, f->cap * sizeof *f->pending);
    }
    f->pending[f->num++] = (struct fault_pending){f->next_id, at_ps, repair, *c};
    s->background++;
    evq_push_quiet(&s->q, at_ps, fault_due, s, f->next_id++);
}

/* The command that reverts c. */
static struct fault_cmd remedy(const struct sim *s, const struct fault_cmd *c)
{
    struct fault_cmd r = *c;

    r.has &= ~(uint32_t)(FAULT_FOR | FAULT_AT | FAULT_AFTER);
    if (r.has & FAULT_DOWN)
        r.has = (r.has & ~(uint32_t)FAULT_DOWN) | FAULT_UP;
    r.loss = r.loss_out = s->model->loss;
    r.corrupt = r.overrun = 0;
    r.fc_off = false;
    memset(r.drop, 0, sizeof r.drop);
    r.slow = 1;
    r.width_denied = r.speed_denied = r.ext_speed_denied = 0;
    return r;
}

static void apply(struct sim *s, const struct fault_cmd *c)
{
    struct text said = {0};

    fault_print(c, &said);
    engine_log("fault at %.9f s of virtual time: %s", (double)sim_now(s) / 1e12, said.buf);
    text_free(&said);
    switch (c->target) {
    case FAULT_LINK:
        fault_links(s, c);
        break;
    case FAULT_NODE:
        fault_nodes(s, c);
        break;
    case FAULT_HOST:
        fault_hosts(s, c);
        break;
    }
    if (c->has & FAULT_FOR) {
        struct fault_cmd r = remedy(s, c);

        apply_later(s, &r, sim_now(s) + c->for_ps, true);
    }
}

void fault_apply_in_time(struct sim *s, const struct fault_cmd *c)
{
    uint64_t at = c->has & FAULT_AT ? c->when_ps : c->has & FAULT_AFTER ? sim_now(s) + c->when_ps : 0;

    if (at > sim_now(s))
        apply_later(s, c, at, false);
    else
        apply(s, c);
}

/* ---- commands -------------------------------------------------------------------------------------------------- */

static void clear(struct sim *s)
{
    struct fault_cmd c = {.name = "*", .slow = 1, .loss = s->model->loss};

    while (s->faults->num)
        forget_fault(s, s->faults->num - 1);
    c.target = FAULT_HOST;
    c.has = FAULT_UP | FAULT_SLOW;
    fault_hosts(s, &c);
    c.target = FAULT_NODE;
    c.has = FAULT_UP;
    fault_nodes(s, &c);
    c.target = FAULT_LINK;
    c.has = FAULT_UP | FAULT_LOSS | FAULT_CORRUPT | FAULT_OVERRUN | FAULT_DROP | FAULT_FC | FAULT_WIDTH | FAULT_SPEED;
    fault_links(s, &c);
    engine_log("faults cleared at %.9f s of virtual time", (double)sim_now(s) / 1e12);
}

static bool alive(const struct sim *s, const char *name, struct text *t)
{
    const struct host *h = fabric_host_by_name(s->fabric, name);

    if (!h || !h->dead)
        return true;
    text_say(t, "host %s is dead: simfab fault host %s revive brings it back", name, name);
    return false;
}

bool fault_command(struct sim *s, const char *line, struct text *t)
{
    struct fault_cmd c;

    if (!fault_parse(line, &c, t))
        return false;
    switch (c.verb) {
    case FAULT_LIST:
        faults_list(s, t);
        return true;
    case FAULT_CLEAR:
        clear(s);
        return true;
    case FAULT_ALIVE:
        return alive(s, c.name, t);
    case FAULT_SET:
        if (!fault_check(s, &c, t))
            return false;
        if (s->faults->num >= PENDING_MAX) {
            text_say(t, "%u faults are to come already: simfab fault clear ends them", s->faults->num);
            return false;
        }
        fault_apply_in_time(s, &c);
        return true;
    }
    return false;
}

void faults_fini(struct sim *s)
{
    if (s->faults)
        free(s->faults->pending);
    free(s->faults);
    s->faults = NULL;
}
