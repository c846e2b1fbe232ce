/* SPDX-License-Identifier: BSD-3-Clause */
/* Info objects: an ordered list of key and value. */
#include "libmrmpi/core/core.h"

#include <stdlib.h>
#include <string.h>

struct mr_info *mr_info_new(void)
{
    struct mr_info *i = calloc(1, sizeof(*i));
    if (i)
        i->refs = 1;
    return i;
}

void mr_info_put(struct mr_info *i)
{
    if (!i || --i->refs > 0)
        return;
    for (int n = 0; n < i->count; n++) {
        free(i->pairs[n].key);
        free(i->pairs[n].value);
    }
    free(i->pairs);
    free(i);
}

static int find_key(const struct mr_info *i, const char *key)
{
    for (int n = 0; n < i->count; n++)
        if (strcmp(i->pairs[n].key, key) == 0)
            return n;
    return -1;
}

const char *mr_info_find(const struct mr_info *i, const char *key)
{
    int n = find_key(i, key);
    return n < 0 ? NULL : i->pairs[n].value;
}

bool mr_info_set(struct mr_info *i, const char *key, const char *value)
{
    char *v = strdup(value);
    if (!v)
        return false;
    int n = find_key(i, key);
    if (n >= 0) {
        free(i->pairs[n].value);
        i->pairs[n].value = v;
        return true;
    }
    char *k = strdup(key);
    struct mr_info_pair *pairs = realloc(i->pairs, (size_t)(i->count + 1) * sizeof(*pairs));
    if (pairs)
        i->pairs = pairs;
    if (!k || !pairs) {
        free(k);
        free(v);
        return false;
    }
    i->pairs[i->count++] = (struct mr_info_pair){k, v};
    return true;
}

bool mr_info_delete(struct mr_info *i, const char *key)
{
    int n = find_key(i, key);
    if (n < 0)
        return false;
    free(i->pairs[n].key);
    free(i->pairs[n].value);
    i->count--;
    memmove(i->pairs + n, i->pairs + n + 1, (size_t)(i->count - n) * sizeof(*i->pairs));
    return true;
}

struct mr_info *mr_info_dup(const struct mr_info *i)
{
    struct mr_info *copy = mr_info_new();
    for (int n = 0; copy && n < i->count; n++) {
        if (!mr_info_set(copy, i->pairs[n].key, i->pairs[n].value)) {
            mr_info_put(copy);
            return NULL;
        }
    }
    return copy;
}
