/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes over array sections. A buffer of elements without holes, as a datatype describes the buffer, lies in a
 * section of an array: the datatype made here describes the same data there. Built-in types stay what they are, for
 * reductions and for files with a form of their own, unless one lies across elements of the section that are apart.
 */
#include "libmrmpi/core/core.h"

#include <limits.h>
#include <stdlib.h>

struct blocks {
    const struct mr_section *section;
    const struct mr_type *type;
    size_t done; /* bytes of data so far */
    size_t rest; /* of them, still to come: of a built-in type that is described already */
    int64_t num, room;
    int64_t *lengths, *disps;
    struct mr_type **types;
};

/* The n-th element's distance from the first. */
static ptrdiff_t place_of(const struct mr_section *s, size_t n)
{
    ptrdiff_t at = 0;

    for (int d = 0; d < s->dims; d++) {
        at += (ptrdiff_t)(n % (size_t)s->dim[d].extent) * s->dim[d].stride;
        n /= (size_t)s->dim[d].extent;
    }
    return at;
}

static bool make_room(struct blocks *b)
{
    int64_t room = b->room ? 2 * b->room : 16;
    int64_t *lengths = realloc(b->lengths, (size_t)room * sizeof(*lengths));
    int64_t *disps = lengths ? realloc(b->disps, (size_t)room * sizeof(*disps)) : NULL;
    struct mr_type **types = disps ? realloc(b->types, (size_t)room * sizeof(struct mr_type *)) : NULL;

    b->lengths = lengths ? lengths : b->lengths;
    b->disps = disps ? disps : b->disps;
    b->types = types ? types : b->types;
    b->room = types ? room : b->room;
    return types;
}

static enum mr_err add_block(struct blocks *b, struct mr_type *t, ptrdiff_t disp)
{
    int64_t last = b->num - 1;

    if (b->num && b->types[last] == t && disp == b->disps[last] + b->lengths[last] * t->extent) {
        b->lengths[last]++;
        return MR_SUCCESS;
    }
    if (b->num == INT_MAX || (b->num == b->room && !make_room(b)))
        return MR_ERR_NO_MEM;
    b->lengths[b->num] = 1;
    b->disps[b->num] = disp;
    b->types[b->num++] = t;
    return MR_SUCCESS;
}

/* Bytes [at, + len) of the buffer without holes. */
static enum mr_err add_bytes(struct blocks *b, size_t at, size_t len)
{
    enum mr_err err = MR_SUCCESS;

    for (; len && !err; at++, len--) {
        size_t n = at / b->section->elem;

        err = add_block(b, mr_type_byte, place_of(b->section, n) + (ptrdiff_t)(at % b->section->elem));
    }
    return err;
}

/* True if the elements first to last of the section have no holes between them. */
static bool elements_adjoin(const struct mr_section *s, size_t first, size_t last)
{
    for (size_t n = first; n < last; n++)
        if (place_of(s, n + 1) != place_of(s, n) + (ptrdiff_t)s->elem)
            return false;
    return true;
}

static enum mr_err add_builtin(struct blocks *b, struct mr_type *t, ptrdiff_t at)
{
    const struct mr_section *s = b->section;
    size_t from = (size_t)at, to = from + (size_t)t->true_extent, first = from / s->elem;
    enum mr_err err = MR_SUCCESS;

    if (at < 0 || to > s->total * s->elem)
        return mr_fail(MR_ERR_BUFFER, "the array section is too short for the datatype and the count");
    if (elements_adjoin(s, first, (to - 1) / s->elem))
        return add_block(b, t, place_of(s, first) + (ptrdiff_t)(from % s->elem));
    for (size_t i = 0; i < t->layout->num && !err; i++)
        err = add_bytes(b, from + (size_t)t->layout->runs[i].disp, t->layout->runs[i].elem);
    return err;
}

/* A stretch of the data. A built-in type with a hole has two. */
static enum mr_err add_stretch(struct blocks *b, ptrdiff_t at, size_t len)
{
    enum mr_err err = MR_SUCCESS;

    while (len && !err) {
        size_t n;

        if (!b->rest) {
            struct mr_type *t = mr_type_builtin_at(b->type, b->done % b->type->size);

            err = add_builtin(b, t, at);
            b->rest = t->size;
        }
        n = b->rest < len ? b->rest : len;
        b->done += n;
        b->rest -= n;
        at += (ptrdiff_t)n;
        len -= n;
    }
    return err;
}

static enum mr_err add_pieces(const struct mr_pieces *p, size_t offset, void *arg)
{
    enum mr_err err = MR_SUCCESS;

    for (unsigned i = 0; i < p->num; i++)
        for (uint32_t k = 0; k < p->piece[i].count && !err; k++)
            err = add_stretch(arg, p->piece[i].at + (ptrdiff_t)k * p->piece[i].stride, p->piece[i].elem);
    return err;
}

enum mr_err mr_type_on_section(struct mr_type *t, size_t count, const struct mr_section *s, struct mr_type **made)
{
    enum { MOST = 1 << 30 }; /* of a list's pieces, whose lengths have 32 bits */
    struct blocks b = {.section = s, .type = t};
    enum mr_err err = mr_pieces_cut(t, count, MOST, 1, MR_PIECES_MAX, add_pieces, &b);

    if (!err) {
        *made = mr_type_struct(b.num, b.lengths, b.disps, b.types, true);
        err = *made ? MR_SUCCESS : MR_ERR_NO_MEM;
    }
    free(b.lengths);
    free(b.disps);
    free(b.types);
    return err;
}
