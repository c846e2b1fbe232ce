/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data representation "external32" (MPI-3.1 section 13.5.2): big endian, sizes of its own for each basic type, no
 * padding. A basic type is one or two kinds of number in a row; a datatype is walked through in the order of its
 * typemap, which needs the recipe: the layout has merged the numbers to bytes. Values move in pieces through the native
 * packed form.
 */
#include "libmrmpi/core/core.h"
#include "libmrmpi/core/objects.h"

#include <byteswap.h>
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

/* count numbers of the first kind, then one of the second if it is there (pairs). */
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

/* What a reduction sees in a type says how its numbers are stored; where the standard's sizes differ is in special[].
 */
static const struct form by_number[MR_NUM_COUNT] = {
    [MR_NUM_I8] = ONE(SAME_1),      [MR_NUM_U8] = ONE(SAME_1),   [MR_NUM_I16] = ONE(SWAP_2),
    [MR_NUM_U16] = ONE(SWAP_2),     [MR_NUM_I32] = ONE(SWAP_4),  [MR_NUM_U32] = ONE(SWAP_4),
    [MR_NUM_I64] = ONE(SWAP_8),     [MR_NUM_U64] = ONE(SWAP_8),  [MR_NUM_F32] = ONE(SWAP_4),
    [MR_NUM_F64] = ONE(SWAP_8),     [MR_NUM_F80] = ONE(QUAD),    [MR_NUM_F128] = ONE(SWAP_16),
    [MR_NUM_C32] = TWO(SWAP_4),     [MR_NUM_C64] = TWO(SWAP_8),  [MR_NUM_C80] = TWO(QUAD),
    [MR_NUM_C128] = TWO(SWAP_16),   [MR_NUM_BOOL] = ONE(SAME_1), [MR_NUM_BYTE] = ONE(SAME_1),
    [MR_NUM_LOGICAL] = ONE(SWAP_4), [MR_NUM_LOGICAL1] = ONE(SAME_1), [MR_NUM_LOGICAL2] = ONE(SWAP_2),
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

static void read_number(enum change how, const char *flat, char *native)
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
        memset(native, 0, sizeof(x)); /* the six bytes that are not used */
        memcpy(native, &x, 10);
        break;
    default: /* turning bytes round is its own inverse */
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
        read_number(how, flat, native);
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

/* n basic elements of one type, which are next. */
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

size_t mr_external_size(const struct mr_type *t)
{
    if (t->size == 0)
        return 0;
    if (t->basic != MR_BASIC_MIXED)
        return t->size / mr_type_basic[t->basic].size * form_size(form_of(t->basic));
    const struct mr_recipe *r = t->recipe;
    if (r->combiner != MR_COMBINER_STRUCT)
        return t->size / r->types[0]->size * mr_external_size(r->types[0]);
    size_t n = 0;
    for (int i = 0; i < r->num_types; i++)
        n += (size_t)(r->large ? r->counts[1 + i] : r->ints[1 + i]) * mr_external_size(r->types[i]);
    return n;
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
