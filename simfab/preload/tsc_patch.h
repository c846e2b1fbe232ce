/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes instructions that read the time stamp counter fault, without the kernel's trap. */
#ifndef SIMFAB_PRELOAD_TSC_PATCH_H
#define SIMFAB_PRELOAD_TSC_PATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Loads the patching library, before any of the next two. False: not found. */
bool sfp_patch_load(void);
/* The instruction AT traps from now on. False: the kernel refuses. */
bool sfp_patch_byte(void *at);
/* Patches all loaded objects, and objects loaded later. False: some code is unpatched. */
bool sfp_patch_all(void);

/*
 * True at the function that the loader calls for debuggers after loading or unloading. Then continue at the second
 * function instead.
 */
bool sfp_patch_is_loader(const uint8_t *ip);
void sfp_patch_at_loader(void);

#endif
