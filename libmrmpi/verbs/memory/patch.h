/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Redirection of a function of a loaded library to a function of ours: a jump is written over its first instructions,
 * in this process only. Our function replaces the other entirely, for every caller: calls inside the library, through
 * old pointers, and by libraries loaded later, whatever the search order.
 */
#ifndef MRMPI_PATCH_H
#define MRMPI_PATCH_H

#include <stdbool.h>
#include <stddef.h>

/*
 * function has size bytes of code. False: the jump has no room there, the kernel refuses to have code written, or the
 * kind of processor is unknown; then nothing has changed. Other threads may be inside the function: within the jump's
 * reach (2 GB, 128 MB on ARM) the jump ends before any system call of the function, to which they return.
 */
bool mr_patch_function(void *function, size_t size, void *to);

#endif
