/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of keys as a JSON schema: see schema.h. */
#include "fabricd/policy/schema.h"

#include <string.h>

/* ---- JSON ---- */

struct json {
    struct text *out;
    unsigned depth;
    bool first; /* nothing is in the innermost object or array yet */
};

static void json_quoted(struct json *j, const char *s)
{
    text_put(j->out, "\"", 1);
    for (const unsigned char *p = (const unsigned char *)s; *p; p++) {
        if (*p == '"' || *p == '\\')
            text_printf(j->out, "\\%c", *p);
        else if (*p == '\n')
            text_put(j->out, "\\n", 2);
        else if (*p < 0x20)
            text_printf(j->out, "\\u%04x", *p);
        else
            text_put(j->out, (const char *)p, 1);
    }
    text_put(j->out, "\"", 1);
}

/* The text before a member: the comma, a line, its name (NULL in an array). */
static void json_member(struct json *j, const char *name)
{
    text_printf(j->out, "%s\n%*s", j->first ? "" : ",", (int)j->depth * 2, "");
    j->first = false;
    if (name) {
        json_quoted(j, name);
        text_put(j->out, ": ", 2);
    }
}

static void json_open(struct json *j, const char *name, char bracket)
{
    if (j->depth)
        json_member(j, name);
    text_put(j->out, &bracket, 1);
    j->depth++;
    j->first = true;
}

static void json_close(struct json *j, char bracket)
{
    j->depth--;
    text_printf(j->out, "\n%*s%c", (int)j->depth * 2, "", bracket);
    j->first = false;
}

static void json_string(struct json *j, const char *name, const char *s)
{
    json_member(j, name);
    json_quoted(j, s);
}

static void json_uint(struct json *j, const char *name, uint32_t v)
{
    json_member(j, name);
    text_printf(j->out, "%u", v);
}

/* As YAML reads a plain scalar: a number if possible. */
static void json_scalar(struct json *j, const char *name, const char *s)
{
    json_member(j, name);
    if (strspn(s, "0123456789") == strlen(s))
        text_printf(j->out, "%s", s);
    else
        json_quoted(j, s);
}

/* ---- a key's value ---- */

static void put_mapping_schema(struct json *j, const struct keys *keys);

static void put_number(struct json *j, uint32_t min, uint32_t max)
{
    json_string(j, "type", "integer");
    json_uint(j, "minimum", min);
    json_uint(j, "maximum", max);
}

static void put_pattern(struct json *j, const char *pattern)
{
    json_string(j, "type", "string");
    json_string(j, "pattern", pattern);
}

/* Bytes are a number, or text with a unit. */
static void put_size_schema(struct json *j, uint32_t max)
{
    json_open(j, NULL, '{');
    put_number(j, 0, max);
    json_close(j, '}');
    json_open(j, NULL, '{');
    put_pattern(j, "^[0-9]+[KkMm]?$");
    json_close(j, '}');
}

static void put_sizes(struct json *j, const struct key *k)
{
    json_open(j, "anyOf", '[');
    put_size_schema(j, k->max);
    json_open(j, NULL, '{');
    json_string(j, "type", "array");
    json_uint(j, "minItems", 1);
    json_uint(j, "maxItems", k->items);
    json_open(j, "items", '{');
    json_open(j, "anyOf", '[');
    put_size_schema(j, k->max);
    json_close(j, ']');
    json_close(j, '}');
    json_close(j, '}');
    json_close(j, ']');
}

/* A name of digits is a number to YAML, and text to the reader. */
static void put_text(struct json *j, const struct key *k)
{
    json_open(j, "type", '[');
    json_string(j, NULL, "string");
    json_string(j, NULL, "integer");
    json_close(j, ']');
    json_uint(j, "minLength", 1);
    json_uint(j, "maxLength", k->max);
    if (k->chars) {
        struct text pattern = {0};
        text_printf(&pattern, "^[%s]*$", k->chars);
        json_string(j, "pattern", text_str(&pattern));
        text_free(&pattern);
    }
}

static void put_texts(struct json *j, const struct key *k)
{
    json_open(j, "anyOf", '[');
    json_open(j, NULL, '{');
    put_text(j, k);
    json_close(j, '}');
    json_open(j, NULL, '{');
    json_string(j, "type", "array");
    json_uint(j, "minItems", 1);
    json_uint(j, "maxItems", k->items);
    json_open(j, "items", '{');
    put_text(j, k);
    json_close(j, '}');
    json_close(j, '}');
    json_close(j, ']');
}

static void put_choices(struct json *j, const struct key *k)
{
    json_open(j, "enum", '[');
    for (const struct key_choice *c = k->choices; c->name; c++)
        json_scalar(j, NULL, c->name);
    json_close(j, ']');
}

static void put_value(struct json *j, const struct key *k)
{
    switch (k->kind) {
    case KEY_UINT:
        put_number(j, k->min, k->max);
        break;
    case KEY_SIZE:
        json_open(j, "anyOf", '[');
        put_size_schema(j, k->max);
        json_close(j, ']');
        break;
    case KEY_SIZES:
        put_sizes(j, k);
        break;
    case KEY_TEXTS:
        put_texts(j, k);
        break;
    case KEY_TIME:
        put_pattern(j, "^[0-9]+(us|ms)$");
        break;
    case KEY_RATIO:
        put_pattern(j, "^[0-9]+:[0-9]+$");
        break;
    case KEY_TEXT:
        put_text(j, k);
        break;
    case KEY_CHOICE:
        put_choices(j, k);
        break;
    case KEY_MAP:
        put_mapping_schema(j, k->of);
        break;
    case KEY_LIST:
        json_string(j, "type", "array");
        json_uint(j, "minItems", k->min);
        json_uint(j, "maxItems", k->max);
        json_open(j, "items", '{');
        put_mapping_schema(j, k->of);
        json_close(j, '}');
    }
}

/* The description ends with a line of allowed values, equal to the headings of the manual page. */
static void put_key(struct json *j, const struct key *k)
{
    struct text description = {0};
    text_printf(&description, "%s\n(", k->help);
    key_allowed(&description, k);
    text_put(&description, ")", 1);
    json_open(j, k->name, '{');
    json_string(j, "description", text_str(&description));
    put_value(j, k);
    if (k->standard)
        json_scalar(j, "default", k->standard);
    json_close(j, '}');
    text_free(&description);
}

/* ---- a mapping ---- */

static void put_names(struct json *j, const char *a, const char *b)
{
    json_open(j, NULL, '{');
    json_open(j, "required", '[');
    json_string(j, NULL, a);
    if (b)
        json_string(j, NULL, b);
    json_close(j, ']');
    json_close(j, '}');
}

/* Every two exclusive keys. */
static void put_exclusions(struct json *j, const struct keys *keys)
{
    bool open = false;
    for (const struct key *a = keys->key; a < keys->key + keys->num; a++)
        for (const struct key *b = a + 1; b < keys->key + keys->num; b++)
            if (a->one_of && a->one_of == b->one_of) {
                if (!open) {
                    json_open(j, "not", '{');
                    json_open(j, "anyOf", '[');
                }
                open = true;
                put_names(j, a->name, b->name);
            }
    if (open) {
        json_close(j, ']');
        json_close(j, '}');
    }
}

static void put_some(struct json *j, const struct keys *keys)
{
    bool open = false;
    for (const struct key *k = keys->key; k < keys->key + keys->num; k++)
        if (k->some) {
            if (!open)
                json_open(j, "anyOf", '[');
            open = true;
            put_names(j, k->name, NULL);
        }
    if (open)
        json_close(j, ']');
}

static void put_required(struct json *j, const struct keys *keys)
{
    bool open = false;
    for (const struct key *k = keys->key; k < keys->key + keys->num; k++)
        if (k->required) {
            if (!open)
                json_open(j, "required", '[');
            open = true;
            json_string(j, NULL, k->name);
        }
    if (open)
        json_close(j, ']');
}

static void put_mapping_schema(struct json *j, const struct keys *keys)
{
    json_string(j, "type", "object");
    json_member(j, "additionalProperties");
    text_printf(j->out, "false");
    put_required(j, keys);
    put_exclusions(j, keys);
    put_some(j, keys);
    json_open(j, "properties", '{');
    for (size_t i = 0; i < keys->num; i++)
        put_key(j, &keys->key[i]);
    json_close(j, '}');
}

void schema_text(struct text *out, const struct keys *keys, const char *title)
{
    struct json j = {.out = out};
    json_open(&j, NULL, '{');
    json_string(&j, "$schema", "http://json-schema.org/draft-07/schema#");
    json_string(&j, "title", title);
    put_mapping_schema(&j, keys);
    json_close(&j, '}');
    text_put(out, "\n", 1);
}
