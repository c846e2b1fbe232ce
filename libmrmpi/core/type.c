/* SPDX-License-Identifier: BSD-3-Clause */
/* The built-in datatypes, and the common parts of all datatypes: references, names, counting of elements, spans. */
#include "libmrmpi/core/maker.h"

#include <stdlib.h>

/* ---- built-in layouts: one stretch each, but for the pair that has a hole inside ---- */

#define X(name, ctype, ...)                                                                                            \
    static struct mr_run run_##name = {.count = 1, .elem = sizeof(ctype)};                                             \
    static struct mr_layout layout_##name = {.size = sizeof(ctype), .hi = sizeof(ctype), .num = 1, .runs = &run_##name};
MR_BASICS(X)
#undef X

#define X(name, ctype, vtype, itype)                                                                                   \
    enum {                                                                                                             \
        index_at_##name = offsetof(ctype, index),                                                                      \
        hole_##name = index_at_##name > sizeof(vtype),                                                                 \
        end_##name = index_at_##name + sizeof(itype),                                                                  \
        size_##name = sizeof(vtype) + sizeof(itype),                                                                   \
    };                                                                                                                 \
    static struct mr_run run_##name[2] = {                                                                             \
        {.count = 1, .elem = hole_##name ? sizeof(vtype) : (size_t)size_##name},                                       \
        {.disp = index_at_##name, .offset = sizeof(vtype), .count = 1, .elem = sizeof(itype)},                         \
    };                                                                                                                 \
    static struct mr_layout layout_##name = {                                                                          \
        .size = size_##name, .hi = end_##name, .num = 1 + hole_##name, .runs = run_##name};
MR_PAIRS(X)
#undef X

static struct mr_layout layout_empty;

struct mr_type mr_type_basic[MR_NUM_BASICS] = {
#define X(id, ctype, num)                                                                                              \
    [MR_BASIC_##id] = {.refs = 1,                                                                                      \
                       .size = sizeof(ctype),                                                                          \
                       .extent = sizeof(ctype),                                                                        \
                       .true_extent = sizeof(ctype),                                                                   \
                       .contiguous = true,                                                                             \
                       .committed = true,                                                                              \
                       .builtin = true,                                                                                \
                       .align = _Alignof(ctype),                                                                       \
                       .elements = 1,                                                                                  \
                       .basic = MR_BASIC_##id,                                                                         \
                       .layout = &layout_##id},
    MR_BASICS(X)
#undef X
#define X(id, ctype, vtype, itype)                                                                                     \
    [MR_BASIC_##id] = {.refs = 1,                                                                                      \
                       .size = size_##id,                                                                              \
                       .extent = sizeof(ctype),                                                                        \
                       .true_extent = end_##id,                                                                        \
                       .contiguous = size_##id == sizeof(ctype),                                                       \
                       .committed = true,                                                                              \
                       .builtin = true,                                                                                \
                       .align = _Alignof(ctype),                                                                       \
                       .elements = 2,                                                                                  \
                       .basic = MR_BASIC_##id,                                                                         \
                       .layout = &layout_##id},
        MR_PAIRS(X)
#undef X
            [MR_BASIC_LB] = {.refs = 1,
                             .committed = true,
                             .builtin = true,
                             .contiguous = true,
                             .sticky_lb = true,
                             .align = 1,
                             .basic = MR_BASIC_LB,
                             .layout = &layout_empty},
    [MR_BASIC_UB] = {.refs = 1,
                     .committed = true,
                     .builtin = true,
                     .contiguous = true,
                     .sticky_ub = true,
                     .align = 1,
                     .basic = MR_BASIC_UB,
                     .layout = &layout_empty},
};

struct mr_type *const mr_type_byte = &mr_type_basic[MR_BASIC_BYTE];

void mr_recipe_free(struct mr_recipe *r)
{
    if (!r)
        return;
    free(r->ints);
    free(r->aints);
    free(r->counts);
    free(r->types);
    free(r);
}

void mr_type_put(struct mr_type *t)
{
    if (t->builtin || --t->refs > 0)
        return;
    struct mr_recipe *r = t->recipe;
    for (int i = 0; r && i < r->num_types; i++)
        mr_type_put(r->types[i]);
    mr_recipe_free(r);
    mr_layout_free(t->layout);
    free(t->name);
    free(t);
}

const char *mr_type_name(const struct mr_type *t)
{
    static const char *const names[MR_NUM_BASICS] = {
#define X(id, ...) [MR_BASIC_##id] = "MPI_" #id,
        MR_BASICS(X) MR_PAIRS(X)
#undef X
            [MR_BASIC_LB] = "MPI_LB",
        [MR_BASIC_UB] = "MPI_UB",
    };
    if (t->name)
        return t->name;
    return t->builtin ? names[t->basic] : "";
}

size_t mr_type_grain(const struct mr_type *t)
{
    const struct mr_type *b = t->basic == MR_BASIC_MIXED ? NULL : &mr_type_basic[t->basic];
    return b && b->elements == 1 ? b->size : 0;
}

/* Of a pair: the value counts when all of it is there, then the index. */
static const uint8_t value_size[MR_NUM_BASICS] = {
#define X(id, ctype, vtype, itype) [MR_BASIC_##id] = sizeof(vtype),
    MR_PAIRS(X)
#undef X
};

static size_t pair_elements(const struct mr_type *t, size_t bytes)
{
    return bytes >= value_size[t->basic];
}

/* How many of its i-th type a struct has. */
static size_t struct_length(const struct mr_recipe *r, int i)
{
    return (size_t)(r->large ? r->counts[1 + i] : r->ints[1 + i]);
}

static size_t struct_elements(const struct mr_recipe *r, size_t bytes)
{
    size_t n = 0;
    for (int i = 0; i < r->num_types && bytes; i++) {
        const struct mr_type *child = r->types[i];
        size_t all = child->size * struct_length(r, i), len = bytes < all ? bytes : all;
        n += mr_type_elements(child, len);
        bytes -= len;
    }
    return n;
}

size_t mr_type_elements(const struct mr_type *t, size_t bytes)
{
    if (t->size == 0)
        return 0;
    size_t n = bytes / t->size * t->elements, rest = bytes % t->size;
    if (rest == 0)
        return n;
    if (t->builtin)
        return n + (t->elements == 2 ? pair_elements(t, rest) : 0);
    if (t->recipe->combiner == MR_COMBINER_STRUCT)
        return n + struct_elements(t->recipe, rest);
    return n + mr_type_elements(t->recipe->types[0], rest);
}

struct mr_type *mr_type_builtin_at(const struct mr_type *t, size_t offset)
{
    while (!t->builtin) {
        const struct mr_recipe *r = t->recipe;
        int i = 0;
        if (r->combiner == MR_COMBINER_STRUCT)
            for (size_t all; offset >= (all = r->types[i]->size * struct_length(r, i)); i++)
                offset -= all;
        t = r->types[i];
        offset %= t->size;
    }
    return (struct mr_type *)t;
}

static size_t struct_bytes(const struct mr_recipe *r, size_t n)
{
    size_t bytes = 0;
    for (int i = 0; i < r->num_types && n; i++) {
        const struct mr_type *child = r->types[i];
        size_t all = child->elements * struct_length(r, i), some = n < all ? n : all;
        bytes += mr_type_element_bytes(child, some);
        n -= some;
    }
    return bytes;
}

size_t mr_type_element_bytes(const struct mr_type *t, size_t n)
{
    if (t->elements == 0)
        return 0;
    size_t bytes = n / t->elements * t->size, rest = n % t->elements;
    if (rest == 0)
        return bytes;
    if (t->builtin) /* the first of a pair */
        return bytes + value_size[t->basic];
    if (t->recipe->combiner == MR_COMBINER_STRUCT)
        return bytes + struct_bytes(t->recipe, rest);
    return bytes + mr_type_element_bytes(t->recipe->types[0], rest);
}

struct mr_span mr_type_span(const struct mr_type *t, size_t count)
{
    struct mr_span s = {0, 0};
    if (count == 0 || t->true_extent == 0)
        return s;
    ptrdiff_t last = (ptrdiff_t)(count - 1) * t->extent;
    s.lo = t->true_lb + (last < 0 ? last : 0);
    s.len = (size_t)(t->true_extent + (last < 0 ? -last : last));
    return s;
}
