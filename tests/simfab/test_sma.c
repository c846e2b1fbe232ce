/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The subnet and performance management agents: attributes read back by libibmad (a second opinion on every bit
 * offset); refused Sets change nothing, accepted Sets change the state of both ends.
 */
/* libibmad's own functions of two names that the engine has too are not wanted here */
#define mad_send libibmad_mad_send
#define mad_free libibmad_mad_free
#include <infiniband/mad.h>
#undef mad_send
#undef mad_free

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/mgmt/agents.h"
#include "simfab/engine/mgmt/mad.h"
#include "simfab/engine/mgmt/mad_wire.h"
#include "simfab/engine/mgmt/pma.h"
#include "simfab/engine/mgmt/samples.h"
#include "simfab/engine/mgmt/sma.h"
#include "simfab/engine/mgmt/sysfs.h"
#include "simfab/engine/mgmt/trap.h"
#include "simfab/proto.h"
#include "tests/check.h"

static struct parse_error err;
static struct model *model;
static struct fabric *fabric;
static struct mad *mad;
static struct node *sw, *ca;
static struct port *h1; /* port 1 of h1 mlx5_0 */
static uint8_t smp[MAD_BYTES];
static unsigned events;

static void port_changed(struct port *p, enum port_event ev)
{
    events |= 1u << ev;
    mad_port_event(p, ev);
}

static struct port *sampler;
static uint64_t sample_delay_ps;

static void samples_later(struct port *at, uint64_t delay_ps)
{
    sampler = at;
    sample_delay_ps = delay_ps;
}

static const struct fabric_upcalls fabric_up = {.port_changed = port_changed, .samples_later = samples_later};

static void setup(void)
{
    model = model_load("etc/models/hdr.yaml", &err);
    ck_assert_msg(model != NULL, "%s", err.text);
    fabric = fabric_load("etc/topologies/two-hosts-two-rails.net", model, &err);
    ck_assert_msg(fabric != NULL, "%s", err.text);
    fabric->up = &fabric_up;
    mad = mad_new(fabric);
    ck_assert_ptr_nonnull(mad);
    sw = fabric->nodes[0];
    ca = fabric_node_by_name(fabric, "h1 mlx5_0");
    h1 = &ca->ports[1];
    events = 0;
}

static void teardown(void)
{
    mad_free(mad);
    fabric_free(fabric);
    model_free(model);
}

/* Asks the agent at a port; smp has the SMP's data. Returns the status. */
static unsigned ask(struct port *at, unsigned method, unsigned attr, uint32_t mod)
{
    struct port *to = at->node->kind == NODE_SWITCH ? &at->node->ports[0] : at;

    memset(smp, 0, SMP_DATA);
    wire_put(smp, MAD_BASE_VERSION, 1);
    wire_put(smp, MAD_CLASS, CLASS_SMP_LID);
    wire_put(smp, MAD_CLASS_VERSION, 1);
    wire_put(smp, MAD_METHOD, method);
    wire_put(smp, MAD_ATTR, attr);
    wire_put(smp, MAD_MODIFIER, mod);
    ck_assert(sma_answer(to, at, 7, smp));
    sma_settle(mad);
    ck_assert_uint_eq(wire_get(smp, MAD_METHOD), METHOD_GET_RESP);
    ck_assert_uint_eq(wire_get(smp, MAD_ATTR), attr);
    ck_assert_uint_eq(wire_get(smp, MAD_MODIFIER), mod);
    return (unsigned)wire_get(smp, MAD_STATUS);
}

static unsigned get(struct port *at, unsigned attr, uint32_t mod)
{
    memset(smp, 0, sizeof smp);
    return ask(at, METHOD_GET, attr, mod);
}

static uint32_t field(enum MAD_FIELDS f)
{
    return mad_get_field(smp + SMP_DATA, 0, f);
}

static uint64_t field64(enum MAD_FIELDS f)
{
    return mad_get_field64(smp + SMP_DATA, 0, f);
}

static void set_field(enum MAD_FIELDS f, uint32_t v)
{
    mad_set_field(smp + SMP_DATA, 0, f, v);
}

START_TEST(node_info)
{
    ck_assert_uint_eq(get(&sw->ports[3], 0x11, 0), 0);
    ck_assert_uint_eq(field(IB_NODE_TYPE_F), 2);
    ck_assert_uint_eq(field(IB_NODE_NPORTS_F), 8);
    ck_assert_uint_eq(field(IB_NODE_LOCAL_PORT_F), 3);
    ck_assert_uint_eq(field64(IB_NODE_GUID_F), sw->node_guid);
    ck_assert_uint_eq(field64(IB_NODE_PORT_GUID_F), sw->ports[0].guid);
    ck_assert_uint_eq(field(IB_NODE_VENDORID_F), 0x2c9);
    ck_assert_uint_eq(field(IB_NODE_DEVID_F), 0xcb84);
    ck_assert_uint_gt(field(IB_NODE_PARTITION_CAP_F), 0);
    ck_assert_uint_eq(get(h1, 0x10, 0), 0);
    ck_assert_str_eq((char *)smp + SMP_DATA, "h1 mlx5_0");
    node_describe(ca, "another", 7);
    ck_assert_uint_eq(events, 1u << PORT_EV_NODE_DESC);
    ck_assert_uint_eq(get(h1, 0x10, 0), 0);
    ck_assert_str_eq((char *)smp + SMP_DATA, "another");
    ck_assert_ptr_eq(fabric_node_by_name(fabric, "h1 mlx5_0"), ca);
    ck_assert_uint_eq(ask(h1, METHOD_SET, 0x10, 0), STATUS_BAD_METHOD);
    ck_assert_uint_eq(ask(h1, METHOD_SET, 0x11, 0), STATUS_BAD_METHOD);
    ck_assert_uint_eq(get(h1, 0x33, 0), STATUS_BAD_ATTR);
    ck_assert_uint_eq(get(h1, 0x12, 0), STATUS_BAD_ATTR);
}
END_TEST

START_TEST(port_info_fields)
{
    struct port *p = h1;

    p->lid = 0x1234;
    p->sm_lid = 0x567;
    p->lmc = 3;
    p->sm_sl = 9;
    p->state = PORT_ACTIVE;
    p->mtu_neighbor = 3;
    p->vl_high_limit = 0xa5;
    p->op_vls = 2;
    p->hoq_life = 21;
    p->vl_stall = 5;
    p->subnet_timeout = 19;
    p->resp_time = 7;
    p->local_phys_errors = 6;
    p->overrun_errors = 11;
    p->mkey_violations = 0x1111;
    p->pkey_violations = 0x2222;
    p->qkey_violations = 0x3333;
    p->mkey_protect = 1;
    p->mkey_lease = 77;
    ck_assert_uint_eq(get(p, 0x15, 0x80000001), 0);
    ck_assert_uint_eq(field(IB_PORT_LID_F), 0x1234);
    ck_assert_uint_eq(field(IB_PORT_SMLID_F), 0x567);
    ck_assert_uint_eq(field(IB_PORT_CAPMASK_F), p->cap_mask);
    ck_assert_uint_eq(field(IB_PORT_MKEY_LEASE_F), 77);
    ck_assert_uint_eq(field(IB_PORT_LOCAL_PORT_F), 1);
    ck_assert_uint_eq(field(IB_PORT_LINK_WIDTH_ACTIVE_F), 2);
    ck_assert_uint_eq(field(IB_PORT_LINK_WIDTH_SUPPORTED_F), 3);
    ck_assert_uint_eq(field(IB_PORT_LINK_SPEED_SUPPORTED_F), 7);
    ck_assert_uint_eq(field(IB_PORT_LINK_SPEED_ACTIVE_F), 4);
    ck_assert_uint_eq(field(IB_PORT_LINK_SPEED_EXT_ACTIVE_F), 4);
    ck_assert_uint_eq(field(IB_PORT_LINK_SPEED_EXT_SUPPORTED_F), 7);
    ck_assert_uint_eq(field(IB_PORT_LINK_SPEED_EXT_ENABLED_F), 7);
    ck_assert_uint_eq(field(IB_PORT_STATE_F), 4);
    ck_assert_uint_eq(field(IB_PORT_PHYS_STATE_F), 5);
    ck_assert_uint_eq(field(IB_PORT_LINK_DOWN_DEF_F), 2);
    ck_assert_uint_eq(field(IB_PORT_MKEY_PROT_BITS_F), 1);
    ck_assert_uint_eq(field(IB_PORT_LMC_F), 3);
    ck_assert_uint_eq(field(IB_PORT_NEIGHBOR_MTU_F), 3);
    ck_assert_uint_eq(field(IB_PORT_MTU_CAP_F), 5);
    ck_assert_uint_eq(field(IB_PORT_SMSL_F), 9);
    ck_assert_uint_eq(field(IB_PORT_VL_CAP_F), 4);
    ck_assert_uint_eq(field(IB_PORT_VL_HIGH_LIMIT_F), 0xa5);
    ck_assert_uint_eq(field(IB_PORT_VL_ARBITRATION_HIGH_CAP_F), 64);
    ck_assert_uint_eq(field(IB_PORT_VL_ARBITRATION_LOW_CAP_F), 64);
    ck_assert_uint_eq(field(IB_PORT_OPER_VLS_F), 2);
    ck_assert_uint_eq(field(IB_PORT_HOQ_LIFE_F), 21);
    ck_assert_uint_eq(field(IB_PORT_VL_STALL_COUNT_F), 5);
    ck_assert_uint_eq(field(IB_PORT_SUBN_TIMEOUT_F), 19);
    ck_assert_uint_eq(field(IB_PORT_RESP_TIME_VAL_F), 7);
    ck_assert_uint_eq(field(IB_PORT_LOCAL_PHYS_ERR_F), 6);
    ck_assert_uint_eq(field(IB_PORT_OVERRUN_ERR_F), 11);
    ck_assert_uint_eq(field(IB_PORT_MKEY_VIOL_F), 0x1111);
    ck_assert_uint_eq(field(IB_PORT_PKEY_VIOL_F), 0x2222);
    ck_assert_uint_eq(field(IB_PORT_QKEY_VIOL_F), 0x3333);
    ck_assert_uint_eq(field(IB_PORT_GUID_CAP_F), 8);
    /* a switch's cabled port has no address */
    sw->ports[1].lid = 5;
    ck_assert_uint_eq(get(&sw->ports[0], 0x15, 1), 0);
    ck_assert_uint_eq(field(IB_PORT_LID_F), 0);
    ck_assert_uint_eq(get(&sw->ports[0], 0x15, 9), STATUS_BAD_FIELD);
    ck_assert_uint_eq(get(h1, 0x15, 2), STATUS_BAD_FIELD);
}
END_TEST

START_TEST(port_info_set)
{
    ck_assert_uint_eq(get(h1, 0x15, 1), 0);
    set_field(IB_PORT_LID_F, 4);
    set_field(IB_PORT_SMLID_F, 1);
    set_field(IB_PORT_LMC_F, 2);
    set_field(IB_PORT_VL_HIGH_LIMIT_F, 200);
    set_field(IB_PORT_NEIGHBOR_MTU_F, 4);
    set_field(IB_PORT_OPER_VLS_F, 3);
    set_field(IB_PORT_STATE_F, 0);
    set_field(IB_PORT_PHYS_STATE_F, 0);
    set_field(IB_PORT_CLIENT_REREG_F, 1);
    ck_assert_uint_eq(ask(h1, METHOD_SET, 0x15, 1), 0);
    ck_assert_uint_eq(field(IB_PORT_CLIENT_REREG_F), 1);
    ck_assert_uint_eq(field(IB_PORT_STATE_F), PORT_INIT);
    ck_assert_uint_eq(h1->lid, 4);
    ck_assert_uint_eq(h1->lmc, 2);
    ck_assert_uint_eq(h1->vl_high_limit, 200);
    ck_assert_uint_eq(h1->mtu_neighbor, 4);
    ck_assert_uint_eq(h1->op_vls, 3);
    ck_assert_uint_gt(h1->changes, 0);
    ck_assert(events & 1u << PORT_EV_LID && events & 1u << PORT_EV_SM_CHANGE && events & 1u << PORT_EV_REREG);
    ck_assert_uint_eq(get(h1, 0x15, 1), 0);
    ck_assert_uint_eq(field(IB_PORT_CLIENT_REREG_F), 0);
}
END_TEST

/* Each is a field of an otherwise good Set, which must be refused as a whole. */
static const struct {
    enum MAD_FIELDS field;
    uint32_t value;
} refused[] = {
    {IB_PORT_STATE_F, PORT_ACTIVE}, /* from Initialize */
    {IB_PORT_STATE_F, PORT_INIT},
    {IB_PORT_STATE_F, 5},
    {IB_PORT_PHYS_STATE_F, 5},
    {IB_PORT_NEIGHBOR_MTU_F, 6},
    {IB_PORT_OPER_VLS_F, 5}, /* VLCap is 4 */
    {IB_PORT_LID_F, 0xc000},
    {IB_PORT_LID_F, 0xffff},
    {IB_PORT_LINK_WIDTH_ENABLED_F, 8},
    {IB_PORT_LINK_SPEED_ENABLED_F, 8},
    {IB_PORT_LINK_SPEED_EXT_ENABLED_F, 8},
};

START_TEST(port_info_refused)
{
    uint32_t changes;

    ck_assert_uint_eq(get(h1, 0x15, 1), 0);
    set_field(IB_PORT_STATE_F, 0);
    set_field(IB_PORT_PHYS_STATE_F, 0);
    set_field(IB_PORT_LID_F, 7);
    set_field(IB_PORT_VL_HIGH_LIMIT_F, 99);
    set_field(refused[_i].field, refused[_i].value);
    changes = h1->changes;
    ck_assert_uint_eq(ask(h1, METHOD_SET, 0x15, 1), STATUS_BAD_FIELD);
    ck_assert_uint_eq(h1->lid, 0);
    ck_assert_uint_eq(h1->vl_high_limit, 0);
    ck_assert_uint_eq(h1->changes, changes);
}
END_TEST

static unsigned set_state(struct port *at, uint32_t port, unsigned state, unsigned phys)
{
    ck_assert_uint_eq(get(at, 0x15, port), 0);
    set_field(IB_PORT_STATE_F, state);
    set_field(IB_PORT_PHYS_STATE_F, phys);
    return ask(at, METHOD_SET, 0x15, port);
}

START_TEST(state_machine)
{
    struct port *s1 = &sw->ports[1], *s0 = &sw->ports[0];

    ck_assert_uint_eq(set_state(s0, 1, PORT_ARMED, 0), 0);
    ck_assert_uint_eq(set_state(s0, 1, PORT_ACTIVE, 0), STATUS_BAD_FIELD); /* the other end is not armed */
    ck_assert_uint_eq(set_state(h1, 1, PORT_ARMED, 0), 0);
    ck_assert(!sw->state_change); /* the manager's own changes are no news */
    ck_assert_uint_eq(set_state(s0, 1, PORT_ACTIVE, 0), 0);
    ck_assert_uint_eq(set_state(h1, 1, PORT_ACTIVE, 0), 0);
    ck_assert_uint_eq(h1->state, PORT_ACTIVE);
    ck_assert_uint_eq(set_state(s0, 1, PORT_DOWN, 3), 0);
    ck_assert_uint_eq(field(IB_PORT_PHYS_STATE_F), PHYS_DISABLED);
    ck_assert_uint_eq(s1->phys_state, PHYS_DISABLED);
    ck_assert_uint_eq(h1->state, PORT_DOWN);
    ck_assert_uint_eq(h1->phys_state, PHYS_POLLING);
    ck_assert(sw->state_change);
    ck_assert_uint_eq(set_state(s0, 1, 0, 2), 0);
    ck_assert_uint_eq(s1->state, PORT_INIT);
    ck_assert_uint_eq(h1->state, PORT_INIT);
    /* PortStateChange is cleared by writing 1 */
    ck_assert_uint_eq(get(s0, 0x12, 0), 0);
    ck_assert_uint_eq(field(IB_SW_STATE_CHANGE_F), 1);
    set_field(IB_SW_STATE_CHANGE_F, 0);
    ck_assert_uint_eq(ask(s0, METHOD_SET, 0x12, 0), 0);
    ck_assert(sw->state_change);
    set_field(IB_SW_STATE_CHANGE_F, 1);
    ck_assert_uint_eq(ask(s0, METHOD_SET, 0x12, 0), 0);
    ck_assert(!sw->state_change);
}
END_TEST

START_TEST(tables)
{
    struct port *s0 = &sw->ports[0];
    uint32_t changes = sw->ports[2].changes;

    memset(smp, 0, sizeof smp);
    for (unsigned i = 0; i < 16; i++)
        wire_put(smp + SMP_DATA, i * 4, 4, 15 - i);
    ck_assert_uint_eq(ask(s0, METHOD_SET, 0x17, 4 << 8 | 2), 0);
    ck_assert_uint_eq(sw->ports[2].sl2vl[4][0], 15);
    ck_assert_uint_eq(sw->ports[2].sl2vl[4][14], 1);
    ck_assert_uint_eq(sw->ports[2].sl2vl[3][0], 0);
    ck_assert_uint_gt(sw->ports[2].changes, changes);
    ck_assert_uint_eq(get(s0, 0x17, 4 << 8 | 9), STATUS_BAD_FIELD);

    /* bits 17 and 16 of a Set: every input, every output */
    ck_assert_uint_eq(get(s0, 0x12, 0), 0);
    ck_assert_uint_eq(field(IB_SW_OPT_SLTOVL_MAPPING_F), 1);
    memset(smp, 0, sizeof smp);
    for (unsigned i = 0; i < 16; i++)
        wire_put(smp + SMP_DATA, i * 4, 4, i & 7);
    ck_assert_uint_eq(ask(s0, METHOD_SET, 0x17, 2 << 16 | 3), 0);
    for (unsigned in = 0; in <= sw->num_ports; in++)
        ck_assert_uint_eq(sw->ports[3].sl2vl[in][9], 1);
    ck_assert_uint_eq(sw->ports[2].sl2vl[4][0], 15);
    changes = sw->ports[1].changes;
    ck_assert_uint_eq(ask(s0, METHOD_SET, 0x17, 3 << 16 | 2), 0);
    for (unsigned out = 0; out <= sw->num_ports; out++)
        for (unsigned in = 0; in <= sw->num_ports; in++)
            ck_assert_uint_eq(sw->ports[out].sl2vl[in][15], 7);
    ck_assert_uint_gt(sw->ports[1].changes, changes);
    ck_assert_uint_eq(get(s0, 0x17, 3 << 16 | 2), STATUS_BAD_FIELD);

    memset(smp, 0, sizeof smp);
    smp[SMP_DATA] = 3;
    smp[SMP_DATA + 1] = 200;
    smp[SMP_DATA + 62] = 5;
    smp[SMP_DATA + 63] = 9;
    ck_assert_uint_eq(ask(s0, METHOD_SET, 0x18, 4 << 16 | 2), 0);
    ck_assert_uint_eq(sw->ports[2].vlarb_high[32].vl, 3);
    ck_assert_uint_eq(sw->ports[2].vlarb_high[32].weight, 200);
    ck_assert_uint_eq(sw->ports[2].vlarb_high[63].weight, 9);
    ck_assert_uint_eq(get(s0, 0x18, 5 << 16 | 2), STATUS_BAD_FIELD);
    ck_assert_uint_eq(get(s0, 0x18, 0 << 16 | 2), STATUS_BAD_FIELD);
    sw->ports[2].vlarb_low_cap = 8;
    ck_assert_uint_eq(get(s0, 0x18, 2 << 16 | 2), STATUS_BAD_FIELD);
    ck_assert_uint_eq(get(s0, 0x18, 1 << 16 | 2), 0);
    ck_assert_uint_eq(smp[SMP_DATA + 14], 7);
    ck_assert_uint_eq(smp[SMP_DATA + 17], 0);

    memset(smp, 0, sizeof smp);
    memset(smp + SMP_DATA, 7, 64);
    ck_assert_uint_eq(ask(s0, METHOD_SET, 0x19, 2), 0);
    ck_assert_uint_eq(sw->lft[128], 7);
    ck_assert_uint_eq(sw->lft[191], 7);
    ck_assert_uint_eq(sw->lft[192], FABRIC_NO_PORT);
    ck_assert_uint_eq(get(s0, 0x19, 768), STATUS_BAD_FIELD);
    ck_assert_uint_eq(get(h1, 0x19, 0), STATUS_BAD_ATTR);

    memset(smp, 0, sizeof smp);
    wire_put(smp + SMP_DATA, 16, 16, 0x8001);
    ck_assert_uint_eq(ask(s0, METHOD_SET, 0x1b, 1u << 28 | 3), 0);
    ck_assert_uint_eq(sw->mft[(3 * 32 + 1) * 16 + 1], 0x8001);

    memset(smp, 0, sizeof smp);
    wire_put(smp + SMP_DATA, 16, 16, 0x8123);
    ck_assert_uint_eq(ask(s0, METHOD_SET, 0x16, 2 << 16 | 1), 0);
    ck_assert_uint_eq(sw->ports[2].pkeys[33], 0x8123);
    ck_assert_uint_eq(get(h1, 0x16, 2), STATUS_BAD_FIELD);

    memset(smp, 0, sizeof smp);
    wire_put(smp + SMP_DATA, 0, 64, 1);
    wire_put(smp + SMP_DATA, 64, 64, 0x1122);
    ck_assert_uint_eq(ask(h1, METHOD_SET, 0x14, 0), 0);
    ck_assert_uint_eq(h1->guids[0], h1->guid);
    ck_assert_uint_eq(h1->guids[1], 0x1122);
}
END_TEST

START_TEST(mkey)
{
    h1->mkey = 0x1234;
    h1->mkey_protect = 1;
    ck_assert_uint_eq(get(h1, 0x15, 1), 0);
    ck_assert_uint_eq(field64(IB_PORT_MKEY_F), 0); /* hidden without the key */
    wire_put(smp, MAD_METHOD, METHOD_SET);
    wire_put(smp, MAD_STATUS, 0);
    ck_assert(!sma_answer(h1, h1, 7, smp));
    ck_assert_uint_eq(h1->mkey_violations, 1);
    wire_put(smp, SMP_MKEY, 0x1234);
    wire_put(smp, MAD_METHOD, METHOD_GET);
    ck_assert(sma_answer(h1, h1, 7, smp));
    ck_assert_uint_eq(field64(IB_PORT_MKEY_F), 0x1234);
    h1->mkey_protect = 2;
    wire_put(smp, SMP_MKEY, 0x1233);
    wire_put(smp, MAD_METHOD, METHOD_GET);
    ck_assert(!sma_answer(h1, h1, 7, smp));
    ck_assert_uint_eq(h1->mkey_violations, 2);
}
END_TEST

/* FDR10: a speed that the vendor's attribute tells of, and PortInfo calls QDR. */
START_TEST(fdr10)
{
    struct port *q = h1->peer;

    ck_assert_uint_eq(get(h1, IB_ATTR_MLNX_EXT_PORT_INFO, 1), 0);
    ck_assert_uint_eq(field(IB_MLNX_EXT_PORT_LINK_SPEED_SUPPORTED_F), 0);
    h1->fdr10_supported = h1->fdr10_enabled = q->fdr10_supported = q->fdr10_enabled = true;
    h1->ext_speed_enabled = 0;
    port_retrain(h1);
    ck_assert_uint_eq(port_rate_bps(h1), 40000000000);
    ck_assert_uint_eq(get(&sw->ports[0], IB_ATTR_MLNX_EXT_PORT_INFO, q->num), 0);
    ck_assert_uint_eq(field(IB_MLNX_EXT_PORT_LINK_SPEED_SUPPORTED_F), 1);
    ck_assert_uint_eq(field(IB_MLNX_EXT_PORT_LINK_SPEED_ENABLED_F), 1);
    ck_assert_uint_eq(field(IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F), 1);
    ck_assert_uint_eq(get(h1, 0x15, 1), 0);
    ck_assert_uint_eq(field(IB_PORT_LINK_SPEED_ACTIVE_F), 4);
    /* a Set without change bits changes nothing; with bits, the values hold when the link trains again */
    ck_assert_uint_eq(get(h1, IB_ATTR_MLNX_EXT_PORT_INFO, 1), 0);
    set_field(IB_MLNX_EXT_PORT_LINK_SPEED_ENABLED_F, 0);
    ck_assert_uint_eq(ask(h1, METHOD_SET, IB_ATTR_MLNX_EXT_PORT_INFO, 1), 0);
    ck_assert_uint_eq(field(IB_MLNX_EXT_PORT_LINK_SPEED_ENABLED_F), 1);
    set_field(IB_MLNX_EXT_PORT_LINK_SPEED_ENABLED_F, 0);
    set_field(IB_MLNX_EXT_PORT_STATE_CHG_ENABLE_F, 1);
    ck_assert_uint_eq(ask(h1, METHOD_SET, IB_ATTR_MLNX_EXT_PORT_INFO, 1), 0);
    ck_assert_uint_eq(field(IB_MLNX_EXT_PORT_LINK_SPEED_ENABLED_F), 0);
    ck_assert_uint_eq(field(IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F), 1);
    port_set_state(h1, PORT_DOWN);
    ck_assert_uint_eq(port_rate_bps(h1), 32000000000);
    ck_assert_uint_eq(port_rate_bps(q), 32000000000);
    ck_assert_uint_eq(get(h1, IB_ATTR_MLNX_EXT_PORT_INFO, 1), 0);
    ck_assert_uint_eq(field(IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F), 0);
    /* unsupported ports get no request */
    q = &sw->ports[2];
    memset(smp, 0, sizeof smp);
    set_field(IB_MLNX_EXT_PORT_LINK_SPEED_ENABLED_F, 1);
    set_field(IB_MLNX_EXT_PORT_STATE_CHG_ENABLE_F, 1);
    ck_assert_uint_eq(ask(q, METHOD_SET, IB_ATTR_MLNX_EXT_PORT_INFO, 2), STATUS_BAD_FIELD);
    ck_assert_uint_eq(get(h1, IB_ATTR_MLNX_EXT_PORT_INFO, 2), STATUS_BAD_FIELD);
}
END_TEST

START_TEST(versions)
{
    memset(smp, 0, sizeof smp);
    wire_put(smp, MAD_BASE_VERSION, 1);
    wire_put(smp, MAD_CLASS, CLASS_SMP_LID);
    wire_put(smp, MAD_CLASS_VERSION, 2);
    wire_put(smp, MAD_METHOD, METHOD_GET);
    wire_put(smp, MAD_ATTR, 0x11);
    ck_assert(sma_answer(h1, h1, 7, smp));
    ck_assert_uint_eq(wire_get(smp, MAD_STATUS), STATUS_BAD_VERSION);
    wire_put(smp, MAD_METHOD, METHOD_TRAP);
    ck_assert(!sma_answer(h1, h1, 7, smp));
}
END_TEST

static unsigned pma(struct port *at, unsigned method, unsigned attr, unsigned port)
{
    memset(smp, 0, GMP_DATA);
    wire_put(smp, MAD_BASE_VERSION, 1);
    wire_put(smp, MAD_CLASS, CLASS_PERF);
    wire_put(smp, MAD_CLASS_VERSION, 1);
    wire_put(smp, MAD_METHOD, method);
    wire_put(smp, MAD_ATTR, attr);
    smp[GMP_DATA + 1] = (uint8_t)port;
    ck_assert(pma_answer(at, smp));
    return (unsigned)wire_get(smp, MAD_STATUS);
}

START_TEST(counters_in_detail)
{
    h1->count.xmit_data_sl[0] = 1000;
    h1->count.xmit_data_sl[15] = 5000000000ull;
    h1->count.rcv_data_sl[3] = 33;
    h1->count.discard_inactive = 1;
    h1->count.discard_mtu = 2;
    h1->count.discard_sw_lifetime = 3;
    h1->count.discard_sw_hoq = 70000;
    h1->count.rcv_physical = 5;
    h1->count.rcv_malformed = 6;
    h1->count.rcv_no_route = 7;
    h1->count.rcv_overrun = 8;
    ck_assert_uint_eq(pma(h1, METHOD_GET, 0x36, 1), 0);
    ck_assert_uint_eq(field(IB_PC_XMT_DATA_SL0_F), 1000);
    ck_assert_uint_eq(field(IB_PC_XMT_DATA_SL15_F), UINT32_MAX);
    ck_assert_uint_eq(pma(h1, METHOD_GET, 0x37, 1), 0);
    ck_assert_uint_eq(field(IB_PC_RCV_DATA_SL3_F), 33);
    ck_assert_uint_eq(pma(h1, METHOD_GET, 0x16, 1), 0);
    ck_assert_uint_eq(field(IB_PC_XMT_INACT_DISC_F), 1);
    ck_assert_uint_eq(field(IB_PC_XMT_NEIGH_MTU_DISC_F), 2);
    ck_assert_uint_eq(field(IB_PC_XMT_SW_LIFE_DISC_F), 3);
    ck_assert_uint_eq(field(IB_PC_XMT_SW_HOL_DISC_F), 65535);
    ck_assert_uint_eq(pma(h1, METHOD_GET, 0x15, 1), 0);
    ck_assert_uint_eq(field(IB_PC_RCV_LOCAL_PHY_ERR_F), 5);
    ck_assert_uint_eq(field(IB_PC_RCV_MALFORMED_PKT_ERR_F), 6);
    ck_assert_uint_eq(field(IB_PC_RCV_BUF_OVR_ERR_F), 8);
    ck_assert_uint_eq(field(IB_PC_RCV_DLID_MAP_ERR_F), 7);
    memset(smp, 0, sizeof smp);
    wire_put(smp + GMP_DATA, 16, 16, 1 << 15);
    ck_assert_uint_eq(pma(h1, METHOD_SET, 0x36, 1), 0);
    ck_assert_uint_eq(field(IB_PC_XMT_DATA_SL15_F), 0);
    ck_assert_uint_eq(field(IB_PC_XMT_DATA_SL0_F), 1000);
}
END_TEST

/* The data plane's part: how much time is to pass, and for whom. */
static unsigned sample_status(struct port *at)
{
    ck_assert_uint_eq(pma(at, METHOD_GET, 0x11, 0), 0);
    return (unsigned)wire_get(smp + GMP_DATA, 30, 2);
}

static uint32_t sampled(unsigned i)
{
    return (uint32_t)wire_get(smp + GMP_DATA, 32 + 32 * i, 32);
}

START_TEST(samples)
{
    struct port *p0 = &sw->ports[0], *p = &sw->ports[3];
    const uint64_t tick_ps = 160; /* 4 bytes at 200 Gbit/s */

    ck_assert_uint_eq(pma(p0, METHOD_GET, 0x10, 3), 0);
    ck_assert_uint_eq(field(IB_PSC_PORT_SELECT_F), 3);
    ck_assert_uint_eq(field(IB_PSC_SAMPLE_STATUS_F), 0);
    ck_assert_uint_eq(field(IB_PSC_COUNTER_WIDTH_F), 4);
    ck_assert_uint_eq(field(IB_PSC_COUNTER_MASK0_F), 1);
    ck_assert_uint_eq(field(IB_PSC_COUNTER_MASKS1TO9_F), 0111111111);
    ck_assert_uint_eq(field(IB_PSC_COUNTER_MASKS10TO14_F), 011111);
    memset(smp, 0, sizeof smp);
    set_field(IB_PSC_SAMPLE_START_F, 1000);
    set_field(IB_PSC_SAMPLE_INTVL_F, 5000);
    set_field(IB_PSC_TAG_F, 0x1234);
    set_field(IB_PSC_COUNTER_SEL0_F, 4); /* PortRcvPkts */
    set_field(IB_PSC_COUNTER_SEL14_F, 1);
    set_field(IB_PSC_COUNTER_SEL2_F, 5);
    set_field(IB_PSC_COUNTER_SEL3_F, 0x5a); /* not a counter here */
    p->count.rcv_pkts = 50;
    ck_assert_uint_eq(pma(p0, METHOD_SET, 0x10, 3), 0);
    ck_assert_uint_eq(field(IB_PSC_SAMPLE_STATUS_F), 1);
    ck_assert_ptr_eq(sampler, p0);
    ck_assert_uint_eq(sample_delay_ps, 1000 * tick_ps);
    p->count.rcv_pkts = 100;
    samples_due(p0);
    ck_assert_uint_eq(sample_delay_ps, 5000 * tick_ps);
    p->count.rcv_pkts = 107;
    ck_assert_uint_eq(sample_status(p0), 2);
    ck_assert_uint_eq(sampled(0), 0);
    /* a Set while counting changes nothing */
    ck_assert_uint_eq(pma(p0, METHOD_SET, 0x10, 4), 0);
    ck_assert_uint_eq(field(IB_PSC_TAG_F), 0x1234);
    ck_assert_uint_eq(field(IB_PSC_SAMPLE_INTVL_F), 5000);
    p->count.xmit_wait = 9;
    p->count.xmit_data = 5000000000ull;
    samples_due(p0);
    p->count.rcv_pkts = 200;
    ck_assert_uint_eq(sample_status(p0), 0);
    ck_assert_uint_eq(wire_get(smp + GMP_DATA, 0, 16), 0x1234);
    ck_assert_uint_eq(sampled(0), 7);
    ck_assert_uint_eq(sampled(1), 0);
    ck_assert_uint_eq(sampled(2), 9);
    ck_assert_uint_eq(sampled(3), 0);
    ck_assert_uint_eq(sampled(14), UINT32_MAX);
    ck_assert_uint_eq(pma(p0, METHOD_GET, 0x1e, 0), 0);
    ck_assert_uint_eq(wire_get(smp + GMP_DATA, 64, 64), 7);
    ck_assert_uint_eq(wire_get(smp + GMP_DATA, 64 + 64 * 14, 64), 5000000000ull);
    /* each agent samples for itself, and its own ports */
    ck_assert_uint_eq(sample_status(h1), 0);
    ck_assert_uint_eq(sampled(0), 0);
    ck_assert_uint_eq(pma(h1, METHOD_GET, 0x10, 2), STATUS_BAD_FIELD);
    ck_assert_uint_eq(pma(p0, METHOD_GET, 0x10, 255), STATUS_BAD_FIELD);
    ck_assert_uint_eq(pma(p0, METHOD_SET, 0x11, 0), STATUS_BAD_METHOD);
}
END_TEST

START_TEST(counters)
{
    struct port *s0 = &sw->ports[0];

    h1->count.symbol_errors = 3;
    h1->count.link_downed = 300; /* an 8-bit field */
    h1->count.local_integrity = 20;
    h1->count.vl15_dropped = 4;
    h1->count.xmit_data = 5000000000ull;
    h1->count.xmit_pkts = 77;
    h1->count.xmit_wait = 88;
    ck_assert_uint_eq(pma(h1, METHOD_GET, 0x12, 1), 0);
    ck_assert_uint_eq(field(IB_PC_ERR_SYM_F), 3);
    ck_assert_uint_eq(field(IB_PC_LINK_DOWNED_F), 255);
    ck_assert_uint_eq(field(IB_PC_ERR_LOCALINTEG_F), 15);
    ck_assert_uint_eq(field(IB_PC_VL15_DROPPED_F), 4);
    ck_assert_uint_eq(field(IB_PC_XMT_BYTES_F), UINT32_MAX);
    ck_assert_uint_eq(field(IB_PC_XMT_PKTS_F), 77);
    ck_assert_uint_eq(field(IB_PC_XMT_WAIT_F), 88);
    ck_assert_uint_eq(pma(h1, METHOD_GET, 0x1d, 1), 0);
    ck_assert_uint_eq(field64(IB_PC_EXT_XMT_BYTES_F), 5000000000ull);
    ck_assert_uint_eq(pma(h1, METHOD_GET, 0x12, 2), STATUS_BAD_FIELD);
    ck_assert_uint_eq(pma(h1, METHOD_GET, 0x1f, 1), STATUS_BAD_ATTR);
    ck_assert_uint_eq(pma(h1, METHOD_GET, 0x01, 0), 0);
    ck_assert_uint_eq(field(IB_CPI_CAPMASK_F), 0x1300);

    /* only selected counters are set */
    memset(smp, 0, sizeof smp);
    wire_put(smp + GMP_DATA, 16, 16, 1 << 0 | 1 << 12);
    smp[GMP_DATA + 18] = 1;
    wire_put(smp + GMP_DATA, 192, 32, 9);
    ck_assert_uint_eq(pma(h1, METHOD_SET, 0x12, 1), 0);
    ck_assert_uint_eq(field(IB_PC_ERR_SYM_F), 0);
    ck_assert_uint_eq(field(IB_PC_LINK_DOWNED_F), 255);
    ck_assert_uint_eq(field(IB_PC_XMT_BYTES_F), 9);
    ck_assert_uint_eq(field(IB_PC_XMT_WAIT_F), 0);
    ck_assert_uint_eq(field(IB_PC_XMT_PKTS_F), 77);
    /* they count on from there, and each attribute is set by itself */
    h1->count.xmit_data += 11;
    h1->count.symbol_errors += 70000;
    ck_assert_uint_eq(pma(h1, METHOD_GET, 0x12, 1), 0);
    ck_assert_uint_eq(field(IB_PC_XMT_BYTES_F), 20);
    ck_assert_uint_eq(field(IB_PC_ERR_SYM_F), 65535);
    ck_assert_uint_eq(pma(h1, METHOD_GET, 0x1d, 1), 0);
    ck_assert_uint_eq(field64(IB_PC_EXT_XMT_BYTES_F), 5000000011ull);
    memset(smp, 0, sizeof smp);
    wire_put(smp + GMP_DATA, 16, 16, 0xffff);
    ck_assert_uint_eq(pma(h1, METHOD_SET, 0x1d, 1), 0);
    h1->count.xmit_data += 1;
    ck_assert_uint_eq(pma(h1, METHOD_GET, 0x1d, 1), 0);
    ck_assert_uint_eq(field64(IB_PC_EXT_XMT_BYTES_F), 1);
    ck_assert_uint_eq(pma(h1, METHOD_GET, 0x12, 1), 0);
    ck_assert_uint_eq(field(IB_PC_XMT_BYTES_F), 21);

    sw->ports[1].count.rcv_pkts = 5;
    sw->ports[8].count.rcv_pkts = 6;
    ck_assert_uint_eq(pma(s0, METHOD_GET, 0x12, 255), 0);
    ck_assert_uint_eq(field(IB_PC_RCV_PKTS_F), 11);
    ck_assert_uint_eq(pma(s0, METHOD_GET, 0x12, 9), STATUS_BAD_FIELD);
    ck_assert_uint_eq(pma(s0, METHOD_GET, 0x12, 8), 0);
    ck_assert_uint_eq(field(IB_PC_RCV_PKTS_F), 6);
}
END_TEST

static bool sysfs(const char *path, enum sf_sysfs_kind kind, const char *text)
{
    char body[4096];
    struct sf_sysfs head;
    size_t n = sysfs_answer(ca->host, path, body, sizeof body);

    ck_assert_uint_ge(n, sizeof head);
    memcpy(&head, body, sizeof head);
    return head.kind == kind &&
           (!text || (head.bytes == strlen(text) && !memcmp(body + sizeof head, text, head.bytes)));
}

START_TEST(sysfs_tree)
{
    h1->lid = 0x1f;
    ck_assert(sysfs("/sys/class/infiniband", SF_SYSFS_DIR, "mlx5_0/\nmlx5_1/\n"));
    ck_assert(sysfs("/sys/class//infiniband/./mlx5_0/ports/", SF_SYSFS_DIR, "1/\n"));
    ck_assert(sysfs("/sys/class/infiniband/mlx5_0/ports/1/lid", SF_SYSFS_FILE, "0x1f\n"));
    ck_assert(sysfs("/sys/class/infiniband/mlx5_0/ports/1/rate", SF_SYSFS_FILE, "200 Gb/sec (4X HDR)\n"));
    ck_assert(sysfs("/sys/class/infiniband/mlx5_0/ports/1/state", SF_SYSFS_FILE, "2: INIT\n"));
    ck_assert(sysfs("/sys/class/infiniband/mlx5_0/ports/1/gids/0", SF_SYSFS_FILE,
                    "fe80:0000:0000:0000:0002:c900:0000:1001\n"));
    ck_assert(sysfs("/sys/class/infiniband/mlx5_0/ports/1/pkeys/0", SF_SYSFS_FILE, "0xffff\n"));
    ck_assert(sysfs("/sys/class/infiniband_mad/umad1//ibdev", SF_SYSFS_FILE, "mlx5_1\n"));
    ck_assert(sysfs("/sys/class/infiniband_mad", SF_SYSFS_DIR, "abi_version\numad0/\numad1/\nissm0/\nissm1/\n"));
    ck_assert(sysfs("/dev/infiniband/issm1", SF_SYSFS_DEV, NULL));
    ck_assert(sysfs("/dev/infiniband/umad2", SF_SYSFS_NONE, NULL));
    ck_assert(sysfs("/sys/class/infiniband/mlx5_2", SF_SYSFS_NONE, NULL));
    ck_assert(sysfs("/sys/class/infiniband/mlx5_0/ports/1/lid/x", SF_SYSFS_NONE, NULL));
    ck_assert(sysfs("/etc/passwd", SF_SYSFS_NONE, NULL));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("sma");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, node_info);
    tcase_add_test(t, port_info_fields);
    tcase_add_test(t, port_info_set);
    tcase_add_loop_test(t, port_info_refused, 0, sizeof refused / sizeof *refused);
    tcase_add_test(t, state_machine);
    tcase_add_test(t, tables);
    tcase_add_test(t, mkey);
    tcase_add_test(t, fdr10);
    tcase_add_test(t, versions);
    tcase_add_test(t, counters);
    tcase_add_test(t, counters_in_detail);
    tcase_add_test(t, samples);
    tcase_add_test(t, sysfs_tree);
    return check_run(t, NULL);
}
