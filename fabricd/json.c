/* SPDX-License-Identifier: BSD-3-Clause */
/* YAML to JSON: see json.h. */
#include "fabricd/json.h"
#include "fabricd/ydoc.h"

#include <stdlib.h>
#include <string.h>

/* As JSON would write it, too. */
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

static void put_node(struct text *out, yaml_document_t *doc, const yaml_node_t *n)
{
    if (n->type == YAML_SCALAR_NODE) {
        const char *s = (const char *)n->data.scalar.value;
        bool plain = n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        if (plain && (is_number(s) || !strcmp(s, "true") || !strcmp(s, "false")))
            text_printf(out, "%s", s);
        else
            text_json_string(out, s, n->data.scalar.length);
    } else if (n->type == YAML_SEQUENCE_NODE) {
        for (const yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++) {
            text_put(out, i > n->data.sequence.items.start ? ", " : "[", i > n->data.sequence.items.start ? 2 : 1);
            put_node(out, doc, yaml_document_get_node(doc, *i));
        }
        text_printf(out, n->data.sequence.items.start == n->data.sequence.items.top ? "[]" : "]");
    } else {
        const yaml_node_pair_t *first = n->data.mapping.pairs.start, *end = n->data.mapping.pairs.top;
        for (const yaml_node_pair_t *p = first; p < end; p++) {
            const yaml_node_t *key = yaml_document_get_node(doc, p->key);
            text_put(out, p > first ? ", " : "{", p > first ? 2 : 1);
            text_json_string(out, (const char *)key->data.scalar.value, key->data.scalar.length);
            text_put(out, ": ", 2);
            put_node(out, doc, yaml_document_get_node(doc, p->value));
        }
        text_printf(out, first == end ? "{}" : "}");
    }
}

bool json_of_yaml(struct text *out, const char *yaml, size_t len)
{
    struct diag d = {.file = "answer"};
    struct ydoc y;
    if (!len) {
        text_put(out, "[]\n", 3);
        return true;
    }
    bool good = ydoc_load(&y, yaml, len, &d);
    text_free(&d.out);
    if (!good)
        return false;
    put_node(out, &y.doc, ydoc_root(&y));
    text_put(out, "\n", 1);
    ydoc_free(&y);
    return true;
}
