/* SPDX-License-Identifier: BSD-3-Clause */

#include <check.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/client/events.h"
#include "simfab/engine/clock/sched.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/fault/fault.h"
#include "simfab/engine/fault/flow.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/mgmt/mad.h"
#include "simfab/engine/mgmt/subnet.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/switch.h"
#include "tests/simfab/input.h"
#include "tests/simfab/sim_lab.h"

void sim_lab_up(struct sim *s, uint8_t lmc)
{
    evq_init(&s->q);
    events_init(s);
    wire_init(s);
    hcas_init(s);
    sched_init(s);
    s->mad = mad_new(s->fabric);
    ck_assert_ptr_nonnull(s->mad);
    s->static_subnet = true;
    s->static_lmc = lmc;
    subnet_configure(s->fabric, lmc);
}

struct parse_error sim_lab_load(struct sim *s, const char *model, const char *netlist_path, uint8_t lmc)
{
    struct parse_error err = {""};

    memset(s, 0, sizeof *s);
    s->model = input_model(model, &err);
    if (!s->model)
        return err;
    s->fabric = fabric_load(netlist_path, s->model, &err);
    ck_assert_msg(s->fabric != NULL, "%s", err.text);
    sim_lab_up(s, lmc);
    if (!faults_init(s, &err))
        flows_init(s, &err);
    return err;
}

void sim_lab_down(struct sim *s)
{
    if (!s->model)
        return;
    faults_fini(s);
    flows_fini(s);
    mad_free(s->mad);
    sched_fini(s);
    hcas_fini(s);
    links_fini(s);
    fabric_free(s->fabric);
    evq_fini(&s->q);
    model_free(s->model);
}

struct port *sim_lab_port(const struct sim *s, const char *node, unsigned num)
{
    struct node *n = fabric_node_by_name(s->fabric, node);

    ck_assert_msg(n != NULL, "no node %s", node);
    ck_assert_uint_le(num, n->num_ports);
    return &n->ports[num];
}
