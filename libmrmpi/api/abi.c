/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queries about the binary interface (MPI-5.0 chapter 20). The library knows the types of one Fortran compiler: nothing
 * can be set. Allowed at any time.
 */
#include <stdio.h>
#include <string.h>

#include "libmrmpi/api/api.h"

MPI_FN(int, Abi_get_version, (int *abi_major, int *abi_minor))
{
    NOT_NULL_EVER(abi_major);
    NOT_NULL_EVER(abi_minor);
    *abi_major = abi_version[0];
    *abi_minor = abi_version[1];
    return MPI_SUCCESS;
}

static bool note_size(struct mr_info *i, const char *key, size_t bytes)
{
    char text[16];
    snprintf(text, sizeof(text), "%zu", bytes);
    return mr_info_set(i, key, text);
}

/* Takes i over; full: i got all of its pairs. */
static enum mr_err give_info(struct mr_info *i, bool full, MPI_Info *info)
{
    if (i && !full) {
        mr_info_put(i);
        i = NULL;
    }
    return api_new_info(i, info);
}

MPI_FN(int, Abi_get_info, (MPI_Info * info))
{
    API_ENTER_ANY();
    NOT_NULL(info);
    struct mr_info *i = mr_info_new();
    bool full = i && note_size(i, "mpi_aint_size", sizeof(MPI_Aint)) &&
                note_size(i, "mpi_count_size", sizeof(MPI_Count)) &&
                note_size(i, "mpi_offset_size", sizeof(MPI_Offset));
    err = give_info(i, full, info);
    API_LEAVE_ANY();
}

/* ---- Fortran ---- */

static const struct {
    const char *key;
    MPI_Datatype type;
} sizes[] =
    {
        {"mpi_logical_size", MPI_LOGICAL},
        {"mpi_integer_size", MPI_INTEGER},
        {"mpi_real_size", MPI_REAL},
        {"mpi_double_precision_size", MPI_DOUBLE_PRECISION},
},
  optional[] = {
      {"mpi_logical1_supported", MPI_LOGICAL1},
      {"mpi_logical2_supported", MPI_LOGICAL2},
      {"mpi_logical4_supported", MPI_LOGICAL4},
      {"mpi_logical8_supported", MPI_LOGICAL8},
      {"mpi_logical16_supported", MPI_LOGICAL16},
      {"mpi_integer1_supported", MPI_INTEGER1},
      {"mpi_integer2_supported", MPI_INTEGER2},
      {"mpi_integer4_supported", MPI_INTEGER4},
      {"mpi_integer8_supported", MPI_INTEGER8},
      {"mpi_integer16_supported", MPI_INTEGER16},
      {"mpi_real2_supported", MPI_REAL2},
      {"mpi_real4_supported", MPI_REAL4},
      {"mpi_real8_supported", MPI_REAL8},
      {"mpi_real16_supported", MPI_REAL16},
      {"mpi_complex4_supported", MPI_COMPLEX4},
      {"mpi_complex8_supported", MPI_COMPLEX8},
      {"mpi_complex16_supported", MPI_COMPLEX16},
      {"mpi_complex32_supported", MPI_COMPLEX32},
      {"mpi_double_complex_supported", MPI_DOUBLE_COMPLEX},
};

/* By the handle: types have theirs from the library only while it runs. */
static bool note_fortran(struct mr_info *i)
{
    for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++)
        if (!note_size(i, sizes[k].key, abi_basic_bytes(sizes[k].type)))
            return false;
    for (size_t k = 0; k < sizeof(optional) / sizeof(*optional); k++)
        if (!mr_info_set(i, optional[k].key, abi_basic_bytes(optional[k].type) ? "true" : "false"))
            return false;
    return true;
}

MPI_FN(int, Abi_get_fortran_info, (MPI_Info * info))
{
    API_ENTER_ANY();
    NOT_NULL(info);
    struct mr_info *i = mr_info_new();
    err = give_info(i, i && note_fortran(i), info);
    API_LEAVE_ANY();
}

MPI_FN(int, Abi_set_fortran_info, (MPI_Info info))
{
    struct mr_info *i;
    API_ENTER_ANY();
    CHECK(api_info(info, &i));
    CHECK(mr_fail(MR_ERR_ABI, "the sizes of Fortran's types are those of its binding: see MPI_Abi_get_fortran_info"));
    API_LEAVE_ANY();
}

/* Of a kind of LOGICAL; the compiler has them up to 16 bytes. */
static enum mr_err logical_kind(int logical_size)
{
    if (logical_size < 1 || logical_size > 16 || (logical_size & (logical_size - 1)))
        return mr_fail(MR_ERR_ARG, "logical_size is %d: there are LOGICALs of 1, 2, 4, 8 and 16 bytes", logical_size);
    return MR_SUCCESS;
}

static void store_number(void *at, int bytes, int number)
{
    __int128 wide = number;
    memcpy(at, &wide, (size_t)bytes); /* the low bytes come first on all machines that this binary interface is for */
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "store_number");

/* .TRUE. and .FALSE. as the compiler of the binding has them */
MPI_FN(int, Abi_get_fortran_booleans, (int logical_size, void *logical_true, void *logical_false, int *is_set))
{
    API_ENTER_ANY();
    NOT_NULL(logical_true);
    NOT_NULL(logical_false);
    NOT_NULL(is_set);
    CHECK(logical_kind(logical_size));
    store_number(logical_true, logical_size, 1);
    store_number(logical_false, logical_size, 0);
    *is_set = 1;
    API_LEAVE_ANY();
}

MPI_FN(int, Abi_set_fortran_booleans, (int logical_size, void *logical_true, void *logical_false))
{
    API_ENTER_ANY();
    NOT_NULL(logical_true);
    NOT_NULL(logical_false);
    CHECK(logical_kind(logical_size));
    CHECK(mr_fail(MR_ERR_ABI, "Fortran's logical values are those of its binding: see MPI_Abi_get_fortran_booleans"));
    API_LEAVE_ANY();
}
