/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The settings are read by the library's own code from the ranks' environment, and rules are compiled as ranks compile
 * them; fabricd is asked as a rank of this machine asks.
 */
#include "mrrun/explain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/conn/fabric/client.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/verbs/link/slots.h"
#include "libmrmpi/conn/route/policy.h"
#include "libmrmpi/conn/route/quota.h"
#include "libmrmpi/conn/route/rules.h"
#include "libmrmpi/verbs/contexts.h"
#include "mrrun/costs.h"
#include "mrrun/environment.h"
#include "mrrun/pairs.h"
#include "mrrun/program.h"
#include "mrrun/values.h"

#define FABRIC_TIMEOUT_MS 1000

/* ---- where a value is from --------------------------------------------------------------------------------------- */

static bool is_option(const struct explain *e, const char *name)
{
    return mrrun_options_env(e->opts, &e->opts->parts[0], name);
}

/* True if the library refuses the value and keeps the default. */
static bool is_bad(const struct mr_setting *s, const char *text)
{
    size_t i = 0;
    struct mr_setting other;

    while (mr_config_setting(i, &other) && strcmp(other.name, s->name))
        i++;
    return mr_config_set(i, text) == -EINVAL;
}

static const char *origin(const struct explain *e, const struct mr_setting *s)
{
    const char *text = environment_get(e->env, s->name);

    if (!strcmp(s->name, "MRMPI_JOBID") && !is_option(e, s->name))
        return e->opts->job_id                             ? "--job-id"
               : environment_get(e->outer, "MRMPI_JOBID")  ? "environment"
               : environment_get(e->outer, "SLURM_JOB_ID") ? "SLURM_JOB_ID"
                                                           : "made up by mrrun";
    if (!strcmp(s->name, "MRMPI_STATS") && e->opts->stats && !e->opts->stats_as)
        return "--stats";
    if (!strcmp(s->name, "MRMPI_RECORD_EVENTS") && e->opts->trace && !environment_get(e->outer, s->name) &&
        !is_option(e, s->name))
        return "--rails-trace";
    if (!text)
        return "default";
    if (is_bad(s, text))
        return "default, since what the environment says is no value for it";
    if (is_option(e, s->name))
        return "-x";
    return environment_get(e->outer, s->name) ? "environment" : "mrrun, for simulated hosts";
}

static const char *origin_of(const struct explain *e, const char *name)
{
    struct mr_setting s;

    for (size_t i = 0; mr_config_setting(i, &s); i++)
        if (!strcmp(s.name, name))
            return origin(e, &s);
    return "unknown";
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static void print_value(size_t i, const struct mr_setting *s)
{
    static char text[MR_RULES_TEXT + 1];
    size_t size = 0;
    int number = 0;

    switch (s->kind) {
    case MR_SETTING_SIZE:
        mr_config_get(i, &size, sizeof size);
        snprintf(text, sizeof text, "%s", value_bytes(size));
        break;
    case MR_SETTING_INT:
        mr_config_get(i, &number, sizeof number);
        snprintf(text, sizeof text, "%d", number);
        break;
    case MR_SETTING_BOOL:
        mr_config_get(i, &number, sizeof number);
        snprintf(text, sizeof text, "%s", number ? "yes" : "no");
        break;
    case MR_SETTING_STRING:
        mr_config_get(i, text, sizeof text);
        text[strcspn(text, "\n")] = '\0'; /* of rules of several lines the first; they are all above */
        break;
    }
    printf("  %-26s %-22s", s->name, *text ? text : "\"\"");
}

static void print_settings(const struct explain *e)
{
    struct mr_setting s;

    puts("\nSettings (libmrmpi(7) says what they do)");
    for (size_t i = 0; mr_config_setting(i, &s); i++) {
        print_value(i, &s);
        printf("  %s\n", origin(e, &s));
    }
}

/* ---- sections ---------------------------------------------------------------------------------------------------- */

static void print_job(const struct explain *e)
{
    printf("Job %s", e->job_id);
    if (e->opts->ranks)
        printf(", %d rank%s", e->opts->ranks, e->opts->ranks == 1 ? "" : "s");
    puts(e->simulated ? ", on simulated hosts: nothing is started" : ": nothing is started");
    for (int i = 0; i < e->opts->hosts.count; i++)
        if (e->opts->hosts.host[i].devices)
            printf("  ranks on %s use %s only (--hosts)\n", e->opts->hosts.host[i].name,
                   e->opts->hosts.host[i].devices);
    puts("  inside a host messages go through shared memory; what follows is about messages between hosts");
}

static void print_level(const struct mr_fabric_qos *q, enum mr_level l, uint32_t from)
{
    const struct mr_fabric_level *level = &q->level[l];

    printf("  messages ");
    if (l == MR_LEVEL_BULK)
        printf("over %-14s", value_bytes(from));
    else
        printf("up to %-13s", value_bytes(level->max));
    printf("service level");
    for (unsigned i = 0; i < level->num_lanes; i++)
        printf("%s %u", i ? "," : level->num_lanes > 1 ? "s" : "", level->sl[i]);
    puts(l == MR_LEVEL_SMALL ? ", and all control packets" : "");
}

/*
 * The socket on the first host of --hosts, if each simulated host has a socket; the client knows this machine's name
 * only.
 */
static const char *choose_socket(const struct explain *e)
{
    static char path[512];
    const char *setting = mr_config.fabricd_socket, *at = strstr(setting, "%h");

    if (!at || !e->simulated || !e->opts->hosts.count)
        return setting;
    snprintf(path, sizeof path, "%.*s%s%s", (int)(at - setting), setting, e->opts->hosts.host[0].name, at + 2);
    return path;
}

/* Healthy rails need no line. */
static void print_health(void)
{
    const char *device, *state;
    unsigned weight;
    int port;

    for (unsigned i = 0; mr_fabric_rail(i, &device, &port, &weight, &state); i++)
        if (weight < MR_FABRIC_HEALTHY)
            printf("  rail %s port %d is %s: %s (fabricctl rail show %s/%d)\n", device, port, state,
                   weight ? "small messages leave it, and large ones use it less" : "jobs leave it", device, port);
}

static void print_class(const struct explain *e, struct mr_fabric_qos *q)
{
    const char *socket = choose_socket(e);
    int err = mr_fabric_open(socket, e->job_id, FABRIC_TIMEOUT_MS, q);
    uint32_t from = 0;

    puts("\nClass of service");
    if (err) {
        mr_fabric_close();
        printf("  fabricd at %s %s%s: all messages on service level 0\n", socket,
               err == -ENOENT || err == -ECONNREFUSED ? "is not there" : "cannot be asked: ",
               err == -ENOENT || err == -ECONNREFUSED ? "" : strerror(-err));
        if (e->simulated)
            puts("  (each simulated host asks its own: with --hosts the first one's is asked here)");
        return;
    }
    printf("  fabricd at %s: class %s%s\n", socket, *q->class_name ? q->class_name : "none, since there is no policy",
           q->generation && !q->verified ? "; the fabric's tables are not verified" : "");
    for (unsigned l = 0; l < MR_LEVELS; l++) {
        if (l && l < MR_LEVEL_BULK && q->level[l].max <= from)
            continue; /* left out */
        print_level(q, l, from);
        from = l < MR_LEVEL_BULK ? q->level[l].max : from;
    }
    print_health();
    mr_fabric_close();
}

static const char *describe_delivery(unsigned kind, bool native)
{
    if (mr_kind_is(kind, MR_IS_RELIABLE))
        return native ? ": the adapter delivers, native" : ", and the receiver acknowledges all the same";
    return native ? ", native: WHAT IS LOST IS LOST" : " made reliable: the receiver acknowledges";
}

/* Peers that may have reliable connections; by default the limit of current adapters with the fullest host's ranks. */
static int rc_peers(const struct explain *e)
{
    unsigned ranks = e->fullest ? (unsigned)e->fullest : 1;

    return mr_config.rc_peers ? mr_config.rc_peers : (int)mr_quota_peers(MR_CONTEXTS_CURRENT, ranks);
}

/* Ranks on other hosts, as a rank on the emptiest host counts them; 0: where ranks are is not known. */
static int others(const struct explain *e)
{
    return e->emptiest ? e->opts->ranks - e->emptiest : 0;
}

static bool print_kinds(const struct explain *e, struct mr_kinds *kinds)
{
    char form[MR_KINDS_TEXT];
    const char *why;

    puts("\nKinds of links, the preferred one first");
    if (!mr_kinds_parse(mr_config.links, mr_config.reliable, others(e) > rc_peers(e), kinds, &why)) {
        printf("  ERROR: %s=%s is not %s: MPI_Init will fail\n", why,
               !strcmp(why, "MRMPI_LINKS") ? mr_config.links : mr_config.reliable, mr_kinds_form(why, form));
        return false;
    }
    for (unsigned k = 0; k < kinds->num; k++)
        printf("  %s  %s%s\n", mr_kind_name(kinds->kind[k]), mr_kind_help(kinds->kind[k]),
               describe_delivery(kinds->kind[k], kinds->native[kinds->kind[k]]));
    if (!strcasecmp(mr_config.links, "auto"))
        printf("  (auto: " MR_LINKS_AUTO
               ", and with more than %d ranks on other hosts, MRMPI_RC_PEERS%s, " MR_LINKS_AUTO_MANY ")\n",
               rc_peers(e), mr_config.rc_peers ? "" : " by default");
    printf("  (MRMPI_LINKS: %s; MRMPI_RELIABLE: %s)\n", origin_of(e, "MRMPI_LINKS"), origin_of(e, "MRMPI_RELIABLE"));
    return true;
}

static void print_rules(const struct mr_rules *rules)
{
    char line[256];

    for (unsigned i = 0; i < rules->num; i++) {
        mr_rules_print(rules, i, line, sizeof line);
        printf("  %2u  %s\n", i + 1, line);
    }
}

static bool read_rules(char *text, size_t *len)
{
    FILE *f = *mr_config.rules == '@' ? fopen(mr_config.rules + 1, "re") : NULL;

    if (*mr_config.rules != '@') {
        *len = strnlen(mr_config.rules, MR_RULES_TEXT + 1);
        memcpy(text, mr_config.rules, *len);
        return true;
    }
    if (!f)
        return false;
    *len = fread(text, 1, MR_RULES_TEXT + 1, f);
    fclose(f);
    return true;
}

static void print_size_classes(const struct mr_rules *rules)
{
    if (!rules->num_sizes)
        return;
    printf("  size classes: up to");
    for (unsigned i = 0; i < rules->num_sizes; i++)
        printf(" %s,", value_bytes(rules->size[i]));
    puts(" and what is longer");
}

static bool print_table(const struct explain *e, const struct mr_kinds *kinds, bool by_ring, struct mr_rules *rules)
{
    static char text[MR_RULES_TEXT + 1];
    struct mr_rules_error err;
    size_t len;

    puts("\nRules: the first that holds and of whose kinds one is open to the peer; of those the first");
    if (!*mr_config.rules) {
        mr_rules_standard(kinds, by_ring, (uint32_t)mr_config.rc_after, rules);
        print_rules(rules);
        puts("  (these are what MRMPI_LINKS and MRMPI_RC_AFTER amount to; MRMPI_RULES is not set)");
        return true;
    }
    if (!read_rules(text, &len)) {
        printf("  ERROR: MRMPI_RULES=%s cannot be read: %s; MPI_Init will fail\n", mr_config.rules, strerror(errno));
        return false;
    }
    if (!mr_rules_parse(text, len, rules, &err)) {
        printf("  ERROR: MRMPI_RULES: line %u, column %u: %s; MPI_Init will fail\n", err.line, err.column, err.what);
        return false;
    }
    print_rules(rules);
    puts("  where none of them says anything: the preferred kind that is open");
    print_size_classes(rules);
    for (unsigned k = 0; k < MR_LINK_KINDS; k++)
        if (mr_rules_kinds(rules) >> k & 1 && !mr_kinds_have(kinds, k))
            printf("  %s is passed over: MRMPI_LINKS does not allow it\n", mr_kind_name(k));
    printf("  (MRMPI_RULES: %s)\n", origin_of(e, "MRMPI_RULES"));
    return true;
}

static void print_connections(const struct explain *e, unsigned kinds)
{
    unsigned connected = mr_kinds_that_are(kinds, MR_IS_CONNECTED);

    if (connected == kinds)
        puts("  connections: to every rank of another host that it talks to, since all kinds of links are such");
    else if (!connected)
        puts("  connections: none; two queue pairs for each rail reach all ranks");
    else if (mr_config.rc_after)
        printf("  connections: to %d ranks of other hosts at most, after %d packets or with a large message\n",
               rc_peers(e), mr_config.rc_after);
    else
        printf("  connections: to %d ranks of other hosts at most; all others by datagrams\n", rc_peers(e));
    if (connected && connected != kinds && !mr_config.rc_peers)
        puts("  (fewer if an adapter is a ConnectX-3 or older)");
}

/* That of the ranks: a bad word is complained of by them. */
static enum mr_ring_design ring_design(void)
{
    enum mr_ring_design design = MR_RING_ZEROCOPY;

    mr_ring_design_parse(mr_config.ring_design, &design);
    return design;
}

static void print_rings(void)
{
    enum mr_ring_design design = ring_design();

    printf("  rings: for %d ranks, %s", mr_config.ring_peers, mr_config.ring_after ? "" : "when they connect; ");
    if (mr_config.ring_after)
        printf("after %d packets; ", mr_config.ring_after);
    printf("%u slots for packets up to %s each; design %s\n", mr_slots_num((unsigned)mr_config.ring_slots),
           value_bytes(mr_ring_size(design, mr_config.ring_size, mr_config.eager_max)), mr_ring_design_name(design));
    puts("    what is longer, goes with large messages or finds no free slot is sent over the connection");
}

/* Programs may load another allocator while running: ranks check again, and report. */
static void print_registrations(const struct explain *e)
{
    const char *program = e->opts->parts[0].program[0], *why;
    struct mr_allocators a;

    if (!mr_config.reg_cache_max) {
        printf("  memory kept registered: none (MRMPI_REG_CACHE_MAX: %s)\n", origin_of(e, "MRMPI_REG_CACHE_MAX"));
        return;
    }
    if (!program) {
        printf("  memory kept registered: %s, where the program's allocator lets unmapping be seen\n",
               value_bytes(mr_config.reg_cache_max));
        return;
    }
    why = program_allocators(program, e->env, &a);
    if (why)
        printf("  memory kept registered: %s, unless the program's allocator unmaps memory unseen: which it has is not "
               "known here, %s\n",
               value_bytes(mr_config.reg_cache_max), why);
    else if (*a.unseen)
        printf("  memory kept registered: none, since the allocator of %s unmaps memory by system calls of its own\n",
               a.unseen);
    else
        printf("  memory kept registered: %s\n", value_bytes(mr_config.reg_cache_max));
    if (!why)
        printf("  allocator: that of %s%s\n", a.front, a.c_library ? ", the C library" : "");
}

static void print_budgets(const struct explain *e, const struct mr_kinds *kinds)
{
    puts("\nBudgets of a rank");
    print_connections(e, mr_kinds_set(kinds));
    if (mr_kinds_that_are(mr_kinds_set(kinds), MR_IS_RING))
        print_rings();
    printf("  queues: %d receive buffers for each rail, %d sends for each queue pair\n", mr_config.srq_depth,
           mr_config.sq_depth);
    printf("  packets to one rank that wait for room before sends do: %d\n", mr_config.unsent_max);
    printf("  eager messages not yet received: %s from one rank, %s from all\n", value_bytes(mr_config.unexpected_max),
           value_bytes(mr_config.unexpected_total));
    print_registrations(e);
}

static void print_large(const struct mr_kinds *kinds, bool by_ring)
{
    puts("\nSmall and large messages");
    printf("  up to %s: one packet, at once\n", value_bytes(mr_config.eager_max));
    if (mr_config.eager_packets > 1)
        printf("  up to %s: up to %d packets, at once\n", value_bytes(value_unasked()), mr_config.eager_packets);
    if (mr_kinds_by_rdma(mr_kinds_set(kinds), by_ring) == MR_LINK_KINDS) {
        printf("  longer: the receiver is asked, then %s\n", value_without_rdma(kinds, by_ring));
        return;
    }
    printf(
        "  longer: the receiver is asked, then by RDMA where a connection is open (MRMPI_RNDV=%s), else in packets\n",
        mr_config.rndv);
    printf("  from %s on: cut over the rails%s, as many as lead to the peer, ", value_bytes(mr_config.stripe_min),
           *mr_config.devices ? " (of MRMPI_DEVICES)" : "");
    if (mr_config.paths)
        printf("%d path%s each\n", mr_config.paths, mr_config.paths == 1 ? "" : "s");
    else
        printf("and over the LID paths of each that share no cable, where fabricd knows any\n");
}

/* ---- policies ---------------------------------------------------------------------------------------------------- */

static bool print_policy(const struct explain *e, enum mr_policy_class c, const char *name, char *const *setting,
                         const char *word)
{
    const char *origin = origin_of(e, name), *text = *setting; /* origin_of() may have changed the setting */
    bool chosen = strcasecmp(text, "auto") != 0;
    const char *used = chosen ? text : *word ? word : mr_policy_standard(c);
    char what[MR_POLICY_TEXT];
    struct mr_policy p;

    if (!mr_policy_parse(used, c, &p, what, sizeof what)) {
        printf("  %s messages: %s: %s (%s)\n", c == MR_POLICY_SMALL ? "small" : "large",
               chosen ? "MPI_Init will fail" : "fabricd's word is passed over", what, chosen ? name : "fabricd");
        return !chosen;
    }
    printf("  %s messages: %s: %s (%s)\n", c == MR_POLICY_SMALL ? "small" : "large", used, p.kind->help,
           chosen  ? origin
           : *word ? "fabricd"
                   : "default");
    return true;
}

static bool print_policies(const struct explain *e, const struct mr_fabric_qos *q)
{
    bool ok;

    puts("\nScheduling policies");
    ok = print_policy(e, MR_POLICY_SMALL, "MRMPI_POLICY_SMALL", &mr_config.policy_small, q->spread[0]);
    return print_policy(e, MR_POLICY_LARGE, "MRMPI_POLICY_LARGE", &mr_config.policy_large, q->spread[1]) && ok;
}

static void print_pairs(const struct explain *e, const struct mr_kinds *kinds, bool by_ring,
                        const struct mr_rules *rules)
{
    struct host_rails *of = calloc((size_t)e->num_used + 1, sizeof *of);
    struct pairs p = {.hosts = e->hosts,
                      .num = e->num_used,
                      .of = of,
                      .kinds = kinds,
                      .rules = rules,
                      .by_ring = by_ring,
                      .simulated = e->simulated,
                      .env = e->env};

    if (!e->hosts) {
        printf("\nPairs of hosts\n  not known here: %s\n", e->why_no_hosts);
    } else if (of) {
        fflush(stdout);
        if (p.num > 1)
            rails_ask(e->hosts, p.num, e->env, of);
        pairs_print(&p);
    }
    free(of);
}

int explain(const struct explain *e)
{
    struct mr_fabric_qos q;
    struct mr_kinds kinds;
    struct mr_rules rules;
    bool ok, by_ring;

    environ = e->env;
    if (mr_config_early()) {
        fprintf(stderr, "mrrun: out of memory\n");
        return 1;
    }
    print_job(e);
    print_class(e, &q);
    ok = print_kinds(e, &kinds);
    by_ring = ring_design() != MR_RING_ZEROCOPY;
    if (ok) {
        ok = print_table(e, &kinds, by_ring, &rules);
        print_budgets(e, &kinds);
        print_large(&kinds, by_ring);
        ok = costs_print(origin_of(e, "MRMPI_MODEL")) && ok;
        ok = print_policies(e, &q) && ok;
    }
    if (ok)
        print_pairs(e, &kinds, by_ring, &rules);
    print_settings(e);
    fflush(stdout);
    mr_config_complain(); /* unknown settings, invalid values */
    mr_config_finalize();
    return ok ? 0 : 1;
}
