/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes. Fortran's values are integers: of the size of an address, or of the usual size for the functions of
 * MPI-1. The library keeps the values, and calls the program's subroutines through the functions here.
 */
#include <stdint.h>

#include "libmrmpi/fortran/fortran.h"

#define CALL(name) (profiled ? PMPI_##name : MPI_##name)

/* How the library's functions for bindings know the two kinds of integers. */
enum { ADDRESS_SIZED = 1, USUAL_SIZE = 3 };
typedef int copy_proxy(MPI_Comm_copy_attr_function *user, int handle, int keyval, void *extra, int kind, void *value,
                       void **copy, int *flag);
typedef int delete_proxy(MPI_Comm_delete_attr_function *user, int handle, int keyval, int kind, void *value,
                         void *extra);
void MPII_Keyval_set_proxy(int keyval, copy_proxy *copy, delete_proxy *del);
int MPII_Comm_set_attr(MPI_Comm comm, int keyval, void *value, int kind);
int MPII_Comm_get_attr(MPI_Comm comm, int keyval, void *value, int *flag, int kind);
int MPII_Type_set_attr(MPI_Datatype type, int keyval, void *value, int kind);
int MPII_Type_get_attr(MPI_Datatype type, int keyval, void *value, int *flag, int kind);
int MPII_Win_set_attr(MPI_Win win, int keyval, void *value, int kind);
int MPII_Win_get_attr(MPI_Win win, int keyval, void *value, int *flag, int kind);

typedef void copy_subroutine(MPI_Fint *handle, MPI_Fint *keyval, MPI_Aint *extra, MPI_Aint *value, MPI_Aint *copy,
                             MPI_Fint *flag, MPI_Fint *ierror);
typedef void delete_subroutine(MPI_Fint *handle, MPI_Fint *keyval, MPI_Aint *value, MPI_Aint *extra, MPI_Fint *ierror);

/*
 * One function for both sizes of integers: a subroutine with integers of the usual size finds the lower half of each
 * value. wide: what it stored is whole, else only the lower half.
 */
static int copy_through(MPI_Comm_copy_attr_function *user, int handle, int keyval, void *extra, void *value,
                        void **copy, int *flag, bool wide)
{
    MPI_Fint object = handle, key = keyval, copied = 0, ierror = MPI_SUCCESS;
    MPI_Aint state = (MPI_Aint)extra, old = (MPI_Aint)value, new = 0;
    ((copy_subroutine *)(fort_fn *)user)(&object, &key, &state, &old, &new, &copied, &ierror);
    *flag = copied != 0;
    *copy = (void *)(wide ? new : (MPI_Aint)(MPI_Fint) new);
    return ierror;
}

static int copy_wide(MPI_Comm_copy_attr_function *user, int handle, int keyval, void *extra, int kind, void *value,
                     void **copy, int *flag)
{
    return copy_through(user, handle, keyval, extra, value, copy, flag, true);
}

static int copy_usual(MPI_Comm_copy_attr_function *user, int handle, int keyval, void *extra, int kind, void *value,
                      void **copy, int *flag)
{
    return copy_through(user, handle, keyval, extra, value, copy, flag, false);
}

static int delete_through(MPI_Comm_delete_attr_function *user, int handle, int keyval, int kind, void *value,
                          void *extra)
{
    MPI_Fint object = handle, key = keyval, ierror = MPI_SUCCESS;
    MPI_Aint state = (MPI_Aint)extra, old = (MPI_Aint)value;
    ((delete_subroutine *)(fort_fn *)user)(&object, &key, &old, &state, &ierror);
    return ierror;
}

#define CREATE_KEYVAL(object, size, proxy)                                                                             \
    (bool profiled, fort_fn *copy, fort_fn *del, MPI_Fint *keyval, const size *extra)                                  \
    {                                                                                                                  \
        int code = CALL(object##_create_keyval)((MPI_##object##_copy_attr_function *)copy,                             \
                                                (MPI_##object##_delete_attr_function *)del, keyval,                    \
                                                (void *)(MPI_Aint)*extra);                                             \
        if (!code)                                                                                                     \
            MPII_Keyval_set_proxy(*keyval, proxy, delete_through);                                                     \
        return code;                                                                                                   \
    }
int fort_Comm_create_keyval CREATE_KEYVAL(Comm, MPI_Aint, copy_wide)
int fort_Type_create_keyval CREATE_KEYVAL(Type, MPI_Aint, copy_wide)
int fort_Win_create_keyval CREATE_KEYVAL(Win, MPI_Aint, copy_wide)
int fort_Keyval_create CREATE_KEYVAL(Comm, MPI_Fint, copy_usual)

int fort_Comm_set_attr(bool profiled, const MPI_Fint *comm, const MPI_Fint *keyval, const MPI_Aint *value)
{
    return MPII_Comm_set_attr(*comm, *keyval, (void *)*value, ADDRESS_SIZED);
}

int fort_Comm_get_attr(bool profiled, const MPI_Fint *comm, const MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *flag)
{
    return MPII_Comm_get_attr(*comm, *keyval, value, flag, ADDRESS_SIZED);
}

int fort_Type_set_attr(bool profiled, const MPI_Fint *type, const MPI_Fint *keyval, const MPI_Aint *value)
{
    return MPII_Type_set_attr(*type, *keyval, (void *)*value, ADDRESS_SIZED);
}

int fort_Type_get_attr(bool profiled, const MPI_Fint *type, const MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *flag)
{
    return MPII_Type_get_attr(*type, *keyval, value, flag, ADDRESS_SIZED);
}

int fort_Win_set_attr(bool profiled, const MPI_Fint *win, const MPI_Fint *keyval, const MPI_Aint *value)
{
    return MPII_Win_set_attr(*win, *keyval, (void *)*value, ADDRESS_SIZED);
}

int fort_Win_get_attr(bool profiled, const MPI_Fint *win, const MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *flag)
{
    return MPII_Win_get_attr(*win, *keyval, value, flag, ADDRESS_SIZED);
}

int fort_Attr_put(bool profiled, const MPI_Fint *comm, const MPI_Fint *keyval, const MPI_Fint *value)
{
    return MPII_Comm_set_attr(*comm, *keyval, (void *)(intptr_t)*value, USUAL_SIZE);
}

int fort_Attr_get(bool profiled, const MPI_Fint *comm, const MPI_Fint *keyval, MPI_Fint *value, MPI_Fint *flag)
{
    intptr_t word;
    int code = MPII_Comm_get_attr(*comm, *keyval, &word, flag, USUAL_SIZE);
    if (!code && *flag)
        *value = (MPI_Fint)word;
    return code;
}
