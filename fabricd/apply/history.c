/* SPDX-License-Identifier: BSD-3-Clause */
/* See history.h. */
#include "fabricd/apply/history.h"
#include "fabricd/base/ydoc.h"
#include "fabricd/proto/proto_state.h"
#include "fabricd/apply/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FACT_MAX 65536

struct about {
    char by[16], name[600], result[64]; /* name in YAML's form */
    long long at;
    char uid[16];
    struct text planes; /* the result on each, in YAML's form, or empty */
};

static const char not_begun[] = "not begun"; /* of a generation without a result that is not current */

/* The value of a line "KEY: VALUE". */
static void copy_value(const struct text *t, const char *key, char *out, size_t size)
{
    size_t n = strlen(key);
    for (const char *p = text_str(t); *p; p += strcspn(p, "\n"), p += *p == '\n')
        if (!strncmp(p, key, n) && p[n] == ':' && p[n + 1] == ' ') {
            snprintf(out, size, "%.*s", (int)strcspn(p + n + 2, "\n"), p + n + 2);
            return;
        }
}

static void take_planes(const struct text *t, struct text *out)
{
    static const char key[] = "\nplanes: ";
    const char *p = strstr(text_str(t), key);
    if (p)
        text_put(out, p + sizeof(key) - 1, strcspn(p + sizeof(key) - 1, "\n"));
}

static void read_about(const struct conf *c, const char *name, struct about *a)
{
    struct text about = {0}, result = {0};
    char at[32] = "";
    char current[GENERATION_NAME_MAX];
    *a = (struct about){.by = "?", .name = "\"\""};
    store_current(c, current);
    generation_read_fact(c->state, name, "about", FACT_MAX, &about);
    generation_read_fact(c->state, name, "result", FACT_MAX, &result);
    copy_value(&about, "by", a->by, sizeof(a->by));
    copy_value(&about, "name", a->name, sizeof(a->name));
    copy_value(&about, "at", at, sizeof(at));
    copy_value(&about, "uid", a->uid, sizeof(a->uid));
    copy_value(&result, "result", a->result, sizeof(a->result));
    if (!a->result[0])
        snprintf(a->result, sizeof(a->result), "%s", !strcmp(current, name) ? "in force" : not_begun);
    a->at = strtoll(at, NULL, 10);
    take_planes(&result, &a->planes);
    text_free(&about);
    text_free(&result);
}

static void put_about(const struct about *a, uint64_t number, struct text *out, const char *between)
{
    char when[32] = "";
    time_t at = (time_t)a->at;
    struct tm tm;
    if (at && gmtime_r(&at, &tm)) /* 0: not known, as of the tables before the first policy */
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
    text_printf(out, "generation: %" PRIu64 "%sat: \"%s\"%sby: %s%spolicy: %s", number, between, when, between, a->by,
                between, a->name);
    if (a->uid[0])
        text_printf(out, "%suid: %s", between, a->uid);
    text_printf(out, "%sresult: ", between);
    text_yaml_string(out, a->result);
}

static void put_planes(const struct about *a, struct text *out, const char *between)
{
    if (a->planes.len)
        text_printf(out, "%splanes: %s", between, a->planes.s);
}

struct list {
    const struct conf *conf;
    struct text *out;
    char current[GENERATION_NAME_MAX];
};

static void put_line(void *arg, const char *name, uint64_t number)
{
    struct list *l = arg;
    struct about a;
    if (!number)
        return;
    read_about(l->conf, name, &a);
    text_printf(l->out, "- {");
    put_about(&a, number, l->out, ", ");
    text_printf(l->out, ", current: %s", strcmp(name, l->current) ? "false" : "true");
    put_planes(&a, l->out, ", ");
    text_printf(l->out, "}\n");
    text_free(&a.planes);
}

void history_text(const struct conf *c, struct text *out)
{
    struct list l = {.conf = c, .out = out};
    size_t before = out->len;
    store_current(c, l.current);
    generation_each(c->state, put_line, &l);
    if (out->len == before)
        text_printf(out, "[]\n");
}

/* As a block of YAML. */
static void put_block(struct text *out, const char *key, const struct text *t)
{
    text_printf(out, "%s: |2\n", key);
    for (const char *p = text_str(t); *p;) {
        size_t n = strcspn(p, "\n");
        text_printf(out, "  %.*s\n", (int)n, p);
        p += n + (p[n] != 0);
    }
}

int history_show(const struct conf *c, uint64_t generation, struct text *out)
{
    char name[GENERATION_NAME_MAX];
    struct about a;
    struct text policy = {0}, lock = {0}, found = {0}, why = {0};
    int rc = generation_find(c->state, generation, name);
    if (rc)
        return rc;
    rc = generation_read(c->state, name, "policy.yaml", FD_POLICY_MAX, &policy, &why);
    if (!rc)
        rc = generation_read(c->state, name, "policy.lock", FD_LOCK_MAX, &lock, &why);
    read_about(c, name, &a);
    if (!generation && !strcmp(a.result, not_begun))
        snprintf(a.result, sizeof(a.result), "before the first policy");
    put_about(&a, generation, out, "\n");
    put_planes(&a, out, "\n");
    text_free(&a.planes);
    text_printf(out, "\n");
    if (rc) {
        text_printf(out, "damaged: ");
        text_yaml_string(out, why.len ? why.s : strerror(-rc));
        text_printf(out, "\n");
    }
    if (!generation_read_fact(c->state, name, "found", STORE_PORTS_MAX, &found) && found.len)
        text_put(out, found.s, found.len);
    put_block(out, "text", &policy);
    put_block(out, "lock", &lock);
    text_free(&policy);
    text_free(&lock);
    text_free(&found);
    text_free(&why);
    return rc;
}

/* ---- as structs ---- */

struct entries {
    const struct conf *conf;
    void (*visit)(void *arg, const struct history_entry *e);
    void *arg;
    char current[GENERATION_NAME_MAX];
};

/* A scalar written by text_yaml_string. */
static void take_string(const char *yaml, char *out, size_t size)
{
    struct diag d = {.file = "about"};
    struct ydoc y;
    if (ydoc_load(&y, yaml, strlen(yaml), &d)) {
        ydoc_string(&y, ydoc_root(&y), "policy", out, size);
        ydoc_free(&y);
    }
    text_free(&d.out);
}

static void visit_entry(void *arg, const char *name, uint64_t number)
{
    const struct entries *all = arg;
    struct about a;
    if (!number)
        return;
    read_about(all->conf, name, &a);
    struct history_entry e = {.generation = number, .at_s = a.at, .uid = FD_UID_ANY};
    e.current = !strcmp(name, all->current);
    snprintf(e.by, sizeof(e.by), "%s", a.by);
    snprintf(e.result, sizeof(e.result), "%s", a.result);
    if (a.uid[0])
        e.uid = (uint32_t)strtoul(a.uid, NULL, 10);
    take_string(a.name, e.policy, sizeof(e.policy));
    text_free(&a.planes);
    all->visit(all->arg, &e);
}

void history_each(const struct conf *c, void (*visit)(void *arg, const struct history_entry *e), void *arg)
{
    struct entries all = {.conf = c, .visit = visit, .arg = arg};
    store_current(c, all.current);
    generation_each(c->state, visit_entry, &all);
}

/* ---- the one before ---- */

struct before {
    const struct conf *conf;
    uint64_t of, found;
};

static void note_before(void *arg, const char *name, uint64_t number)
{
    struct before *b = arg;
    struct about a;
    read_about(b->conf, name, &a);
    if (number && number < b->of && !strcmp(a.result, "in force"))
        b->found = number;
    text_free(&a.planes);
}

uint64_t history_previous(const struct conf *c, uint64_t generation)
{
    struct before b = {.conf = c, .of = generation};
    generation_each(c->state, note_before, &b);
    return b.found;
}
