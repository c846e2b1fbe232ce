/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What programs refer to beside the functions of MPI: common blocks, predefined callbacks, and data and procedures of
 * modules under the names that gfortran and flang give them. The modules themselves are compiled for their interfaces
 * only.
 */
#include <string.h>

#include "libmrmpi/fortran/fortran.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* flang's name of a procedure that has gfortran's. */
#define FLANG(function, module, name)                                                                                  \
    extern __typeof__(function) function##_flang __asm__("_QM" #module "P" #name)                                      \
        __attribute__((alias("__" #module "_MOD_" #name)));

/* ---- addresses that stand for something ---- */

struct fort_common1 mpipriv1_;
struct fort_common2 mpipriv2_;
struct fort_common_c mpiprivc_;
MPI_Fint mpifcmb5_, mpifcmb9_, mpifcmba_;
MPI_Fint fort_unweighted[1], fort_weights_empty[1], fort_errcodes_ignore[1];
char fort_argv_null[1], fort_argvs_null[1];
/* Weak: a program that is given a copy of such data at the start, by either name, is given both names. */
#define FLANG_LINKED(variable, name)                                                                                   \
    extern __typeof__(variable) variable##_flang __asm__("_QMmpi_f08_link_constantsE" #name)                           \
        __attribute__((weak, alias("__mpi_f08_link_constants_MOD_" #name)))
FLANG_LINKED(fort_unweighted, mpi_unweighted);
FLANG_LINKED(fort_weights_empty, mpi_weights_empty);
FLANG_LINKED(fort_errcodes_ignore, mpi_errcodes_ignore);
FLANG_LINKED(fort_argv_null, mpi_argv_null);
FLANG_LINKED(fort_argvs_null, mpi_argvs_null);

/* ---- callbacks that come with MPI ---- */

#define FORT_ALIAS(name, of) extern __typeof__(of) name __attribute__((weak, alias(#of)))
#define CALLBACK_NAMES(low, high)                                                                                      \
    FORT_ALIAS(low##_, p##low##_);                                                                                     \
    FORT_ALIAS(low##__, p##low##_);                                                                                    \
    FORT_ALIAS(low, p##low##_);                                                                                        \
    FORT_ALIAS(p##low##__, p##low##_);                                                                                 \
    FORT_ALIAS(p##low, p##low##_);                                                                                     \
    extern __typeof__(p##low##_) high##_upper __asm__(#high) __attribute__((weak, alias("p" #low "_")));               \
    extern __typeof__(p##low##_) high##_p_upper __asm__("P" #high) __attribute__((weak, alias("p" #low "_")));

#define DUP_BODY                                                                                                       \
    (MPI_Fint * object, MPI_Fint * keyval, MPI_Aint * extra, MPI_Aint * value, MPI_Aint * copy, MPI_Fint * flag,       \
     MPI_Fint * ierror)                                                                                                \
    {                                                                                                                  \
        *copy = *value;                                                                                                \
        *flag = 1;                                                                                                     \
        *ierror = MPI_SUCCESS;                                                                                         \
    }
#define NULL_COPY_BODY                                                                                                 \
    (MPI_Fint * object, MPI_Fint * keyval, MPI_Aint * extra, MPI_Aint * value, MPI_Aint * copy, MPI_Fint * flag,       \
     MPI_Fint * ierror)                                                                                                \
    {                                                                                                                  \
        *flag = 0;                                                                                                     \
        *ierror = MPI_SUCCESS;                                                                                         \
    }
#define NULL_DELETE_BODY                                                                                               \
    (MPI_Fint * object, MPI_Fint * keyval, MPI_Aint * value, MPI_Aint * extra, MPI_Fint * ierror)                      \
    {                                                                                                                  \
        *ierror = MPI_SUCCESS;                                                                                         \
    }
#define IN_MODULE(function, name)                                                                                      \
    extern __typeof__(function) function##module __asm__("__mpi_f08_callbacks_MOD_" #name)                             \
        __attribute__((alias(#function)));                                                                             \
    FLANG(function, mpi_f08_callbacks, name)

void pmpi_dup_fn_(MPI_Fint *object, MPI_Fint *keyval, MPI_Fint *extra, MPI_Fint *value, MPI_Fint *copy, MPI_Fint *flag,
                  MPI_Fint *ierror)
{
    *copy = *value;
    *flag = 1;
    *ierror = MPI_SUCCESS;
}
CALLBACK_NAMES(mpi_dup_fn, MPI_DUP_FN)
void pmpi_null_copy_fn_ NULL_COPY_BODY CALLBACK_NAMES(mpi_null_copy_fn,
                                                      MPI_NULL_COPY_FN) void pmpi_null_delete_fn_ NULL_DELETE_BODY
    CALLBACK_NAMES(mpi_null_delete_fn, MPI_NULL_DELETE_FN)
#define OBJECT_CALLBACKS(low, high)                                                                                    \
    void pmpi_##low##_dup_fn_ DUP_BODY CALLBACK_NAMES(                                                                 \
        mpi_##low##_dup_fn, MPI_##high##_DUP_FN) void pmpi_##low##_null_copy_fn_ NULL_COPY_BODY                        \
    CALLBACK_NAMES(mpi_##low##_null_copy_fn,                                                                           \
                   MPI_##high##_NULL_COPY_FN) void pmpi_##low##_null_delete_fn_ NULL_DELETE_BODY                       \
    CALLBACK_NAMES(mpi_##low##_null_delete_fn, MPI_##high##_NULL_DELETE_FN)                                            \
        IN_MODULE(pmpi_##low##_dup_fn_, mpi_##low##_dup_fn)                                                            \
            IN_MODULE(pmpi_##low##_null_copy_fn_, mpi_##low##_null_copy_fn)                                            \
                IN_MODULE(pmpi_##low##_null_delete_fn_, mpi_##low##_null_delete_fn)
        OBJECT_CALLBACKS(comm, COMM) OBJECT_CALLBACKS(type, TYPE) OBJECT_CALLBACKS(win, WIN)

            void pmpi_conversion_fn_null_(void)
{
}
CALLBACK_NAMES(mpi_conversion_fn_null, MPI_CONVERSION_FN_NULL)
void pmpi_conversion_fn_null_c_(void)
{
}
CALLBACK_NAMES(mpi_conversion_fn_null_c, MPI_CONVERSION_FN_NULL_C)
IN_MODULE(pmpi_conversion_fn_null_, mpi_conversion_fn_null)
IN_MODULE(pmpi_conversion_fn_null_c_, mpi_conversion_fn_null_c)

/* ---- MPI_Sizeof: the argument's type has chosen the function ---- */

#define SIZEOF(module, name, bytes)                                                                                    \
    void module##_sizeof_##name(const void *x, MPI_Fint *size,                                                         \
                                MPI_Fint *ierror) __asm__("__" #module "_MOD_mpi_sizeof_" #name);                      \
    void module##_sizeof_##name(const void *x, MPI_Fint *size, MPI_Fint *ierror)                                       \
    {                                                                                                                  \
        *size = (bytes);                                                                                               \
        if (ierror)                                                                                                    \
            *ierror = MPI_SUCCESS;                                                                                     \
    }                                                                                                                  \
    FLANG(module##_sizeof_##name, module, mpi_sizeof_##name)
/* of the module mpi; with v: for arrays, of programs compiled with MPICH's module */
#define SIZEOF_MPI(name, bytes) SIZEOF(mpi_sizeofs, name, bytes) SIZEOF(mpi_sizeofs, name##v, bytes)
SIZEOF_MPI(i, 4)
SIZEOF_MPI(i1, 1)
SIZEOF_MPI(i2, 2)
SIZEOF_MPI(i8, 8)
SIZEOF_MPI(l, 4)
SIZEOF_MPI(r, 4)
SIZEOF_MPI(d, 8)
SIZEOF_MPI(cx, 8)
SIZEOF_MPI(ch, 1)
SIZEOF(mpi_sizeofs, z, 16)
SIZEOF(mpi_f08_types, character, 1)
SIZEOF(mpi_f08_types, logical, 4)
SIZEOF(mpi_f08_types, xint8, 1)
SIZEOF(mpi_f08_types, xint16, 2)
SIZEOF(mpi_f08_types, xint32, 4)
SIZEOF(mpi_f08_types, xint64, 8)
SIZEOF(mpi_f08_types, xreal32, 4)
SIZEOF(mpi_f08_types, xreal64, 8)
SIZEOF(mpi_f08_types, xreal128, 16)
SIZEOF(mpi_f08_types, xcomplex32, 8)
SIZEOF(mpi_f08_types, xcomplex64, 16)
SIZEOF(mpi_f08_types, xcomplex128, 32)

/* ---- handles: constants at addresses, comparisons, C's integers ---- */

#define COMPARE(module, name, equal)                                                                                   \
    MPI_Fint module##_##name(const MPI_Fint *a, const MPI_Fint *b) __asm__("__" #module "_MOD_" #name);                \
    MPI_Fint module##_##name(const MPI_Fint *a, const MPI_Fint *b)                                                     \
    {                                                                                                                  \
        return (*a == *b) == (equal);                                                                                  \
    }                                                                                                                  \
    FLANG(module##_##name, module, name)
#define CONVERT(name)                                                                                                  \
    MPI_Fint mpi_f08_types_##name(MPI_Fint handle) __asm__("__mpi_f08_types_MOD_" #name);                              \
    MPI_Fint mpi_f08_types_##name(MPI_Fint handle)                                                                     \
    {                                                                                                                  \
        return handle;                                                                                                 \
    }                                                                                                                  \
    FLANG(mpi_f08_types_##name, mpi_f08_types, name)
#define FORT_HANDLE(kind, type)                                                                                        \
    COMPARE(mpi_constants, kind##eq, true)                                                                             \
    COMPARE(mpi_constants, kind##neq, false)                                                                           \
    COMPARE(mpi_f08_types, type##_eq, true)                                                                            \
    COMPARE(mpi_f08_types, type##_f08_eq_f, true)                                                                      \
    COMPARE(mpi_f08_types, type##_f_eq_f08, true)                                                                      \
    COMPARE(mpi_f08_types, type##_neq, false)                                                                          \
    COMPARE(mpi_f08_types, type##_f08_neq_f, false)                                                                    \
    COMPARE(mpi_f08_types, type##_f_neq_f08, false)                                                                    \
    CONVERT(type##_c2f)                                                                                                \
    CONVERT(type##_f2c)
#define FORT_CONSTANT(name, value)                                                                                     \
    extern const MPI_Fint name##_constant __asm__("__mpi_f08_compile_constants_MOD_" #name);                           \
    const MPI_Fint name##_constant = (value);

#include "data.inc"

/* ---- statuses: one layout ---- */

#define COPY_STATUS(name)                                                                                              \
    void name##_status(const MPI_Status *from, MPI_Status *to,                                                         \
                       MPI_Fint *ierror) __asm__("__mpi_f08_types_MOD_" #name);                                        \
    void name##_status(const MPI_Status *from, MPI_Status *to, MPI_Fint *ierror)                                       \
    {                                                                                                                  \
        memcpy(to, from, sizeof(*to));                                                                                 \
        fort_return(ierror, MPI_SUCCESS);                                                                              \
    }                                                                                                                  \
    FLANG(name##_status, mpi_f08_types, name)
COPY_STATUS(mpi_status_f2f08)
COPY_STATUS(mpi_status_f082f)
#define ASSIGN_STATUS(name)                                                                                            \
    void name##_status(MPI_Status *to, const MPI_Status *from) __asm__("__mpi_f08_types_MOD_" #name);                  \
    void name##_status(MPI_Status *to, const MPI_Status *from)                                                         \
    {                                                                                                                  \
        memcpy(to, from, sizeof(*to));                                                                                 \
    }                                                                                                                  \
    FLANG(name##_status, mpi_f08_types, name)
ASSIGN_STATUS(mpi_status_c_assign_f08)
ASSIGN_STATUS(mpi_status_f08_assign_c)
