/* SPDX-License-Identifier: BSD-3-Clause */
/* A PCI Express link for a rate: see pcie.h. */
#include "simfab/engine/fabric/pcie.h"

#include <stddef.h>

#define PACKET_OVERHEAD 28 /* of a packet on the bus, besides its data: framing, header, checksum, acknowledges */
#define FURTHEST        0.05

static const struct {
    const char *speed;
    double lane_bps; /* after the line code */
    double data;     /* of a packet, as chip sets of the time have it */
} generations[] = {
    {"2.5 GT/s PCIe", 2e9, 128},
    {"5.0 GT/s PCIe", 4e9, 128},
    {"8.0 GT/s PCIe", 8e9 * 128 / 130, 256},
    {"16.0 GT/s PCIe", 16e9 * 128 / 130, 256},
    {"32.0 GT/s PCIe", 32e9 * 128 / 130, 256},
};

struct pcie_link pcie_link_of(uint64_t bps)
{
    struct pcie_link best = {"Unknown", 0};
    double least = FURTHEST;

    for (size_t g = 0; g < sizeof generations / sizeof *generations && bps; g++)
        for (unsigned width = 1; width <= 16; width *= 2) {
            double data = generations[g].data, rate = generations[g].lane_bps * width * data / (data + PACKET_OVERHEAD);
            double off = rate > (double)bps ? rate / (double)bps - 1 : (double)bps / rate - 1;

            if (off < least - 1e-9) {
                least = off;
                best = (struct pcie_link){generations[g].speed, width};
            }
        }
    return best;
}
