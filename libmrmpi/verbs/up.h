/* SPDX-License-Identifier: BSD-3-Clause */
/* The registered upcalls of verbs/, for its folders. */
#ifndef MRMPI_VERBS_UP_H
#define MRMPI_VERBS_UP_H

#include "libmrmpi/verbs/verbs.h"

extern MR_OWN struct mr_verbs_handlers mr_verbs_up;

#endif
