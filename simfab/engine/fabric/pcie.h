/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PCI Express link in sysfs of an adapter whose model gives the rate of its bus only: the possible link with the
 * nearest data rate, within a twentieth. Without such a link the bus is of another kind (PCI-X, no limit).
 */
#ifndef SIMFAB_PCIE_H
#define SIMFAB_PCIE_H

#include <stdint.h>

struct pcie_link {
    const char *speed; /* as in sysfs */
    unsigned width;    /* lanes; 0: none */
};

/* bps: how fast the adapter writes memory; 0: no limit. */
struct pcie_link pcie_link_of(uint64_t bps);

#endif
