/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scheduling policies in use (policy.h): the policy of each class of messages, the rails of this host that it allows,
 * and the resulting subchannels to a peer.
 */
#include "libmrmpi/conn/peer/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"

static const char *const setting[MR_POLICY_CLASSES] = {"MRMPI_POLICY_SMALL", "MRMPI_POLICY_LARGE"};

/* ---- this host --------------------------------------------------------------------------------------------------- */

static unsigned list_ports(struct mr_policy_port port[MR_RAILS_MAX])
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        port[i] = (struct mr_policy_port){
            .device = mr_verbs.rail[i].dev->name, .port = mr_verbs.rail[i].port, .distance = mr_peers_own.distance[i]};
    return mr_verbs.num_rails;
}

static void log_rails(enum mr_policy_class c, const char *text, const struct mr_policy_port port[], unsigned n)
{
    char names[MR_RAILS_MAX * 72] = "";
    size_t at = 0;

    if (mr_peers.policy[c].kind->where == MR_WHERE_ALL)
        return;
    for (unsigned i = 0; i < n; i++)
        if (mr_peers_own.policy_rails[c] >> i & 1 && at < sizeof names)
            at += (size_t)snprintf(names + at, sizeof names - at, " %s:%u", port[i].device, port[i].port);
    mr_log(MR_LOG_INFO, "%s messages, policy %s:%s", c == MR_POLICY_SMALL ? "small" : "large", text, names);
}

/* -EINVAL: not a policy, or names rails missing on this host; what has the reason. */
static int adopt_policy(enum mr_policy_class c, const char *text, char *what, size_t size)
{
    struct mr_policy_port port[MR_RAILS_MAX];
    struct mr_policy p;
    unsigned n;
    uint32_t rails;

    if (!mr_policy_parse(text, c, &p, what, size))
        return -EINVAL;
    if ((mr_policy_needs_distance(&p) || (p.kind->prefers_near && mr_rails_are_apart())) &&
        !mr_peers_own.distances_known) {
        mr_rails_distances(mr_peers_own.distance);
        mr_peers_own.distances_known = true;
    }
    n = list_ports(port);
    if (!mr_policy_fits(&p, port, n, what, size))
        return -EINVAL;
    rails = mr_policy_rails(&p, port, n, (unsigned)mr_peers.launch->local_rank);
    if (!rails) {
        snprintf(what, size, "\"%.64s\" names no rail that is used on this host (%s:%u is the first)", text,
                 port[0].device, port[0].port);
        return -EINVAL;
    }
    mr_peers.policy[c] = p;
    mr_peers_own.policy_rails[c] = rails;
    log_rails(c, text, port, n);
    return 0;
}

static const char *setting_of(enum mr_policy_class c)
{
    return c == MR_POLICY_SMALL ? mr_config.policy_small : mr_config.policy_large;
}

/* fabricd's policy, if the user has none. A policy of no use here does not fail the start. */
static void adopt_fabric_policy(enum mr_policy_class c)
{
    const char *text = mr_peers.qos.spread[c];
    char what[MR_POLICY_TEXT];

    if (*text && adopt_policy(c, text, what, sizeof what)) {
        if (mr_log_for_host())
            mr_log(MR_LOG_WARN, "fabricd's policy of %s messages is not followed: %s",
                   c == MR_POLICY_SMALL ? "small" : "large", what);
        text = "";
    }
    if (!*text)
        adopt_policy(c, mr_policy_standard(c), what, sizeof what);
}

int mr_spread_init(void)
{
    for (unsigned c = 0; c < MR_POLICY_CLASSES; c++) {
        char what[MR_POLICY_TEXT];

        if (!strcasecmp(setting_of(c), "auto")) {
            adopt_fabric_policy(c);
        } else if (adopt_policy(c, setting_of(c), what, sizeof what)) {
            if (mr_log_for_host())
                mr_log(MR_LOG_ERROR, "%s=%s: %s", setting[c], setting_of(c), what);
            return -EINVAL;
        }
    }
    return 0;
}

void mr_spread_news(void)
{
    for (unsigned c = 0; c < MR_POLICY_CLASSES; c++)
        if (!strcasecmp(setting_of(c), "auto"))
            adopt_fabric_policy(c);
}

/* ---- a peer ------------------------------------------------------------------------------------------------------ */

bool mr_spread_is_far(unsigned rail)
{
    if (!mr_peers.policy[MR_POLICY_SMALL].kind->prefers_near)
        return false;
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        if (mr_peers_own.distance[i] < mr_peers_own.distance[rail])
            return true;
    return false;
}

/*
 * Of a set of subchannels, those with healthy rails: for small messages the best, for large messages all with a weight
 * left. All, if none has.
 */
static uint32_t keep_well(const struct mr_peer *p, enum mr_policy_class c, uint32_t set)
{
    uint32_t kept = 0, least = MR_WEIGHT_MAX;

    for (unsigned i = 0; i < p->num_now; i++)
        if (set >> i & 1 && p->load[i].small_sick < least)
            least = p->load[i].small_sick;
    for (unsigned i = 0; i < p->num_now; i++)
        if (set >> i & 1 && (c == MR_POLICY_SMALL ? p->load[i].small_sick == least : p->load[i].sick < MR_WEIGHT_MAX))
            kept |= 1u << i;
    return kept ? kept : set;
}

uint32_t mr_spread_narrow(const struct mr_peer *p, enum mr_policy_class c, uint32_t set)
{
    uint32_t allowed = 0;

    if (unlikely(mr_peers.unwell))
        set = keep_well(p, c, set);
    if (mr_peers.policy[c].kind->where == MR_WHERE_ALL)
        return set;
    for (unsigned i = 0; i < p->num_now; i++)
        if (mr_peers_own.policy_rails[c] >> p->now[i].rail->index & 1)
            allowed |= 1u << i;
    return set & allowed ? set & allowed : set;
}
