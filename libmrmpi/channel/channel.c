/* SPDX-License-Identifier: BSD-3-Clause */
/* What channels and the virtual channels above them share: see channel.h. */
#include "libmrmpi/channel/channel.h"

struct mr_channel_up mr_channel_up;
unsigned mr_channel_waiting, mr_channel_idle;
unsigned mr_channel_devices = 1;
