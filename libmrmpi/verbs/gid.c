/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing a GID; see gid.h for the order. */
#include "libmrmpi/verbs/gid.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ALL_VERSIONS (MR_GID_ROCE_V2 | MR_GID_ROCE_V1)
#define ALL_FAMILIES (MR_GID_IPV4 | MR_GID_IPV6 | MR_GID_LINK_LOCAL)

static bool parse_word(const char *word, size_t len, struct mr_gid_wish *w)
{
    static const struct {
        const char *name;
        uint8_t version, family;
    } words[] = {
        {"roce-v2", MR_GID_ROCE_V2, 0},
        {"roce-v1", MR_GID_ROCE_V1, 0},
        {"ipv4", 0, MR_GID_IPV4},
        {"ipv6", 0, MR_GID_IPV6 | MR_GID_LINK_LOCAL},
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].name) == len && !strncasecmp(words[i].name, word, len)) {
            w->versions |= words[i].version;
            w->families |= words[i].family;
            return true;
        }
    return false;
}

bool mr_gid_wish_parse(const char *text, struct mr_gid_wish *out)
{
    *out = (struct mr_gid_wish){.index = -1};
    if (*text >= '0' && *text <= '9') {
        char *end;
        unsigned long index = strtoul(text, &end, 10);

        out->index = (int)index;
        if (*end || index > UINT8_MAX)
            return false;
        text = "";
    }
    while (*text) {
        size_t len = strcspn(text, "/");

        if (!parse_word(text, len, out))
            return false;
        text += len;
        if (*text && !*++text)
            return false;
    }
    if (!out->versions)
        out->versions = ALL_VERSIONS;
    if (!out->families)
        out->families = ALL_FAMILIES;
    return true;
}

enum mr_gid_family mr_gid_family(const uint8_t gid[16])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

    if (!memcmp(gid, mapped, sizeof mapped))
        return MR_GID_IPV4;
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80 ? MR_GID_LINK_LOCAL : MR_GID_IPV6;
}

uint8_t mr_gid_kind(const struct mr_gid_entry *e)
{
    return (uint8_t)(e->version << 4 | (mr_gid_family(e->gid) == MR_GID_IPV4 ? MR_GID_IPV4 : MR_GID_IPV6));
}

const struct mr_gid_entry *mr_gid_choose(const struct mr_gid_wish *wish, const struct mr_gid_entry *table, size_t n)
{
    const struct mr_gid_entry *best = NULL;
    unsigned best_rank = 0;

    for (size_t i = 0; i < n; i++) {
        const struct mr_gid_entry *e = &table[i];
        uint8_t family = (uint8_t)mr_gid_family(e->gid);
        unsigned rank = e->version * 8u + family; /* the bits' values are the order of preference */

        if ((wish->index >= 0 && wish->index != e->index) || !(wish->versions & e->version) ||
            !(wish->families & family))
            continue;
        if (!best || rank < best_rank) {
            best = e;
            best_rank = rank;
        }
    }
    return best;
}
