/* SPDX-License-Identifier: BSD-3-Clause */
/* Codes to rates: see rate.h. */
#include "fabricd/fabric/rate.h"

#include <stddef.h>

unsigned rate_mbps(uint8_t width_code, uint8_t speed_code, uint8_t extended_code)
{
    static const struct {
        uint8_t code;
        unsigned value;
    } lanes[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}}, /* a lane, Mb/s: */
        speeds[] = {{1, 2000}, {2, 4000}, {4, 8000}}, extended[] = {{1, 13636}, {2, 25000}, {4, 50000}, {8, 100000}};
    unsigned width = 0, speed = 0;
    for (size_t i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++)
        width = lanes[i].code == width_code ? lanes[i].value : width;
    for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
        speed = speeds[i].code == speed_code ? speeds[i].value : speed;
    for (size_t i = 0; i < sizeof(extended) / sizeof(extended[0]); i++)
        speed = extended[i].code == extended_code ? extended[i].value : speed;
    return width * speed;
}
