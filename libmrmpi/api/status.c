/* SPDX-License-Identifier: BSD-3-Clause */
/* Statuses: queries and changes. Local: no lock is needed but for reading a datatype. */
#include "libmrmpi/api/api.h"

#include <limits.h>

MPI_FN(int, Test_cancelled, (const MPI_Status *status, int *flag))
{
    API_ENTER();
    NOT_NULL(status);
    NOT_NULL(flag);
    *flag = abi_status_cancelled(status);
    API_LEAVE(NULL);
}

/* The same question with results of two widths. */
#define COUNT_OF(name, type, max, what)                                                                                \
    MPI_FN(int, name, (const MPI_Status *status, MPI_Datatype datatype, type *count))                                  \
    {                                                                                                                  \
        struct mr_type *t;                                                                                             \
        API_ENTER();                                                                                                   \
        NOT_NULL(status);                                                                                              \
        NOT_NULL(count);                                                                                               \
        CHECK(api_type(datatype, &t));                                                                                 \
        int64_t n = what(t, abi_status_bytes(status));                                                                 \
        *count = n > (max) ? MPI_UNDEFINED : (type)n;                                                                  \
        API_LEAVE(NULL);                                                                                               \
    }

static int64_t whole(const struct mr_type *t, uint64_t bytes)
{
    if (t->size == 0)
        return bytes ? MPI_UNDEFINED : 0;
    return bytes % t->size ? MPI_UNDEFINED : (int64_t)(bytes / t->size);
}
COUNT_OF(Get_count, int, INT_MAX, whole)
COUNT_OF(Get_count_c, MPI_Count, INT64_MAX, whole)

/* MPI_UNDEFINED if the bytes do not end where an element does: they came as another type. */
static int64_t whole_elements(const struct mr_type *t, uint64_t bytes)
{
    size_t n = mr_type_elements(t, bytes);
    return mr_type_element_bytes(t, n) == bytes ? (int64_t)n : MPI_UNDEFINED;
}
COUNT_OF(Get_elements, int, INT_MAX, whole_elements)
COUNT_OF(Get_elements_c, MPI_Count, INT64_MAX, whole_elements)
COUNT_OF(Get_elements_x, MPI_Count, INT64_MAX, whole_elements)

static enum mr_err set_elements(MPI_Status *status, MPI_Datatype datatype, MPI_Count count)
{
    struct mr_type *t;
    if (!status)
        return api_null("status");
    enum mr_err err = api_type(datatype, &t);
    if (err)
        return err;
    if (count < 0)
        return api_bad_count(count, "count");
    abi_status_set_bytes(status, mr_type_element_bytes(t, (size_t)count), abi_status_cancelled(status));
    return MR_SUCCESS;
}

/* One function, by its name in MPI-4.1 and by its earlier name. */
MPI_FN(int, Status_set_elements_c, (MPI_Status * status, MPI_Datatype datatype, MPI_Count count))
{
    API_ENTER();
    err = set_elements(status, datatype, count);
    API_LEAVE(NULL);
}

MPI_FN(int, Status_set_elements_x, (MPI_Status * status, MPI_Datatype datatype, MPI_Count count))
{
    API_ENTER();
    err = set_elements(status, datatype, count);
    API_LEAVE(NULL);
}

MPI_FN(int, Status_set_elements, (MPI_Status * status, MPI_Datatype datatype, int count))
{
    API_ENTER();
    err = set_elements(status, datatype, count);
    API_LEAVE(NULL);
}

MPI_FN(int, Status_set_cancelled, (MPI_Status * status, int flag))
{
    API_ENTER();
    NOT_NULL(status);
    abi_status_set_bytes(status, abi_status_bytes(status), flag != 0);
    API_LEAVE(NULL);
}

/* ---- the fields by name, for what cannot see them (MPI-4.1 section 3.2.5) ---- */

static enum mr_err has_fields(const MPI_Status *status)
{
    if (!status)
        return api_null("status");
    return status == MPI_STATUS_IGNORE ? mr_fail(MR_ERR_ARG, "status is MPI_STATUS_IGNORE, which has no fields")
                                       : MR_SUCCESS;
}

#define FIELD(what, name, field)                                                                                       \
    MPI_FN(int, Status_get_##what, (const MPI_Status *status, int *name))                                              \
    {                                                                                                                  \
        API_ENTER_ANY();                                                                                               \
        CHECK(has_fields(status));                                                                                     \
        NOT_NULL(name);                                                                                                \
        *(name) = status->field;                                                                                       \
        API_LEAVE_ANY();                                                                                               \
    }                                                                                                                  \
    MPI_FN(int, Status_set_##what, (MPI_Status * status, int name))                                                    \
    {                                                                                                                  \
        API_ENTER_ANY();                                                                                               \
        CHECK(has_fields(status));                                                                                     \
        status->field = name;                                                                                          \
        API_LEAVE_ANY();                                                                                               \
    }
FIELD(source, source, MPI_SOURCE) /* MPI_Status_get_source MPI_Status_set_source */
FIELD(tag, tag, MPI_TAG)          /* MPI_Status_get_tag MPI_Status_set_tag */
FIELD(error, code, MPI_ERROR)     /* MPI_Status_get_error MPI_Status_set_error */
