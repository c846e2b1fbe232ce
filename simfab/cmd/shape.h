/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arithmetic of networks: how many switches and cables a wanted one takes, or why there is none. Pure; graph.c
 * turns the numbers into nodes and cables.
 */
#ifndef SIMFAB_CMD_SHAPE_H
#define SIMFAB_CMD_SHAPE_H

#include <stdbool.h>

enum shape_kind { SHAPE_STAR, SHAPE_FAT_TREE, SHAPE_DUAL_PLANE, SHAPE_LINE, SHAPE_RING };

enum { SHAPE_RADIX_MAX = 254, SHAPE_RAILS_MAX = 32, SHAPE_LIDS_MAX = 49151 };

struct shape_request {
    enum shape_kind kind;
    unsigned hosts;
    unsigned levels;       /* fat tree: 2 or 3; 0: the fewest possible */
    unsigned radix;        /* ports of a switch */
    unsigned to_hosts, up; /* fat tree: ports of a leaf towards hosts and towards spines, as a ratio */
    unsigned rails;        /* adapters of each host in a plane */
    unsigned planes;       /* networks without a cable between them, each with adapters of its own in every host */
    unsigned switches;     /* line and ring */
};

/* A plane; all planes are alike. */
struct shape {
    unsigned levels;                                  /* of switches */
    unsigned leaves, leaf_hosts;                      /* most adapters on a leaf; up ports follow them */
    unsigned pods, pod_leaves, pod_spines, leaf_link; /* leaf_link: cables between a leaf and each spine of its pod */
    unsigned cores, spine_link; /* cores for each spine of a pod; cables between such a spine and each of them */
    bool line, ring;            /* leaves in a row; the last joined to the first */
};

/* False: there is no such network; why has possible alternatives. */
bool shape_plan(const struct shape_request *r, struct shape *s, char why[512]);

/* How many switches of all levels a plane has. */
unsigned shape_switches(const struct shape *s);

#endif
