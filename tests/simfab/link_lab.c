/* SPDX-License-Identifier: BSD-3-Clause */
/* A bench for links and switches: see link_lab.h. */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/wire/credit.h"
#include "simfab/engine/wire/fc.h"
#include "simfab/engine/wire/lane.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/packet.h"
#include "tests/simfab/input.h"
#include "tests/simfab/link_lab.h"
#include "tests/simfab/sim_lab.h"

#define CABLES_MAX 128

struct sim lab;

struct cable_end {
    char node[32];
    unsigned port;
};

static bool is_switch(const char *name)
{
    return !strncmp(name, "sw", 2);
}

static const char *parse_end(const char *at, struct cable_end *e)
{
    int n = 0;

    e->port = 1;
    ck_assert_msg(sscanf(at, "%31[a-z0-9]%n", e->node, &n) == 1, "a node's name at \"%s\"", at);
    at += n;
    if (*at == '.')
        e->port = (unsigned)strtoul(at + 1, (char **)&at, 10);
    return at;
}

/* The record of a node at its first mention: all cables at the node. */
static void write_node(FILE *f, const struct cable_end (*cables)[2], unsigned num, const char *name)
{
    fprintf(f, "%s \"%s\" # \"%s%s\"\n", is_switch(name) ? "Switch 32" : "Ca 1", name, name,
            is_switch(name) ? "" : " mlx5_0");
    for (unsigned i = 0; i < num; i++)
        for (unsigned k = 0; k < 2; k++)
            if (!strcmp(cables[i][k].node, name))
                fprintf(f, "[%u] \"%s\"[%u]\n", cables[i][k].port, cables[i][!k].node, cables[i][!k].port);
    fputc('\n', f);
}

static void write_netlist(FILE *f, const char *text)
{
    static struct cable_end cables[CABLES_MAX][2];
    unsigned num = 0;

    while (*text) {
        ck_assert_uint_lt(num, CABLES_MAX);
        text = parse_end(text, &cables[num][0]);
        ck_assert_int_eq(*text++, '-');
        text = parse_end(text, &cables[num++][1]);
        text += strspn(text, " ");
    }
    for (unsigned i = 0; i < num; i++)
        for (unsigned k = 0; k < 2; k++) {
            bool seen = false;

            for (unsigned j = 0; j < i; j++)
                seen |= !strcmp(cables[j][0].node, cables[i][k].node) || !strcmp(cables[j][1].node, cables[i][k].node);
            if (!seen && !(k && !strcmp(cables[i][0].node, cables[i][1].node)))
                write_node(f, (const struct cable_end(*)[2])cables, num, cables[i][k].node);
        }
}

void lab_up(const char *cables, const char *model)
{
    struct parse_error err = {""};
    char *netlist = NULL;
    size_t bytes;
    FILE *f = open_memstream(&netlist, &bytes);

    ck_assert_ptr_nonnull(f);
    write_netlist(f, cables);
    fclose(f);
    memset(&lab, 0, sizeof lab);
    lab.model = input_model(model, &err);
    ck_assert_msg(lab.model != NULL, "%s", err.text);
    lab.fabric = input_fabric(netlist, lab.model, &err);
    ck_assert_msg(lab.fabric != NULL, "%s", err.text);
    free(netlist);
    sim_lab_up(&lab, 0);
}

/* Frees packets that a test has left in the queues. */
static void empty_queues(void)
{
    for (uint32_t i = 0; i < lab.fabric->num_nodes; i++)
        for (uint32_t n = 1; n <= lab.fabric->nodes[i]->num_ports; n++) {
            struct link_dir *l = lab.fabric->nodes[i]->ports[n].out;

            for (unsigned vl = 0; l && vl < FABRIC_VLS; vl++)
                while (l->vl[vl].packets)
                    packet_free(lane_pop(&l->vl[vl]));
        }
}

void lab_down(void)
{
    empty_queues();
    sim_lab_down(&lab);
}

struct port *lab_port(const char *node, unsigned num)
{
    return sim_lab_port(&lab, node, num);
}

void lab_send(const char *from, const char *to, uint8_t sl, uint32_t wire_bytes, unsigned packets)
{
    struct port *p = lab_host(from);
    int vl = link_lane(p, 0, sl);

    ck_assert_int_ge(vl, 0);
    while (packets--) {
        struct packet *pkt = packet_new();

        pkt->slid = p->lid;
        pkt->dlid = lab_host(to)->lid;
        pkt->sl = sl;
        pkt->vl = (uint8_t)vl;
        pkt->wire_bytes = wire_bytes;
        pkt->payload = wire_bytes - lab.model->packet_overhead_bytes;
        link_enqueue(p->out, pkt);
    }
}

bool lab_run_until(const char *host, uint64_t packets)
{
    const struct port *p = lab_host(host);

    while (!packets || p->count.rcv_pkts < packets)
        if (!evq_run_one(&lab.q))
            return !packets;
    return true;
}

void lab_run(void)
{
    while (evq_run_one(&lab.q))
        ;
}

void lab_run_to(uint64_t t_ps)
{
    uint64_t t;

    while (evq_next(&lab.q, &t) && t <= t_ps)
        evq_run_one(&lab.q);
    lab.q.now_ps = t_ps;
}

static void fill_table(struct vlarb_entry *table, const struct vlarb_entry *from)
{
    memset(table, 0, FABRIC_VLARB_MAX * sizeof *table);
    for (; from && (from->vl || from->weight); from++)
        *table++ = *from;
}

void lab_arbitrate(struct port *p, const struct vlarb_entry *high, const struct vlarb_entry *low, uint8_t limit)
{
    fill_table(p->vlarb_high, high);
    fill_table(p->vlarb_low, low);
    p->vl_high_limit = limit;
    p->changes++;
}

void lab_slow_receiver(const char *host, uint64_t us)
{
    struct hca *h = lab_host(host)->node->hca;

    h->slow_milli = (uint32_t)(us * 1000 * 1000000 / lab.model->rx_packet_ps);
    ck_assert_uint_eq(h->slow_milli * lab.model->rx_packet_ps / 1000, us * 1000000);
}

void lab_check_credits(bool empty)
{
    for (uint32_t i = 0; i < lab.fabric->num_nodes; i++)
        for (uint32_t n = 1; n <= lab.fabric->nodes[i]->num_ports; n++) {
            struct link_dir *l = lab.fabric->nodes[i]->ports[n].out;

            for (unsigned vl = 0; l && vl < FABRIC_VLS; vl++) {
                struct vl_queue *q = &l->vl[vl];

                /* checked very often: a Check assertion costs a system call even if it holds */
                if (!credit_holds(&q->credit, l->to->vl_buffer_bytes))
                    ck_abort_msg("credits of lane %u: %u of %u", vl, credit_available(&q->credit),
                                 credit_free(&q->credit));
                if (!empty)
                    continue;
                fc_take(q, UINT64_MAX);
                ck_assert_uint_eq(q->packets, 0);
                ck_assert_uint_eq(credit_available(&q->credit), l->to->vl_buffer_bytes / CREDIT_BLOCK_BYTES);
            }
        }
}
