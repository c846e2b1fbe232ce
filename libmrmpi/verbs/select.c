/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports named by the setting MRMPI_DEVICES. */
#include "libmrmpi/verbs/select.h"

#include <stdlib.h>
#include <string.h>

bool mr_device_selected(const char *list, const char *device, unsigned port)
{
    size_t len = strlen(device);

    if (!list || !*list)
        return true;
    while (*list) {
        size_t item = strcspn(list, ",");

        if (item >= len && !strncmp(list, device, len)) {
            if (item == len)
                return true;
            if (list[len] == ':' && (!port || strtoul(list + len + 1, NULL, 10) == port))
                return true;
        }
        list += item;
        list += *list == ',';
    }
    return false;
}
