/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes cached on objects: a list per object, newest first. Keyvals live as long as an attribute uses them. */
#include "libmrmpi/core/core.h"

#include <stdlib.h>

struct mr_attr {
    struct mr_attr *next;
    struct mr_keyval *key;
    struct mr_attr_value value;
};

struct mr_keyval *mr_keyval_new(enum mr_keyval_kind kind)
{
    struct mr_keyval *k = calloc(1, sizeof(*k));
    if (k)
        *k = (struct mr_keyval){.refs = 1, .kind = kind};
    return k;
}

void mr_keyval_put(struct mr_keyval *k)
{
    if (--k->refs)
        return;
    if (k->gone)
        k->gone(k);
    free(k);
}

static struct mr_attr **find_attr(struct mr_attr **list, const struct mr_keyval *k)
{
    while (*list && (*list)->key != k)
        list = &(*list)->next;
    return list;
}

static enum mr_err delete_attr(void *object, struct mr_attr *a, int *user_error)
{
    *user_error = a->key->del ? a->key->call_delete(a->key, object, &a->value) : 0;
    return *user_error ? mr_fail(MR_ERR_OTHER, "the attribute's delete function returned %d", *user_error) : MR_SUCCESS;
}

enum mr_err mr_attr_set(struct mr_attr **list, void *object, struct mr_keyval *k, struct mr_attr_value value,
                        int *user_error)
{
    struct mr_attr *a = *find_attr(list, k);
    if (a) {
        enum mr_err err = delete_attr(object, a, user_error);
        if (!err)
            a->value = value;
        return err;
    }
    a = malloc(sizeof(*a));
    if (!a)
        return MR_ERR_NO_MEM;
    k->refs++;
    *a = (struct mr_attr){*list, k, value};
    *list = a;
    return MR_SUCCESS;
}

struct mr_attr_value *mr_attr_get(struct mr_attr *list, const struct mr_keyval *k)
{
    struct mr_attr *a = *find_attr(&list, k);
    return a ? &a->value : NULL;
}

static void unlink_attr(struct mr_attr **at)
{
    struct mr_attr *a = *at;
    *at = a->next;
    mr_keyval_put(a->key);
    free(a);
}

enum mr_err mr_attr_delete(struct mr_attr **list, void *object, struct mr_keyval *k, int *user_error)
{
    struct mr_attr **at = find_attr(list, k);
    if (!*at)
        return mr_fail(MR_ERR_KEYVAL, "the object has no attribute with this key");
    enum mr_err err = delete_attr(object, *at, user_error);
    if (err)
        return err;
    at = find_attr(list, k); /* the callback may have changed the list */
    if (*at)
        unlink_attr(at);
    return MR_SUCCESS;
}

enum mr_err mr_attr_delete_all(struct mr_attr **list, void *object, int *user_error)
{
    while (*list) {
        struct mr_attr *a = *list;
        enum mr_err err = delete_attr(object, a, user_error);
        if (err)
            return err;
        if (*list == a)
            unlink_attr(list);
    }
    return MR_SUCCESS;
}

enum mr_err mr_attr_copy_all(struct mr_attr *from, void *from_object, struct mr_attr **to, int *user_error)
{
    if (!from)
        return MR_SUCCESS;
    /* oldest first, so that the copy has the same order */
    enum mr_err err = mr_attr_copy_all(from->next, from_object, to, user_error);
    if (err || !from->key->copy)
        return err;
    struct mr_attr_value copy = {.number = from->value.number};
    int flag = 0;
    *user_error = from->key->call_copy(from->key, from_object, &from->value, &copy.word, &flag);
    if (*user_error)
        return mr_fail(MR_ERR_OTHER, "the attribute's copy function returned %d", *user_error);
    return flag ? mr_attr_set(to, NULL, from->key, copy, user_error) : MR_SUCCESS;
}
