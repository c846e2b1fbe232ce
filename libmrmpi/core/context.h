/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Context ids of this process: even numbers, each free or taken. The ids of a new communicator must be free at all of
 * its members; coll/comm/agree.c finds such ids.
 */
#ifndef MRMPI_CONTEXT_H
#define MRMPI_CONTEXT_H

#include <stdint.h>

enum { MR_CONTEXT_WORDS = 64, MR_CONTEXT_MAX = MR_CONTEXT_WORDS * 64, MR_CONTEXT_NONE = 1 };

void mr_context_init(void); /* ids of the world and of self are taken */
void mr_context_finalize(void);
/* The mask of free ids: bit i of word w stands for 2 * (64 * w + i). */
const uint64_t *mr_context_ids(void);
void mr_context_take(uint32_t id);
void mr_context_release(uint32_t id); /* MR_CONTEXT_NONE is fine */

#endif
