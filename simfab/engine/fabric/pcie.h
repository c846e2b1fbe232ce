/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What sysfs says of the PCI Express link of an adapter whose model only says how fast its bus is: of the links that
 * there are, the one whose data rate is nearest, if it is within a twentieth. Others are no such bus (PCI-X, no limit).
 */
#ifndef SIMFAB_PCIE_H
#define SIMFAB_PCIE_H

#include <stdint.h>

struct pcie_link {
    const char *speed; /* as sysfs has it */
    unsigned width;    /* lanes; 0: none */
};

/* bps: how fast the adapter writes memory; 0: no limit. */
struct pcie_link pcie_link_of(uint64_t bps);

#endif
