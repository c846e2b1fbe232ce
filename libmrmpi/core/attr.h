/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes: values that a program caches with a communicator, datatype or window under keys of its own (MPI-4.0
 * chapter 7.7).
 */
#ifndef MRMPI_ATTR_H
#define MRMPI_ATTR_H

#include "libmrmpi/core/core.h"

typedef void (*mr_user_fn)(void); /* cast back by the shell that stored it */

enum mr_keyval_kind { MR_KEYVAL_COMM, MR_KEYVAL_TYPE, MR_KEYVAL_WIN };
/*
 * C programs store pointers, Fortran programs numbers, and each sees the other's in its own way (MPI-4.0
 * section 19.3.7).
 */
struct mr_attr_value {
    void *word;
    bool number;
};
struct mr_keyval {
    int refs;
    int handle;
    enum mr_keyval_kind kind;
    bool freed;                           /* by the program: only references of attributes are left */
    mr_user_fn copy, del;                 /* NULL: not copied, nothing to do */
    mr_user_fn copy_through, del_through; /* the callers for functions of other languages; NULL: C */
    void *extra;
    /* Provided by the shell; return an error code of the user (0: fine). */
    int (*call_copy)(struct mr_keyval *k, void *object, struct mr_attr_value *value, void **out, int *flag);
    int (*call_delete)(struct mr_keyval *k, void *object, struct mr_attr_value *value);
    void (*gone)(struct mr_keyval *k); /* called when the last attribute of a freed key is gone */
};
struct mr_keyval *mr_keyval_new(enum mr_keyval_kind kind);
void mr_keyval_put(struct mr_keyval *k);
enum mr_err mr_attr_set(struct mr_attr **list, void *object, struct mr_keyval *k, struct mr_attr_value value,
                        int *user_error);
/* The place of the value, valid as long as the attribute; NULL: the object has none. */
struct mr_attr_value *mr_attr_get(struct mr_attr *list, const struct mr_keyval *k);
enum mr_err mr_attr_delete(struct mr_attr **list, void *object, struct mr_keyval *k, int *user_error);
enum mr_err mr_attr_delete_all(struct mr_attr **list, void *object, int *user_error); /* last set, first deleted */
enum mr_err mr_attr_copy_all(struct mr_attr *from, void *from_object, struct mr_attr **to, int *user_error);

#endif
