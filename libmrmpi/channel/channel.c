/* SPDX-License-Identifier: BSD-3-Clause */
/* What channels and the virtual channels above them share: see channel.h. */
#include "libmrmpi/channel/channel.h"

struct mr_channel_up mr_channel_up;
unsigned mr_channel_waiting, mr_channel_idle;
unsigned mr_channel_devices = 1;

static bool is_never_registered(const void *buf, size_t len)
{
    return false;
}

bool (*mr_channel_is_registered)(const void *buf, size_t len) = is_never_registered;
