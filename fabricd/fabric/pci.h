/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast an adapter's bus moves data, by what sysfs says of its PCI Express link: lanes, their rate, its line code
 * (8 bits in 10 up to 5 GT/s, 128 in 130 above), and what each packet on the bus has besides its data. Both directions
 * are alike. 0: not known, as for adapters on another bus.
 */
#ifndef FABRICD_PCI_H
#define FABRICD_PCI_H

/* 10^6 bytes of data a second, of the texts of current_link_speed ("8.0 GT/s PCIe") and current_link_width ("16"). */
unsigned pci_mbytes(const char *speed, const char *width);

/* Of a device below /sys/class/infiniband. */
unsigned pci_of_device(const char *device);

#endif
