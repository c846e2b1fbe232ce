/* SPDX-License-Identifier: BSD-3-Clause */
/* A tree of published values, by key. */
#include "mrrun/published.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <pmix.h>

static void *root; /* of pmix_pdata_t */

static int compare_keys(const void *a, const void *b)
{
    const pmix_pdata_t *x = a, *y = b;

    return strcmp(x->key, y->key);
}

static void free_data(void *data)
{
    pmix_pdata_t *d = data;

    PMIX_VALUE_DESTRUCT(&d->value);
    free(d);
}

pmix_status_t published_add(const pmix_proc_t *by, const char *key, const pmix_value_t *value)
{
    pmix_pdata_t *d = calloc(1, sizeof(*d)), **at;
    pmix_value_t *copy;
    pmix_status_t rc;

    if (!d)
        return PMIX_ERR_NOMEM;
    d->proc = *by;
    PMIX_LOAD_KEY(d->key, key);
    copy = &d->value;
    PMIX_VALUE_XFER(rc, copy, value);
    if (rc != PMIX_SUCCESS) {
        free(d);
        return rc;
    }
    at = tsearch(d, &root, compare_keys);
    if (at && *at == d)
        return PMIX_SUCCESS;
    free_data(d);
    return at ? PMIX_ERR_DUPLICATE_KEY : PMIX_ERR_NOMEM;
}

const pmix_pdata_t *published_find(const char *key)
{
    pmix_pdata_t wanted;

    PMIX_LOAD_KEY(wanted.key, key);
    pmix_pdata_t **at = tfind(&wanted, &root, compare_keys);
    return at ? *at : NULL;
}

pmix_status_t published_remove(const char *key)
{
    pmix_pdata_t wanted, *d, **at;

    PMIX_LOAD_KEY(wanted.key, key);
    at = tfind(&wanted, &root, compare_keys);
    if (!at)
        return PMIX_ERR_NOT_FOUND;
    d = *at;
    tdelete(d, &root, compare_keys);
    free_data(d);
    return PMIX_SUCCESS;
}
