/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The format of a mapping in a YAML file, declared once: each key with its kind, range, default and one line of help.
 * The same const tables read a file (keys_read), fill in defaults (keys_defaults), and describe the format as a JSON
 * schema (schema.h), which is compared with the manual page.
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
    const char *chars; /* KEY_TEXT: allowed characters, "A-Za-z_-"; NULL: all printable */
    unsigned one_of;   /* keys of a mapping with the same number exclude each other; 0: none */
    bool some;         /* at least one of the keys marked so is required */
    size_t at;         /* offset of the value in the struct that the mapping is read into */
    size_t place;      /* offset of a struct place, of the value in the file; 0: not kept */
    size_t given;      /* offset of a bool that becomes true if the key is there; 0: none */
    const struct keys *of;
    /* Reads a value that its kind alone does not describe; NULL: by its kind. */
    void (*read)(struct ydoc *y, yaml_node_t *n, const struct key *k, void *into);
};

struct keys {
    const char *what; /* the mapping's name in messages: "a class" */
    const struct key *key;
    size_t num;
};

/* Reads a mapping into a struct; false on errors, which are all in y->diag. */
bool keys_read(struct ydoc *y, yaml_node_t *n, const struct keys *keys, void *into);

/* Gives every key with a default its value, in nested mappings too. */
void keys_defaults(const struct keys *keys, void *into);

/* Appends the allowed values of a key, and whether the key is required: "1 to 100, required". */
void key_allowed(struct text *out, const struct key *k);

#endif
