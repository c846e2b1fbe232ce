/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strict reading of a YAML file: every mapping is matched against its possible keys, every scalar against its type.
 * Every mismatch becomes an error with line and column in the struct diag. The reader continues after an error, so one
 * run shows all errors; the caller checks diag.errors at the end.
 */
#ifndef FABRICD_YDOC_H
#define FABRICD_YDOC_H

#include "fabricd/base/text.h"

#include <stdint.h>
#include <yaml.h>

#define YDOC_DEPTH_MAX 64u /* of lists and mappings within each other; the formats have 6 */

struct ydoc {
    yaml_document_t doc;
    struct diag *diag;
};

/* A possible key of a mapping. value is NULL after ydoc_map if the file does not have the key. */
struct ykey {
    const char *name;
    bool required;
    yaml_node_t *value;
};

/*
 * Parses the text in time linear in its length. False (an error is in diag, nothing to free) if the text is not UTF-8,
 * not one YAML document with a root, or deeper than YDOC_DEPTH_MAX.
 */
bool ydoc_load(struct ydoc *y, const char *text, size_t len, struct diag *diag);
void ydoc_free(struct ydoc *y);
yaml_node_t *ydoc_root(struct ydoc *y);
struct place ydoc_place(const yaml_node_t *n);

/*
 * Matches a mapping: unknown, double and missing keys are errors. what names the mapping in messages. With an unknown
 * key, missing keys are not reported: most likely the unknown key is a misspelt missing one.
 */
bool ydoc_map(struct ydoc *y, yaml_node_t *n, const char *what, struct ykey *keys, size_t num_keys);
/* The value of a key of a mapping, NULL if n is no mapping or has no such key. */
yaml_node_t *ydoc_get(struct ydoc *y, yaml_node_t *n, const char *key);
/* The i-th item of a list, NULL after the last. ydoc_list says whether it is a list. */
bool ydoc_list(struct ydoc *y, yaml_node_t *n, const char *what);
yaml_node_t *ydoc_item(struct ydoc *y, yaml_node_t *n, size_t i);

/* Scalars. False with an error in diag if the node has another type; *out is unchanged then. */
bool ydoc_string(struct ydoc *y, yaml_node_t *n, const char *what, char *out, size_t size);
bool ydoc_uint(struct ydoc *y, yaml_node_t *n, const char *what, uint32_t min, uint32_t max, uint32_t *out);
bool ydoc_size(struct ydoc *y, yaml_node_t *n, const char *what, uint32_t max, uint32_t *out); /* 8192, 8K, 1M */
bool ydoc_time(struct ydoc *y, yaml_node_t *n, const char *what, uint32_t min, uint32_t max, uint32_t *out); /* in ns */
bool ydoc_bool(struct ydoc *y, yaml_node_t *n, const char *what, bool *out);
/* The index of one of the names (NULL-terminated); -1 with an error else. */
int ydoc_choice(struct ydoc *y, yaml_node_t *n, const char *what, const char *const *names);
const char *ydoc_scalar(const yaml_node_t *n); /* the scalar's text; NULL: no scalar, or with a zero byte */
/* The same, with an error for other nodes; allowed names the allowed values in the message. */
const char *ydoc_need_scalar(struct ydoc *y, yaml_node_t *n, const char *what, const char *allowed);

/*
 * Values from text alone; false if the text is no such value. The value may exceed 32 bits: the caller checks the
 * range.
 */
bool ydoc_uint_of(const char *s, uint64_t *out);
bool ydoc_size_of(const char *s, uint64_t *out); /* 8192, 8K, 1M */
bool ydoc_time_of(const char *s, uint64_t *out); /* 20us, 1ms; in nanoseconds */

#endif
