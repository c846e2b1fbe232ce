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

/* The same for objects of a kind, whose attributes of MPI count too. */
enum mr_err api_comm_attr_set(struct mr_comm *c, int keyval, void *value, enum abi_attr_kind as);
enum mr_err api_comm_attr_get(struct mr_comm *c, int keyval, void *value, int *flag, enum abi_attr_kind as);
enum mr_err api_type_attr_set(MPI_Datatype type, int keyval, void *value, enum abi_attr_kind as);
enum mr_err api_type_attr_get(MPI_Datatype type, int keyval, void *value, int *flag, enum abi_attr_kind as);
enum mr_err api_win_attr_set(struct mr_win *w, int keyval, void *value, enum abi_attr_kind as);
enum mr_err api_win_attr_get(struct mr_win *w, int keyval, void *value, int *flag, enum abi_attr_kind as);

#endif
