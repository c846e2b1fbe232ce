/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data rate of an adapter's bus, from the PCI Express link in sysfs: lanes, their rate, its line code (8 bits in 10
 * up to 5 GT/s, 128 in 130 above), and the overhead of a packet on the bus. Both directions are alike. 0: unknown, as
 * for adapters on another bus.
 */
#ifndef FABRICD_PCI_H
#define FABRICD_PCI_H

/* 10^6 bytes of data a second, of the texts of current_link_speed ("8.0 GT/s PCIe") and current_link_width ("16"). */
unsigned pci_mbytes(const char *speed, const char *width);

/* Of a device below /sys/class/infiniband. */
unsigned pci_of_device(const char *device);

#endif
