/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The subnet: nodes, ports and links in one state shared by both planes. The data plane obeys the settings of a subnet
 * manager (LIDs, forwarding tables, SL2VL, VLArb, port states). The management plane reports the events of the data
 * plane (counters, link states).
 *
 * Built once from a netlist (netlist_parse.c) and a model (model.c). Nodes and ports never move or disappear
 * afterwards, so pointers to them may be kept. Everything belongs to the one struct fabric; the engine is
 * single-threaded.
 */
#ifndef SIMFAB_FABRIC_H
#define SIMFAB_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FABRIC_VLS       16 /* VL 0-14 data, 15 management */
#define FABRIC_SLS       16
#define FABRIC_LIDS      49152 /* unicast LIDs are 1..0xbfff */
#define FABRIC_PKEYS     64
#define FABRIC_GUIDS     8
#define FABRIC_VLARB_MAX 64
#define FABRIC_PORTS_MAX 254
#define FABRIC_NO_PORT   255 /* forwarding table entry: no path */
#define FABRIC_FDR10     8u  /* beside the bits of LinkSpeed, which has no bit for FDR10 */

enum node_kind { NODE_CA = 1, NODE_SWITCH = 2, NODE_ROUTER = 3 }; /* as NodeInfo.NodeType */

enum port_state { PORT_NOP = 0, PORT_DOWN = 1, PORT_INIT = 2, PORT_ARMED = 3, PORT_ACTIVE = 4 }; /* as PortInfo */
enum phys_state { PHYS_SLEEP = 1, PHYS_POLLING = 2, PHYS_DISABLED = 3, PHYS_TRAINING = 4, PHYS_LINKUP = 5 };

struct vlarb_entry {
    uint8_t vl;
    uint8_t weight; /* units of 64 bytes */
};

struct vl_count {
    uint64_t xmit_data, rcv_data; /* bytes, as they cross the link (headers and CRCs included) */
    uint64_t xmit_pkts, rcv_pkts;
    uint64_t xmit_wait_ps; /* time with something to send and no credit */
};

/* Counters as PortCounters(Extended) wants them; kept in 64 bits, saturated or wrapped when read. */
struct port_count {
    uint64_t symbol_errors, link_recovers, link_downed, rcv_errors, rcv_remote_phys, rcv_switch_relay, xmit_discards;
    uint64_t xmit_constraint, rcv_constraint, local_integrity, excess_overrun, vl15_dropped;
    uint64_t discard_inactive, discard_mtu, discard_sw_lifetime, discard_sw_hoq; /* parts of xmit_discards */
    uint64_t rcv_physical, rcv_malformed, rcv_overrun;                           /* parts of rcv_errors */
    uint64_t rcv_no_route;                                                       /* part of rcv_switch_relay */
    uint64_t xmit_wait;                                                          /* ticks */
    uint64_t xmit_data, rcv_data;                                                /* in units of 4 bytes */
    uint64_t xmit_pkts, rcv_pkts;
    uint64_t unicast_xmit, unicast_rcv, multicast_xmit, multicast_rcv;
    uint64_t xmit_data_sl[FABRIC_SLS], rcv_data_sl[FABRIC_SLS]; /* in units of 4 bytes */
};

#define FABRIC_PMA_COUNTERS 80 /* at least as many as pma.c's table has */

struct node;
struct link_dir; /* data plane: one direction of a link (link.c) */
struct samples;

struct port {
    struct node *node;
    uint8_t num;       /* 1.. ; 0 is a switch's management port */
    struct port *peer; /* the other end of the cable, or NULL */
    bool cable_up;     /* false: unplugged or faulted (the peer says the same) */
    bool unplugged;    /* by a fault at this end */
    /* widths and speeds denied to the link by a fault, as bits of the masks below; of speed_denied also FABRIC_FDR10 */
    uint8_t width_denied, speed_denied, ext_speed_denied;

    /* set by the subnet manager (PortInfo), read by both planes */
    uint16_t lid, sm_lid;
    uint8_t lmc, sm_sl;
    uint8_t state, phys_state; /* enum port_state, enum phys_state */
    uint8_t down_default;
    uint8_t width_supported, width_enabled, width_active;             /* bit masks: 1 1X, 2 4X, 4 8X, 8 12X, 16 2X */
    uint8_t speed_supported, speed_enabled, speed_active;             /* bit masks: 1 SDR, 2 DDR, 4 QDR */
    uint8_t ext_speed_supported, ext_speed_enabled, ext_speed_active; /* 1 FDR, 2 EDR, 4 HDR, 8 NDR */
    bool fdr10_supported, fdr10_enabled; /* a vendor's speed, reported as QDR in PortInfo: 64b/66b */
    bool fdr10_active;
    uint8_t mtu_cap, mtu_neighbor; /* 1..5: 256..4096 */
    uint8_t vl_cap, op_vls;        /* 1..5: VL0, VL0-1, VL0-3, VL0-7, VL0-14 */
    uint8_t vl_high_limit;
    uint32_t vl_buffer_bytes; /* receive buffer of each lane */
    uint8_t vlarb_high_cap, vlarb_low_cap;
    struct vlarb_entry vlarb_high[FABRIC_VLARB_MAX], vlarb_low[FABRIC_VLARB_MAX];
    /* sl2vl[in][sl] of this port as the output: CA ports use in = 0, switches the port number the packet came by */
    uint8_t (*sl2vl)[FABRIC_SLS];
    uint32_t cap_mask;         /* host order */
    uint64_t gid_prefix, guid; /* host order */
    uint64_t guids[FABRIC_GUIDS];
    uint16_t pkeys[FABRIC_PKEYS];
    uint64_t mkey;
    uint16_t mkey_lease;
    uint8_t mkey_protect;
    uint16_t mkey_violations, pkey_violations, qkey_violations;
    uint8_t local_phys_errors, overrun_errors, hoq_life, vl_stall, subnet_timeout, resp_time;
    uint8_t partition_enforce;
    uint32_t physical_errors; /* bad packets not yet outweighed by good ones (link.c) */

    uint32_t changes; /* goes up whenever a table or state above changes: caches compare it */

    struct port_count count;
    uint64_t pma_base[FABRIC_PMA_COUNTERS]; /* subtracted before a counter is shown (pma.c) */
    struct vl_count vl[FABRIC_VLS];

    struct link_dir *out;    /* data plane: towards peer */
    void *mad;               /* management plane: agents, pending traps (mad.c) */
    struct samples *samples; /* of the agent at this port; NULL: none was ever asked for (samples.c) */
};

struct node {
    struct fabric *fabric;
    enum node_kind kind;
    uint32_t index;
    char name[64];                /* netlist id, "S-0002c9..." or "Switch1" */
    char desc[65];                /* node description; "h1 mlx5_0" for a CA of host h1 */
    char said_desc[65];           /* NodeDescription: the same, until the host says another */
    uint64_t node_guid, sys_guid; /* host order */
    uint32_t vendor, device, revision;
    uint32_t num_ports;
    struct port *ports; /* num_ports + 1 of them: [0] is a switch's own port, unused for a CA */

    /* CA */
    struct host *host;
    char dev_name[64]; /* "mlx5_0" */
    struct hca *hca;   /* data plane (hca.c) */

    /* switch (SwitchInfo and tables) */
    uint16_t lft_cap, lft_top, mft_cap;
    uint8_t *lft;  /* FABRIC_LIDS entries: LID -> port */
    uint16_t *mft; /* (mlid - 0xc000) * 16 + position: port masks */
    uint8_t life_time, default_mcast_primary, default_mcast_not_primary, enhanced_port0;
    bool state_change;
    bool dead; /* by a fault: its cables carry nothing */
};

struct host {
    struct fabric *fabric;
    char name[64];
    uint32_t index;
    struct node **cas; /* in the order of the netlist: umad and device numbers follow it */
    uint32_t num_cas;
    bool dead; /* crashed, by a fault: no process can be on the host */
};

struct model;
struct sim;

struct fabric {
    struct model *model;
    struct node **nodes;
    uint32_t num_nodes;
    struct host **hosts;
    uint32_t num_hosts;
    uint64_t generation;             /* goes up with every change of any table, LID or link */
    uint64_t management_ns;          /* real time when a program last sent a management datagram */
    const struct fabric_upcalls *up; /* NULL: no listener for changes */
    struct sim *sim;
};

/* Error text of a parse: "FILE:LINE: text". */
struct parse_error {
    char text[512];
};

/*
 * Reads a netlist (as printed by ibnetdiscover and read by ibsim) into a new fabric. The ports are in the state before
 * any manager (LID 0, Initialize with a cable, defaults of the specification elsewhere). Returns NULL with err filled
 * (file, line, cause) for any error: unknown node, port used twice, dangling link or contradicting ends, number out of
 * range, duplicate node or host device. The model is kept, not copied.
 */
struct fabric *fabric_load(const char *netlist_path, struct model *model, struct parse_error *err);
void fabric_free(struct fabric *f);

struct host *fabric_host_by_name(struct fabric *f, const char *name);
struct node *fabric_node_by_name(struct fabric *f, const char *name_or_desc);

/* The link rate of a port in bits of data per second (after 8b/10b or 64b/66b), from its active width and speed. */
uint64_t port_rate_bps(const struct port *p);
/* The number of physical lanes in use, and of operational data virtual lanes. */
uint32_t port_lanes(const struct port *p);
uint32_t port_lanes_operating(const struct port *p);
/* Bytes of MTU for a PortInfo code 1..5. */
uint32_t mtu_bytes(uint8_t code);

/*
 * Changes a port's logical or physical state, with all consequences in both planes: the peer's state, counters, traps
 * (128), local async events, generation. Both planes call this; state fields are written nowhere else.
 */
void port_set_state(struct port *p, enum port_state state);
void port_set_phys(struct port *p, enum phys_state phys);
void port_cable(struct port *p, bool up); /* pull or plug the cable at p */
/*
 * After a change of faults at either end: the cable is up without any fault against it. True if the cable has come up
 * or gone down.
 */
bool port_cable_settle(struct port *p);
/* After a change of the widths or speeds allowed: a link that is up goes down and trains again. */
void port_retrain(struct port *p);
/* All that a manager has set is forgotten, counters are 0: as after switching the node on. Cables must be down. */
void node_power_on(struct node *n);
/* An adapter's description from now on: at most 64 bytes. */
void node_describe(struct node *n, const char *text, size_t bytes);
/* Port state after power-on, from its capabilities (part of node_power_on, and of building a fabric). */
void port_power_on(struct port *p);

/* Sets the active width and speed of both ends, from their enabled values, as in training; false: nothing in common. */
bool port_negotiate(struct port *p);

/* A change of a port. Both planes report changes by port_notify. */
enum port_event {
    PORT_EV_STATE,
    PORT_EV_LID,
    PORT_EV_GID,
    PORT_EV_SM_CHANGE,
    PORT_EV_REREG,
    PORT_EV_PKEY,
    PORT_EV_TABLES,
    PORT_EV_CAPMASK,
    PORT_EV_INTEGRITY, /* more bad packets than LocalPhyErrors allows */
    PORT_EV_OVERRUN,   /* no room for packets in more periods of flow control on end than OverrunErrors allows */
    PORT_EV_NODE_DESC,
    PORT_EV_WATCHDOG, /* no flow control packet has come for too long */
};
void port_notify(struct port *p, enum port_event ev);

/* A packet with a wrong partition or queue key. */
enum key_kind { BAD_PKEY, BAD_QKEY };
struct bad_key {
    enum key_kind kind;
    uint32_t key;
    uint16_t slid, dlid;
    uint8_t sl;
    uint32_t src_qpn, dest_qpn;
    const uint8_t *gids; /* source and destination, 32 bytes; NULL: unknown */
};

/* Calls from the fabric to the folders above; events.c fills the table in. */
struct fabric_upcalls {
    void (*port_changed)(struct port *p, enum port_event ev);
    void (*bad_key)(struct port *p, const struct bad_key *b);
    /* Call samples_due(at) after so much virtual time. The wait does not move time. */
    void (*samples_later)(struct port *at, uint64_t delay_ps);
};

#endif
