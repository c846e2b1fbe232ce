/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations of each kind, apart from the traits, which programs without verbs use, too. */
#include "libmrmpi/verbs/verbs.h"

const struct mr_link_ops *const mr_link_ops[MR_LINK_KINDS] = {
#define MR_KIND(id, name, ops, traits, help) [MR_LINK_##id] = &ops,
#include "libmrmpi/verbs/link/kinds.def"
#undef MR_KIND
};
