/* SPDX-License-Identifier: BSD-3-Clause */
#include "libmrmpi/base/retained.h"

struct mr_retained *(*mr_retained_find)(const void *payload, enum mr_retained_term term);
