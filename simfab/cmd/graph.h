/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes and cables of a future netlist. A graph owns all its memory. Running out of memory is remembered and reported
 * by graph_write, so builders need not check.
 */
#ifndef SIMFAB_CMD_GRAPH_H
#define SIMFAB_CMD_GRAPH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "simfab/cmd/shape.h"

struct graph_end {
    unsigned node, port; /* port 0: no cable */
};

struct graph_node {
    bool is_switch;
    unsigned num_ports;
    uint64_t guid;
    char desc[65];
    struct graph_end *peer; /* num_ports + 1 */
};

struct graph {
    struct graph_node *nodes;
    unsigned num_nodes, cap;
    unsigned num_cables;
    bool failed;
};

/* The network of the shape: switches first, then adapters, host by host. */
void graph_build(struct graph *g, const struct shape_request *r, const struct shape *s);
/* rate ("4xHDR" or "") goes into every cable's comment. False and errno when it could not be written. */
bool graph_write(const struct graph *g, const char *rate, FILE *f);
void graph_free(struct graph *g);

#endif
