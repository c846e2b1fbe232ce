/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy.yaml to struct policy. The tables below are the format: each key, its range, its default. Functions check the
 * rules beyond tables (sums, references, dependences between keys). mrmpi-policy(5) is the format for people.
 *
 * One mistake gives one error: a value that was not understood is not judged any further.
 */
#include "fabricd/policy/policy.h"
#include "fabricd/base/keys.h"
#include "libmrmpi/conn/route/policy.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a)     (sizeof(a) / sizeof((a)[0]))
#define CLASS(field) offsetof(struct policy_class, field)
#define RULE(field)  offsetof(struct policy_rule, field)
#define ALL(field)   offsetof(struct policy, field)
#define PKEY(field)  offsetof(struct policy_pkey, field)
#define PART(field)  offsetof(struct policy_partition, field)

/* The data of read functions besides the file; ydoc is first, so that they find it. */
struct reader {
    struct ydoc y;
    struct policy *p;
    bool names_known; /* every class has a valid name: a reference to another name is a mistake of its own */
};

static struct reader *reader_of(struct ydoc *y)
{
    return (struct reader *)y;
}

/* ---- rails: of a class ---- */

/* In the library's words, which are checked here: a job must not fail because of the policy's text. */
static void read_spread(struct ydoc *y, yaml_node_t *n, const struct key *k, void *into)
{
    enum mr_policy_class c = k->at == CLASS(spread.small) ? MR_POLICY_SMALL : MR_POLICY_LARGE;
    char text[FD_SPREAD_MAX] = "", what[MR_POLICY_TEXT];
    struct mr_policy p;
    if (!ydoc_string(y, n, k->name, text, k->max + 1) || !strcmp(text, "auto"))
        return;
    if (!mr_policy_parse(text, c, &p, what, sizeof(what)))
        diag_error(y->diag, ydoc_place(n), "%s in rails: %s", k->name, what);
    else
        memcpy((char *)into + k->at, text, sizeof(text));
}

static const struct key rails_key[] = {
    {.name = "small",
     .help = "How small messages are spread over rails, in the words of MRMPI_POLICY_SMALL.",
     .kind = KEY_TEXT,
     .max = FD_SPREAD_MAX - 1,
     .at = CLASS(spread.small),
     .read = read_spread},
    {.name = "large",
     .help = "How large messages are spread over rails, in the words of MRMPI_POLICY_LARGE.",
     .kind = KEY_TEXT,
     .max = FD_SPREAD_MAX - 1,
     .at = CLASS(spread.large),
     .read = read_spread},
};
static const struct keys rails_keys = {"rails", rails_key, COUNT(rails_key)};

/* ---- classes: ---- */

/* One size or a list, ascending. After the first wrong size, the order of the others means nothing. */
static void read_medium(struct ydoc *y, yaml_node_t *n, const struct key *k, void *into)
{
    struct policy_class *c = into;
    unsigned errors = y->diag->errors;
    bool list = n->type == YAML_SEQUENCE_NODE;
    yaml_node_t *item = list ? ydoc_item(y, n, 0) : n;
    if (!item) {
        diag_error(y->diag, ydoc_place(n), "%s is empty; allowed: 1 to %u sizes", k->name, k->items);
        return;
    }
    c->medium_at = ydoc_place(item);
    for (size_t i = 0; item; item = list ? ydoc_item(y, n, ++i) : NULL) {
        uint32_t max, last = c->num_medium ? c->medium_max[c->num_medium - 1] : 0;
        if (i == k->items) {
            diag_error(y->diag, ydoc_place(item), "more than %u sizes in %s", k->items, k->name);
            return;
        }
        if (!ydoc_size(y, item, k->name, k->max, &max) || y->diag->errors > errors)
            continue;
        if (c->num_medium && max <= last)
            diag_error(y->diag, ydoc_place(item),
                       "%s is %u, and the level before goes up to %u; allowed: more than that", k->name, max, last);
        else
            c->medium_max[c->num_medium++] = max;
    }
}

static const struct key_choice priorities[] = {
    {"high", PRIORITY_HIGH},
    {"normal", PRIORITY_NORMAL},
    {"low", PRIORITY_LOW},
    {"3", 3},
    {"2", 2},
    {"1", 1},
    {"0", 0},
    {NULL, 0},
};
static const struct key_choice goals[] = {{"bulk", PRIORITY_NORMAL}, {"everything", PRIORITY_HIGH}, {NULL, 0}};

#define DEFAULT_PARTITION 0x7fff

#define HOW_SMALL_GO 1 /* keys for the way of small messages: one of them */

/* ---- choose: of a class ---- */

static const struct key choose_key[] = {PATTERN_KEYS(0)};
static const struct keys choose_keys = {"a choice", choose_key, COUNT(choose_key)};

static void read_choose(struct ydoc *y, yaml_node_t *n, const struct key *k, void *into)
{
    struct policy_class *c = into;
    yaml_node_t *item;
    if (!ydoc_list(y, n, k->name))
        return;
    for (size_t i = 0; (item = ydoc_item(y, n, i)); i++) {
        if (c->num_choose == k->max) {
            diag_error(y->diag, ydoc_place(item), "more than %u choices", k->max);
            return;
        }
        keys_read(y, item, &choose_keys, &c->choose[c->num_choose++]);
    }
}

/* ---- partitions ---- */

/* A P_Key in people's notation; its highest bit, full membership, belongs to the port. */
static void read_pkey(struct ydoc *y, yaml_node_t *n, const struct key *k, void *into)
{
    struct policy_partition *part = (struct policy_partition *)((char *)into + k->at);
    const char *s = ydoc_need_scalar(y, n, k->name, "a P_Key");
    char *end;
    unsigned long key;
    if (!s)
        return;
    key = strtoul(s, &end, 0);
    if (*s < '0' || *s > '9' || *end || key > 0xffff || !(key & 0x7fff)) {
        diag_error(y->diag, ydoc_place(n),
                   "%s is '%.40s'; allowed: a P_Key from 0x0001 to 0x7fff, or with the highest bit", k->name, s);
        return;
    }
    part->pkey = (uint32_t)(key & 0x7fff);
    part->pkey_at = ydoc_place(n);
}

static void read_member(struct ydoc *y, yaml_node_t *n, const struct key *k, struct policy_partition *part)
{
    char *to = part->members[part->num_members];
    if (!ydoc_string(y, n, k->name, to, k->max + 1))
        return;
    if (!*to || strpbrk(to, " \t"))
        diag_error(y->diag, ydoc_place(n), "%s has '%s'; allowed: names of hosts, or patterns of the shell for them",
                   k->name, to);
    else if (!hosts_good(to))
        diag_error(y->diag, ydoc_place(n),
                   "%s has '%s', whose range is none; allowed: numbers of up to 9 digits, ascending, as "
                   "node[001-128,200]",
                   k->name, to);
    else
        part->num_members++;
}

/* One pattern or a list of them. */
static void read_partition_members(struct ydoc *y, yaml_node_t *n, const struct key *k, void *into)
{
    struct policy_partition *part = (struct policy_partition *)((char *)into + k->at);
    yaml_node_t *item;
    part->members_at = ydoc_place(n);
    if (n->type != YAML_SEQUENCE_NODE) {
        read_member(y, n, k, part);
        return;
    }
    if (!ydoc_item(y, n, 0))
        diag_error(y->diag, ydoc_place(n), "%s is empty; allowed: 1 to %u patterns", k->name, k->items);
    for (size_t i = 0; (item = ydoc_item(y, n, i)); i++) {
        if (i == k->items) {
            diag_error(y->diag, ydoc_place(item), "more than %u patterns in %s", k->items, k->name);
            return;
        }
        read_member(y, item, k, part);
    }
}

static const struct key_choice of_jobs[] = {{"yes", 1}, {"no", 0}, {NULL, 0}};

/* The keys of a partition at offset base. */
#define PARTITION_KEYS(base, text, is_required)                                                                        \
    {.name = "pkey",                                                                                                   \
     .help = text,                                                                                                     \
     .kind = KEY_TEXT,                                                                                                 \
     .required = is_required,                                                                                          \
     .max = 6,                                                                                                         \
     .chars = "0-9A-Fa-fx",                                                                                            \
     .at = (base),                                                                                                     \
     .read = read_pkey},                                                                                               \
        {.name = "members",                                                                                            \
         .help = "Hosts whose ports are to be members of that partition: patterns of the shell, or ranges as "         \
                 "node[001-128,200]. Not given, nor job members: opensm's partition file says which are.",             \
         .kind = KEY_TEXTS,                                                                                            \
         .items = POLICY_MEMBERS_MAX,                                                                                  \
         .max = POLICY_MEMBER_MAX - 1,                                                                                 \
         .at = (base),                                                                                                 \
         .read = read_partition_members},                                                                              \
    {                                                                                                                  \
        .name = "job members", .help = "Whether the hosts of its jobs are members, too, for as long as the jobs run.", \
        .kind = KEY_CHOICE, .choices = of_jobs, .standard = "no", .at = (base) + PART(of_jobs)                         \
    }

/* of: the place in the policy. */
static void check_partition(struct diag *d, const struct policy_partition *part, struct place at, const char *of)
{
    if (part->of_jobs && !part->pkey)
        diag_error(d, at, "%s has job members and no pkey, of whose partition they would be", of);
    if (part->num_members && !part->pkey)
        diag_error(d, part->members_at, "%s has members and no pkey, of whose partition they would be", of);
    if ((part->num_members || part->of_jobs) && part->pkey == DEFAULT_PARTITION)
        diag_error(d, part->pkey_at,
                   "pkey is the default partition, and %s has members; allowed: 0x0001 to 0x7ffe, or no members", of);
}

static const struct key class_key[] = {
    {.name = "name",
     .help = "The class's name, which rules and 'fabricctl job set' use.",
     .kind = KEY_TEXT,
     .required = true,
     .max = FD_NAME_MAX - 1,
     .chars = "A-Za-z0-9_.-",
     .at = CLASS(name),
     .place = CLASS(name_at)},
    {.name = "share",
     .help = "Percent of a busy link that all messages of the class have together.",
     .kind = KEY_UINT,
     .required = true,
     .min = 1,
     .max = 100,
     .at = CLASS(share),
     .place = CLASS(share_at)},
    {.name = "priority",
     .help = "Whether small messages go ahead of bulk, and with which weight against those of other classes.",
     .kind = KEY_CHOICE,
     .choices = priorities,
     .standard = "normal",
     .one_of = HOW_SMALL_GO,
     .at = CLASS(priority),
     .given = CLASS(has_priority)},
    {.name = "ahead of",
     .help = "A goal instead of a priority: small messages go ahead of bulk, or of the small messages of others, too.",
     .kind = KEY_CHOICE,
     .choices = goals,
     .one_of = HOW_SMALL_GO,
     .at = CLASS(priority),
     .given = CLASS(has_priority)},
    {.name = "latency",
     .help = "A goal instead of a priority: the longest that a small message may wait in the fabric.",
     .kind = KEY_TIME,
     .min = 1000,
     .max = 1000000000,
     .one_of = HOW_SMALL_GO,
     .at = CLASS(latency_ns),
     .place = CLASS(latency_at)},
    {.name = "ratio",
     .help = "Of a busy link, what small messages have to what large ones have; in a policy of one class only.",
     .kind = KEY_RATIO,
     .min = 1,
     .max = 1000,
     .one_of = HOW_SMALL_GO,
     .at = CLASS(ratio_small),
     .place = CLASS(ratio_at)},
    {.name = "lanes",
     .help = "Virtual lanes for bulk, used in turn.",
     .kind = KEY_UINT,
     .standard = "1",
     .min = 1,
     .max = FD_LANES_MAX,
     .at = CLASS(lanes)},
    {.name = "paths",
     .help = "Paths to a port, of those that share no cable, which large messages use at most; all of 8, if not given.",
     .kind = KEY_UINT,
     .standard = "8",
     .min = 1,
     .max = FD_PATHS_MAX,
     .at = CLASS(paths)},
    {.name = "small",
     .help = "Messages of up to so many bytes are small.",
     .kind = KEY_SIZE,
     .standard = "1K",
     .max = 1u << 20,
     .at = CLASS(small_max)},
    {.name = "medium",
     .help = "Messages larger than small and up to so many bytes have a virtual lane of their own.",
     .kind = KEY_SIZES,
     .items = FD_MEDIUM_MAX,
     .max = 1u << 30,
     .read = read_medium},
    {.name = "rails", .help = "How messages are spread over rails.", .kind = KEY_MAP, .of = &rails_keys},
    PARTITION_KEYS(CLASS(partition), "The partition (P_Key) in which processes of the class's jobs talk.", false),
    {.name = "max jobs",
     .help = "How many jobs of a host may have the class at a time by rules and choices.",
     .kind = KEY_UINT,
     .min = 1,
     .max = 65536,
     .at = CLASS(jobs_max)},
    {.name = "max jobs per user",
     .help = "How many of them may be of one user.",
     .kind = KEY_UINT,
     .min = 1,
     .max = 65536,
     .at = CLASS(user_jobs_max)},
    {.name = "choose",
     .help = "Which jobs get the class if their user asks for it: those that one of these matches. Others do not.",
     .kind = KEY_LIST,
     .max = POLICY_CHOOSE_MAX,
     .of = &choose_keys,
     .read = read_choose},
};
static const struct keys class_keys = {"a class", class_key, COUNT(class_key)};

static void read_policy_class(struct reader *r, yaml_node_t *n)
{
    struct policy *p = r->p;
    struct diag *d = r->y.diag;
    struct policy_class c = {.at = ydoc_place(n)};
    keys_defaults(&class_keys, &c);
    bool good = keys_read(&r->y, n, &class_keys, &c);
    int twin = *c.name ? policy_class_by_name(p, c.name) : -1;
    if (twin >= 0)
        diag_error(d, c.name_at, "class '%s' is given twice (first on line %u)", c.name, p->classes[twin].at.line);
    if (twin >= 0 || !*c.name)
        r->names_known = false;
    if (good && c.num_medium && c.medium_max[0] <= c.small_max)
        diag_error(d, c.medium_at, "medium is %u, and small goes up to %u; allowed: more than that", c.medium_max[0],
                   c.small_max);
    char of[64];
    snprintf(of, sizeof(of), "class '%s'", c.name);
    check_partition(d, &c.partition, c.at, of);
    if (c.ratio_small)
        c.priority = PRIORITY_LOW;
    p->classes[p->num_classes++] = c;
}

static void check_shares(struct reader *r, yaml_node_t *list)
{
    const struct policy *p = r->p;
    uint32_t total = 0;
    for (unsigned i = 0; i < p->num_classes; i++) {
        const struct policy_class *c = &p->classes[i];
        total += c->share;
        if (total > 100) {
            diag_error(r->y.diag, c->share_at,
                       "the shares add up to more than 100 with class '%s' (%u before it, %u with it)", c->name,
                       total - c->share, total);
            return;
        }
    }
    if (total < 100)
        diag_warn(r->y.diag, ydoc_place(list),
                  "the shares add up to %u; the other %u are divided in the same proportion", total, 100 - total);
}

static void read_classes(struct ydoc *y, yaml_node_t *n, const struct key *k, void *into)
{
    struct reader *r = reader_of(y);
    struct policy *p = r->p;
    unsigned errors = y->diag->errors;
    yaml_node_t *item;
    if (!ydoc_list(y, n, k->name))
        return;
    r->names_known = true;
    for (size_t i = 0; (item = ydoc_item(y, n, i)); i++) {
        if (p->num_classes == k->max) {
            diag_error(y->diag, ydoc_place(item), "more than %u classes", k->max);
            r->names_known = false;
            return;
        }
        read_policy_class(r, item);
    }
    if (!p->num_classes) {
        diag_error(y->diag, ydoc_place(n), "classes is empty; allowed: %u to %u classes", k->min, k->max);
        r->names_known = false;
        return;
    }
    if (y->diag->errors == errors)
        check_shares(r, n);
    for (unsigned i = 0; i < p->num_classes; i++)
        if (p->classes[i].ratio_small && p->num_classes > 1)
            diag_error(y->diag, p->classes[i].ratio_at,
                       "class '%s' has a ratio and is not the only class: what its small or large messages leave idle "
                       "would go to the other classes; give it a priority, or the policy one class",
                       p->classes[i].name);
}

/* ---- jobs: ---- */

static void read_class_ref(struct ydoc *y, yaml_node_t *n, const struct key *k, void *into)
{
    const struct reader *r = reader_of(y);
    const char *names[POLICY_CLASSES_MAX + 1] = {NULL}, *s = ydoc_scalar(n);
    if (s && !r->names_known && policy_class_by_name(r->p, s) < 0)
        return;
    for (unsigned i = 0; i < r->p->num_classes; i++)
        names[i] = r->p->classes[i].name;
    int i = ydoc_choice(y, n, k->name, names);
    if (i >= 0)
        *(unsigned *)((char *)into + k->at) = (unsigned)i;
}

/* The class for jobs without another. */
static void read_default(struct ydoc *y, yaml_node_t *n, const struct key *k, void *into)
{
    unsigned errors = y->diag->errors;
    read_class_ref(y, n, k, into);
    const struct policy *p = into;
    const struct policy_class *c = &p->classes[p->default_class];
    if (y->diag->errors == errors && (c->jobs_max || c->user_jobs_max))
        diag_error(y->diag, ydoc_place(n),
                   "class '%s' has max jobs, and the default class takes all; make another the "
                   "default, or give it no limit",
                   c->name);
}

static const struct key rule_key[] = {
    PATTERN_KEYS(RULE(of)),
    {.name = "class",
     .help = "The class of jobs that match.",
     .kind = KEY_TEXT,
     .required = true,
     .max = FD_NAME_MAX - 1,
     .at = RULE(class_index),
     .read = read_class_ref},
};
static const struct keys rule_keys = {"a rule", rule_key, COUNT(rule_key)};

static void read_rules(struct ydoc *y, yaml_node_t *n, const struct key *k, void *into)
{
    struct policy *p = into;
    yaml_node_t *item;
    if (!ydoc_list(y, n, k->name))
        return;
    for (size_t i = 0; (item = ydoc_item(y, n, i)); i++) {
        if (p->num_rules == k->max) {
            diag_error(y->diag, ydoc_place(item), "more than %u rules", k->max);
            return;
        }
        keys_read(y, item, &rule_keys, &p->rules[p->num_rules++]);
    }
}

static const struct key jobs_key[] = {
    {.name = "default",
     .help = "The class of jobs that no rule matches.",
     .kind = KEY_TEXT,
     .required = true,
     .max = FD_NAME_MAX - 1,
     .at = ALL(default_class),
     .read = read_default},
    {.name = "rules",
     .help = "The first rule whose patterns all match gives a job its class.",
     .kind = KEY_LIST,
     .max = POLICY_RULES_MAX,
     .of = &rule_keys,
     .read = read_rules},
};
static const struct keys jobs_keys = {"jobs", jobs_key, COUNT(jobs_key)};

/* ---- pkeys: ---- */

static const struct key pkey_key[] = {
    PATTERN_KEYS(PKEY(of)),
    PARTITION_KEYS(PKEY(partition), "The partition (P_Key) in which processes of jobs that match talk.", true),
};
static const struct keys pkey_keys = {"an entry of pkeys", pkey_key, COUNT(pkey_key)};

static void read_pkey_entries(struct ydoc *y, yaml_node_t *n, const struct key *k, void *into)
{
    struct policy *p = into;
    yaml_node_t *item;
    if (!ydoc_list(y, n, k->name))
        return;
    for (size_t i = 0; (item = ydoc_item(y, n, i)); i++) {
        if (p->num_pkeys == k->max) {
            diag_error(y->diag, ydoc_place(item), "more than %u entries in pkeys", k->max);
            return;
        }
        struct policy_pkey *e = &p->pkeys[p->num_pkeys++];
        keys_defaults(&pkey_keys, e);
        if (keys_read(y, item, &pkey_keys, e))
            check_partition(y->diag, &e->partition, ydoc_place(item), "this entry");
    }
}

/* ---- the rest ---- */

static void read_high_limit(struct ydoc *y, yaml_node_t *n, const struct key *k, void *into)
{
    struct policy *p = into;
    uint32_t raw;
    if (!ydoc_uint(y, n, k->name, k->min, k->max, &raw))
        return;
    p->high_limit = (int)raw;
    if (raw == 255)
        diag_warn(y->diag, ydoc_place(n),
                  "high_limit 255 is no limit: small messages of one job can starve everybody's bulk");
}

#define LIMIT 1 /* exclusive limits */

static const struct key limits_key[] = {
    {.name = "bulk_minimum",
     .help = "Percent of a link that bulk keeps, even if small messages are sent beyond all budgets.",
     .kind = KEY_UINT,
     .min = 1,
     .max = 50,
     .one_of = LIMIT,
     .at = ALL(bulk_minimum)},
    {.name = "high_limit",
     .help = "The ports' limit of high priority, in units of 4096 bytes; 255 is no limit. For experts: above 1, "
             "senders that know no budget can exceed shares.",
     .kind = KEY_UINT,
     .max = 255,
     .one_of = LIMIT,
     .read = read_high_limit},
};
static const struct keys limits_keys = {"limits", limits_key, COUNT(limits_key)};

static const struct key paths_key[] = {
    {.name = "lmc",
     .help = "Every port has 2^lmc LIDs, and as many paths lead to it.",
     .kind = KEY_UINT,
     .required = true,
     .max = 3,
     .at = ALL(lmc),
     .place = ALL(lmc_at)},
};
static const struct keys paths_keys = {"paths", paths_key, COUNT(paths_key)};

static const struct key_choice repairs[] = {{"yes", REPAIR_YES}, {"report", REPAIR_REPORT}, {NULL, 0}};
static const struct key_choice alarms[] = {{"on", 0}, {"off", 1}, {NULL, 0}};

static const struct key health_key[] = {
    {.name = "alarms",
     .help = "Whether error counters are judged. If not, only 'fabricctl rail drain' takes a rail out.",
     .kind = KEY_CHOICE,
     .choices = alarms,
     .standard = "on",
     .at = ALL(health.off)},
    {.name = "degraded",
     .help = "Errors a minute from which a rail is degraded; not given: by the generation of the link.",
     .kind = KEY_UINT,
     .min = 1,
     .max = 1000000000,
     .at = ALL(health.degraded)},
    {.name = "bad",
     .help = "Errors a minute from which a rail is bad; not given: by the generation of the link.",
     .kind = KEY_UINT,
     .min = 2,
     .max = 1000000000,
     .at = ALL(health.bad),
     .place = ALL(bad_at)},
    {.name = "hold",
     .help = "Seconds without an error after which a rail gets better, at first; each relapse doubles it.",
     .kind = KEY_UINT,
     .standard = "10",
     .min = 1,
     .max = 3600,
     .at = ALL(health.hold_s)},
};
static const struct keys health_keys = {"health", health_key, COUNT(health_key)};

static void read_health(struct ydoc *y, yaml_node_t *n, const struct key *k, void *into)
{
    struct policy *p = into;
    if (keys_read(y, n, &health_keys, into) && p->health.bad && p->health.bad <= p->health.degraded)
        diag_error(y->diag, p->bad_at, "bad is %u, and degraded %u; allowed: more than that", p->health.bad,
                   p->health.degraded);
}

static const struct key_choice versions[] = {{"1", 1}, {NULL, 0}};
static const struct key_choice vls[] = {{"1", 1}, {"2", 2}, {"4", 4}, {"8", 8}, {"15", 15}, {NULL, 0}};
static const struct key_choice mtus[] = {{"256", 256},   {"512", 512},   {"1024", 1024},
                                         {"2048", 2048}, {"4096", 4096}, {NULL, 0}};

/* classes before jobs, which refer to them: keys are read in the order of the table */
static const struct key policy_key[] = {
    {.name = "version",
     .help = "The version of this format.",
     .kind = KEY_CHOICE,
     .required = true,
     .choices = versions,
     .at = ALL(version)},
    {.name = "vls",
     .help = "How many data virtual lanes the links have in operation.",
     .kind = KEY_CHOICE,
     .choices = vls,
     .standard = "8",
     .at = ALL(vls),
     .place = ALL(vls_at)},
    {.name = "mtu",
     .help = "The largest packets in bytes that weights are made for; not given: the fabric's.",
     .kind = KEY_CHOICE,
     .choices = mtus,
     .at = ALL(mtu)},
    {.name = "classes",
     .help = "The classes of jobs.",
     .kind = KEY_LIST,
     .required = true,
     .min = 1,
     .max = POLICY_CLASSES_MAX,
     .of = &class_keys,
     .read = read_classes},
    {.name = "jobs", .help = "Which job has which class.", .kind = KEY_MAP, .required = true, .of = &jobs_keys},
    {.name = "pkeys",
     .help = "Partitions of accounts, users, ...: the first whose patterns all match a job goes before the class's.",
     .kind = KEY_LIST,
     .max = POLICY_PKEYS_MAX,
     .of = &pkey_keys,
     .read = read_pkey_entries},
    {.name = "limits",
     .help = "Against starvation of bulk by small messages.",
     .kind = KEY_MAP,
     .of = &limits_keys,
     .place = ALL(limits_at)},
    {.name = "paths", .help = "Paths through the fabric.", .kind = KEY_MAP, .of = &paths_keys, .place = ALL(lmc_at)},
    {.name = "repair",
     .help = "Whether opensm is to write the tables again when ports or its configuration have lost them, or that is "
             "only reported.",
     .kind = KEY_CHOICE,
     .choices = repairs,
     .standard = "yes",
     .at = ALL(repair)},
    {.name = "repair_pause",
     .help = "Seconds between two repairs at least; twice as long after each that failed.",
     .kind = KEY_UINT,
     .min = 1,
     .max = 86400,
     .standard = "30",
     .at = ALL(repair_pause)},
    {.name = "health",
     .help = "When a rail with errors is left, and when it is used again.",
     .kind = KEY_MAP,
     .of = &health_keys,
     .read = read_health},
};
const struct keys policy_keys = {"the policy", policy_key, COUNT(policy_key)};

/* Of a file in another version nothing else can be judged. */
static bool version_is_ours(struct ydoc *y, yaml_node_t *root)
{
    const char *ours = versions[0].name;
    yaml_node_t *n = ydoc_get(y, root, "version");
    const char *s = n ? ydoc_need_scalar(y, n, "version", ours) : NULL;
    uint64_t v;
    if (!n || (s && !strcmp(s, ours)))
        return true;
    if (s && ydoc_uint_of(s, &v))
        diag_error(
            y->diag, ydoc_place(n),
            "the policy is written in version %.20s of the format, and this fabricd reads version %s; use a fabricd "
            "that reads it, or write it as mrmpi-policy(5) tells and say 'version: %s'",
            s, ours, ours);
    else if (s)
        diag_error(y->diag, ydoc_place(n), "version is '%.40s'; allowed: %s", s, ours);
    return false;
}

bool policy_parse(struct policy *p, const char *text, size_t len, struct diag *d)
{
    unsigned before = d->errors;
    struct reader r = {.p = p};
    *p = (struct policy){.high_limit = -1};
    keys_defaults(&policy_keys, p);
    if (!ydoc_load(&r.y, text, len, d))
        return false;
    yaml_node_t *root = ydoc_root(&r.y);
    p->vls_at = p->lmc_at = p->limits_at = ydoc_place(root);
    if (version_is_ours(&r.y, root))
        keys_read(&r.y, root, &policy_keys, p);
    ydoc_free(&r.y);
    return d->errors == before;
}

int policy_class_by_name(const struct policy *p, const char *name)
{
    for (unsigned i = 0; i < p->num_classes; i++)
        if (!strcmp(p->classes[i].name, name))
            return (int)i;
    return -1;
}

unsigned policy_class_with_room(const struct policy *p, const struct pattern_job *job,
                                bool (*has_room)(void *arg, unsigned class_index), void *arg)
{
    for (unsigned i = 0; i < p->num_rules; i++)
        if (pattern_matches(&p->rules[i].of, job) && (!has_room || has_room(arg, p->rules[i].class_index)))
            return p->rules[i].class_index;
    return p->default_class;
}

const struct policy_partition *policy_partition_of(const struct policy *p, unsigned class_index,
                                                   const struct pattern_job *job)
{
    for (unsigned i = 0; i < p->num_pkeys; i++)
        if (pattern_matches(&p->pkeys[i].of, job))
            return &p->pkeys[i].partition;
    return &p->classes[class_index].partition;
}

static const struct policy_partition *any_partition(const struct policy *p, unsigned i)
{
    return i < p->num_classes ? &p->classes[i].partition : &p->pkeys[i - p->num_classes].partition;
}

const struct policy_partition *policy_partition(const struct policy *p, unsigned i)
{
    for (unsigned k = 0; k < p->num_classes + p->num_pkeys; k++) {
        const struct policy_partition *part = any_partition(p, k);
        if ((part->num_members || part->of_jobs) && !i--)
            return part;
    }
    return NULL;
}

void policy_partition_name(const struct policy *p, const struct policy_partition *of, char out[64])
{
    for (unsigned k = 0; k < p->num_classes + p->num_pkeys; k++)
        if (any_partition(p, k) == of && k < p->num_classes)
            snprintf(out, 64, "class '%s'", p->classes[k].name);
        else if (any_partition(p, k) == of)
            snprintf(out, 64, "entry %u of pkeys", k - p->num_classes + 1);
}

const struct policy_partition *policy_partition_by_key(const struct policy *p, unsigned pkey)
{
    const struct policy_partition *part;
    for (unsigned i = 0; (part = policy_partition(p, i)); i++)
        if (part->pkey == pkey)
            break;
    return part;
}

bool policy_has_job_members(const struct policy *p, unsigned pkey)
{
    const struct policy_partition *part;
    bool has = false;
    for (unsigned i = 0; (part = policy_partition(p, i)); i++)
        has = has || (part->pkey == pkey && part->of_jobs);
    return has;
}

static bool has_member(const struct policy_partition *part, const char *host)
{
    for (unsigned k = 0; k < part->num_members; k++)
        if (hosts_match(part->members[k], host))
            return true;
    return false;
}

bool policy_is_member(const struct policy *p, const struct host_keys *jobs, unsigned pkey, const char *description)
{
    const struct policy_partition *part;
    char host[HOST_MAX];
    snprintf(host, sizeof(host), "%.*s", (int)strcspn(description, " "), description);
    for (unsigned i = 0; (part = policy_partition(p, i)); i++)
        if (part->pkey == pkey && (has_member(part, host) || (part->of_jobs && host_keys_have(jobs, pkey, host))))
            return true;
    return false;
}

bool policy_may_choose(const struct policy_class *c, const struct pattern_job *job)
{
    for (unsigned i = 0; i < c->num_choose; i++)
        if (pattern_matches(&c->choose[i], job))
            return true;
    return false;
}
