/* SPDX-License-Identifier: BSD-3-Clause */
/* The rails, for code outside this library, which does not see mr_verbs. */
#include "libmrmpi/verbs/verbs.h"

unsigned mr_verbs_num_rails(void)
{
    return mr_verbs.num_rails;
}

struct mr_rail *mr_verbs_rail(unsigned i)
{
    return &mr_verbs.rail[i];
}
