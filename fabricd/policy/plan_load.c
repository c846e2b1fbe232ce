/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads by name and from files: see plan.h. */
#include "fabricd/policy/plan.h"
#include "fabricd/base/ydoc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a)       (sizeof(a) / sizeof((a)[0]))
#define SIZE_MAX_BYTES (1u << 30)

/* ---- by name ---- */

static void add_stream(struct plan_load *load, unsigned class, uint32_t size, bool many_to_one)
{
    load->stream[load->num_streams++] = (struct plan_stream){
        .class_index = class, .jobs = 1, .num_sizes = 1, .size = {size}, .many_to_one = many_to_one};
}

/* "aggressor CLASS/SIZE" */
static bool read_aggressor(const struct policy *p, const char *text, int *class, uint32_t *size)
{
    const char *slash = strrchr(text, '/');
    char name[FD_NAME_MAX], *end;
    if (!slash || (size_t)(slash - text) >= sizeof(name) || slash[1] < '0' || slash[1] > '9')
        return false;
    snprintf(name, sizeof(name), "%.*s", (int)(slash - text), text);
    *class = policy_class_by_name(p, name);
    unsigned long long n = strtoull(slash + 1, &end, 10);
    unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
    if (*class < 0 || end[shift > 0] || n > SIZE_MAX_BYTES >> shift)
        return false;
    *size = (uint32_t)n << shift;
    return true;
}

bool plan_load_named(struct plan_load *load, const struct policy *p, const char *name, struct diag *d)
{
    static const char aggressor[] = "aggressor ";
    bool small = !strcmp(name, "small"), many = !strcmp(name, "many-to-one"), bulk = !strcmp(name, "bulk");
    uint32_t size = 0;
    int class = -1;
    *load = (struct plan_load){0};
    if (strlen(name) >= sizeof(load->name) ||
        (!small && !many && !bulk && strncmp(name, aggressor, strlen(aggressor)))) {
        diag_error(d, (struct place){0},
                   "no load is called '%s'; allowed: bulk, small, many-to-one, 'aggressor CLASS/SIZE'", name);
        return false;
    }
    if (!small && !many && !bulk && !read_aggressor(p, name + strlen(aggressor), &class, &size)) {
        diag_error(d, (struct place){0},
                   "'%s': expected 'aggressor CLASS/SIZE', a class of the policy and bytes (8, 64K)", name);
        return false;
    }
    snprintf(load->name, sizeof(load->name), "%s", name);
    for (unsigned i = 0; i < p->num_classes; i++)
        add_stream(load, i, (int)i == class ? size : small ? p->classes[i].small_max : PLAN_BULK_BYTES, many);
    return true;
}

/* ---- from a file ---- */

static void parse_sizes(struct ydoc *y, yaml_node_t *n, struct plan_stream *s)
{
    yaml_node_t *item = n;
    bool list = n->type == YAML_SEQUENCE_NODE;
    for (size_t i = 0; (item = list ? ydoc_item(y, n, i) : i ? NULL : n); i++) {
        if (s->num_sizes == PLAN_SIZES_MAX) {
            diag_error(y->diag, ydoc_place(item), "more than %d sizes", PLAN_SIZES_MAX);
            return;
        }
        if (ydoc_size(y, item, "sizes", SIZE_MAX_BYTES, &s->size[s->num_sizes]))
            s->num_sizes++;
    }
    if (list && !ydoc_item(y, n, 0))
        diag_error(y->diag, ydoc_place(n), "sizes is empty; allowed: 1 to %d sizes", PLAN_SIZES_MAX);
}

static void parse_stream(struct ydoc *y, yaml_node_t *n, const struct policy *p, struct plan_load *load)
{
    static const char *const patterns[] = {"cable", "many-to-one", NULL};
    struct ykey k[] = {{"class", true, NULL}, {"sizes", true, NULL}, {"jobs", false, NULL}, {"pattern", false, NULL}};
    struct plan_stream s = {.jobs = 1};
    char name[FD_NAME_MAX] = "";
    ydoc_map(y, n, "a stream", k, COUNT(k));
    if (k[0].value && ydoc_string(y, k[0].value, "class", name, sizeof(name))) {
        int i = policy_class_by_name(p, name);
        if (i < 0)
            diag_error(y->diag, ydoc_place(k[0].value), "the policy has no class '%s'", name);
        s.class_index = i < 0 ? 0 : (unsigned)i;
    }
    if (k[1].value)
        parse_sizes(y, k[1].value, &s);
    if (k[2].value)
        ydoc_uint(y, k[2].value, "jobs", 1, PLAN_JOBS_MAX, &s.jobs);
    s.many_to_one = k[3].value && ydoc_choice(y, k[3].value, "pattern", patterns) == 1;
    if (load->num_streams == PLAN_STREAMS_MAX)
        diag_error(y->diag, ydoc_place(n), "more than %d streams", PLAN_STREAMS_MAX);
    else
        load->stream[load->num_streams++] = s;
}

bool plan_load_parse(struct plan_load *load, const struct policy *p, const char *text, size_t len, struct diag *d)
{
    struct ydoc y;
    unsigned errors = d->errors;
    const char *slash = strrchr(d->file, '/');
    *load = (struct plan_load){0};
    snprintf(load->name, sizeof(load->name), "%s", slash ? slash + 1 : d->file);
    if (!ydoc_load(&y, text, len, d))
        return false;
    yaml_node_t *root = ydoc_root(&y), *item;
    if (ydoc_list(&y, root, "a load")) {
        for (size_t i = 0; (item = ydoc_item(&y, root, i)) && d->errors == errors; i++)
            parse_stream(&y, item, p, load);
        if (!load->num_streams && d->errors == errors)
            diag_error(d, ydoc_place(root), "nobody sends; allowed: a list of {class, sizes, jobs, pattern}");
    }
    ydoc_free(&y);
    return d->errors == errors;
}
