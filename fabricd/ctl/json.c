/* SPDX-License-Identifier: BSD-3-Clause */
/* YAML to JSON: see json.h. */
#include "fabricd/ctl/json.h"
#include "fabricd/base/ydoc.h"

#include <stdlib.h>
#include <string.h>

/* In JSON's notation, too. */
static bool is_number(const char *s)
{
    size_t n = strspn(s, "0123456789");
    char *end;
    const char *digits = *s == '-' ? s + 1 : s;
    if (n == strlen(s) && n)
        return n == 1 || *s != '0';
    if (*digits < '0' || *digits > '9' || (*digits == '0' && digits[1] != '.') ||
        strspn(s, "-.0123456789") != strlen(s))
        return false;
    strtod(s, &end);
    return !*end && end[-1] != '.';
}

#define DEPTH_MAX 16 /* of lists and mappings in each other; an alias could make that endless */

static bool put_node(struct text *out, yaml_document_t *doc, const yaml_node_t *n, unsigned depth);

static void put_scalar(struct text *out, const yaml_node_t *n)
{
    const char *s = (const char *)n->data.scalar.value;
    bool plain = n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strlen(s) == n->data.scalar.length;
    if (plain && (is_number(s) || !strcmp(s, "true") || !strcmp(s, "false")))
        text_printf(out, "%s", s);
    else
        text_json_string(out, s, n->data.scalar.length);
}

static bool put_list(struct text *out, yaml_document_t *doc, const yaml_node_t *n, unsigned depth)
{
    const yaml_node_item_t *first = n->data.sequence.items.start, *end = n->data.sequence.items.top;
    text_put(out, "[", 1);
    for (const yaml_node_item_t *i = first; i < end; i++) {
        text_put(out, ", ", i > first ? 2 : 0);
        if (!put_node(out, doc, yaml_document_get_node(doc, *i), depth))
            return false;
    }
    text_put(out, "]", 1);
    return true;
}

static bool put_json_mapping(struct text *out, yaml_document_t *doc, const yaml_node_t *n, unsigned depth)
{
    const yaml_node_pair_t *first = n->data.mapping.pairs.start, *end = n->data.mapping.pairs.top;
    text_put(out, "{", 1);
    for (const yaml_node_pair_t *p = first; p < end; p++) {
        const yaml_node_t *key = yaml_document_get_node(doc, p->key);
        if (key->type != YAML_SCALAR_NODE)
            return false;
        text_put(out, ", ", p > first ? 2 : 0);
        text_json_string(out, (const char *)key->data.scalar.value, key->data.scalar.length);
        text_put(out, ": ", 2);
        if (!put_node(out, doc, yaml_document_get_node(doc, p->value), depth))
            return false;
    }
    text_put(out, "}", 1);
    return true;
}

static bool put_node(struct text *out, yaml_document_t *doc, const yaml_node_t *n, unsigned depth)
{
    if (n->type == YAML_SEQUENCE_NODE)
        return depth < DEPTH_MAX && put_list(out, doc, n, depth + 1);
    if (n->type == YAML_MAPPING_NODE)
        return depth < DEPTH_MAX && put_json_mapping(out, doc, n, depth + 1);
    put_scalar(out, n);
    return true;
}

bool json_of_yaml(struct text *out, const char *yaml, size_t len)
{
    struct diag d = {.file = "answer"};
    struct text json = {0};
    struct ydoc y;
    if (!len) {
        text_put(out, "[]\n", 3);
        return true;
    }
    bool good = ydoc_load(&y, yaml, len, &d);
    text_free(&d.out);
    if (!good)
        return false;
    good = put_node(&json, &y.doc, ydoc_root(&y), 0);
    if (good) {
        text_put(out, json.s, json.len);
        text_put(out, "\n", 1);
    }
    text_free(&json);
    ydoc_free(&y);
    return good;
}
