/* SPDX-License-Identifier: BSD-3-Clause */
/* Between tsc.c (what a fault means) and tsc_patch.c (making faults of instructions). */
#ifndef SIMFAB_PRELOAD_TSC_H
#define SIMFAB_PRELOAD_TSC_H

#include <stdbool.h>
#include <stdint.h>

/* Load what patching needs, before any of the next two. False: it cannot be found. */
bool sfp_patch_load(void);
/* The instruction AT traps from now on. False: the kernel refuses. */
bool sfp_patch_byte(void *at);
/* All objects that are loaded, and those that will be. False: some of it is left as it was. */
bool sfp_patch_all(void);

/* Is this where the loader tells debuggers that it has loaded or unloaded something? Then go on at the second one
 * instead. */
bool sfp_patch_is_loader(const uint8_t *ip);
void sfp_patch_at_loader(void);

#endif
