/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MRMPI_DERIVED_INTERNAL_H
#define MRMPI_DERIVED_INTERNAL_H

#include "libmrmpi/p2p/p2p.h"

void mr_bsend_finalize(void);
void mr_part_finalize(void);

#endif
