/* SPDX-License-Identifier: BSD-3-Clause */
#include "libmrmpi/verbs/verbs.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name, *help;
} rows[MR_LINK_KINDS] = {
#define MR_KIND(id, word, ops, traits, what) [MR_LINK_##id] = {.name = word, .help = what},
#include "libmrmpi/verbs/link/kinds.def"
#undef MR_KIND
};

const char *mr_kind_name(unsigned kind)
{
    return kind < MR_LINK_KINDS ? rows[kind].name : "unknown";
}

const char *mr_kind_help(unsigned kind)
{
    return kind < MR_LINK_KINDS ? rows[kind].help : "unknown";
}

unsigned mr_kind_by_name(const char *word, size_t len)
{
    unsigned k = 0;

    while (k < MR_LINK_KINDS && (strlen(rows[k].name) != len || strncasecmp(word, rows[k].name, len)))
        k++;
    return k;
}

const char *mr_kinds_list(const char *last, char out[MR_KINDS_TEXT])
{
    size_t used = 0;

    *out = '\0';
    for (unsigned k = 0; k < MR_LINK_KINDS && used < MR_KINDS_TEXT; k++)
        used += (size_t)snprintf(out + used, MR_KINDS_TEXT - used, "%s%s%s%s",
                                 !k                      ? ""
                                 : k + 1 < MR_LINK_KINDS ? ", "
                                                         : " ",
                                 k && k + 1 == MR_LINK_KINDS ? last : "", k && k + 1 == MR_LINK_KINDS ? " " : "",
                                 rows[k].name);
    return out;
}

bool mr_kinds_have(const struct mr_kinds *k, unsigned kind)
{
    return memchr(k->kind, (int)kind, k->num);
}

unsigned mr_kinds_set(const struct mr_kinds *k)
{
    unsigned set = 0;

    for (unsigned i = 0; i < k->num; i++)
        set |= 1u << k->kind[i];
    return set;
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static bool add_named_kind(const char *word, size_t len, struct mr_kinds *out)
{
    unsigned kind = mr_kind_by_name(word, len);

    if (kind == MR_LINK_KINDS || mr_kinds_have(out, kind))
        return false;
    out->kind[out->num++] = (uint8_t)kind;
    return true;
}

static bool parse_links(const char *text, struct mr_kinds *out)
{
    for (;;) {
        size_t len = strcspn(text, ",");

        if (!add_named_kind(text, len, out))
            return false;
        if (!text[len])
            return true;
        text += len + 1;
    }
}

static bool parse_reliable(const char *text, struct mr_kinds *out)
{
    bool never = !strcasecmp(text, "no"), always = !strcasecmp(text, "yes");

    if (!never && !always && strcasecmp(text, "auto"))
        return false;
    for (unsigned k = 0; k < MR_LINK_KINDS; k++)
        out->native[k] = mr_kind_is(k, MR_IS_RELIABLE) ? !always : never;
    for (unsigned i = 0; i < out->num; i++)
        out->unsafe |= out->native[out->kind[i]] && !mr_kind_is(out->kind[i], MR_IS_RELIABLE);
    return true;
}

bool mr_kinds_parse(const char *links, const char *reliable, bool many, struct mr_kinds *out, const char **why)
{
    memset(out, 0, sizeof *out);
    *why = "MRMPI_LINKS";
    if (!strcasecmp(links, "auto"))
        links = many && strcasecmp(reliable, "no") ? MR_LINKS_AUTO_MANY : MR_LINKS_AUTO;
    if (!parse_links(links, out))
        return false;
    *why = "MRMPI_RELIABLE";
    return parse_reliable(reliable, out);
}

const char *mr_kinds_form(const char *why, char out[MR_KINDS_TEXT])
{
    char list[MR_KINDS_TEXT];

    if (strcmp(why, "MRMPI_LINKS"))
        snprintf(out, MR_KINDS_TEXT, "one of auto, yes, no");
    else
        snprintf(out, MR_KINDS_TEXT, "auto, or a comma list of %.100s, each at most once", mr_kinds_list("and", list));
    return out;
}

/* ---- rings ------------------------------------------------------------------------------------------------------- */

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

/* Where large messages go through the ring they are cut into as much. No packet is longer than eager_max. */
size_t mr_ring_size(enum mr_ring_design design, size_t setting, size_t eager_max)
{
    static const size_t sizes[MR_RING_DESIGNS] = {
        [MR_RING_BASIC] = 2048, [MR_RING_PIGGYBACK] = 2048, [MR_RING_PIPELINED] = 16384, [MR_RING_ZEROCOPY] = SIZE_MAX};
    size_t size = setting ? setting : sizes[design];

    return size < eager_max ? size : eager_max;
}
