/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict reading of YAML with libyaml: see ydoc.h. */
#include "fabricd/base/ydoc.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct place ydoc_place(const yaml_node_t *n)
{
    return (struct place){(unsigned)n->start_mark.line + 1, (unsigned)n->start_mark.column + 1};
}

static struct place mark_place(yaml_mark_t m)
{
    return (struct place){(unsigned)m.line + 1, (unsigned)m.column + 1};
}

/* libyaml's words, except for tabs, which look like the allowed spaces there. */
static void syntax_error(struct diag *d, const yaml_parser_t *p, const char *text, size_t len)
{
    size_t at = p->problem_mark.index;
    if (p->problem && at < len && text[at] == '\t')
        diag_error(d, mark_place(p->problem_mark), "a tab before a value or key; allowed: spaces");
    else if (p->problem)
        diag_error(d, mark_place(p->problem_mark), "%s%s%s", p->context ? p->context : "", p->context ? " " : "",
                   p->problem);
    else
        diag_error(d, mark_place(p->mark), "not readable as YAML");
}

static void parser_start(yaml_parser_t *p, const char *text, size_t len)
{
    if (!yaml_parser_initialize(p))
        abort();
    yaml_parser_set_encoding(p, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(p, (const unsigned char *)text, len);
}

static int depth_change(yaml_event_type_t type)
{
    switch (type) {
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        return 1;
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        return -1;
    default:
        return 0;
    }
}

/*
 * Reads the whole text once for its syntax and depth. libyaml's time per token grows with the depth of the lists and
 * mappings around the token: a text of brackets alone would take the square of its length.
 */
static bool is_shallow_yaml(const char *text, size_t len, struct diag *diag)
{
    yaml_parser_t parser;
    yaml_event_type_t type = YAML_NO_EVENT;
    unsigned depth = 0;
    parser_start(&parser, text, len);
    while (type != YAML_STREAM_END_EVENT && depth <= YDOC_DEPTH_MAX) {
        yaml_event_t e;
        if (!yaml_parser_parse(&parser, &e)) {
            syntax_error(diag, &parser, text, len);
            break;
        }
        type = e.type;
        depth += (unsigned)depth_change(type);
        if (depth > YDOC_DEPTH_MAX)
            diag_error(diag, mark_place(e.start_mark), "lists and mappings within each other more than %u deep",
                       YDOC_DEPTH_MAX);
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&parser);
    return type == YAML_STREAM_END_EVENT;
}

/* Both documents are syntactically right: libyaml still refuses aliases of nothing. */
static bool load_one(struct ydoc *y, yaml_parser_t *parser, const char *text, size_t len)
{
    yaml_document_t second;
    if (!yaml_parser_load(parser, &y->doc)) {
        syntax_error(y->diag, parser, text, len);
        return false;
    }
    bool ok = yaml_document_get_root_node(&y->doc);
    if (!ok) {
        diag_error(y->diag, (struct place){1, 1}, "the file is empty");
    } else if (!yaml_parser_load(parser, &second)) {
        syntax_error(y->diag, parser, text, len);
        ok = false;
    } else {
        yaml_node_t *root = yaml_document_get_root_node(&second);
        if (root)
            diag_error(y->diag, ydoc_place(root), "a second YAML document; allowed: one");
        ok = !root;
        yaml_document_delete(&second);
    }
    if (!ok)
        yaml_document_delete(&y->doc);
    return ok;
}

bool ydoc_load(struct ydoc *y, const char *text, size_t len, struct diag *diag)
{
    yaml_parser_t parser;
    y->diag = diag;
    if (!diag_is_text(diag, text, len) || !is_shallow_yaml(text, len, diag))
        return false;
    parser_start(&parser, text, len);
    bool ok = load_one(y, &parser, text, len);
    yaml_parser_delete(&parser);
    return ok;
}

void ydoc_free(struct ydoc *y)
{
    yaml_document_delete(&y->doc);
}

yaml_node_t *ydoc_root(struct ydoc *y)
{
    return yaml_document_get_root_node(&y->doc);
}

const char *ydoc_scalar(const yaml_node_t *n)
{
    if (n->type != YAML_SCALAR_NODE)
        return NULL;
    const char *s = (const char *)n->data.scalar.value;
    return strlen(s) == n->data.scalar.length ? s : NULL;
}

static const char *kind_of(const yaml_node_t *n)
{
    switch (n->type) {
    case YAML_MAPPING_NODE:
        return "a mapping";
    case YAML_SEQUENCE_NODE:
        return "a list";
    default:
        return "a single value";
    }
}

static void unknown_key(struct ydoc *y, yaml_node_t *key, const char *name, const char *what, const struct ykey *keys,
                        size_t num_keys)
{
    const char *names[32];
    struct text all = {0};
    size_t n = 0;
    for (; n < num_keys && n + 1 < sizeof(names) / sizeof(names[0]); n++) {
        names[n] = keys[n].name;
        text_printf(&all, "%s%s", n ? ", " : "", keys[n].name);
    }
    names[n] = NULL;
    const char *near = nearest_name(name, names);
    if (near)
        diag_error(y->diag, ydoc_place(key), "unknown key '%.60s' in %s, did you mean '%s'? allowed: %s", name, what,
                   near, text_str(&all));
    else
        diag_error(y->diag, ydoc_place(key), "unknown key '%.60s' in %s; allowed: %s", name, what, text_str(&all));
    text_free(&all);
}

bool ydoc_map(struct ydoc *y, yaml_node_t *n, const char *what, struct ykey *keys, size_t num_keys)
{
    unsigned errors = y->diag->errors, unknown = 0;
    if (n->type != YAML_MAPPING_NODE) {
        diag_error(y->diag, ydoc_place(n), "%s is %s; allowed: a mapping (lines of 'key: value')", what, kind_of(n));
        return false;
    }
    for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++) {
        yaml_node_t *k = yaml_document_get_node(&y->doc, p->key), *v = yaml_document_get_node(&y->doc, p->value);
        const char *name = ydoc_scalar(k);
        if (!name) {
            diag_error(y->diag, ydoc_place(k), "a key of %s is %s; allowed: a name", what, kind_of(k));
            unknown++;
            continue;
        }
        size_t i = 0;
        while (i < num_keys && strcmp(keys[i].name, name))
            i++;
        if (i == num_keys) {
            unknown_key(y, k, name, what, keys, num_keys);
            unknown++;
        } else if (keys[i].value) {
            diag_error(y->diag, ydoc_place(k), "'%s' is given twice in %s (first on line %zu)", name, what,
                       keys[i].value->start_mark.line + 1);
        } else {
            keys[i].value = v;
        }
    }
    for (size_t i = 0; i < num_keys && !unknown; i++)
        if (keys[i].required && !keys[i].value)
            diag_error(y->diag, ydoc_place(n), "%s has no '%s'", what, keys[i].name);
    return y->diag->errors == errors;
}

yaml_node_t *ydoc_get(struct ydoc *y, yaml_node_t *n, const char *key)
{
    if (n->type != YAML_MAPPING_NODE)
        return NULL;
    for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++) {
        const char *name = ydoc_scalar(yaml_document_get_node(&y->doc, p->key));
        if (name && !strcmp(name, key))
            return yaml_document_get_node(&y->doc, p->value);
    }
    return NULL;
}

bool ydoc_list(struct ydoc *y, yaml_node_t *n, const char *what)
{
    if (n->type == YAML_SEQUENCE_NODE)
        return true;
    diag_error(y->diag, ydoc_place(n), "%s is %s; allowed: a list (lines of '- ...')", what, kind_of(n));
    return false;
}

yaml_node_t *ydoc_item(struct ydoc *y, yaml_node_t *n, size_t i)
{
    yaml_node_item_t *item = n->data.sequence.items.start + i;
    return item < n->data.sequence.items.top ? yaml_document_get_node(&y->doc, *item) : NULL;
}

const char *ydoc_need_scalar(struct ydoc *y, yaml_node_t *n, const char *what, const char *allowed)
{
    const char *s = ydoc_scalar(n);
    if (!s)
        diag_error(y->diag, ydoc_place(n), "%s is %s; allowed: %s", what,
                   n->type == YAML_SCALAR_NODE ? "text with a zero byte in it" : kind_of(n), allowed);
    return s;
}

bool ydoc_string(struct ydoc *y, yaml_node_t *n, const char *what, char *out, size_t size)
{
    const char *s = ydoc_need_scalar(y, n, what, "text");
    if (!s)
        return false;
    if (!*s || strlen(s) >= size) {
        diag_error(y->diag, ydoc_place(n), "%s has %zu characters; allowed: 1 to %zu", what, strlen(s), size - 1);
        return false;
    }
    for (const unsigned char *p = (const unsigned char *)s; *p; p++)
        if (*p < 0x20 || *p == 0x7f) {
            diag_error(y->diag, ydoc_place(n), "%s has a control character in it; allowed: printable text", what);
            return false;
        }
    memset(out, 0, size);
    memcpy(out, s, strlen(s));
    return true;
}

static bool digits(const char *s, uint64_t *out, const char **end)
{
    uint64_t v = 0;
    const char *p = s;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (v > UINT32_MAX)
            return false;
        v = v * 10 + (uint64_t)(*p - '0');
    }
    *out = v;
    *end = p;
    return p > s;
}

bool ydoc_uint_of(const char *s, uint64_t *out)
{
    const char *end;
    return digits(s, out, &end) && !*end;
}

bool ydoc_size_of(const char *s, uint64_t *out)
{
    const char *end;
    if (!digits(s, out, &end))
        return false;
    if ((*end == 'K' || *end == 'k') && !end[1])
        *out <<= 10;
    else if ((*end == 'M' || *end == 'm') && !end[1])
        *out <<= 20;
    else
        return !*end;
    return true;
}

bool ydoc_time_of(const char *s, uint64_t *out)
{
    const char *end;
    if (!digits(s, out, &end))
        return false;
    if (!strcmp(end, "us"))
        *out *= 1000;
    else if (!strcmp(end, "ms"))
        *out *= 1000000;
    else
        return false;
    return true;
}

bool ydoc_uint(struct ydoc *y, yaml_node_t *n, const char *what, uint32_t min, uint32_t max, uint32_t *out)
{
    const char *s = ydoc_need_scalar(y, n, what, "a number");
    uint64_t v;
    if (!s)
        return false;
    if (!ydoc_uint_of(s, &v) || v < min || v > max) {
        diag_error(y->diag, ydoc_place(n), "%s is '%.40s'; allowed: a whole number from %u to %u", what, s, min, max);
        return false;
    }
    *out = (uint32_t)v;
    return true;
}

bool ydoc_size(struct ydoc *y, yaml_node_t *n, const char *what, uint32_t max, uint32_t *out)
{
    const char *s = ydoc_need_scalar(y, n, what, "a size");
    uint64_t v;
    if (!s)
        return false;
    if (!ydoc_size_of(s, &v) || v > max) {
        diag_error(y->diag, ydoc_place(n), "%s is '%.40s'; allowed: bytes from 0 to %u, as 8192, 8K or 1M", what, s,
                   max);
        return false;
    }
    *out = (uint32_t)v;
    return true;
}

bool ydoc_time(struct ydoc *y, yaml_node_t *n, const char *what, uint32_t min, uint32_t max, uint32_t *out)
{
    const char *s = ydoc_need_scalar(y, n, what, "a time");
    uint64_t v;
    if (!s)
        return false;
    if (!ydoc_time_of(s, &v) || v < min || v > max) {
        diag_error(y->diag, ydoc_place(n), "%s is '%.40s'; allowed: %u to %u microseconds, as 20us or 1ms", what, s,
                   min / 1000, max / 1000);
        return false;
    }
    *out = (uint32_t)v;
    return true;
}

bool ydoc_bool(struct ydoc *y, yaml_node_t *n, const char *what, bool *out)
{
    const char *s = ydoc_need_scalar(y, n, what, "true or false");
    if (!s)
        return false;
    if (strcasecmp(s, "true") && strcasecmp(s, "false")) {
        diag_error(y->diag, ydoc_place(n), "%s is '%.40s'; allowed: true or false", what, s);
        return false;
    }
    *out = !strcasecmp(s, "true");
    return true;
}

int ydoc_choice(struct ydoc *y, yaml_node_t *n, const char *what, const char *const *names)
{
    struct text all = {0};
    for (int i = 0; names[i]; i++)
        text_printf(&all, "%s%s", i ? ", " : "", names[i]);
    const char *s = ydoc_need_scalar(y, n, what, text_str(&all));
    int found = -1;
    for (int i = 0; s && names[i]; i++)
        if (!strcmp(s, names[i]))
            found = i;
    if (s && found < 0) {
        const char *near =
            *s >= '0' && *s <= '9' ? NULL : nearest_name(s, names); /* another name is never meant by a number */
        if (near)
            diag_error(y->diag, ydoc_place(n), "%s is '%.40s', did you mean '%s'? allowed: %s", what, s, near,
                       text_str(&all));
        else
            diag_error(y->diag, ydoc_place(n), "%s is '%.40s'; allowed: %s", what, s, text_str(&all));
    }
    text_free(&all);
    return found;
}
