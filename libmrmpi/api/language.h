/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions for bindings of other languages (libmrmpi/fortran, MPICH's libmpichfort and libmpichcxx): attributes with
 * a number as value, and callbacks that are not called like C functions. The bindings hand over functions of their own
 * for such calls, here called proxies. Names, arguments and numbers are part of the binary interface.
 */
#ifndef MRMPI_API_LANGUAGE_H
#define MRMPI_API_LANGUAGE_H

#include "libmrmpi/api/api.h"

/*
 * The language that gives an attribute's value, or asks for it: C, Fortran with address-sized integers, Fortran with
 * the integers of MPI-1.
 */
enum abi_attr_kind { ABI_ATTR_POINTER = 0, ABI_ATTR_ADDRESS_NUMBER = 1, ABI_ATTR_NUMBER = 3 };

typedef int abi_attr_copy_proxy(MPI_Comm_copy_attr_function *user, int handle, int keyval, void *extra_state,
                                enum abi_attr_kind kind, void *value, void **copy, int *flag);
typedef int abi_attr_delete_proxy(MPI_Comm_delete_attr_function *user, int handle, int keyval, enum abi_attr_kind kind,
                                  void *value, void *extra_state);
typedef void abi_op_proxy(void *in, void *inout, int count, MPI_Datatype type, mr_user_fn user);
/* object: ABI_PROXY_COMM and so on */
typedef void abi_errhandler_proxy(int object, int *handle, int *code, mr_user_fn user);
enum { ABI_PROXY_COMM = 0, ABI_PROXY_FILE = 1, ABI_PROXY_WIN = 2 };

#define LANGUAGE_FN(type, name, args)                                                                                  \
    type PMPII_##name args __asm__("MPII_" #name);                                                                     \
    type PMPII_##name args

#endif
