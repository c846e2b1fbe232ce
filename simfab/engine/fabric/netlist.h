/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A netlist as text: node records and cable ends, in the order of the file, each with its line for messages. Nothing is
 * resolved here: netlist_parse.c and netlist_ports.c know the grammars, fabric_build.c the meaning. A struct netlist
 * owns all its memory.
 */
#ifndef SIMFAB_NETLIST_H
#define SIMFAB_NETLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simfab/engine/fabric/fabric.h"

/* A link rate in a netlist or a model; 0: not given. Codes as in PortInfo, one bit each. */
struct link_rate {
    uint8_t width, speed, ext_speed;
    bool fdr10; /* faster than the QDR given by these codes */
};

struct netlist_node {
    unsigned line;
    enum node_kind kind;
    unsigned num_ports;
    char id[64];
    char desc[65];                       /* empty: not said */
    uint64_t guid, port0_guid, sys_guid; /* 0: not said */
    uint32_t vendor, device;
    bool enhanced_port0;
};

struct netlist_link {
    unsigned line;
    unsigned node; /* index of the node record */
    unsigned port, peer_port;
    char peer_id[64];
    uint64_t port_guid, peer_guid; /* 0: not said */
    struct link_rate rate;
};

struct netlist {
    const char *path;
    struct netlist_node *nodes;
    unsigned num_nodes;
    struct netlist_link *links;
    unsigned num_links;
};

void netlist_free(struct netlist *nl);

/* New entries, zero but for their lines; NULL: out of memory, told in err. Pointers hold until the next. */
struct netlist_node *netlist_add_node(struct netlist *nl, unsigned line, struct parse_error *err);
struct netlist_link *netlist_add_link(struct netlist *nl, unsigned line, struct parse_error *err);

/* "PATH:LINE: text"; returns -1 */
int netlist_error(const struct netlist *nl, unsigned line, struct parse_error *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* "4xHDR" and the like. 0; -1: looks like a rate and is none that there is; 1: is something else. */
int link_rate_parse(const char *word, size_t len, struct link_rate *rate);
/* "SDR" .. "NDR" and 1, 2, 4, 8, 12; false when there is no such speed or width. */
bool link_speed_parse(const char *text, size_t len, struct link_rate *rate);
bool link_width_parse(unsigned lanes, struct link_rate *rate);

#endif
