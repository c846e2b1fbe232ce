/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports named in the setting MRMPI_DEVICES: a comma list of DEVICE or DEVICE:PORT; empty names all. Pure. */
#ifndef MRMPI_VERBS_SELECT_H
#define MRMPI_VERBS_SELECT_H

#include <stdbool.h>

/* port 0: is any port of the device named? */
bool mr_device_selected(const char *list, const char *device, unsigned port);

#endif
