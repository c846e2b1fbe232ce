/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the adapter ports that reach each other: cables and switches join ports into a subnet. A fabric may have
 * several subnets (a cluster of two planes), each with a subnet manager of its own. An adapter does not forward between
 * its ports.
 */
#include "simfab/engine/fabric/planes.h"

#include <stdlib.h>

#include "simfab/engine/base/text.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"

/* All switches that sw reaches belong to the subnet. todo has room for every node. */
static void flood(struct fabric *f, uint32_t sw, unsigned subnet, unsigned *of_node, uint32_t *todo)
{
    uint32_t used = 0;

    of_node[sw] = subnet;
    todo[used++] = sw;
    while (used) {
        const struct node *n = f->nodes[todo[--used]];

        for (uint32_t k = 1; k <= n->num_ports; k++) {
            const struct node *m = n->ports[k].peer ? n->ports[k].peer->node : NULL;

            if (m && m->kind == NODE_SWITCH && !of_node[m->index]) {
                of_node[m->index] = subnet;
                todo[used++] = m->index;
            }
        }
    }
}

/* Subnets found, by switch, and by the first port of adapters joined back to back. */
struct found {
    struct fabric *f;
    unsigned *of_switch;
    const struct port **direct; /* the lower end of such a cable; of subnet direct_subnet */
    unsigned *direct_subnet, num_direct;
    uint32_t *todo;
    unsigned last;
};

static unsigned subnet_of(struct found *d, const struct port *p)
{
    const struct port *q = p->peer;

    if (q->node->kind == NODE_SWITCH) {
        if (!d->of_switch[q->node->index])
            flood(d->f, q->node->index, ++d->last, d->of_switch, d->todo);
        return d->of_switch[q->node->index];
    }
    for (unsigned i = 0; i < d->num_direct; i++)
        if (d->direct[i] == q)
            return d->direct_subnet[i];
    d->direct[d->num_direct] = p;
    d->direct_subnet[d->num_direct++] = ++d->last;
    return d->last;
}

static unsigned count_adapter_ports(const struct fabric *f)
{
    unsigned n = 0;

    for (uint32_t h = 0; h < f->num_hosts; h++)
        for (uint32_t c = 0; c < f->hosts[h]->num_cas; c++)
            n += f->hosts[h]->cas[c]->num_ports;
    return n;
}

void subnets_text(struct fabric *f, struct text *t)
{
    unsigned ports = count_adapter_ports(f);
    struct found d = {.f = f,
                      .of_switch = xcalloc(f->num_nodes, sizeof *d.of_switch),
                      .direct = xcalloc(ports, sizeof *d.direct),
                      .direct_subnet = xcalloc(ports, sizeof *d.direct_subnet),
                      .todo = xcalloc(f->num_nodes, sizeof *d.todo)};

    for (uint32_t h = 0; h < f->num_hosts; h++)
        for (uint32_t c = 0; c < f->hosts[h]->num_cas; c++) {
            const struct node *n = f->hosts[h]->cas[c];

            for (uint32_t k = 1; k <= n->num_ports; k++)
                if (n->ports[k].peer)
                    text_say(t, "%u %s %s %u 0x%016llx\n", subnet_of(&d, &n->ports[k]), n->host->name, n->dev_name, k,
                             (unsigned long long)n->ports[k].guid);
        }
    free(d.of_switch);
    free(d.direct);
    free(d.direct_subnet);
    free(d.todo);
}
