/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking into statuses and filling them in. Local: no lock is needed but for looking at a datatype. */
#include "libmrmpi/api/api.h"

#include <limits.h>
#include <string.h>

MPI_FN(int, Test_cancelled, (const MPI_Status *status, int *flag))
{
    API_ENTER();
    NOT_NULL(status);
    NOT_NULL(flag);
    *flag = abi_status_cancelled(status);
    API_LEAVE(NULL);
}

MPI_FN(int, Get_count, (const MPI_Status *status, MPI_Datatype datatype, int *count))
{
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(status);
    NOT_NULL(count);
    CHECK(api_type(datatype, &t));
    uint64_t bytes = abi_status_bytes(status);
    if (t->size == 0)
        *count = bytes ? MPI_UNDEFINED : 0;
    else
        *count = bytes % t->size || bytes / t->size > INT_MAX ? MPI_UNDEFINED : (int)(bytes / t->size);
    API_LEAVE(NULL);
}

MPI_FN(int, Get_elements_x, (const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count))
{
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(status);
    NOT_NULL(count);
    CHECK(api_type(datatype, &t));
    *count = (MPI_Count)mr_type_elements(t, abi_status_bytes(status));
    API_LEAVE(NULL);
}

MPI_FN(int, Get_elements, (const MPI_Status *status, MPI_Datatype datatype, int *count))
{
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(status);
    NOT_NULL(count);
    CHECK(api_type(datatype, &t));
    size_t n = mr_type_elements(t, abi_status_bytes(status));
    *count = n > INT_MAX ? MPI_UNDEFINED : (int)n;
    API_LEAVE(NULL);
}

MPI_FN(int, Status_set_elements_x, (MPI_Status * status, MPI_Datatype datatype, MPI_Count count))
{
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(status);
    CHECK(api_type(datatype, &t));
    if (count < 0)
        CHECK(api_bad_count(count, "count"));
    if (t->elements && (size_t)count % t->elements && t->basic == MR_BASIC_MIXED)
        CHECK(mr_fail(MR_ERR_COUNT, "%ld elements are not a whole number of the datatype, which has %zu", count,
                      t->elements));
    size_t bytes = t->elements ? (size_t)count * t->size / t->elements : 0;
    abi_status_set_bytes(status, bytes, abi_status_cancelled(status));
    API_LEAVE(NULL);
}

MPI_FN(int, Status_set_elements, (MPI_Status * status, MPI_Datatype datatype, int count))
{
    return PMPI_Status_set_elements_x(status, datatype, count);
}

MPI_FN(int, Status_set_cancelled, (MPI_Status * status, int flag))
{
    API_ENTER();
    NOT_NULL(status);
    abi_status_set_bytes(status, abi_status_bytes(status), flag != 0);
    API_LEAVE(NULL);
}

/* A Fortran status is the same five integers. */
_Static_assert(sizeof(MPI_Status) == 5 * sizeof(MPI_Fint), "status in Fortran");

MPI_FN(int, Status_c2f, (const MPI_Status *c_status, MPI_Fint *f_status))
{
    API_ENTER();
    NOT_NULL(c_status);
    NOT_NULL(f_status);
    if (c_status == MPI_STATUS_IGNORE)
        CHECK(mr_fail(MR_ERR_ARG, "MPI_STATUS_IGNORE has no content to convert"));
    memcpy(f_status, c_status, sizeof(*c_status));
    API_LEAVE(NULL);
}

MPI_FN(int, Status_f2c, (const MPI_Fint *f_status, MPI_Status *c_status))
{
    API_ENTER();
    NOT_NULL(f_status);
    NOT_NULL(c_status);
    memcpy(c_status, f_status, sizeof(*c_status));
    API_LEAVE(NULL);
}
