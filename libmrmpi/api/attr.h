/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes by the handles of their keys, for objects of any kind. as: the language that gives or asks for a value. */
#ifndef MRMPI_API_ATTR_H
#define MRMPI_API_ATTR_H

#include "libmrmpi/api/language.h"

enum mr_err api_attr_set(struct mr_attr **list, void *object, int h, enum mr_keyval_kind kind, void *value,
                         enum abi_attr_kind as);
enum mr_err api_attr_get(struct mr_attr *list, int h, enum mr_keyval_kind kind, void *value, int *flag,
                         enum abi_attr_kind as);
enum mr_err api_attr_delete(struct mr_attr **list, void *object, int h, enum mr_keyval_kind kind);

#endif
