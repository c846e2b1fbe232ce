/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes as objects: copies, life, names, construction; types found by size or kind; addresses (MPI-4.0 chapter 5).
 */
#include "libmrmpi/api/api.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

MPI_FN(int, Type_dup, (MPI_Datatype oldtype, MPI_Datatype *newtype))
{
    struct mr_type *t, *made;
    int user_error;
    API_ENTER();
    NOT_NULL(newtype);
    CHECK(api_type(oldtype, &t));
    *newtype = MPI_DATATYPE_NULL;
    made = mr_type_dup(t);
    if (made) {
        api_in_callback++;
        err = mr_attr_copy_all(t->attrs, t, &made->attrs, &user_error);
        if (err) { /* the first error counts */
            mr_attr_delete_all(&made->attrs, made, &(int){0});
            mr_type_put(made);
        }
        api_in_callback--;
    }
    CHECK(err);
    err = api_new_type(made, newtype);
    API_LEAVE(NULL);
}

/* The types for MPI_MINLOC and MPI_MAXLOC. */
static const struct {
    MPI_Datatype value, index, pair;
} pairs[] = {
    {MPI_FLOAT, MPI_INT, MPI_FLOAT_INT},
    {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
    {MPI_LONG, MPI_INT, MPI_LONG_INT},
    {MPI_SHORT, MPI_INT, MPI_SHORT_INT},
    {MPI_INT, MPI_INT, MPI_2INT},
    {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
    {MPI_REAL, MPI_REAL, MPI_2REAL},
    {MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION},
    {MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER},
};

MPI_FN(int, Type_get_value_index, (MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype *pair_type))
{
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(pair_type);
    CHECK(api_type(value_type, &t));
    CHECK(api_type(index_type, &t));
    *pair_type = MPI_DATATYPE_NULL;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (pairs[i].value == value_type && pairs[i].index == index_type)
            *pair_type = pairs[i].pair;
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
    if (api_handle_free(ABI_TYPE, abi_number(*datatype)))
        t->handle = 0;
    mr_type_put(t);
    *datatype = MPI_DATATYPE_NULL;
    API_LEAVE(NULL);
}

/* ---- the wide sizes of MPI-3 ---- */

MPI_FN(int, Type_size_x, (MPI_Datatype datatype, MPI_Count *size))
{
    return PMPI_Type_size_c(datatype, size);
}

MPI_FN(int, Type_get_extent_x, (MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent))
{
    return PMPI_Type_get_extent_c(datatype, lb, extent);
}

MPI_FN(int, Type_get_true_extent_x, (MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent))
{
    return PMPI_Type_get_true_extent_c(datatype, true_lb, true_extent);
}

/* ---- what a type was made of ---- */

static const int combiners[] = {
    [MR_COMBINER_NAMED] = MPI_COMBINER_NAMED,
    [MR_COMBINER_DUP] = MPI_COMBINER_DUP,
    [MR_COMBINER_CONTIGUOUS] = MPI_COMBINER_CONTIGUOUS,
    [MR_COMBINER_VECTOR] = MPI_COMBINER_VECTOR,
    [MR_COMBINER_HVECTOR] = MPI_COMBINER_HVECTOR,
    [MR_COMBINER_INDEXED] = MPI_COMBINER_INDEXED,
    [MR_COMBINER_HINDEXED] = MPI_COMBINER_HINDEXED,
    [MR_COMBINER_INDEXED_BLOCK] = MPI_COMBINER_INDEXED_BLOCK,
    [MR_COMBINER_HINDEXED_BLOCK] = MPI_COMBINER_HINDEXED_BLOCK,
    [MR_COMBINER_STRUCT] = MPI_COMBINER_STRUCT,
    [MR_COMBINER_SUBARRAY] = MPI_COMBINER_SUBARRAY,
    [MR_COMBINER_RESIZED] = MPI_COMBINER_RESIZED,
    [MR_COMBINER_DARRAY] = MPI_COMBINER_DARRAY,
    [MR_COMBINER_F90_REAL] = MPI_COMBINER_F90_REAL,
    [MR_COMBINER_F90_COMPLEX] = MPI_COMBINER_F90_COMPLEX,
    [MR_COMBINER_F90_INTEGER] = MPI_COMBINER_F90_INTEGER,
};

static const struct mr_recipe named = {.combiner = MR_COMBINER_NAMED};

static int user_types(const struct mr_recipe *r)
{
    return r->num_types - r->num_hidden;
}

/* Large counts cannot be told by the functions without them (MPI-4.0 section 5.1.13). */
static enum mr_err recipe_of(MPI_Datatype datatype, bool large_too, const struct mr_recipe **r)
{
    struct mr_type *t;
    enum mr_err err = api_type(datatype, &t);
    if (err)
        return err;
    *r = t->recipe ? t->recipe : &named;
    if ((*r)->num_counts && !large_too)
        return mr_fail(MR_ERR_TYPE,
                       "the datatype was made with large counts: ask for its envelope and contents with the "
                       "functions that end in _c");
    return MR_SUCCESS;
}

MPI_FN(int, Type_get_envelope,
       (MPI_Datatype datatype, int *num_integers, int *num_addresses, int *num_datatypes, int *combiner))
{
    const struct mr_recipe *r;
    API_ENTER();
    NOT_NULL(num_integers);
    NOT_NULL(num_addresses);
    NOT_NULL(num_datatypes);
    NOT_NULL(combiner);
    CHECK(recipe_of(datatype, false, &r));
    *num_integers = (int)r->num_ints;
    *num_addresses = (int)r->num_aints;
    *num_datatypes = user_types(r);
    *combiner = combiners[r->combiner];
    API_LEAVE(NULL);
}

MPI_FN(int, Type_get_envelope_c,
       (MPI_Datatype datatype, MPI_Count *num_integers, MPI_Count *num_addresses, MPI_Count *num_large_counts,
        MPI_Count *num_datatypes, int *combiner))
{
    const struct mr_recipe *r;
    API_ENTER();
    NOT_NULL(num_integers);
    NOT_NULL(num_addresses);
    NOT_NULL(num_large_counts);
    NOT_NULL(num_datatypes);
    NOT_NULL(combiner);
    CHECK(recipe_of(datatype, true, &r));
    *num_integers = r->num_ints;
    *num_addresses = r->num_aints;
    *num_large_counts = r->num_counts;
    *num_datatypes = user_types(r);
    *combiner = combiners[r->combiner];
    API_LEAVE(NULL);
}

/* A handle for one of the types of a recipe: built-in types themselves, others for the user to free. */
static enum mr_err contained(struct mr_type *t, MPI_Datatype *h)
{
    *h = abi_handle(MPI_Datatype, t->handle);
    return t->builtin ? MR_SUCCESS : api_new_type(mr_type_get(t), h);
}

/* Room in the user's arrays, and where they are. */
struct contents {
    int64_t max_ints, max_aints, max_counts, max_types;
    int *ints;
    MPI_Aint *aints;
    MPI_Count *counts;
    MPI_Datatype *types;
};

static enum mr_err tell_contents(const struct mr_recipe *r, const struct contents *c)
{
    int types = user_types(r);
    if (r->combiner == MR_COMBINER_NAMED)
        return mr_fail(MR_ERR_TYPE, "the datatype is built in: it has no contents");
    if (c->max_ints < r->num_ints || c->max_aints < r->num_aints || c->max_counts < r->num_counts ||
        c->max_types < types)
        return mr_fail(MR_ERR_ARG,
                       "the arrays are too short: %lld integers, %lld addresses, %lld large counts and %d datatypes "
                       "are needed",
                       (long long)r->num_ints, (long long)r->num_aints, (long long)r->num_counts, types);
    for (int64_t i = 0; i < r->num_ints; i++)
        c->ints[i] = r->ints[i];
    for (int64_t i = 0; i < r->num_aints; i++)
        c->aints[i] = r->aints[i];
    for (int64_t i = 0; i < r->num_counts; i++)
        c->counts[i] = r->counts[i];
    for (int i = 0; i < types; i++) {
        enum mr_err err = contained(r->types[i], &c->types[i]);
        if (err)
            return err;
    }
    return MR_SUCCESS;
}

MPI_FN(int, Type_get_contents,
       (MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes, int integers[],
        MPI_Aint addresses[], MPI_Datatype datatypes[]))
{
    const struct mr_recipe *r;
    API_ENTER();
    CHECK(recipe_of(datatype, false, &r));
    err = tell_contents(
        r, &(struct contents){max_integers, max_addresses, 0, max_datatypes, integers, addresses, NULL, datatypes});
    API_LEAVE(NULL);
}

MPI_FN(int, Type_get_contents_c,
       (MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses, MPI_Count max_large_counts,
        MPI_Count max_datatypes, int integers[], MPI_Aint addresses[], MPI_Count large_counts[],
        MPI_Datatype datatypes[]))
{
    const struct mr_recipe *r;
    API_ENTER();
    CHECK(recipe_of(datatype, true, &r));
    err = tell_contents(r, &(struct contents){max_integers, max_addresses, max_large_counts, max_datatypes, integers,
                                              addresses, large_counts, datatypes});
    API_LEAVE(NULL);
}

/* ---- names ---- */

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

/* ---- types by size and by kind ---- */

static const struct {
    int typeclass, size;
    MPI_Datatype type;
} sized[] = {
    {MPI_TYPECLASS_REAL, 4, MPI_REAL4},         {MPI_TYPECLASS_REAL, 8, MPI_REAL8},
    {MPI_TYPECLASS_REAL, 16, MPI_REAL16},       {MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1},
    {MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2},   {MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4},
    {MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8},   {MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8},
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
    CHECK(mr_fail(MR_ERR_ARG, "there is no datatype of typeclass %d and size %d", typeclass, size));
    API_LEAVE(NULL);
}

/* A type of a selected kind is built in: one handle, made at the first request. */
static enum mr_err f90(enum mr_combiner combiner, int precision, int range, MPI_Datatype *h)
{
    struct mr_type *t;
    enum mr_err err = mr_type_f90(combiner, precision, range, &t);
    if (err || !t || !t->handle)
        return err ? err : api_new_type(t, h);
    *h = abi_handle(MPI_Datatype, t->handle);
    return MR_SUCCESS;
}

/* Neither given: the standard wants at least one. */
static enum mr_err check_kind(int precision, int range)
{
    if (precision == MPI_UNDEFINED && range == MPI_UNDEFINED)
        return mr_fail(MR_ERR_ARG, "both p and r are MPI_UNDEFINED");
    return MR_SUCCESS;
}

#define F90(name, combiner)                                                                                            \
    MPI_FN(int, name, (int p, int r, MPI_Datatype *newtype))                                                           \
    {                                                                                                                  \
        API_ENTER();                                                                                                   \
        NOT_NULL(newtype);                                                                                             \
        CHECK(check_kind(p, r));                                                                                       \
        err = f90(combiner, p, r, newtype);                                                                            \
        API_LEAVE(NULL);                                                                                               \
    }
F90(Type_create_f90_real, MR_COMBINER_F90_REAL)
F90(Type_create_f90_complex, MR_COMBINER_F90_COMPLEX)

MPI_FN(int, Type_create_f90_integer, (int r, MPI_Datatype *newtype))
{
    API_ENTER();
    NOT_NULL(newtype);
    err = f90(MR_COMBINER_F90_INTEGER, 0, r, newtype);
    API_LEAVE(NULL);
}

/* ---- addresses ---- */

MPI_FN(int, Get_address, (const void *location, MPI_Aint *address))
{
    NOT_NULL_EVER(address);
    *address = (MPI_Aint)location;
    return MPI_SUCCESS;
}

/* Unsigned, so wrapping around is defined. */
MPI_FN(MPI_Aint, Aint_add, (MPI_Aint base, MPI_Aint disp))
{
    return (MPI_Aint)((unsigned long)base + (unsigned long)disp);
}

MPI_FN(MPI_Aint, Aint_diff, (MPI_Aint addr1, MPI_Aint addr2))
{
    return (MPI_Aint)((unsigned long)addr1 - (unsigned long)addr2);
}
