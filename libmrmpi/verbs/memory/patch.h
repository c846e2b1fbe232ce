/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leading a function of a loaded library to a function of ours: a jump is written over its first instructions, in this
 * process only. The function takes the place of the other one entirely, for every caller: calls inside the library,
 * through pointers taken long ago, and by libraries that are loaded later come by, whatever the search order says.
 */
#ifndef MRMPI_PATCH_H
#define MRMPI_PATCH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * function has size bytes of code. False: the jump has no room there, the kernel refuses to have code written, or this
 * kind of processor is not known; then nothing has changed. Other threads may be inside the function: where the jump
 * reaches (2 GB, 128 MB on ARM) it ends before any system call of the function, to which they return.
 */
bool mr_patch_function(void *function, size_t size, void *to);

#endif
