/* SPDX-License-Identifier: BSD-3-Clause */
/* The bus of an adapter: see pci.h. */
#include "fabricd/fabric/pci.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LANES_MAX 32u
#define SPEED_MAX 128.0 /* GT/s */
/*
 * Besides the data of a packet: framing and sequence number (4), header with an address of 64 bits (16), checksum (4),
 * and the acknowledges and credits of the other direction (about 4).
 */
#define PACKET_OVERHEAD 28u

static unsigned packet_data(double speed)
{
    return speed > 5 ? 256 : 128; /* typical of chip sets of the time */
}

unsigned pci_mbytes(const char *speed, const char *width)
{
    char *end;
    double rate = strtod(speed, &end);
    unsigned long lanes = strtoul(width, NULL, 10);
    if (end == speed || strncmp(end, " GT/s", 5) || !(rate >= 1 && rate <= SPEED_MAX) || !lanes || lanes > LANES_MAX)
        return 0;
    double coded = rate > 5 ? 128.0 / 130 : 0.8, data = packet_data(rate);
    return (unsigned)(rate * 1000 / 8 * coded * (double)lanes * data / (data + PACKET_OVERHEAD) + 0.5);
}

static bool read_attribute(const char *device, const char *name, char *out, size_t size)
{
    char path[256];
    int n = snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/%s", device, name);
    if (n < 0 || (size_t)n >= sizeof(path))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, out, size - 1);
    close(fd);
    out[got > 0 ? got : 0] = 0;
    return got > 0;
}

unsigned pci_of_device(const char *device)
{
    char speed[64], width[64];
    if (!read_attribute(device, "current_link_speed", speed, sizeof(speed)) ||
        !read_attribute(device, "current_link_width", width, sizeof(width)))
        return 0;
    return pci_mbytes(speed, width);
}
