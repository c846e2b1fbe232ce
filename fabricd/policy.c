/* SPDX-License-Identifier: BSD-3-Clause */
/* policy.yaml to struct policy. The schema is in the code below, key by key; mrmpi-policy(5) tells it to people. */
#include "fabricd/policy.h"
#include "fabricd/ydoc.h"
#include "libmrmpi/rail/policy.h"

#include <fnmatch.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void parse_priority(struct ydoc *y, yaml_node_t *n, struct policy_class *c)
{
    static const char *const names[] = {"high", "normal", "low", NULL};
    static const uint32_t values[] = {PRIORITY_HIGH, PRIORITY_NORMAL, PRIORITY_LOW};
    const char *s = ydoc_scalar(n);
    if (s && *s >= '0' && *s <= '9') {
        ydoc_uint(y, n, "priority", 0, PRIORITY_HIGH, &c->priority);
        return;
    }
    int i = ydoc_choice(y, n, "priority", names);
    if (i >= 0)
        c->priority = values[i];
}

/* One more level, for messages of up to so many bytes. small is known: the sizes must ascend. */
static void parse_medium(struct ydoc *y, yaml_node_t *n, struct policy_class *c)
{
    uint32_t before = c->num_medium ? c->medium_max[c->num_medium - 1] : c->small_max, max;
    if (!ydoc_size(y, n, "medium", 1u << 30, &max))
        return;
    if (max <= before)
        diag_error(y->diag, ydoc_place(n), "medium is %u, and %s goes up to %u; allowed: more than that", max,
                   c->num_medium ? "the level before" : "small", before);
    else if (c->num_medium == FD_MEDIUM_MAX)
        diag_error(y->diag, ydoc_place(n), "more than %u sizes in medium", FD_MEDIUM_MAX);
    else
        c->medium_max[c->num_medium++] = max;
}

static void parse_mediums(struct ydoc *y, yaml_node_t *n, struct policy_class *c)
{
    if (n->type != YAML_SEQUENCE_NODE) {
        parse_medium(y, n, c);
        return;
    }
    yaml_node_t *item = ydoc_item(y, n, 0);
    if (!item)
        diag_error(y->diag, ydoc_place(n), "medium is empty; allowed: 1 to %u sizes", FD_MEDIUM_MAX);
    for (size_t i = 0; (item = ydoc_item(y, n, i)); i++)
        parse_medium(y, item, c);
}

/* In the library's words, which are checked here: a job must not fail for what the administrator wrote. */
static void parse_spread(struct ydoc *y, yaml_node_t *n, const char *name, enum mr_policy_class c, char out[FD_SPREAD_MAX])
{
    char text[FD_SPREAD_MAX] = "", what[MR_POLICY_TEXT];
    struct mr_policy p;
    if (!ydoc_string(y, n, name, text, sizeof(text)) || !strcmp(text, "auto"))
        return;
    if (!mr_policy_parse(text, c, &p, what, sizeof(what)))
        diag_error(y->diag, ydoc_place(n), "%s in rails: %s", name, what);
    else
        memcpy(out, text, sizeof(text));
}

static void parse_rails(struct ydoc *y, yaml_node_t *n, struct fd_spread *out)
{
    struct ykey k[] = {{"small", false, NULL}, {"large", false, NULL}};
    ydoc_map(y, n, "rails", k, COUNT(k));
    if (k[0].value)
        parse_spread(y, k[0].value, "small", MR_POLICY_SMALL, out->small);
    if (k[1].value)
        parse_spread(y, k[1].value, "large", MR_POLICY_LARGE, out->large);
}

static void parse_class(struct ydoc *y, yaml_node_t *n, struct policy *p)
{
    struct ykey k[] = {{"name", true, NULL},   {"share", true, NULL},  {"priority", false, NULL},
                       {"lanes", false, NULL}, {"small", false, NULL}, {"medium", false, NULL},
                       {"rails", false, NULL}};
    struct policy_class c = {.priority = PRIORITY_NORMAL, .lanes = 1, .small_max = 8192, .at = ydoc_place(n)};
    ydoc_map(y, n, "a class", k, COUNT(k));
    if (k[0].value && ydoc_string(y, k[0].value, "name", c.name, sizeof(c.name))) {
        if (policy_class_by_name(p, c.name) >= 0)
            diag_error(y->diag, ydoc_place(k[0].value), "class '%s' is given twice (first on line %u)", c.name,
                       p->classes[policy_class_by_name(p, c.name)].at.line);
        if (strspn(c.name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != strlen(c.name))
            diag_error(y->diag, ydoc_place(k[0].value), "class name '%s'; allowed: letters, digits, '_', '-' and '.'",
                       c.name);
    }
    if (k[1].value) {
        c.share_at = ydoc_place(k[1].value);
        ydoc_uint(y, k[1].value, "share", 1, 100, &c.share);
    }
    if (k[2].value)
        parse_priority(y, k[2].value, &c);
    if (k[3].value)
        ydoc_uint(y, k[3].value, "lanes", 1, FD_LANES_MAX, &c.lanes);
    if (k[4].value)
        ydoc_size(y, k[4].value, "small", 1u << 20, &c.small_max);
    if (k[5].value)
        parse_mediums(y, k[5].value, &c);
    if (k[6].value)
        parse_rails(y, k[6].value, &c.spread);
    if (p->num_classes == POLICY_CLASSES_MAX)
        diag_error(y->diag, c.at, "more than %d classes", POLICY_CLASSES_MAX);
    else
        p->classes[p->num_classes++] = c;
}

static void parse_classes(struct ydoc *y, yaml_node_t *n, struct policy *p)
{
    if (!ydoc_list(y, n, "classes"))
        return;
    yaml_node_t *item;
    for (size_t i = 0; (item = ydoc_item(y, n, i)); i++)
        parse_class(y, item, p);
    if (!p->num_classes) {
        diag_error(y->diag, ydoc_place(n), "classes is empty; allowed: 1 to %d classes", POLICY_CLASSES_MAX);
        return;
    }
    uint32_t total = 0;
    for (unsigned i = 0; i < p->num_classes; i++) {
        uint32_t before = total;
        total += p->classes[i].share;
        if (total > 100 && before <= 100)
            diag_error(y->diag, p->classes[i].share_at,
                       "the shares add up to more than 100 with class '%s' (%u before it, %u with it)",
                       p->classes[i].name, before, total);
    }
    if (total < 100 && !y->diag->errors)
        diag_warn(y->diag, ydoc_place(n), "the shares add up to %u; the other %u are divided in the same proportion",
                  total, 100 - total);
}

static bool parse_class_ref(struct ydoc *y, yaml_node_t *n, const char *what, const struct policy *p, unsigned *out)
{
    const char *names[POLICY_CLASSES_MAX + 1] = {NULL};
    for (unsigned i = 0; i < p->num_classes; i++)
        names[i] = p->classes[i].name;
    int i = ydoc_choice(y, n, what, names);
    if (i >= 0)
        *out = (unsigned)i;
    return i >= 0;
}

static void parse_rule(struct ydoc *y, yaml_node_t *n, struct policy *p)
{
    struct ykey k[] = {{"user", false, NULL}, {"account", false, NULL}, {"name", false, NULL}, {"class", true, NULL}};
    struct policy_rule r = {0};
    if (!ydoc_map(y, n, "a rule", k, COUNT(k)))
        return;
    if (k[0].value)
        ydoc_string(y, k[0].value, "user", r.user, sizeof(r.user));
    if (k[1].value)
        ydoc_string(y, k[1].value, "account", r.account, sizeof(r.account));
    if (k[2].value)
        ydoc_string(y, k[2].value, "name", r.name, sizeof(r.name));
    if (!k[0].value && !k[1].value && !k[2].value)
        diag_error(y->diag, ydoc_place(n), "a rule without user, account or name; use 'default' for all other jobs");
    parse_class_ref(y, k[3].value, "class", p, &r.class_index);
    if (p->num_rules == POLICY_RULES_MAX)
        diag_error(y->diag, ydoc_place(n), "more than %d rules", POLICY_RULES_MAX);
    else
        p->rules[p->num_rules++] = r;
}

static void parse_jobs(struct ydoc *y, yaml_node_t *n, struct policy *p)
{
    struct ykey k[] = {{"default", true, NULL}, {"rules", false, NULL}};
    if (!p->num_classes) /* every reference would be an error that hides the real one */
        return;
    ydoc_map(y, n, "jobs", k, COUNT(k));
    if (k[0].value)
        parse_class_ref(y, k[0].value, "default", p, &p->default_class);
    if (!k[1].value || !ydoc_list(y, k[1].value, "rules"))
        return;
    yaml_node_t *item;
    for (size_t i = 0; (item = ydoc_item(y, k[1].value, i)); i++)
        parse_rule(y, item, p);
}

static void parse_limits(struct ydoc *y, yaml_node_t *n, struct policy *p)
{
    struct ykey k[] = {{"bulk_minimum", false, NULL}, {"high_limit", false, NULL}};
    p->limits_at = ydoc_place(n);
    ydoc_map(y, n, "limits", k, COUNT(k));
    if (k[0].value && k[1].value)
        diag_error(y->diag, ydoc_place(k[1].value), "bulk_minimum and high_limit both say the same thing; give one");
    if (k[0].value)
        ydoc_uint(y, k[0].value, "bulk_minimum", 1, 50, &p->bulk_minimum);
    uint32_t raw;
    if (k[1].value && ydoc_uint(y, k[1].value, "high_limit", 0, 255, &raw)) {
        p->high_limit = (int)raw;
        if (raw == 255)
            diag_warn(y->diag, ydoc_place(k[1].value),
                      "high_limit 255 is no limit: small messages of one job can starve everybody's bulk");
    }
}

static void parse_numbers(struct ydoc *y, yaml_node_t *vls, yaml_node_t *mtu, yaml_node_t *paths, struct policy *p)
{
    static const char *const vl_names[] = {"1", "2", "4", "8", "15", NULL};
    static const uint32_t vl_values[] = {1, 2, 4, 8, 15};
    static const char *const mtu_names[] = {"256", "512", "1024", "2048", "4096", NULL};
    if (vls) {
        p->vls_at = ydoc_place(vls);
        int i = ydoc_choice(y, vls, "vls", vl_names);
        if (i >= 0)
            p->vls = vl_values[i];
    }
    if (mtu) {
        int i = ydoc_choice(y, mtu, "mtu", mtu_names);
        if (i >= 0)
            p->mtu = 256u << i;
    }
    if (paths) {
        struct ykey k[] = {{"lmc", true, NULL}};
        p->lmc_at = ydoc_place(paths);
        ydoc_map(y, paths, "paths", k, COUNT(k));
        if (k[0].value) {
            p->lmc_at = ydoc_place(k[0].value);
            ydoc_uint(y, k[0].value, "lmc", 0, 3, &p->lmc);
        }
    }
}

bool policy_parse(struct policy *p, const char *text, size_t len, struct diag *d)
{
    unsigned before = d->errors;
    *p = (struct policy){.vls = 8, .mtu = 4096, .bulk_minimum = 20, .high_limit = -1};
    struct ydoc y;
    if (!ydoc_load(&y, text, len, d))
        return false;
    yaml_node_t *root = ydoc_root(&y);
    p->vls_at = p->lmc_at = p->limits_at = ydoc_place(root);
    struct ykey k[] = {{"version", true, NULL}, {"classes", true, NULL}, {"jobs", true, NULL}, {"limits", false, NULL},
                       {"paths", false, NULL},  {"vls", false, NULL},    {"mtu", false, NULL}};
    ydoc_map(&y, root, "the policy", k, COUNT(k));
    uint32_t version;
    if (k[0].value)
        ydoc_uint(&y, k[0].value, "version", 1, 1, &version);
    parse_numbers(&y, k[5].value, k[6].value, k[4].value, p);
    if (k[1].value)
        parse_classes(&y, k[1].value, p);
    if (k[2].value)
        parse_jobs(&y, k[2].value, p);
    if (k[3].value)
        parse_limits(&y, k[3].value, p);
    ydoc_free(&y);
    return d->errors == before;
}

int policy_class_by_name(const struct policy *p, const char *name)
{
    for (unsigned i = 0; i < p->num_classes; i++)
        if (!strcmp(p->classes[i].name, name))
            return (int)i;
    return -1;
}

static bool matches(const char *pattern, const char *s)
{
    return !*pattern || !fnmatch(pattern, s, 0);
}

unsigned policy_class_of(const struct policy *p, const char *user, const char *account, const char *name)
{
    for (unsigned i = 0; i < p->num_rules; i++) {
        const struct policy_rule *r = &p->rules[i];
        if (matches(r->user, user) && matches(r->account, account) && matches(r->name, name))
            return r->class_index;
    }
    return p->default_class;
}
