/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PortInfo: the state of a port for the subnet manager. A Set is first checked as a whole, so a refused Set changes
 * nothing; then settings are stored, and last the link's state changes.
 */
#include "simfab/engine/mgmt/portinfo.h"

#include <string.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/mgmt/agents.h"
#include "simfab/engine/mgmt/mad_wire.h"

#define PI_MKEY          0, 64
#define PI_PREFIX        64, 64
#define PI_LID           128, 16
#define PI_SMLID         144, 16
#define PI_CAP_MASK      160, 32
#define PI_LEASE         208, 16
#define PI_LOCAL_PORT    224, 8
#define PI_WIDTH_ENABLED 232, 8
#define PI_WIDTH_SUPP    240, 8
#define PI_WIDTH_ACTIVE  248, 8
#define PI_SPEED_SUPP    256, 4
#define PI_STATE         260, 4
#define PI_PHYS          264, 4
#define PI_DOWN_DEFAULT  268, 4
#define PI_MKEY_PROTECT  272, 2
#define PI_LMC           277, 3
#define PI_SPEED_ACTIVE  280, 4
#define PI_SPEED_ENABLED 284, 4
#define PI_NEIGHBOR_MTU  288, 4
#define PI_SMSL          292, 4
#define PI_VL_CAP        296, 4
#define PI_HIGH_LIMIT    304, 8
#define PI_ARB_HIGH_CAP  312, 8
#define PI_ARB_LOW_CAP   320, 8
#define PI_MTU_CAP       332, 4
#define PI_VL_STALL      336, 3
#define PI_HOQ_LIFE      339, 5
#define PI_OP_VLS        344, 4
#define PI_ENFORCE       348, 4 /* partitions in, out; raw packets in, out */
#define PI_MKEY_VIOL     352, 16
#define PI_PKEY_VIOL     368, 16
#define PI_QKEY_VIOL     384, 16
#define PI_GUID_CAP      400, 8
#define PI_REREG         408, 1
#define PI_SUBNET_TO     411, 5
#define PI_RESP_TIME     419, 5
#define PI_LOCAL_ERRORS  424, 4
#define PI_OVERRUN       428, 4
#define PI_EXT_ACTIVE    496, 4
#define PI_EXT_SUPP      500, 4
#define PI_EXT_ENABLED   507, 5

#define WIDTH_4X 2u

/* Only ports that are an address of their own have LIDs and capabilities: not the cabled ports of a switch. */
static bool is_endport(const struct port *p)
{
    return p->node->kind != NODE_SWITCH || p->num == 0;
}

void portinfo_get(const struct port *p, unsigned local_port, uint8_t *data)
{
    memset(data, 0, SMP_DATA_BYTES);
    if (is_endport(p)) {
        wire_put(data, PI_MKEY, p->mkey);
        wire_put(data, PI_PREFIX, p->gid_prefix);
        wire_put(data, PI_LID, p->lid);
        wire_put(data, PI_SMLID, p->sm_lid);
        wire_put(data, PI_CAP_MASK, p->cap_mask);
        wire_put(data, PI_LEASE, p->mkey_lease);
        wire_put(data, PI_MKEY_PROTECT, p->mkey_protect);
        wire_put(data, PI_LMC, p->lmc);
        wire_put(data, PI_SMSL, p->sm_sl);
        wire_put(data, PI_GUID_CAP, FABRIC_GUIDS);
        wire_put(data, PI_SUBNET_TO, p->subnet_timeout);
        wire_put(data, PI_RESP_TIME, p->resp_time);
    }
    wire_put(data, PI_LOCAL_PORT, local_port);
    wire_put(data, PI_WIDTH_ENABLED, p->width_enabled);
    wire_put(data, PI_WIDTH_SUPP, p->width_supported);
    /* a link that is down has no width, but the field has no such value */
    wire_put(data, PI_WIDTH_ACTIVE, p->width_active ? p->width_active : p->width_supported & WIDTH_4X ? WIDTH_4X : 1);
    wire_put(data, PI_SPEED_SUPP, p->speed_supported);
    wire_put(data, PI_STATE, p->state);
    wire_put(data, PI_PHYS, p->phys_state);
    wire_put(data, PI_DOWN_DEFAULT, p->down_default);
    wire_put(data, PI_SPEED_ACTIVE, p->speed_active ? p->speed_active : 1);
    wire_put(data, PI_SPEED_ENABLED, p->speed_enabled);
    wire_put(data, PI_NEIGHBOR_MTU, p->mtu_neighbor);
    wire_put(data, PI_VL_CAP, p->vl_cap);
    wire_put(data, PI_HIGH_LIMIT, p->vl_high_limit);
    wire_put(data, PI_ARB_HIGH_CAP, p->vlarb_high_cap);
    wire_put(data, PI_ARB_LOW_CAP, p->vlarb_low_cap);
    wire_put(data, PI_MTU_CAP, p->mtu_cap);
    wire_put(data, PI_VL_STALL, p->vl_stall);
    wire_put(data, PI_HOQ_LIFE, p->hoq_life);
    wire_put(data, PI_OP_VLS, p->op_vls);
    wire_put(data, PI_ENFORCE, p->partition_enforce);
    wire_put(data, PI_MKEY_VIOL, p->mkey_violations);
    wire_put(data, PI_PKEY_VIOL, p->pkey_violations);
    wire_put(data, PI_QKEY_VIOL, p->qkey_violations);
    wire_put(data, PI_LOCAL_ERRORS, p->local_phys_errors);
    wire_put(data, PI_OVERRUN, p->overrun_errors);
    wire_put(data, PI_EXT_ACTIVE, p->ext_speed_active);
    wire_put(data, PI_EXT_SUPP, p->ext_speed_supported);
    wire_put(data, PI_EXT_ENABLED, p->ext_speed_enabled);
}

/* The new "enabled" mask: 0 no change, all ones everything supported; -1: unsupported bits */
static int enabled_mask(uint64_t asked, uint8_t now, uint8_t supported, uint64_t all)
{
    if (asked == 0)
        return now;
    if (asked == all)
        return supported;
    return asked & ~(uint64_t)supported ? -1 : (int)asked;
}

static bool state_allowed(const struct port *p, unsigned state)
{
    switch (state) {
    case PORT_NOP:
    case PORT_DOWN:
        return true;
    case PORT_ARMED:
        return p->state == PORT_INIT || p->state == PORT_ARMED;
    case PORT_ACTIVE:
        return p->state == PORT_ACTIVE || (p->state == PORT_ARMED && (!p->peer || p->peer->state >= PORT_ARMED));
    default:
        return false;
    }
}

static bool lid_allowed(uint64_t lid, uint16_t now)
{
    return lid == now || (lid > 0 && lid < FABRIC_LIDS);
}

static bool set_is_valid(const struct port *p, const uint8_t *data)
{
    unsigned phys = (unsigned)wire_get(data, PI_PHYS);

    if (!state_allowed(p, (unsigned)wire_get(data, PI_STATE)) || phys > PHYS_DISABLED)
        return false;
    if (wire_get(data, PI_DOWN_DEFAULT) > PHYS_POLLING)
        return false;
    if (enabled_mask(wire_get(data, PI_WIDTH_ENABLED), 0, p->width_supported, 255) < 0 ||
        enabled_mask(wire_get(data, PI_SPEED_ENABLED), 0, p->speed_supported, 15) < 0)
        return false;
    /* 30 (0x1e) turns extended speeds off */
    if (wire_get(data, PI_EXT_ENABLED) != 30 &&
        enabled_mask(wire_get(data, PI_EXT_ENABLED), 0, p->ext_speed_supported, 31) < 0)
        return false;
    if (wire_get(data, PI_NEIGHBOR_MTU) > p->mtu_cap || wire_get(data, PI_OP_VLS) > p->vl_cap)
        return false;
    if (is_endport(p) &&
        (!lid_allowed(wire_get(data, PI_LID), p->lid) || !lid_allowed(wire_get(data, PI_SMLID), p->sm_lid)))
        return false;
    return true;
}

#define STORE(field, ...)                                                                                              \
    do {                                                                                                               \
        __typeof__(field) v_ = (__typeof__(field))wire_get(data, __VA_ARGS__);                                         \
        changed |= (field) != v_;                                                                                      \
        (field) = v_;                                                                                                  \
    } while (0)

/* The settings of an address: LID, manager, keys. */
static void store_endport(struct port *p, const uint8_t *data)
{
    uint16_t lid = p->lid, sm_lid = p->sm_lid;
    uint8_t lmc = p->lmc, sm_sl = p->sm_sl;
    uint64_t prefix = p->gid_prefix;
    bool changed = false;

    STORE(p->mkey, PI_MKEY);
    STORE(p->gid_prefix, PI_PREFIX);
    STORE(p->lid, PI_LID);
    STORE(p->sm_lid, PI_SMLID);
    STORE(p->mkey_lease, PI_LEASE);
    STORE(p->mkey_protect, PI_MKEY_PROTECT);
    STORE(p->lmc, PI_LMC);
    STORE(p->sm_sl, PI_SMSL);
    STORE(p->subnet_timeout, PI_SUBNET_TO);
    if (!changed)
        return;
    p->changes++;
    p->node->fabric->generation++;
    if (lid != p->lid || lmc != p->lmc)
        port_notify(p, PORT_EV_LID);
    if (prefix != p->gid_prefix)
        port_notify(p, PORT_EV_GID);
    if (sm_lid != p->sm_lid || sm_sl != p->sm_sl)
        port_notify(p, PORT_EV_SM_CHANGE);
}

static void store_link(struct port *p, const uint8_t *data)
{
    uint64_t ext = wire_get(data, PI_EXT_ENABLED);
    bool changed = false;

    p->width_enabled =
        (uint8_t)enabled_mask(wire_get(data, PI_WIDTH_ENABLED), p->width_enabled, p->width_supported, 255);
    p->speed_enabled =
        (uint8_t)enabled_mask(wire_get(data, PI_SPEED_ENABLED), p->speed_enabled, p->speed_supported, 15);
    p->ext_speed_enabled = ext == 30 ? 0 : (uint8_t)enabled_mask(ext, p->ext_speed_enabled, p->ext_speed_supported, 31);
    if (wire_get(data, PI_DOWN_DEFAULT))
        p->down_default = (uint8_t)wire_get(data, PI_DOWN_DEFAULT);
    if (wire_get(data, PI_NEIGHBOR_MTU))
        STORE(p->mtu_neighbor, PI_NEIGHBOR_MTU);
    if (wire_get(data, PI_OP_VLS))
        STORE(p->op_vls, PI_OP_VLS);
    STORE(p->vl_high_limit, PI_HIGH_LIMIT);
    STORE(p->vl_stall, PI_VL_STALL);
    STORE(p->hoq_life, PI_HOQ_LIFE);
    STORE(p->partition_enforce, PI_ENFORCE);
    STORE(p->local_phys_errors, PI_LOCAL_ERRORS);
    STORE(p->overrun_errors, PI_OVERRUN);
    STORE(p->mkey_violations, PI_MKEY_VIOL);
    STORE(p->pkey_violations, PI_PKEY_VIOL);
    STORE(p->qkey_violations, PI_QKEY_VIOL);
    if (changed) {
        p->changes++;
        p->node->fabric->generation++;
        port_notify(p, PORT_EV_TABLES);
    }
}

/* Disabled or Sleep: the answer, which may need this very link, leaves first, with the future state. */
static void take_down(struct port *p, enum phys_state phys, uint8_t *data)
{
    struct mad *m = mad_port_of(p)->mad;

    m->going_down = p;
    m->going_to = phys;
    wire_put(data, PI_STATE, PORT_DOWN);
    wire_put(data, PI_PHYS, phys);
}

uint16_t portinfo_set(struct port *p, unsigned local_port, uint8_t *data)
{
    unsigned state = (unsigned)wire_get(data, PI_STATE), phys = (unsigned)wire_get(data, PI_PHYS);
    bool rereg = is_endport(p) && wire_get(data, PI_REREG);

    if (!set_is_valid(p, data))
        return STATUS_BAD_FIELD;
    if (is_endport(p))
        store_endport(p, data);
    store_link(p, data);
    /* the physical state speaks for itself: Disabled and Polling imply Down. Port 0 of a switch has no link */
    if (p->num == 0) {
        if (p->node->enhanced_port0 && state > PORT_DOWN)
            port_set_state(p, state);
    } else if (phys == PHYS_POLLING) {
        port_set_phys(p, phys);
    } else if (state && !phys) {
        port_set_state(p, state);
    }
    if (rereg)
        port_notify(p, PORT_EV_REREG);
    portinfo_get(p, local_port, data);
    if (p->num && (phys == PHYS_SLEEP || phys == PHYS_DISABLED))
        take_down(p, phys, data);
    wire_put(data, PI_REREG, rereg); /* echoed, not kept */
    return STATUS_OK;
}
