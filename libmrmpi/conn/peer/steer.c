/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules in use (rules.h). A packet's subchannels are looked up by its use and its size class, in a table of the peer
 * that is made anew when links open or break, and when the peer's counts pass a limit in a rule. Without rules there
 * are no such tables.
 */
#include "libmrmpi/conn/peer/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"

/* ---- the text ---------------------------------------------------------------------------------------------------- */

/* The text itself, or a file's, to be freed; NULL: it cannot be read. */
static char *read_text(const char *setting, size_t *len)
{
    FILE *f = *setting == '@' ? fopen(setting + 1, "re") : NULL;
    char *text;

    if (*setting != '@') {
        *len = strlen(setting);
        return strdup(setting);
    }
    text = f ? malloc(MR_RULES_TEXT + 1) : NULL;
    if (text)
        *len = fread(text, 1, MR_RULES_TEXT + 1, f); /* one more than allowed is detected */
    if (f)
        fclose(f);
    return text;
}

static void complain_of_kinds(void)
{
    unsigned others = mr_rules_kinds(&mr_peers.rules);

    for (unsigned k = 0; k < MR_LINK_KINDS; k++)
        if (others >> k & 1 && !mr_kinds_have(&mr_peers.kinds, k))
            mr_log(MR_LOG_WARN, "MRMPI_RULES names %s, which MRMPI_LINKS=%s does not allow: it is passed over",
                   mr_kind_name(k), mr_config.links);
}

int mr_steer_init(void)
{
    struct mr_rules_error e;
    size_t len = 0;
    char *text;
    bool ok;

    if (!*mr_config.rules)
        return 0;
    text = read_text(mr_config.rules, &len);
    if (!text) {
        mr_log(MR_LOG_ERROR, "MRMPI_RULES=%s cannot be read: %s", mr_config.rules, strerror(errno));
        return -EINVAL;
    }
    ok = mr_rules_parse(text, len, &mr_peers.rules, &e);
    if (!ok && mr_log_for_host())
        mr_log(MR_LOG_ERROR, "MRMPI_RULES: line %u, column %u: %s", e.line, e.column, e.what);
    else if (ok && !mr_peers.launch->rank)
        complain_of_kinds();
    free(text);
    return ok ? 0 : -EINVAL;
}

/* ---- a peer ------------------------------------------------------------------------------------------------------ */

static struct mr_rules_peer describe_peer(const struct mr_peer *p)
{
    return (struct mr_rules_peer){.count = p->counted, .rate = p->rate, .class_name = mr_peers.qos.class_name};
}

static bool loses_packets(unsigned kind)
{
    return !mr_peers.kinds.native[kind] || !mr_kind_is(kind, MR_IS_CONFIRMING);
}

int mr_steer_peer(struct mr_peer *p)
{
    if (!mr_peers.rules.num)
        return 0;
    p->steer = calloc((size_t)MR_RULE_RDMA * (mr_peers.rules.num_sizes + 1), sizeof *p->steer);
    return p->steer ? 0 : -ENOMEM;
}

uint32_t mr_steer_set(struct mr_peer *p, const uint32_t of_kind[MR_LINK_KINDS], uint32_t up)
{
    struct mr_rules_peer about = describe_peer(p);
    unsigned open = 0, classes = mr_peers.rules.num_sizes + 1;

    for (unsigned k = 0; k < MR_LINK_KINDS; k++)
        open |= (of_kind[k] != 0) << k;
    p->own->holding = mr_rules_holding(&mr_peers.rules, &about);
    for (unsigned use = 0; use < MR_RULE_RDMA; use++)
        for (unsigned c = 0; c < classes; c++) {
            unsigned kind = mr_rules_pick(&mr_peers.rules, use, c, &about, open);

            p->steer[use * classes + c] = kind < MR_LINK_KINDS ? up & ~of_kind[kind] : p->excluded;
            if (kind < MR_LINK_KINDS && loses_packets(kind))
                mr_peer_tell_lossy(p);
        }
    return UINT32_MAX;
}

bool mr_steer_is_stale(const struct mr_peer *p)
{
    struct mr_rules_peer about = describe_peer(p);

    return p->steer && p->up && mr_rules_holding(&mr_peers.rules, &about) != p->own->holding;
}

bool mr_steer_by_rdma(const struct mr_peer *p, size_t len)
{
    struct mr_rules_peer about = describe_peer(p);
    unsigned kinds = p->address->kinds & mr_peers.our_kinds, bulk = mr_kinds_bulk(kinds);
    unsigned open = kinds & (1u << bulk | ~mr_kinds_that_are(kinds, MR_IS_RDMA)), kind;

    kind = mr_rules_pick(&mr_peers.rules, MR_RULE_RDMA, mr_rules_size_class(&mr_peers.rules, len), &about, open);
    return kind == MR_LINK_KINDS || kind == bulk;
}

/* True if some packet would go over one of these kinds, with all links open that both ranks may use. */
bool mr_steer_wants(const struct mr_peer *p, uint8_t set)
{
    struct mr_rules_peer about = describe_peer(p);
    unsigned open = p->address->kinds & mr_peers.our_kinds;

    for (unsigned use = 0; use < MR_RULE_RDMA; use++)
        for (unsigned c = 0; c <= mr_peers.rules.num_sizes; c++) {
            unsigned kind = mr_rules_pick(&mr_peers.rules, use, c, &about, open);

            if (kind == MR_LINK_KINDS)
                kind = mr_peers.kinds.kind[0];
            if (set >> kind & 1)
                return true;
        }
    return false;
}
