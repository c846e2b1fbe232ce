/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a mapping of a YAML file may hold, declared once: each key with its kind, range, default and one line of help.
 * The same const tables read a file (keys_read), give what it leaves out its default (keys_defaults), and describe the
 * format as a JSON schema (schema.h), with which the manual page is compared.
 */
#ifndef FABRICD_KEYS_H
#define FABRICD_KEYS_H

#include "fabricd/base/ydoc.h"

#define KEYS_MAX 24 /* of one mapping */

enum key_kind {
    KEY_UINT,   /* uint32_t */
    KEY_SIZE,   /* uint32_t, bytes: 8192, 8K, 1M */
    KEY_TIME,   /* uint32_t, nanoseconds: 20us, 1ms */
    KEY_TEXT,   /* char[max + 1] */
    KEY_CHOICE, /* uint32_t, the value of one of the choices */
    KEY_RATIO,  /* uint32_t[2]: 100:10 */
    KEY_SIZES,  /* one size or a list of sizes; needs a read function */
    KEY_TEXTS,  /* one text or a list of texts; needs a read function */
    KEY_MAP,    /* a mapping, read into the same struct */
    KEY_LIST,   /* a list of mappings; needs a read function */
};

struct key_choice {
    const char *name; /* NULL ends the list */
    uint32_t value;
};

struct keys;

struct key {
    const char *name, *help;
    enum key_kind kind;
    bool required;
    const char *standard; /* the default, as a file would say it; NULL: none */
    uint32_t min, max;    /* of the value; of a text's characters, of a list's items */
    uint32_t items;       /* KEY_SIZES, KEY_TEXTS: the most that there may be */
    const struct key_choice *choices;
    const char *chars; /* KEY_TEXT: characters that it may have, "A-Za-z_-"; NULL: all that are printable */
    unsigned one_of;   /* keys of a mapping with the same number exclude each other; 0: none */
    bool some;         /* of the keys marked so at least one must be there */
    size_t at;         /* offset of the value in the struct that the mapping is read into */
    size_t place;      /* offset of a struct place, of the value in the file; 0: not kept */
    size_t given;      /* offset of a bool that becomes true if the key is there; 0: none */
    const struct keys *of;
    /* Reads what its kind alone does not say; NULL: the kind's own way. */
    void (*read)(struct ydoc *y, yaml_node_t *n, const struct key *k, void *into);
};

struct keys {
    const char *what; /* the mapping's name in messages: "a class" */
    const struct key *key;
    size_t num;
};

/* Read a mapping into a struct; false if there was an error, of which all are in y->diag. */
bool keys_read(struct ydoc *y, yaml_node_t *n, const struct keys *keys, void *into);

/* Give every key that has a default that value, in mappings within it, too. */
void keys_defaults(const struct keys *keys, void *into);

/* Append what a value may be, and whether it must be there: "1 to 100, required". */
void key_allowed(struct text *out, const struct key *k);

#endif
