/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Types in files whose basic types have other sizes (struct mr_file_form), and the data representation "external32"
 * (MPI-4.1 section 14.5.2): big endian, sizes of its own for each basic type, no padding. A basic type is one or two
 * kinds of number in a row. A datatype is walked in the order of its typemap by its recipe, because the layout has
 * merged the numbers to bytes. Values move in pieces through the native packed form.
 */
#include "libmrmpi/core/core.h"

#include <byteswap.h>
#include <stdlib.h>
#include <string.h>

/* How a number changes on the way: native bytes, external bytes. */
enum change {
    SAME_1,
    SWAP_2,
    SWAP_4,
    SWAP_8,
    SWAP_16,  /* a quad precision number is the same format in both */
    NARROW,   /* 8 bytes to the low 4; read back with its sign */
    NARROW_U, /* the same without sign */
    WIDE_CHAR,
    QUAD, /* 80 bits in 16 bytes to quad precision */
};
static const struct {
    uint8_t native, external;
} sizes[] = {
    [SAME_1] = {1, 1}, [SWAP_2] = {2, 2},   [SWAP_4] = {4, 4},    [SWAP_8] = {8, 8}, [SWAP_16] = {16, 16},
    [NARROW] = {8, 4}, [NARROW_U] = {8, 4}, [WIDE_CHAR] = {4, 2}, [QUAD] = {16, 16},
};

/* count numbers of the first kind, then one of the second if present (pairs). */
struct form {
    uint8_t count, first, second;
    bool pair;
};

#define ONE(how)                                                                                                       \
    {                                                                                                                  \
        1, how, 0, false                                                                                               \
    }
#define TWO(how)                                                                                                       \
    {                                                                                                                  \
        2, how, 0, false                                                                                               \
    }
#define PAIR(how, i)                                                                                                   \
    {                                                                                                                  \
        1, how, i, true                                                                                                \
    }

/* A type's kind for reductions determines the form of its numbers; special[] has the standard's other sizes. */
static const struct form by_number[MR_NUM_COUNT] = {
    [MR_NUM_I8] = ONE(SAME_1),       [MR_NUM_U8] = ONE(SAME_1),         [MR_NUM_I16] = ONE(SWAP_2),
    [MR_NUM_U16] = ONE(SWAP_2),      [MR_NUM_I32] = ONE(SWAP_4),        [MR_NUM_U32] = ONE(SWAP_4),
    [MR_NUM_I64] = ONE(SWAP_8),      [MR_NUM_U64] = ONE(SWAP_8),        [MR_NUM_F32] = ONE(SWAP_4),
    [MR_NUM_F64] = ONE(SWAP_8),      [MR_NUM_F80] = ONE(QUAD),          [MR_NUM_F128] = ONE(SWAP_16),
    [MR_NUM_C32] = TWO(SWAP_4),      [MR_NUM_C64] = TWO(SWAP_8),        [MR_NUM_C80] = TWO(QUAD),
    [MR_NUM_C128] = TWO(SWAP_16),    [MR_NUM_BOOL] = ONE(SAME_1),       [MR_NUM_BYTE] = ONE(SAME_1),
    [MR_NUM_LOGICAL] = ONE(SWAP_4),  [MR_NUM_LOGICAL1] = ONE(SAME_1),   [MR_NUM_LOGICAL2] = ONE(SWAP_2),
    [MR_NUM_LOGICAL8] = ONE(SWAP_8), [MR_NUM_LOGICAL16] = ONE(SWAP_16),
};
static const struct form special[MR_NUM_BASICS] = {
    [MR_BASIC_LONG] = ONE(NARROW),
    [MR_BASIC_UNSIGNED_LONG] = ONE(NARROW_U),
    [MR_BASIC_WCHAR] = ONE(WIDE_CHAR),
    [MR_BASIC_PACKED] = ONE(SAME_1),
    [MR_BASIC_CHARACTER] = ONE(SAME_1),
    [MR_BASIC_C_FLOAT16] = ONE(SWAP_2),
    [MR_BASIC_FLOAT_INT] = PAIR(SWAP_4, SWAP_4),
    [MR_BASIC_DOUBLE_INT] = PAIR(SWAP_8, SWAP_4),
    [MR_BASIC_LONG_INT] = PAIR(NARROW, SWAP_4),
    [MR_BASIC_SHORT_INT] = PAIR(SWAP_2, SWAP_4),
    [MR_BASIC_LONG_DOUBLE_INT] = PAIR(QUAD, SWAP_4),
    [MR_BASIC_2INT] = TWO(SWAP_4),
    [MR_BASIC_2INTEGER] = TWO(SWAP_4),
    [MR_BASIC_2REAL] = TWO(SWAP_4),
    [MR_BASIC_2DOUBLE_PRECISION] = TWO(SWAP_8),
};

static struct form form_of(int basic)
{
    static const uint8_t number_of[MR_NUM_BASICS] = {
#define X(id, ctype, num) [MR_BASIC_##id] = MR_NUM_##num,
        MR_BASICS(X)
#undef X
    };
    return special[basic].count ? special[basic] : by_number[number_of[basic]];
}

static size_t form_size(struct form f)
{
    return (size_t)f.count * sizes[f.first].external + (f.pair ? sizes[f.second].external : 0);
}

/* ---- one number ---- */

#define COPY(type, to, from, expr)                                                                                     \
    do {                                                                                                               \
        type v;                                                                                                        \
        memcpy(&v, from, sizeof(v));                                                                                   \
        v = expr;                                                                                                      \
        memcpy(to, &v, sizeof(v));                                                                                     \
    } while (0)

static void swap_16(char *to, const char *from)
{
    uint64_t v[2];
    memcpy(v, from, 16);
    uint64_t w[2] = {bswap_64(v[1]), bswap_64(v[0])};
    memcpy(to, w, 16);
}

/* Memory need not be aligned on either side. */
static void write_number(enum change how, char *flat, const char *native)
{
    uint64_t wide;
    uint32_t word;
    uint16_t half;
    long double x;
    __float128 quad;
    switch (how) {
    case SAME_1:
        *flat = *native;
        break;
    case SWAP_2:
        COPY(uint16_t, flat, native, bswap_16(v));
        break;
    case SWAP_4:
        COPY(uint32_t, flat, native, bswap_32(v));
        break;
    case SWAP_8:
        COPY(uint64_t, flat, native, bswap_64(v));
        break;
    case SWAP_16:
        swap_16(flat, native);
        break;
    case NARROW:
    case NARROW_U:
        memcpy(&wide, native, sizeof(wide));
        word = (uint32_t)wide;
        if (how == NARROW) /* the sign bit stays the sign bit (section 13.5.2) */
            word = (word & 0x7fffffff) | (uint32_t)(wide >> 63) << 31;
        word = bswap_32(word);
        memcpy(flat, &word, sizeof(word));
        break;
    case WIDE_CHAR:
        memcpy(&word, native, sizeof(word));
        half = bswap_16((uint16_t)word);
        memcpy(flat, &half, sizeof(half));
        break;
    case QUAD:
        memcpy(&x, native, sizeof(x));
        quad = x;
        swap_16(flat, (const char *)&quad);
        break;
    }
}

static void read_external(enum change how, const char *flat, char *native)
{
    uint64_t wide;
    uint32_t word;
    uint16_t half;
    long double x;
    __float128 quad;
    switch (how) {
    case NARROW:
    case NARROW_U:
        memcpy(&word, flat, sizeof(word));
        word = bswap_32(word);
        wide = how == NARROW ? (uint64_t)(int64_t)(int32_t)word : word;
        memcpy(native, &wide, sizeof(wide));
        break;
    case WIDE_CHAR:
        memcpy(&half, flat, sizeof(half));
        word = bswap_16(half);
        memcpy(native, &word, sizeof(word));
        break;
    case QUAD:
        swap_16((char *)&quad, flat);
        x = (long double)quad;
        memset(native, 0, sizeof(x)); /* the six unused bytes */
        memcpy(native, &x, 10);
        break;
    default: /* reversing bytes is its own inverse */
        write_number(how, native, flat);
    }
}

/* ---- many ---- */

struct walk {
    void *buf; /* the user's: count elements of type */
    size_t count;
    const struct mr_type *type;
    size_t done; /* bytes of the packed native form so far */
    char *flat;  /* where the next external byte goes or is */
    bool unpack;
};

static inline void number(const struct walk *w, enum change how, char *flat, char *native)
{
    if (w->unpack)
        read_external(how, flat, native);
    else
        write_number(how, flat, native);
}

static void convert(struct walk *w, struct form f, char *native, size_t n)
{
    size_t ext = sizes[f.first].external, nat = sizes[f.first].native;
    for (; n; n--) {
        for (int i = 0; i < f.count; i++, w->flat += ext, native += nat)
            number(w, f.first, w->flat, native);
        if (!f.pair)
            continue;
        number(w, f.second, w->flat, native);
        w->flat += sizes[f.second].external;
        native += sizes[f.second].native;
    }
}

/* The next n basic elements of one type. */
static void walk_basic(struct walk *w, int basic, size_t n)
{
    size_t size = mr_type_basic[basic].size;
    struct form f = form_of(basic);
    char piece[4096];
    if (size == 0)
        return;
    for (size_t per = sizeof(piece) / size, some; n; n -= some) {
        some = n < per ? n : per;
        if (!w->unpack)
            mr_type_pack(w->buf, w->count, w->type, w->done, piece, some * size);
        convert(w, f, piece, some);
        if (w->unpack)
            mr_type_unpack(w->buf, w->count, w->type, w->done, piece, some * size);
        w->done += some * size;
    }
}

static void walk_type(struct walk *w, const struct mr_type *t, size_t count)
{
    if (t->size == 0 || count == 0)
        return;
    if (t->basic != MR_BASIC_MIXED) {
        walk_basic(w, t->basic, count * (t->size / mr_type_basic[t->basic].size));
        return;
    }
    const struct mr_recipe *r = t->recipe;
    if (r->combiner != MR_COMBINER_STRUCT) {
        walk_type(w, r->types[0], count * (t->size / r->types[0]->size));
        return;
    }
    while (count--)
        for (int i = 0; i < r->num_types; i++)
            walk_type(w, r->types[i], (size_t)(r->large ? r->counts[1 + i] : r->ints[1 + i]));
}

void mr_external_pack(const void *buf, size_t count, const struct mr_type *t, void *flat)
{
    struct walk w = {.buf = (void *)(uintptr_t)buf, .count = count, .type = t, .flat = flat};
    walk_type(&w, t, count);
}

void mr_external_unpack(void *buf, size_t count, const struct mr_type *t, const void *flat)
{
    struct walk w = {.buf = buf, .count = count, .type = t, .flat = (char *)(uintptr_t)flat, .unpack = true};
    walk_type(&w, t, count);
}

/* ---- sizes in a file ---- */

static size_t external32_size(const struct mr_file_form *form, int basic)
{
    (void)form;
    return mr_type_basic[basic].size ? form_size(form_of(basic)) : 0;
}

const struct mr_file_form mr_external32 = {external32_size};

size_t mr_file_form_size(const struct mr_file_form *form, const struct mr_type *t)
{
    if (t->size == 0)
        return 0;
    if (t->basic != MR_BASIC_MIXED)
        return t->size / mr_type_basic[t->basic].size * form->size(form, t->basic);
    const struct mr_recipe *r = t->recipe;
    if (r->combiner != MR_COMBINER_STRUCT)
        return t->size / r->types[0]->size * mr_file_form_size(form, r->types[0]);
    size_t n = 0;
    for (int i = 0; i < r->num_types; i++)
        n += (size_t)(r->large ? r->counts[1 + i] : r->ints[1 + i]) * mr_file_form_size(form, r->types[i]);
    return n;
}

bool mr_type_all_basics(const struct mr_type *t, bool (*visit)(void *arg, int basic), void *arg)
{
    if (t->size == 0)
        return true;
    if (t->basic != MR_BASIC_MIXED)
        return visit(arg, t->basic);
    const struct mr_recipe *r = t->recipe;
    int num = r->combiner == MR_COMBINER_STRUCT ? r->num_types : 1;
    for (int i = 0; i < num; i++)
        if ((num == 1 || (r->large ? r->counts[1 + i] : r->ints[1 + i])) &&
            !mr_type_all_basics(r->types[i], visit, arg))
            return false;
    return true;
}

/* ---- datatypes in a file ---- */

/*
 * Hidden steps in the recipes of arrays are the library's own types between the array's type and its elements. Their
 * displacements are in bytes, but all are multiples of the elements' extent, so they grow and shrink with the extent.
 */
struct step {
    const struct mr_file_form *form;
    const struct mr_type *elements; /* of the innermost array around; NULL: there is no array */
    struct mr_type *external;       /* these in the file */
};

static ptrdiff_t scaled(const struct step *s, ptrdiff_t bytes)
{
    return s->elements && s->elements->extent ? bytes / s->elements->extent * s->external->extent : bytes;
}

/* Counts and displacements of a recipe in the order of its constructor, in either form. */
static int64_t count_at(const struct mr_recipe *r, int64_t i)
{
    return r->large ? r->counts[i] : r->ints[i];
}

static ptrdiff_t disp_at(const struct mr_recipe *r, int64_t counts_before, int64_t i)
{
    return r->large ? r->counts[counts_before + i] : r->aints[i];
}

static struct mr_type *external_type(struct mr_type *t, const struct step *s);

/* count lengths from count number first on, and as many displacements behind them; in bytes: those are aints. */
struct blocks {
    int64_t count, *lengths, *disps;
};

static bool read_blocks(const struct mr_recipe *r, bool bytes, int64_t length, const struct step *s, struct blocks *b)
{
    const int64_t n = b->count, before = length < 0 ? n + 1 : 2;

    b->lengths = malloc(((size_t)n + 1) * sizeof(*b->lengths));
    b->disps = malloc(((size_t)n + 1) * sizeof(*b->disps));
    for (int64_t i = 0; b->lengths && b->disps && i < n; i++) {
        b->lengths[i] = length < 0 ? count_at(r, 1 + i) : length;
        b->disps[i] = bytes ? scaled(s, disp_at(r, before, i)) : count_at(r, before + i);
    }
    return b->lengths && b->disps;
}

static struct mr_type *of_blocks(const struct mr_recipe *r, struct mr_type *old, const struct step *s)
{
    const bool bytes = r->combiner == MR_COMBINER_HINDEXED || r->combiner == MR_COMBINER_HINDEXED_BLOCK;
    const bool alike = r->combiner == MR_COMBINER_INDEXED_BLOCK || r->combiner == MR_COMBINER_HINDEXED_BLOCK;
    struct blocks b = {.count = count_at(r, 0)};
    struct mr_type *t = NULL;

    if (read_blocks(r, bytes, alike ? count_at(r, 1) : -1, s, &b))
        t = (bytes ? mr_type_hindexed : mr_type_indexed)(b.count, b.lengths, b.disps, old, false);
    free(b.lengths);
    free(b.disps);
    return t;
}

static struct mr_type *of_struct(const struct mr_recipe *r, const struct step *s)
{
    struct blocks b = {.count = count_at(r, 0)};
    struct mr_type **types = calloc((size_t)b.count + 1, sizeof(*types)), *t = NULL;
    bool fine = types && read_blocks(r, true, -1, s, &b);

    for (int64_t i = 0; fine && i < b.count; i++)
        fine = (types[i] = external_type(r->types[i], s)) != NULL;
    if (fine)
        t = mr_type_struct(b.count, b.lengths, b.disps, types, false);
    for (int64_t i = 0; types && i < b.count && types[i]; i++)
        mr_type_put(types[i]);
    free(types);
    free(b.lengths);
    free(b.disps);
    return t;
}

/* The last of the hidden steps is the part of the array, at its place in the array. */
static struct mr_type *of_array(const struct mr_type *array, struct mr_type *old, const struct step *array_in)
{
    const struct mr_recipe *r = array->recipe;
    struct mr_type *hidden = r->types[r->num_types - 1], *part, *at, *t = NULL;
    const struct step s = {array_in->form, r->types[0], old};
    int64_t one = 1, disp = scaled(&s, array->true_lb - hidden->true_lb);

    part = external_type(hidden, &s);
    at = part ? mr_type_hindexed(1, &one, &disp, part, false) : NULL;
    if (at)
        t = mr_type_resized(at, 0, scaled(&s, array->extent), false);
    if (at)
        mr_type_put(at);
    if (part)
        mr_type_put(part);
    return t;
}

static struct mr_type *made_of(const struct mr_type *t, struct mr_type *old, const struct step *s)
{
    const struct mr_recipe *r = t->recipe;

    switch (r->combiner) {
    case MR_COMBINER_CONTIGUOUS:
        return mr_type_contiguous(count_at(r, 0), old, false);
    case MR_COMBINER_VECTOR:
        return mr_type_vector(count_at(r, 0), count_at(r, 1), count_at(r, 2), old, false);
    case MR_COMBINER_HVECTOR:
        return mr_type_hvector(count_at(r, 0), count_at(r, 1), scaled(s, disp_at(r, 2, 0)), old, false);
    case MR_COMBINER_RESIZED:
        return mr_type_resized(old, scaled(s, disp_at(r, 0, 0)), scaled(s, disp_at(r, 0, 1)), false);
    case MR_COMBINER_SUBARRAY:
    case MR_COMBINER_DARRAY:
        return of_array(t, old, s);
    case MR_COMBINER_INDEXED:
    case MR_COMBINER_HINDEXED:
    case MR_COMBINER_INDEXED_BLOCK:
    case MR_COMBINER_HINDEXED_BLOCK:
        return of_blocks(r, old, s);
    default:
        return mr_type_get(old);
    }
}

static struct mr_type *external_type(struct mr_type *t, const struct step *s)
{
    const size_t size = t->builtin ? mr_file_form_size(s->form, t) : 0;
    struct mr_type *old, *made;

    if (t == s->elements)
        return mr_type_get(s->external);
    if (t->builtin)
        return size == t->size ? t : mr_type_contiguous((int64_t)size, mr_type_byte, false);
    if (t->recipe->combiner == MR_COMBINER_STRUCT)
        return of_struct(t->recipe, s);
    old = external_type(t->recipe->types[0], s);
    if (!old)
        return NULL;
    made = made_of(t, old, s);
    mr_type_put(old);
    return made;
}

static bool has_own_size(void *arg, int basic)
{
    const struct mr_file_form *form = arg;

    return form->size(form, basic) == mr_type_basic[basic].size;
}

bool mr_file_form_keeps(const struct mr_file_form *form, const struct mr_type *t)
{
    return mr_type_all_basics(t, has_own_size, (void *)(uintptr_t)form);
}

struct mr_type *mr_file_form_type(const struct mr_file_form *form, struct mr_type *t)
{
    const struct step outside = {.form = form};

    if (mr_file_form_keeps(form, t))
        return mr_type_get(t);
    return external_type(t, &outside);
}
