/* SPDX-License-Identifier: BSD-3-Clause */
/* The command for predictions: see plan_command.h. */
#include "fabricd/ctl/plan_command.h"
#include "fabricd/fabric/rails.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void keep_least_nonzero(unsigned *so_far, unsigned v)
{
    if (v && (!*so_far || v < *so_far))
        *so_far = v;
}

/* The slowest of this host's ports and buses: other hosts are taken to be like it. */
static void look_here(struct plan_fabric *f)
{
    static struct rails r;
    rails_read(&r);
    for (unsigned i = 0; i < r.n; i++) {
        if (!r.rail[i].usable || !r.rail[i].infiniband)
            continue;
        keep_least_nonzero(&f->rate_mbps, r.data_mbps[i]);
        keep_least_nonzero(&f->bus_read_mbytes, r.bus_mbytes[i]);
        keep_least_nonzero(&f->bus_write_mbytes, r.bus_mbytes[i]);
    }
}

struct fact {
    const char *key;
    unsigned *value;
};

/* "KEY=NUMBER,..." of these keys; a fact without a value is known, but not asked for here. */
static bool read_facts(const struct fact *facts, size_t num, const char *text)
{
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, "="), i = 0;
        char *end;
        while (i < num && (strlen(facts[i].key) != n || strncmp(s, facts[i].key, n)))
            i++;
        const char *digits = s[n] ? s + n + 1 : s + n;
        unsigned long v = strtoul(digits, &end, 10);
        if (i == num || end == digits || *digits < '0' || *digits > '9' || v > 10000000 || (*end && *end != ',')) {
            fprintf(stderr, "fabricctl: --fabric '%s': at '%s'; allowed: KEY=NUMBER,... of", text, s);
            for (i = 0; i < num; i++)
                fprintf(stderr, " %s", facts[i].key);
            fputs("\n", stderr);
            return false;
        }
        if (facts[i].value)
            *facts[i].value = (unsigned)v;
        s = *end ? end + 1 : end;
    }
    return true;
}

/* Either may be NULL. */
static bool parse_fabric(const char *text, struct fabric_caps *c, struct plan_fabric *f)
{
    const struct fact facts[] = {
        {"vls", c ? &c->vls : NULL},
        {"low", c ? &c->low_cap : NULL},
        {"high", c ? &c->high_cap : NULL},
        {"mtu", c ? &c->mtu : NULL},
        {"rate", c ? &c->rate_mbps : NULL},
        {"hops", c ? &c->hops : NULL},
        {"bus_read", f ? &f->bus_read_mbytes : NULL},
        {"bus_write", f ? &f->bus_write_mbytes : NULL},
    };
    return read_facts(facts, sizeof(facts) / sizeof(facts[0]), text);
}

bool plan_caps(const char *text, struct fabric_caps *caps)
{
    struct fabric_caps said = *caps;
    if (text && !parse_fabric(text, &said, NULL))
        return false;
    if (text)
        *caps = said;
    return true;
}

static bool is_name(const char *s)
{
    return !strcmp(s, "bulk") || !strcmp(s, "small") || !strcmp(s, "many-to-one") || !strncmp(s, "aggressor ", 10);
}

/* Errors are printed. */
static bool read_load(struct plan_load *load, const struct policy *p, const char *said)
{
    struct diag d = {.file = said};
    struct text text = {0};
    bool ok = false;
    if (is_name(said)) {
        d.file = "--load";
        ok = plan_load_named(load, p, said, &d);
    } else {
        int rc = text_read_file(&text, said, PLAN_LOAD_MAX);
        if (rc)
            fprintf(stderr,
                    "fabricctl: --load %s: %s; allowed: a file, or one of: bulk, small, many-to-one, 'aggressor "
                    "CLASS/SIZE'\n",
                    said, rc == -EFBIG ? "longer than a load may be (64 KiB)" : text_read_error(rc));
        else
            ok = plan_load_parse(load, p, text_str(&text), text.len, &d);
    }
    fputs(text_str(&d.out), stderr);
    text_free(&d.out);
    text_free(&text);
    return ok;
}

static void fabric_text(struct text *out, const struct plan_fabric *f, bool json)
{
    const struct {
        const char *key;
        unsigned value;
    } facts[] = {{"mtu", f->mtu},
                 {"rate", f->rate_mbps},
                 {"hops", f->hops},
                 {"bus_read", f->bus_read_mbytes},
                 {"bus_write", f->bus_write_mbytes}};
    bool first = true;
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
        if (facts[i].value) {
            text_printf(out, json ? "%s\"%s\":%u" : "%s%s: %u",
                        first  ? ""
                        : json ? ","
                               : ", ",
                        facts[i].key, facts[i].value);
            first = false;
        }
}

static int predict(const struct plan_options *o, const struct policy *p, const struct qos_tables *t,
                   const struct plan_fabric *f, struct text *out)
{
    static const char *const usual[] = {"bulk", "small", "many-to-one"};
    unsigned n = o->num_loads ? o->num_loads : sizeof(usual) / sizeof(usual[0]);
    for (unsigned i = 0; i < n; i++) {
        struct plan_load load;
        struct plan_result r;
        if (!read_load(&load, p, o->num_loads ? o->load[i] : usual[i]))
            return 2;
        plan_predict(p, t, f, &load, &r);
        if (o->json) {
            text_printf(out, "%s", i ? "," : "");
            plan_json(out, p, &load, &r);
        } else {
            plan_text(out, p, &load, &r);
        }
    }
    return 0;
}

/* Each line a string. */
static void lines_json(struct text *out, const char *s)
{
    for (const char *first = s; *s; s += strcspn(s, "\n"), s += *s == '\n') {
        text_printf(out, "%s", s == first ? "" : ",");
        text_json_string(out, s, strcspn(s, "\n"));
    }
}

int plan_command(const struct plan_options *o, const char *path, const struct policy *p, const struct qos_tables *t,
                 const struct fabric_caps *caps)
{
    struct plan_fabric f = {0};
    struct diag d = {.file = path};
    struct text out = {0};
    look_here(&f);
    f.mtu = caps->mtu;
    f.hops = caps->hops;
    if (caps->rate_mbps)
        f.rate_mbps = caps->rate_mbps;
    if (o->fabric && !parse_fabric(o->fabric, NULL, &f))
        return 2;
    if (o->json) {
        text_printf(&out, "{\"fabric\":{");
        fabric_text(&out, &f, true);
        text_printf(&out, "},\"loads\":[");
    } else {
        tables_plan_text(&out, p, t);
        text_printf(&out, "fabric: {");
        fabric_text(&out, &f, false);
        text_printf(&out, "}\nloads:\n");
    }
    int rc = predict(o, p, t, &f, &out);
    plan_warn(p, t, &f, &d);
    fputs(text_str(&d.out), stderr);
    if (o->json) {
        text_printf(&out, "],\"warnings\":[");
        lines_json(&out, text_str(&d.out));
        text_printf(&out, "]}\n");
    }
    if (!rc)
        fputs(text_str(&out), stdout);
    text_free(&d.out);
    text_free(&out);
    return rc;
}
