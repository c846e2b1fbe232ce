/* SPDX-License-Identifier: BSD-3-Clause */
/* Derived datatypes, packing (MPI-3.1 chapter 4). */
#include "libmrmpi/api/api.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- constructors ---- */

static enum mr_err check_counts(int count, const int *lengths, const void *disps)
{
    if (count < 0)
        return api_bad_count(count, "count");
    if (count && (!lengths || !disps))
        return api_null(lengths ? "array_of_displacements" : "array_of_blocklengths");
    for (int i = 0; i < count; i++)
        if (lengths[i] < 0)
            return mr_fail(MR_ERR_ARG, "blocklengths[%d] is %d", i, lengths[i]);
    return MR_SUCCESS;
}

static enum mr_err check_block(int count, int length)
{
    if (count < 0)
        return api_bad_count(count, "count");
    return length < 0 ? mr_fail(MR_ERR_ARG, "blocklength is %d", length) : MR_SUCCESS;
}

/* A constructor with one old type: check, make. */
#define CONSTRUCTOR(name, params, check, make)                                                                         \
    MPI_FN(int, name, params)                                                                                          \
    {                                                                                                                  \
        struct mr_type *t;                                                                                             \
        API_ENTER();                                                                                                   \
        NOT_NULL(newtype);                                                                                             \
        CHECK(api_type(oldtype, &t));                                                                                  \
        CHECK(check);                                                                                                  \
        err = api_new_type(make, newtype);                                                                             \
        API_LEAVE(NULL);                                                                                               \
    }

CONSTRUCTOR(Type_contiguous, (int count, MPI_Datatype oldtype, MPI_Datatype *newtype), check_block(count, 0),
            mr_type_contiguous(count, t))
CONSTRUCTOR(Type_vector, (int count, int blocklength, int stride, MPI_Datatype oldtype, MPI_Datatype *newtype),
            check_block(count, blocklength), mr_type_vector(count, blocklength, stride, t))
CONSTRUCTOR(Type_create_hvector,
            (int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype),
            check_block(count, blocklength), mr_type_hvector(count, blocklength, stride, t))
CONSTRUCTOR(Type_indexed,
            (int count, const int blocklengths[], const int displacements[], MPI_Datatype oldtype,
             MPI_Datatype *newtype),
            check_counts(count, blocklengths, displacements), mr_type_indexed(count, blocklengths, displacements, t))
CONSTRUCTOR(Type_create_hindexed,
            (int count, const int blocklengths[], const MPI_Aint displacements[], MPI_Datatype oldtype,
             MPI_Datatype *newtype),
            check_counts(count, blocklengths, displacements), mr_type_hindexed(count, blocklengths, displacements, t))
CONSTRUCTOR(Type_create_indexed_block,
            (int count, int blocklength, const int displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype),
            check_block(count, blocklength), mr_type_indexed_block(count, blocklength, displacements, t))
CONSTRUCTOR(Type_create_hindexed_block,
            (int count, int blocklength, const MPI_Aint displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype),
            check_block(count, blocklength), mr_type_hindexed_block(count, blocklength, displacements, t))
CONSTRUCTOR(Type_create_resized, (MPI_Datatype oldtype, MPI_Aint lb, MPI_Aint extent, MPI_Datatype *newtype),
            MR_SUCCESS, mr_type_resized(t, lb, extent))

static enum mr_err check_subarray(int ndims, const int *sizes, const int *subsizes, const int *starts, int order)
{
    if (ndims < 1)
        return mr_fail(MR_ERR_DIMS, "ndims is %d", ndims);
    if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
        return mr_fail(MR_ERR_ARG, "order is %d: neither MPI_ORDER_C nor MPI_ORDER_FORTRAN", order);
    for (int i = 0; i < ndims; i++)
        if (sizes[i] < 1 || subsizes[i] < 1 || subsizes[i] > sizes[i] || starts[i] < 0 ||
            starts[i] > sizes[i] - subsizes[i])
            return mr_fail(MR_ERR_ARG, "dimension %d: %d elements from %d on do not fit into %d", i, subsizes[i],
                           starts[i], sizes[i]);
    return MR_SUCCESS;
}
CONSTRUCTOR(Type_create_subarray,
            (int ndims, const int sizes[], const int subsizes[], const int starts[], int order, MPI_Datatype oldtype,
             MPI_Datatype *newtype),
            check_subarray(ndims, sizes, subsizes, starts, order),
            mr_type_subarray(ndims, sizes, subsizes, starts, order == MPI_ORDER_FORTRAN, order, t))

MPI_FN(int, Type_create_struct,
       (int count, const int blocklengths[], const MPI_Aint displacements[], const MPI_Datatype types[],
        MPI_Datatype *newtype))
{
    struct mr_type **t = NULL;
    API_ENTER();
    NOT_NULL(newtype);
    CHECK(check_counts(count, blocklengths, displacements));
    if (!(t = malloc(((size_t)count + 1) * sizeof(struct mr_type *))))
        CHECK(mr_fail(MR_ERR_NO_MEM, "no memory for %d types", count));
    for (int i = 0; i < count && !err; i++)
        err = api_type(types[i], &t[i]);
    if (!err)
        err = api_new_type(mr_type_struct(count, blocklengths, displacements, t), newtype);
    free(t);
    API_LEAVE(NULL);
}

MPI_FN(int, Type_dup, (MPI_Datatype oldtype, MPI_Datatype *newtype))
{
    struct mr_type *t, *made;
    int user_error;
    API_ENTER();
    NOT_NULL(newtype);
    CHECK(api_type(oldtype, &t));
    made = mr_type_dup(t);
    if (made) {
        api_in_callback++;
        err = mr_attr_copy_all(t->attrs, t, &made->attrs, &user_error);
        if (err) { /* the first error is the one to tell */
            mr_attr_delete_all(&made->attrs, made, &(int){0});
            mr_type_put(made);
        }
        api_in_callback--;
    }
    CHECK(err);
    err = api_new_type(made, newtype);
    API_LEAVE(NULL);
}

MPI_FN(int, Type_commit, (MPI_Datatype * datatype))
{
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(datatype);
    CHECK(api_type(*datatype, &t));
    t->committed = true;
    API_LEAVE(NULL);
}

MPI_FN(int, Type_free, (MPI_Datatype * datatype))
{
    struct mr_type *t;
    int user_error;
    API_ENTER();
    NOT_NULL(datatype);
    CHECK(api_type(*datatype, &t));
    if (t->builtin)
        CHECK(mr_fail(MR_ERR_TYPE, "%s is built in and cannot be freed", mr_type_name(t)));
    api_in_callback++;
    err = mr_attr_delete_all(&t->attrs, t, &user_error);
    api_in_callback--;
    CHECK(err);
    if (api_handle_free(ABI_TYPE, *datatype))
        t->handle = 0;
    mr_type_put(t);
    *datatype = MPI_DATATYPE_NULL;
    API_LEAVE(NULL);
}

/* ---- sizes ---- */

MPI_FN(int, Type_size, (MPI_Datatype datatype, int *size))
{
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(size);
    CHECK(api_type(datatype, &t));
    *size = t->size > INT_MAX ? MPI_UNDEFINED : (int)t->size;
    API_LEAVE(NULL);
}

MPI_FN(int, Type_size_x, (MPI_Datatype datatype, MPI_Count *size))
{
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(size);
    CHECK(api_type(datatype, &t));
    *size = (MPI_Count)t->size;
    API_LEAVE(NULL);
}

#define EXTENT(name, itype, lbfield, extentfield)                                                                      \
    MPI_FN(int, name, (MPI_Datatype datatype, itype * lb, itype * extent))                                             \
    {                                                                                                                  \
        struct mr_type *t;                                                                                             \
        API_ENTER();                                                                                                   \
        NOT_NULL(lb);                                                                                                  \
        NOT_NULL(extent);                                                                                              \
        CHECK(api_type(datatype, &t));                                                                                 \
        *lb = t->lbfield;                                                                                              \
        *extent = t->extentfield;                                                                                      \
        API_LEAVE(NULL);                                                                                               \
    }
EXTENT(Type_get_extent, MPI_Aint, lb, extent)
EXTENT(Type_get_extent_x, MPI_Count, lb, extent)
EXTENT(Type_get_true_extent, MPI_Aint, true_lb, true_extent)
EXTENT(Type_get_true_extent_x, MPI_Count, true_lb, true_extent)

/* ---- what a type was made of ---- */

static const struct {
    int abi;
    int types; /* that the user gave; -1: all in the recipe */
} combiners[] = {
    [MR_COMBINER_NAMED] = {MPI_COMBINER_NAMED, 0},
    [MR_COMBINER_DUP] = {MPI_COMBINER_DUP, 1},
    [MR_COMBINER_CONTIGUOUS] = {MPI_COMBINER_CONTIGUOUS, 1},
    [MR_COMBINER_VECTOR] = {MPI_COMBINER_VECTOR, 1},
    [MR_COMBINER_HVECTOR] = {MPI_COMBINER_HVECTOR, 1},
    [MR_COMBINER_INDEXED] = {MPI_COMBINER_INDEXED, 1},
    [MR_COMBINER_HINDEXED] = {MPI_COMBINER_HINDEXED, 1},
    [MR_COMBINER_INDEXED_BLOCK] = {MPI_COMBINER_INDEXED_BLOCK, 1},
    [MR_COMBINER_HINDEXED_BLOCK] = {MPI_COMBINER_HINDEXED_BLOCK, 1},
    [MR_COMBINER_STRUCT] = {MPI_COMBINER_STRUCT, -1},
    [MR_COMBINER_SUBARRAY] = {MPI_COMBINER_SUBARRAY, 1},
    [MR_COMBINER_RESIZED] = {MPI_COMBINER_RESIZED, 1},
};

MPI_FN(int, Type_get_envelope,
       (MPI_Datatype datatype, int *num_integers, int *num_addresses, int *num_datatypes, int *combiner))
{
    struct mr_type *t;
    API_ENTER();
    CHECK(api_type(datatype, &t));
    const struct mr_recipe *r = t->recipe;
    enum mr_combiner k = r ? r->combiner : MR_COMBINER_NAMED;
    *num_integers = r ? r->num_ints : 0;
    *num_addresses = r ? r->num_aints : 0;
    *num_datatypes = combiners[k].types < 0 ? r->num_types : combiners[k].types;
    *combiner = combiners[k].abi;
    API_LEAVE(NULL);
}

/* A handle for one of the types of a recipe: built-in ones are themselves, others the user must free. */
static enum mr_err contained(struct mr_type *t, MPI_Datatype *h)
{
    *h = t->handle;
    return t->builtin ? MR_SUCCESS : api_new_type(mr_type_get(t), h);
}

MPI_FN(int, Type_get_contents,
       (MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes, int integers[],
        MPI_Aint addresses[], MPI_Datatype datatypes[]))
{
    struct mr_type *t;
    API_ENTER();
    CHECK(api_type(datatype, &t));
    const struct mr_recipe *r = t->recipe;
    if (!r)
        CHECK(mr_fail(MR_ERR_TYPE, "%s is built in: it has no contents", mr_type_name(t)));
    int types = combiners[r->combiner].types < 0 ? r->num_types : combiners[r->combiner].types;
    if (max_integers < r->num_ints || max_addresses < r->num_aints || max_datatypes < types)
        CHECK(mr_fail(MR_ERR_ARG, "the arrays are too short: %d integers, %d addresses and %d datatypes are needed",
                      r->num_ints, r->num_aints, types));
    for (int i = 0; i < r->num_ints; i++)
        integers[i] = r->ints[i];
    for (int i = 0; i < r->num_aints; i++)
        addresses[i] = r->aints[i];
    for (int i = 0; i < types; i++)
        CHECK(contained(r->types[i], &datatypes[i]));
    API_LEAVE(NULL);
}

MPI_FN(int, Type_set_name, (MPI_Datatype type, const char *type_name))
{
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(type_name);
    CHECK(api_type(type, &t));
    char *name = strndup(type_name, MPI_MAX_OBJECT_NAME - 1);
    if (!name)
        CHECK(mr_fail(MR_ERR_NO_MEM, "no memory for a name"));
    free(t->name);
    t->name = name;
    API_LEAVE(NULL);
}

MPI_FN(int, Type_get_name, (MPI_Datatype type, char *type_name, int *resultlen))
{
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(type_name);
    NOT_NULL(resultlen);
    CHECK(api_type(type, &t));
    api_string(type_name, MPI_MAX_OBJECT_NAME, mr_type_name(t), resultlen);
    API_LEAVE(NULL);
}

static const struct {
    int typeclass, size;
    MPI_Datatype type;
} sized[] = {
    {MPI_TYPECLASS_REAL, 4, MPI_FLOAT},         {MPI_TYPECLASS_REAL, 8, MPI_DOUBLE},
    {MPI_TYPECLASS_REAL, 16, MPI_REAL16},       {MPI_TYPECLASS_INTEGER, 1, MPI_INT8_T},
    {MPI_TYPECLASS_INTEGER, 2, MPI_INT16_T},    {MPI_TYPECLASS_INTEGER, 4, MPI_INT32_T},
    {MPI_TYPECLASS_INTEGER, 8, MPI_INT64_T},    {MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8},
    {MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16}, {MPI_TYPECLASS_COMPLEX, 32, MPI_COMPLEX32},
};

MPI_FN(int, Type_match_size, (int typeclass, int size, MPI_Datatype *datatype))
{
    API_ENTER();
    NOT_NULL(datatype);
    for (size_t i = 0; i < sizeof(sized) / sizeof(sized[0]); i++) {
        if (sized[i].typeclass == typeclass && sized[i].size == size) {
            *datatype = sized[i].type;
            goto out;
        }
    }
    *datatype = MPI_DATATYPE_NULL;
    CHECK(mr_fail(MR_ERR_ARG, "there is no datatype of class %d with %d bytes", typeclass, size));
    API_LEAVE(NULL);
}

/* ---- addresses ---- */

MPI_FN(int, Get_address, (const void *location, MPI_Aint *address))
{
    *address = (MPI_Aint)location;
    return MPI_SUCCESS;
}

/* Unsigned, so that wrapping round is defined. */
MPI_FN(MPI_Aint, Aint_add, (MPI_Aint base, MPI_Aint disp))
{
    return (MPI_Aint)((unsigned long)base + (unsigned long)disp);
}

MPI_FN(MPI_Aint, Aint_diff, (MPI_Aint addr1, MPI_Aint addr2))
{
    return (MPI_Aint)((unsigned long)addr1 - (unsigned long)addr2);
}

/* ---- packing ---- */

static enum mr_err check_room(int position, size_t bytes, int size)
{
    if (position < 0 || position > size || bytes > (size_t)(size - position))
        return mr_fail(MR_ERR_TRUNCATE, "%zu bytes at position %d do not fit into a packed buffer of %d", bytes,
                       position, size);
    return MR_SUCCESS;
}

MPI_FN(int, Pack,
       (const void *inbuf, int incount, MPI_Datatype datatype, void *outbuf, int outsize, int *position, MPI_Comm comm))
{
    struct mr_comm *c = NULL;
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(position);
    CHECK(api_comm(comm, &c));
    CHECK(api_type(datatype, &t));
    CHECK(api_buffer(inbuf, incount, t));
    size_t bytes = (size_t)incount * t->size;
    CHECK(check_room(*position, bytes, outsize));
    mr_type_pack(inbuf, (size_t)incount, t, 0, (char *)outbuf + *position, bytes);
    *position += (int)bytes;
    API_LEAVE(c);
}

MPI_FN(int, Unpack,
       (const void *inbuf, int insize, int *position, void *outbuf, int outcount, MPI_Datatype datatype, MPI_Comm comm))
{
    struct mr_comm *c = NULL;
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(position);
    CHECK(api_comm(comm, &c));
    CHECK(api_type(datatype, &t));
    CHECK(api_buffer(outbuf, outcount, t));
    size_t bytes = (size_t)outcount * t->size;
    CHECK(check_room(*position, bytes, insize));
    mr_type_unpack(outbuf, (size_t)outcount, t, 0, (const char *)inbuf + *position, bytes);
    *position += (int)bytes;
    API_LEAVE(c);
}

MPI_FN(int, Pack_size, (int incount, MPI_Datatype datatype, MPI_Comm comm, int *size))
{
    struct mr_comm *c = NULL;
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(size);
    CHECK(api_comm(comm, &c));
    CHECK(api_type(datatype, &t));
    if (incount < 0)
        CHECK(api_bad_count(incount, "incount"));
    size_t bytes = (size_t)incount * t->size;
    *size = bytes > INT_MAX ? MPI_UNDEFINED : (int)bytes;
    API_LEAVE(c);
}

/* ---- the names of MPI-1 ---- */

MPI_FN(int, Address, (void *location, MPI_Aint *address))
{
    return PMPI_Get_address(location, address);
}

MPI_FN(int, Type_extent, (MPI_Datatype datatype, MPI_Aint *extent))
{
    MPI_Aint lb;
    return PMPI_Type_get_extent(datatype, &lb, extent);
}

MPI_FN(int, Type_lb, (MPI_Datatype datatype, MPI_Aint *displacement))
{
    MPI_Aint extent;
    return PMPI_Type_get_extent(datatype, displacement, &extent);
}

MPI_FN(int, Type_ub, (MPI_Datatype datatype, MPI_Aint *displacement))
{
    MPI_Aint lb, extent;
    int code = PMPI_Type_get_extent(datatype, &lb, &extent);
    if (code == MPI_SUCCESS)
        *displacement = lb + extent;
    return code;
}

MPI_FN(int, Type_hvector, (int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype))
{
    return PMPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype);
}

MPI_FN(int, Type_hindexed,
       (int count, int blocklengths[], MPI_Aint displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype))
{
    return PMPI_Type_create_hindexed(count, blocklengths, displacements, oldtype, newtype);
}

MPI_FN(int, Type_struct,
       (int count, int blocklengths[], MPI_Aint displacements[], MPI_Datatype types[], MPI_Datatype *newtype))
{
    return PMPI_Type_create_struct(count, blocklengths, displacements, types, newtype);
}
