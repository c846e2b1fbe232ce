/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts common to all channels: see channel.h. */
#include "libmrmpi/channel/channel.h"

unsigned mr_channel_waiting, mr_channel_idle;
