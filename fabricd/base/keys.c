/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a mapping by its table: see keys.h. */
#include "fabricd/base/keys.h"

#include <stdlib.h>
#include <string.h>

static void *member(void *into, size_t offset)
{
    return (char *)into + offset;
}

/* ---- values of a kind ---- */

/* True if c is in the set, in the notation of a bracket expression. */
static bool in_set(const char *set, char c)
{
    for (; *set; set++) {
        if (set[1] == '-' && set[2]) {
            if (c >= set[0] && c <= set[2])
                return true;
            set += 2;
        } else if (c == *set) {
            return true;
        }
    }
    return false;
}

static void read_key_text(struct ydoc *y, yaml_node_t *n, const struct key *k, char *out)
{
    if (!ydoc_string(y, n, k->name, out, k->max + 1))
        return;
    for (const char *c = out; k->chars && *c; c++)
        if (!in_set(k->chars, *c)) {
            diag_error(y->diag, ydoc_place(n), "%s is '%s'; allowed: only characters of %s", k->name, out, k->chars);
            return;
        }
}

static void read_choice(struct ydoc *y, yaml_node_t *n, const struct key *k, uint32_t *out)
{
    const char *names[KEYS_MAX + 1] = {NULL};
    for (size_t i = 0; i < KEYS_MAX && k->choices[i].name; i++)
        names[i] = k->choices[i].name;
    int i = ydoc_choice(y, n, k->name, names);
    if (i >= 0)
        *out = k->choices[i].value;
}

/* One side of a ratio, up to end. */
static bool ratio_side(const char *s, const char *end, const struct key *k, uint32_t *out)
{
    char side[12] = "";
    uint64_t v;
    if ((size_t)(end - s) >= sizeof(side))
        return false;
    memcpy(side, s, (size_t)(end - s));
    if (!ydoc_uint_of(side, &v) || v < k->min || v > k->max)
        return false;
    *out = (uint32_t)v;
    return true;
}

static void read_ratio(struct ydoc *y, yaml_node_t *n, const struct key *k, uint32_t out[2])
{
    static const char allowed[] = "SMALL:LARGE, as 100:10";
    uint32_t side[2];
    const char *s = ydoc_need_scalar(y, n, k->name, allowed), *colon = s ? strchr(s, ':') : NULL;
    if (colon && ratio_side(s, colon, k, &side[0]) && ratio_side(colon + 1, s + strlen(s), k, &side[1]))
        memcpy(out, side, sizeof(side));
    else if (s)
        diag_error(y->diag, ydoc_place(n), "%s is '%.40s'; allowed: %s, each from %u to %u", k->name, s, allowed,
                   k->min, k->max);
}

static void read_key_value(struct ydoc *y, yaml_node_t *n, const struct key *k, void *into)
{
    if (k->place)
        *(struct place *)member(into, k->place) = ydoc_place(n);
    if (k->given)
        *(bool *)member(into, k->given) = true;
    if (k->read) {
        k->read(y, n, k, into);
        return;
    }
    switch (k->kind) {
    case KEY_UINT:
        ydoc_uint(y, n, k->name, k->min, k->max, member(into, k->at));
        break;
    case KEY_SIZE:
        ydoc_size(y, n, k->name, k->max, member(into, k->at));
        break;
    case KEY_TIME:
        ydoc_time(y, n, k->name, k->min, k->max, member(into, k->at));
        break;
    case KEY_TEXT:
        read_key_text(y, n, k, member(into, k->at));
        break;
    case KEY_CHOICE:
        read_choice(y, n, k, member(into, k->at));
        break;
    case KEY_RATIO:
        read_ratio(y, n, k, member(into, k->at));
        break;
    case KEY_MAP:
        keys_read(y, n, k->of, into);
        break;
    default: /* a table without a necessary read function */
        abort();
    }
}

/* ---- mappings ---- */

static bool before(const yaml_node_t *a, const yaml_node_t *b)
{
    return a->start_mark.index < b->start_mark.index;
}

/* Of two exclusive keys, the second in the file is the wrong one. */
static void check_one_of(struct ydoc *y, const struct keys *keys, const struct ykey *found, unsigned group)
{
    const yaml_node_t *first = NULL, *second = NULL;
    const char *names[2] = {NULL};
    struct text all = {0};
    for (size_t i = 0; i < keys->num; i++) {
        const yaml_node_t *v = found[i].value;
        if (keys->key[i].one_of != group)
            continue;
        text_printf(&all, "%s%s", all.len ? ", " : "", keys->key[i].name);
        if (v && (!first || before(v, first))) {
            second = first;
            names[1] = names[0];
            first = v;
            names[0] = keys->key[i].name;
        } else if (v && (!second || before(v, second))) {
            second = v;
            names[1] = keys->key[i].name;
        }
    }
    if (second)
        diag_error(y->diag, ydoc_place(second), "'%s' and '%s' exclude each other; allowed: one of %s", names[0],
                   names[1], text_str(&all));
    text_free(&all);
}

static void check_some(struct ydoc *y, yaml_node_t *n, const struct keys *keys, const struct ykey *found)
{
    struct text all = {0};
    bool there = false;
    for (size_t i = 0; i < keys->num; i++)
        if (keys->key[i].some) {
            text_printf(&all, "%s%s", all.len ? ", " : "", keys->key[i].name);
            there = there || found[i].value;
        }
    if (all.len && !there)
        diag_error(y->diag, ydoc_place(n), "%s has none of: %s", keys->what, text_str(&all));
    text_free(&all);
}

bool keys_read(struct ydoc *y, yaml_node_t *n, const struct keys *keys, void *into)
{
    struct ykey found[KEYS_MAX] = {0};
    unsigned errors = y->diag->errors, groups = 0;
    for (size_t i = 0; i < keys->num; i++) {
        found[i] = (struct ykey){keys->key[i].name, keys->key[i].required, NULL};
        if (keys->key[i].one_of > groups)
            groups = keys->key[i].one_of;
    }
    bool matched = ydoc_map(y, n, keys->what, found, keys->num);
    for (size_t i = 0; i < keys->num; i++)
        if (found[i].value)
            read_key_value(y, found[i].value, &keys->key[i], into);
    for (unsigned g = 1; g <= groups; g++)
        check_one_of(y, keys, found, g);
    if (matched)
        check_some(y, n, keys, found);
    return y->diag->errors == errors;
}

static bool standard_value(const struct key *k, uint64_t *out)
{
    switch (k->kind) {
    case KEY_UINT:
        return ydoc_uint_of(k->standard, out);
    case KEY_SIZE:
        return ydoc_size_of(k->standard, out);
    case KEY_TIME:
        return ydoc_time_of(k->standard, out);
    case KEY_CHOICE:
        for (const struct key_choice *c = k->choices; c->name; c++)
            if (!strcmp(c->name, k->standard)) {
                *out = c->value;
                return true;
            }
        return false;
    default:
        return false;
    }
}

void keys_defaults(const struct keys *keys, void *into)
{
    for (const struct key *k = keys->key; k < keys->key + keys->num; k++) {
        uint64_t v;
        if (k->kind == KEY_MAP)
            keys_defaults(k->of, into);
        if (!k->standard)
            continue;
        if (!standard_value(k, &v))
            abort(); /* the table is wrong */
        *(uint32_t *)member(into, k->at) = (uint32_t)v;
    }
}

/* ---- in words ---- */

static void put_default_size(struct text *out, uint32_t v)
{
    if (v && !(v & ((1u << 20) - 1)))
        text_printf(out, "%uM", v >> 20);
    else if (v && !(v & 1023))
        text_printf(out, "%uK", v >> 10);
    else
        text_printf(out, "%u", v);
}

static void put_default_time(struct text *out, uint32_t ns)
{
    text_printf(out, ns % 1000000 ? "%uus" : "%ums", ns % 1000000 ? ns / 1000 : ns / 1000000);
}

static void put_range(struct text *out, const struct key *k)
{
    switch (k->kind) {
    case KEY_UINT:
        text_printf(out, "%u to %u", k->min, k->max);
        break;
    case KEY_SIZE:
        put_default_size(out, k->min);
        text_printf(out, " to ");
        put_default_size(out, k->max);
        break;
    case KEY_TIME:
        put_default_time(out, k->min);
        text_printf(out, " to ");
        put_default_time(out, k->max);
        break;
    case KEY_TEXT:
        text_printf(out, "1 to %u characters%s%s", k->max, k->chars ? " of " : "", k->chars ? k->chars : "");
        break;
    case KEY_CHOICE:
        for (size_t i = 0; k->choices[i].name; i++)
            text_printf(out, "%s%s", i ? ", " : "", k->choices[i].name);
        break;
    case KEY_RATIO:
        text_printf(out, "SMALL:LARGE, each %u to %u", k->min, k->max);
        break;
    case KEY_SIZES:
        text_printf(out, "1 to %u sizes, ascending, up to ", k->items);
        put_default_size(out, k->max);
        break;
    case KEY_TEXTS:
        text_printf(out, "1 to %u texts of up to %u characters", k->items, k->max);
        break;
    case KEY_LIST:
        text_printf(out, "a list of %u to %u", k->min, k->max);
        break;
    case KEY_MAP:
        text_printf(out, "a mapping");
    }
}

void key_allowed(struct text *out, const struct key *k)
{
    put_range(out, k);
    if (k->required)
        text_printf(out, ", required");
    if (k->standard)
        text_printf(out, ", default %s", k->standard);
}
