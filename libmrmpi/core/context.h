/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of the context ids (core.h). */
#ifndef MRMPI_CONTEXT_H
#define MRMPI_CONTEXT_H

#include <stdint.h>

#include "libmrmpi/core/core.h"

void mr_context_init(void); /* ids of the world and of self are taken */
void mr_context_finalize(void);
void mr_context_release(uint32_t id); /* MR_CONTEXT_NONE is fine */

#endif
