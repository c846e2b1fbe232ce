/* SPDX-License-Identifier: BSD-3-Clause */
/* See partitions.h. The format is opensm's (partition-config.txt): NAME[=KEY][,FLAGS] : PORT[=full], ... ; */
#include "fabricd/fabric/partitions.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char BEGIN[] = "# ---- partitions of fabricd's policy: changes between these lines are lost ----";
static const char END[] = "# ---- end of what fabricd writes ----";
static const char WHOLE[] =
    "# there was no file before, in which case all ports are full members of the default partition";
static const char DEFAULT[] = "Default=0x7fff, ipoib : ALL=full ;";

void partition_file_free(struct partition_file *f)
{
    text_free(&f->text);
    f->there = false;
}

void partition_file_copy(struct partition_file *to, const struct partition_file *from)
{
    partition_file_free(to);
    to->there = from->there;
    text_put(&to->text, text_str(&from->text), from->text.len);
}

bool partition_file_equal(const struct partition_file *a, const struct partition_file *b)
{
    return a->there == b->there && (!a->there || !strcmp(text_str(&a->text), text_str(&b->text)));
}

/* ---- lines ---- */

struct line {
    const char *s;
    size_t len; /* without its end */
};

/* Moves *p behind the next line. False: there is none. */
static bool next_file_line(const char **p, struct line *l)
{
    if (!**p)
        return false;
    *l = (struct line){*p, strcspn(*p, "\n")};
    *p += l->len + ((*p)[l->len] == '\n');
    return true;
}

static bool line_equals(const struct line *l, const char *s)
{
    return l->len == strlen(s) && !memcmp(l->s, s, l->len);
}

/* The text between the marks, and the rest; each may be NULL. A section without its end ends with the file. */
static bool split_section(const struct partition_file *f, struct text *section, struct text *rest)
{
    struct line l;
    bool inside = false, found = false;
    for (const char *p = text_str(&f->text); next_file_line(&p, &l);) {
        if (line_equals(&l, BEGIN) || line_equals(&l, END)) {
            inside = line_equals(&l, BEGIN);
            found = found || inside;
            continue;
        }
        struct text *to = inside ? section : rest;
        if (to) {
            text_put(to, l.s, l.len);
            text_put(to, "\n", 1);
        }
    }
    return found;
}

static bool has_line(const struct text *t, const char *s)
{
    struct line l;
    bool has = false;
    for (const char *p = text_str(t); !has && next_file_line(&p, &l);)
        has = line_equals(&l, s);
    return has;
}

/* rest and a section; an empty one is none. whole: the file is there for the section alone. */
static void join_section(const struct text *rest, const struct text *section, bool was_there, bool whole,
                         struct partition_file *out)
{
    out->there = section->len || (was_there && !(whole && !rest->len));
    text_put(&out->text, text_str(rest), rest->len);
    if (section->len)
        text_printf(&out->text, "%s\n%s%s\n", BEGIN, section->s, END);
}

/* ---- members ---- */

/* "0xGUID" and a description of the line; guid 0: it is no such line. */
static uint64_t guid_of_line(const struct line *l, char desc[65])
{
    char line[160], *end;
    snprintf(line, sizeof(line), "%.*s", (int)l->len, l->s);
    char *s = line + strspn(line, " \t");
    uint64_t guid = strncmp(s, "0x", 2) ? 0 : strtoull(s, &end, 16);
    const char *comment = guid ? strstr(end, "# ") : NULL;
    if (guid)
        snprintf(desc, 65, "%s", comment ? comment + 2 : *end == ' ' ? end + 1 : "");
    return guid;
}

struct member {
    uint64_t guid;
    char desc[65];
};

struct members {
    size_t n, cap;
    struct member *m;
};

static int compare_members(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    return x->guid < y->guid ? -1 : x->guid > y->guid;
}

static bool has_guid(const struct members *all, size_t n, uint64_t guid)
{
    bool has = false;
    for (size_t i = 0; i < n && !has; i++)
        has = all->m[i].guid == guid;
    return has;
}

/* The ports of these lines; the description that was read first counts. */
static void read_member_lines(const char *text, struct members *all)
{
    struct line l;
    struct member m;
    size_t known = all->n;
    for (const char *p = text; next_file_line(&p, &l);) {
        m.guid = guid_of_line(&l, m.desc);
        if (!m.guid || has_guid(all, known, m.guid))
            continue;
        if (all->n == all->cap) {
            all->cap = all->cap ? 2 * all->cap : 64;
            all->m = realloc(all->m, all->cap * sizeof(*all->m));
            if (!all->m)
                abort();
        }
        all->m[all->n++] = m;
    }
}

static void put_member(const struct member *m, const char *end, struct text *out)
{
    if (!m)
        return;
    text_printf(out, "    0x%016" PRIx64 "=full%s # ", m->guid, end);
    text_put_visible(out, m->desc, strcspn(m->desc, "#"));
    text_put(out, "\n", 1);
}

static void put_partition(const struct policy *p, unsigned pkey, const struct host_keys *jobs,
                          const struct members *all, struct text *out)
{
    const struct member *last = NULL; /* not written yet: the list ends with this member, or not */
    for (size_t i = 0; i < all->n; i++) {
        const struct member *m = &all->m[i];
        if ((last && m->guid == last->guid) || !policy_is_member(p, jobs, pkey, m->desc))
            continue;
        if (!last)
            text_printf(out, "fabricd_0x%04x=0x%04x :\n", pkey, pkey);
        put_member(last, ",", out);
        last = m;
    }
    put_member(last, " ;", out);
}

void partitions_merge(const struct partition_file *old, const struct policy *p, const struct host_keys *jobs,
                      const char *adapters, struct partition_file *out)
{
    const struct policy_partition *part;
    struct text section = {0}, was = {0}, rest = {0};
    struct members all = {0};
    split_section(old, &was, &rest);
    bool whole = !old->there || has_line(&was, WHOLE);
    if (policy_has_members(p)) {
        read_member_lines(adapters, &all);
        read_member_lines(text_str(&was), &all);
        if (all.n)
            qsort(all.m, all.n, sizeof(*all.m), compare_members);
        if (whole)
            text_printf(&section, "%s\n%s\n", WHOLE, DEFAULT);
        for (unsigned i = 0; (part = policy_partition(p, i)); i++)
            if (policy_partition_by_key(p, part->pkey) == part)
                put_partition(p, part->pkey, jobs, &all, &section);
    }
    join_section(&rest, &section, old->there, whole, out);
    free(all.m);
    text_free(&section);
    text_free(&was);
    text_free(&rest);
}

void partitions_take_section(const struct partition_file *old, const struct partition_file *from,
                             struct partition_file *out)
{
    struct text section = {0}, was = {0}, rest = {0};
    split_section(old, &was, &rest);
    if (from)
        split_section(from, &section, NULL);
    join_section(&rest, &section, old->there, !old->there || has_line(&was, WHOLE), out);
    text_free(&section);
    text_free(&was);
    text_free(&rest);
}

/* ---- the administrator's ---- */

/* The key of a definition "NAME=KEY, ..."; 0: it has none. */
static unsigned key_of(const char *definition, char name[64])
{
    const char *s = definition + strspn(definition, " \t\n\r");
    size_t n = strcspn(s, "=,: \t\n");
    snprintf(name, 64, "%.*s", (int)(n < 63 ? n : 63), s);
    s += n;
    s += strspn(s, " \t");
    if (*s++ != '=')
        return 0;
    unsigned long key = strtoul(s, NULL, 0);
    return key <= 0xffff ? (unsigned)key & 0x7fff : 0;
}

bool partitions_free(const struct partition_file *f, const struct policy *p, const char *name, struct text *why)
{
    struct text statement = {0};
    struct line l;
    unsigned number = 0, begins = 0;
    bool inside = false, good = true;
    for (const char *s = text_str(&f->text); good && next_file_line(&s, &l);) {
        number++;
        inside = line_equals(&l, BEGIN) || (inside && !line_equals(&l, END));
        const char *hash = memchr(l.s, '#', l.len);
        size_t len = hash ? (size_t)(hash - l.s) : l.len;
        for (size_t i = 0; i < len && !inside && good; i++) {
            if (!statement.len && isspace((unsigned char)l.s[i]))
                continue;
            begins = statement.len ? begins : number;
            if (l.s[i] != ';') {
                text_put(&statement, l.s + i, 1);
                continue;
            }
            char partition[64], of[64];
            unsigned key = key_of(text_str(&statement), partition);
            const struct policy_partition *part = key ? policy_partition_by_key(p, key) : NULL;
            good = !part;
            if (part)
                policy_partition_name(p, part, of);
            if (part)
                text_printf(why,
                            "%s:%u: partition '%s' has the P_Key 0x%04x of %s, which the policy gives members: "
                            "remove it there, or leave members out of the policy",
                            name, begins, partition, part->pkey, of);
            text_cut(&statement, 0);
        }
        if (!inside && statement.len)
            text_put(&statement, "\n", 1);
    }
    text_free(&statement);
    return good;
}
