/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many adapters' ports share a cable between switches: the fabric's oversubscription, by counting. Pure.
 *
 * Every port sends up to the rate of its own cable. Where several of them must share one between switches, what each
 * may do at most has to be divided by their number. No routes are looked at, and all cables are taken to be equally
 * fast, so this is an approximation, the largest of
 *  - for each switch that has adapters and other switches beside it: its adapters' ports by its cables to switches;
 *  - for each two switches whose cables are the only way between two parts of the fabric (the middle of a line, the
 *    halves of two joined fabrics): the adapters' ports of the smaller part by these cables.
 * It is too small where routing is unbalanced, or where only a set of cables between several switches parts the fabric,
 * as in a ring. Many hosts that send to one share its cable, too, in any fabric; that is not counted.
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
 * Node i of n is a switch, or one port of an adapter; all are connected, as a walk finds them. The array of
 * cables is used up. At least 1; rounded up.
 */
unsigned cables_oversubscription(const bool *is_switch, size_t n, struct cable *cables, size_t num);

#endif
