/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The number of adapters' ports that share a cable between switches: the fabric's oversubscription, by counting. Pure.
 *
 * Every port sends up to the rate of its own cable. If several ports share a cable between switches, limits per port
 * have to be divided by their number. The count ignores routes and takes all cables as equally fast, so the result is
 * an approximation, the largest of
 * - for each switch with adapters and other switches: its adapters' ports by its cables to switches;
 * - for each two switches whose cables are the only way between two parts of the fabric (the middle of a line, the
 *   halves of two joined fabrics): the adapters' ports of the smaller part by these cables.
 *
 * The result is too small with unbalanced routing, or if only a set of cables between several switches parts the
 * fabric, as in a ring. Many hosts that send to one host share its cable too, in any fabric; this sharing is not
 * counted.
 */
#ifndef FABRICD_FABRIC_CABLES_H
#define FABRICD_FABRIC_CABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Between two nodes, by number. Each cable once. */
struct cable {
    uint32_t a, b;
};

/*
 * Node i of n is a switch, or one port of an adapter; all are connected, in the order of a walk. The array of cables is
 * used up. At least 1; rounded up.
 */
unsigned cables_oversubscription(const bool *is_switch, size_t n, struct cable *cables, size_t num);

#endif
