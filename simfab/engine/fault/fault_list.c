/* SPDX-License-Identifier: BSD-3-Clause */
/* The output of `simfab fault list`: read from the state changed by faults, and from the list of later faults. */
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/text.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/fault/fault.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/wire/link.h"

#define TELL_MAX 3u /* faults named at the end */

/* The packets that are still to vanish, counted from now on. */
static void list_drops(const struct port *p, struct text *t)
{
    const struct link_dir *l = p->out;

    if (l->lost == LINK_LOSE_MAX || !l->lose[l->lost])
        return;
    text_say(t, "link \"%s\" %u:", p->node->desc, p->num);
    for (unsigned i = l->lost; i < LINK_LOSE_MAX && l->lose[i]; i++)
        text_say(t, "%s%llu", i == l->lost ? " drop=" : ",", (unsigned long long)(l->lose[i] - l->crossed));
    text_say(t, "\n");
}

/* One direction of a cable loses more than the other. */
static void list_loss_out(const struct sim *s, const struct port *p, struct text *t)
{
    if (p->out->loss != p->peer->out->loss && p->out->loss != s->model->loss)
        text_say(t, "link \"%s\" %u: loss_out=%g\n", p->node->desc, p->num, p->out->loss);
}

static void list_link(const struct sim *s, const struct port *p, struct text *t)
{
    const char *width = fault_width_name(p->width_denied);
    const char *speed = fault_speed_name(p->speed_denied, p->ext_speed_denied);
    const struct link_dir *l = p->out;
    bool down = p->unplugged || p->peer->unplugged;
    bool loss = l->loss == p->peer->out->loss && l->loss != s->model->loss;

    if (!down && !width && !speed && !loss && l->corrupt == 0 && l->overrun == 0 && !l->fc_off)
        return;
    text_say(t, "link \"%s\" %u - \"%s\" %u:", p->node->desc, p->num, p->peer->node->desc, p->peer->num);
    if (down)
        text_say(t, " down");
    if (loss)
        text_say(t, " loss=%g", l->loss);
    if (l->corrupt > 0)
        text_say(t, " corrupt=%g", l->corrupt);
    if (l->overrun > 0)
        text_say(t, " overrun=%g", l->overrun);
    if (l->fc_off)
        text_say(t, " fc=off");
    if (width)
        text_say(t, " width=%s", width);
    if (speed)
        text_say(t, " speed=%s", speed);
    text_say(t, "\n");
}

static void list_hosts(const struct fabric *f, struct text *t)
{
    for (uint32_t i = 0; i < f->num_hosts; i++) {
        const struct host *h = f->hosts[i];
        uint32_t slow = h->num_cas ? h->cas[0]->hca->slow_milli : 1000;

        if (h->dead)
            text_say(t, "host \"%s\": dead\n", h->name);
        if (slow != 1000)
            text_say(t, "host \"%s\": slow=%g\n", h->name, slow / 1000.0);
    }
}

void faults_list(const struct sim *s, struct text *t)
{
    const struct fabric *f = s->fabric;
    size_t before = t->used;

    for (uint32_t i = 0; i < f->num_nodes; i++)
        for (uint32_t k = 1; k <= f->nodes[i]->num_ports; k++) {
            const struct port *p = &f->nodes[i]->ports[k], *q = p->peer;

            if (q && (p->node->index < q->node->index || (p->node == q->node && p->num < q->num)))
                list_link(s, p, t);
            if (q) {
                list_loss_out(s, p, t);
                list_drops(p, t);
            }
        }
    for (uint32_t i = 0; i < f->num_nodes; i++)
        if (f->nodes[i]->dead && !(f->nodes[i]->host && f->nodes[i]->host->dead))
            text_say(t, "node \"%s\": dead\n", f->nodes[i]->desc);
    list_hosts(f, t);
    for (uint32_t i = 0; i < s->faults->num; i++) {
        text_say(t, "at %.9f s: ", (double)s->faults->pending[i].at_ps / 1e12);
        fault_print(&s->faults->pending[i].cmd, t);
        text_say(t, "\n");
    }
    if (t->used == before)
        text_say(t, "no faults\n");
}

/* The next pending fault after a time (and a number, for the same time); NULL: none. */
static const struct fault_pending *next_missed(const struct faults *f, const struct fault_pending *after)
{
    const struct fault_pending *next = NULL;

    for (uint32_t i = 0; i < f->num; i++) {
        const struct fault_pending *p = &f->pending[i];

        if (p->repair || (after && (p->at_ps < after->at_ps || (p->at_ps == after->at_ps && p->id <= after->id))))
            continue;
        if (!next || p->at_ps < next->at_ps || (p->at_ps == next->at_ps && p->id < next->id))
            next = p;
    }
    return next;
}

static void tell_missed(const struct sim *s, const struct fault_pending *p)
{
    struct text said = {0};

    fault_print(&p->cmd, &said);
    engine_notice("fault that did not happen: %s, due at %.9f s of virtual time, which has only come to %.9f s",
                  said.buf, (double)p->at_ps / 1e12, (double)sim_now(s) / 1e12);
    text_free(&said);
}

void faults_tell_missed(const struct sim *s)
{
    const struct fault_pending *p = NULL;
    uint32_t missed = 0;

    for (uint32_t i = 0; i < s->faults->num; i++)
        missed += !s->faults->pending[i].repair;
    for (uint32_t i = 0; i < TELL_MAX && (p = next_missed(s->faults, p)); i++)
        tell_missed(s, p);
    if (missed > TELL_MAX)
        engine_notice("and %u more faults that did not happen", missed - TELL_MAX);
}
