/* SPDX-License-Identifier: BSD-3-Clause */
/* The data rate of a link, from the codes of PortInfo (InfiniBand specification, volume 1, 14.2.5.6). Pure. */
#ifndef FABRICD_FABRIC_RATE_H
#define FABRICD_FABRIC_RATE_H

#include <stdint.h>

/*
 * Data rate of the link as it runs, in Mb/s: signalling rate without line coding (8b/10b to QDR, then 64b/66b).
 * LinkWidthActive, LinkSpeedActive and LinkSpeedExtActive; 0: a code is not known.
 */
unsigned rate_mbps(uint8_t width_code, uint8_t speed_code, uint8_t extended_code);

#endif
