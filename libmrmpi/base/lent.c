/* SPDX-License-Identifier: BSD-3-Clause */
#include "libmrmpi/base/lent.h"

struct mr_lent *(*mr_lent_find)(const void *payload, enum mr_lent_term term);
