/* SPDX-License-Identifier: BSD-3-Clause */
/* Packing, native and external32 (MPI-4.0 sections 5.2 and 5.3): counts, so this file is compiled twice (api.h). */
#include "libmrmpi/api/api.h"

#include <string.h>

#ifdef API_LARGE
typedef MPI_Count api_aint; /* sizes and positions of MPI_Pack_external */
#else
typedef MPI_Aint api_aint;
#endif

/* Room for bytes at a position of a packed buffer of a size. */
#define check_room(packed, position, bytes, size) check_room_named(packed, position, bytes, size, #packed, #size)
static enum mr_err check_room_named(const void *packed, int64_t position, size_t bytes, int64_t size, const char *name,
                                    const char *size_name)
{
    if (!packed && bytes)
        return mr_fail(MR_ERR_BUFFER, "%s is a null pointer, for %zu bytes", name, bytes);
    if (position < 0 || position > size || bytes > (size_t)(size - position))
        return mr_fail(MR_ERR_TRUNCATE, "%zu bytes at position %lld do not fit: %s is %lld", bytes, (long long)position,
                       size_name, (long long)size);
    return MR_SUCCESS;
}

MPI_COUNT_FN(int, Pack,
             (const void *inbuf, api_count incount, MPI_Datatype datatype, void *outbuf, api_count outsize,
              api_count *position, MPI_Comm comm))
{
    struct mr_comm *c = NULL;
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(position);
    CHECK(api_comm(comm, &c));
    CHECK(api_type(datatype, &t));
    CHECK(api_buffer(inbuf, incount, t));
    size_t bytes = (size_t)incount * t->size;
    CHECK(check_room(outbuf, *position, bytes, outsize));
    mr_type_pack(inbuf, (size_t)incount, t, 0, (char *)outbuf + *position, bytes);
    *position += (api_count)bytes;
    API_LEAVE(c);
}

MPI_COUNT_FN(int, Unpack,
             (const void *inbuf, api_count insize, api_count *position, void *outbuf, api_count outcount,
              MPI_Datatype datatype, MPI_Comm comm))
{
    struct mr_comm *c = NULL;
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(position);
    CHECK(api_comm(comm, &c));
    CHECK(api_type(datatype, &t));
    CHECK(api_buffer(outbuf, outcount, t));
    size_t bytes = (size_t)outcount * t->size;
    CHECK(check_room(inbuf, *position, bytes, insize));
    mr_type_unpack(outbuf, (size_t)outcount, t, 0, (const char *)inbuf + *position, bytes);
    *position += (api_count)bytes;
    API_LEAVE(c);
}

MPI_COUNT_FN(int, Pack_size, (api_count incount, MPI_Datatype datatype, MPI_Comm comm, api_count *size))
{
    struct mr_comm *c = NULL;
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(size);
    CHECK(api_comm(comm, &c));
    CHECK(api_type(datatype, &t));
    if (incount < 0)
        CHECK(api_bad_count(incount, "incount"));
    *size = api_count_of((uint64_t)incount * t->size);
    API_LEAVE(c);
}

/* ---- external32 ---- */

static enum mr_err check_datarep(const char *datarep)
{
    if (!datarep)
        return api_null("datarep");
    if (strcmp(datarep, "external32"))
        return mr_fail(MR_ERR_ARG, "datarep is \"%.40s\": only \"external32\" is known", datarep);
    return MR_SUCCESS;
}

MPI_COUNT_FN(int, Pack_external,
             (const char datarep[], const void *inbuf, api_count incount, MPI_Datatype datatype, void *outbuf,
              api_aint outsize, api_aint *position))
{
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(position);
    CHECK(check_datarep(datarep));
    CHECK(api_type(datatype, &t));
    CHECK(api_buffer(inbuf, incount, t));
    size_t bytes = (size_t)incount * mr_external_size(t);
    CHECK(check_room(outbuf, *position, bytes, outsize));
    mr_external_pack(inbuf, (size_t)incount, t, (char *)outbuf + *position);
    *position += (api_aint)bytes;
    API_LEAVE(NULL);
}

MPI_COUNT_FN(int, Unpack_external,
             (const char datarep[], const void *inbuf, api_aint insize, api_aint *position, void *outbuf,
              api_count outcount, MPI_Datatype datatype))
{
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(position);
    CHECK(check_datarep(datarep));
    CHECK(api_type(datatype, &t));
    CHECK(api_buffer(outbuf, outcount, t));
    size_t bytes = (size_t)outcount * mr_external_size(t);
    CHECK(check_room(inbuf, *position, bytes, insize));
    mr_external_unpack(outbuf, (size_t)outcount, t, (const char *)inbuf + *position);
    *position += (api_aint)bytes;
    API_LEAVE(NULL);
}

MPI_COUNT_FN(int, Pack_external_size, (const char datarep[], api_count incount, MPI_Datatype datatype, api_aint *size))
{
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(size);
    CHECK(check_datarep(datarep));
    CHECK(api_type(datatype, &t));
    if (incount < 0)
        CHECK(api_bad_count(incount, "incount"));
    *size = (api_aint)((uint64_t)incount * mr_external_size(t));
    API_LEAVE(NULL);
}
