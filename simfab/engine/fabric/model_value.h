/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A value of a model file: valid values of a key, the unit in the file, and the field. Tables of struct model_key
 * describe the sections of the file and the mappings of its lists alike (model.c). Pure.
 */
#ifndef SIMFAB_MODEL_VALUE_H
#define SIMFAB_MODEL_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simfab/engine/fabric/model.h"

enum key_type {
    KEY_TEXT,
    KEY_U32, /* numbers go into a field of 1, 4 or 8 bytes, by its size */
    KEY_U64,
    KEY_REAL,
    KEY_BOOL,
    KEY_WIDTH,
    KEY_SPEED, /* three bytes: code of the speed, code of the extended speed, FDR10 */
    KEY_MTU,
    KEY_VLS,
    KEY_QUEUES, /* words: the field gets the number of the word in the list of model_value.c */
};

struct model_key {
    const char *section; /* "": the top of the file; in a list: the list's name */
    const char *name;
    enum key_type type;
    size_t offset, size; /* of the field in the described struct; KEY_TEXT: its capacity */
    double scale;        /* numbers: field = written * scale */
    double min, max;     /* as written */
    const char *def;     /* NULL (in lists only): must be given */
};

/* The offset and size columns for a field of a struct. */
#define MODEL_FIELD(type, f) offsetof(struct type, f), sizeof(((struct type *)0)->f)

enum model_value_error { VALUE_OK = 0, VALUE_WRONG, VALUE_OUT_OF_RANGE };

/* Put the text's value where the key says, in the struct that begins at base. */
enum model_value_error model_value_set(void *base, const struct model_key *k, const char *text);

/* The valid values of the key, for messages: "a number", "256, 512, 1024, 2048 or 4096". */
void model_value_wanted(const struct model_key *k, char *text, size_t size);

#endif
