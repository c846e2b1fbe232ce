/* SPDX-License-Identifier: BSD-3-Clause */
#include "libmrmpi/link/kinds.h"

#include <string.h>
#include <strings.h>

static const char *const names[MR_LINK_KINDS] = {
    [MR_LINK_RC] = "rc", [MR_LINK_UC] = "uc", [MR_LINK_UD] = "ud", [MR_LINK_RING] = "ring"};

const char *mr_link_kind_name(enum mr_link_kind kind)
{
    return kind < MR_LINK_KINDS ? names[kind] : "unknown";
}

bool mr_kinds_have(const struct mr_kinds *k, enum mr_link_kind kind)
{
    return memchr(k->kind, kind, k->num);
}

static bool parse_kind(const char *word, size_t len, struct mr_kinds *out)
{
    for (unsigned k = 0; k < MR_LINK_KINDS; k++)
        if (strlen(names[k]) == len && !strncasecmp(word, names[k], len)) {
            if (mr_kinds_have(out, k))
                return false;
            out->kind[out->num++] = (uint8_t)k;
            return true;
        }
    return false;
}

static bool parse_links(const char *text, struct mr_kinds *out)
{
    for (;;) {
        size_t len = strcspn(text, ",");

        if (!parse_kind(text, len, out))
            return false;
        if (!text[len])
            return true;
        text += len + 1;
    }
}

static bool parse_reliable(const char *text, struct mr_kinds *out)
{
    bool never = !strcasecmp(text, "no");

    if (!never && strcasecmp(text, "auto") && strcasecmp(text, "yes"))
        return false;
    out->native[MR_LINK_RC] = out->native[MR_LINK_RING] = strcasecmp(text, "yes");
    out->native[MR_LINK_UC] = out->native[MR_LINK_UD] = never;
    return true;
}

bool mr_kinds_parse(const char *links, const char *reliable, bool many, struct mr_kinds *out, const char **why)
{
    memset(out, 0, sizeof *out);
    *why = "MRMPI_LINKS";
    if (!strcasecmp(links, "auto"))
        links = many && strcasecmp(reliable, "no") ? "rc,ud" : "rc";
    if (!parse_links(links, out))
        return false;
    *why = "MRMPI_RELIABLE";
    if (!parse_reliable(reliable, out))
        return false;
    out->unsafe = out->native[MR_LINK_UC] && (mr_kinds_have(out, MR_LINK_UC) || mr_kinds_have(out, MR_LINK_UD));
    return true;
}

static const char *const designs[MR_RING_DESIGNS] = {[MR_RING_BASIC] = "basic",
                                                     [MR_RING_PIGGYBACK] = "piggyback",
                                                     [MR_RING_PIPELINED] = "pipelined",
                                                     [MR_RING_ZEROCOPY] = "zerocopy"};

const char *mr_ring_design_name(enum mr_ring_design design)
{
    return design < MR_RING_DESIGNS ? designs[design] : "unknown";
}

bool mr_ring_design_parse(const char *text, enum mr_ring_design *out)
{
    for (unsigned d = 0; d < MR_RING_DESIGNS; d++)
        if (!strcasecmp(text, designs[d])) {
            *out = d;
            return true;
        }
    return false;
}
