/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing P_Keys; see verbs.h for the rules. */
#include "libmrmpi/verbs/verbs.h"

#include <stdio.h>

/* Less comes first. */
static uint32_t pkey_order(uint16_t key, uint16_t preferred)
{
    uint16_t partition = mr_pkey_partition(key);

    return partition == mr_pkey_partition(preferred)         ? 0
           : partition == mr_pkey_partition(MR_PKEY_DEFAULT) ? 1
                                                             : 1u + partition;
}

/* True if this entry is the partition's decisive one: the first full entry, else the first. */
static bool counts(const uint16_t *table, unsigned n, unsigned at)
{
    for (unsigned i = 0; i < n; i++) {
        bool same = i != at && mr_pkey_partition(table[i]) == mr_pkey_partition(table[at]);

        if (same && (table[i] & MR_PKEY_FULL) > (table[at] & MR_PKEY_FULL))
            return false;
        if (same && i < at && (table[i] & MR_PKEY_FULL) == (table[at] & MR_PKEY_FULL))
            return false;
    }
    return true;
}

unsigned mr_pkeys_of_table(const uint16_t *table, unsigned n, uint16_t preferred, struct mr_pkey out[MR_PKEYS_MAX])
{
    unsigned num = 0, kept = 0;

    for (unsigned i = 0; i < n; i++) {
        unsigned at;

        if (!mr_pkey_partition(table[i]) || !counts(table, n, i))
            continue;
        num++;
        for (at = kept; at && pkey_order(out[at - 1].key, preferred) > pkey_order(table[i], preferred); at--)
            if (at < MR_PKEYS_MAX)
                out[at] = out[at - 1];
        if (at == MR_PKEYS_MAX)
            continue;
        out[at] = (struct mr_pkey){.key = table[i], .index = (uint16_t)i};
        kept += kept < MR_PKEYS_MAX;
    }
    return num;
}

static bool has_match(uint16_t key, const uint16_t *theirs, unsigned num_theirs)
{
    for (unsigned i = 0; i < num_theirs; i++)
        if (mr_pkey_match(key, theirs[i]))
            return true;
    return false;
}

uint16_t mr_pkey_choose(const uint16_t *ours, unsigned num_ours, const uint16_t *theirs, unsigned num_theirs,
                        unsigned turn)
{
    unsigned common = 0;

    for (unsigned i = 0; i < num_ours; i++)
        common += has_match(ours[i], theirs, num_theirs);
    turn = common ? turn % common : 0;
    for (unsigned i = 0; i < num_ours; i++)
        if (has_match(ours[i], theirs, num_theirs) && !turn--)
            return ours[i];
    return 0;
}

const char *mr_pkeys_text(const uint16_t *key, unsigned n, char *out, size_t size)
{
    size_t used = 0;

    snprintf(out, size, "none");
    for (unsigned i = 0, num = 0; i < n && used < size; i++)
        if (mr_pkey_partition(key[i]))
            used += (size_t)snprintf(out + used, size - used, "%s0x%04x%s", num++ ? ", " : "", key[i],
                                     key[i] & MR_PKEY_FULL ? "" : " (limited)");
    return out;
}
