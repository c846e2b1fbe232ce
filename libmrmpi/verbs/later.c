/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of entries whose end is checked for in polls. */
#include "libmrmpi/verbs/internal.h"

void mr_verbs_later(struct mr_later *later)
{
    later->next = mr_verbs.later;
    mr_verbs.later = later;
}

void mr_verbs_forget(struct mr_later *later)
{
    for (struct mr_later **at = &mr_verbs.later; *at; at = &(*at)->next)
        if (*at == later) {
            *at = later->next;
            return;
        }
}
