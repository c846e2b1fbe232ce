/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The types of Fortran 90's selected kinds (MPI-3.1 section 17.1.9). Each pair of arguments has its own type, because
 * MPI_Type_get_contents returns the arguments. A list has the known types; the list is short, because programs ask for
 * few kinds.
 */
#include "libmrmpi/core/maker.h"

#include <stdlib.h>

struct f90 {
    enum mr_combiner combiner;
    int precision, range;
    struct mr_type *t;
    struct f90 *next;
};
static struct f90 *made;

/* Smallest first. Precision and range are those of the models: decimal digits and exponent. */
static const struct {
    enum mr_combiner combiner;
    int precision, range;
    enum mr_basic basic;
} kinds[] = {
    {MR_COMBINER_F90_REAL, 6, 37, MR_BASIC_REAL4},
    {MR_COMBINER_F90_REAL, 15, 307, MR_BASIC_REAL8},
    {MR_COMBINER_F90_REAL, 18, 4931, MR_BASIC_LONG_DOUBLE},
    {MR_COMBINER_F90_REAL, 33, 4931, MR_BASIC_REAL16},
    {MR_COMBINER_F90_COMPLEX, 6, 37, MR_BASIC_COMPLEX8},
    {MR_COMBINER_F90_COMPLEX, 15, 307, MR_BASIC_COMPLEX16},
    {MR_COMBINER_F90_COMPLEX, 18, 4931, MR_BASIC_C_LONG_DOUBLE_COMPLEX},
    {MR_COMBINER_F90_COMPLEX, 33, 4931, MR_BASIC_COMPLEX32},
    {MR_COMBINER_F90_INTEGER, 0, 2, MR_BASIC_INTEGER1},
    {MR_COMBINER_F90_INTEGER, 0, 4, MR_BASIC_INTEGER2},
    {MR_COMBINER_F90_INTEGER, 0, 9, MR_BASIC_INTEGER4},
    {MR_COMBINER_F90_INTEGER, 0, 18, MR_BASIC_INTEGER8},
};

static struct mr_type *make_f90_type(enum mr_combiner combiner, int precision, int range, struct mr_type *basic)
{
    bool integer = combiner == MR_COMBINER_F90_INTEGER;
    struct maker m = maker_begin((struct shape){.combiner = combiner, .ints = 2}, NULL);
    if (!integer)
        maker_int(&m, precision);
    maker_int(&m, range);
    maker_block(&m, 0, 1, basic);
    struct mr_type *t = maker_end(&m);
    if (t)
        t->committed = t->builtin = true;
    return t;
}

enum mr_err mr_type_f90(enum mr_combiner combiner, int precision, int range, struct mr_type **out)
{
    for (struct f90 *f = made; f; f = f->next)
        if (f->combiner == combiner && f->precision == precision && f->range == range) {
            *out = f->t;
            return MR_SUCCESS;
        }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        /* MR_UNDEFINED is less than any number */
        if (kinds[i].combiner != combiner || kinds[i].precision < precision || kinds[i].range < range)
            continue;
        struct f90 *f = malloc(sizeof(*f));
        *out = f ? make_f90_type(combiner, precision, range, &mr_type_basic[kinds[i].basic]) : NULL;
        if (!*out) {
            free(f);
            return MR_SUCCESS;
        }
        *f = (struct f90){combiner, precision, range, *out, made};
        made = f;
        return MR_SUCCESS;
    }
    return mr_fail(MR_ERR_ARG, "there is no kind with a precision of %d digits and a range of %d", precision, range);
}

void mr_type_f90_finalize(void)
{
    while (made) {
        struct f90 *f = made;
        made = f->next;
        f->t->builtin = false;
        mr_type_put(f->t);
        free(f);
    }
}
