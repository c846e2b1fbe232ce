/* SPDX-License-Identifier: BSD-3-Clause */
/* Data representations of a program: sizes, calls in pieces, errors; and types in files. */
#include "libmrmpi/io/datarep.h"

#include <string.h>

#include "tests/check.h"

struct mr_comm *mr_comm_world;

/* ---- a program's functions --------------------------------------------------------------------------------------- */

enum { CALLS = 16 };

struct program {
    int asked, fails; /* extents; the number of the call that fails, from 1 on */
    int64_t extent;
    int calls;
    int64_t items[CALLS], position[CALLS];
    ptrdiff_t at[CALLS]; /* in the file's bytes */
    char *file;
};
static struct program program;

static void no_function(void)
{
}

static int call_extent(const struct mr_datarep_calls *calls, const struct mr_type *basic, int64_t *bytes)
{
    struct program *p = calls->extra;

    p->asked++;
    *bytes = p->extent ? p->extent : (int64_t)basic->size + 1;
    return p->asked == p->fails ? 5 : 0;
}

static int call_convert(const struct mr_datarep_calls *calls, bool write, void *buf, struct mr_type *type,
                        int64_t items, void *file, int64_t position)
{
    struct program *p = calls->extra;

    (void)write;
    (void)buf;
    (void)type;
    ck_assert_int_lt(p->calls, CALLS);
    p->items[p->calls] = items;
    p->position[p->calls] = position;
    p->at[p->calls] = (char *)file - p->file;
    p->calls++;
    return p->calls == p->fails ? 6 : 0;
}

static const struct mr_datarep *made(const char *name, int64_t items_most)
{
    const struct mr_datarep_calls calls = {.read = no_function,
                                           .write = no_function,
                                           .extent = no_function,
                                           .extra = &program,
                                           .items_most = items_most,
                                           .call_extent = call_extent,
                                           .call_convert = call_convert};

    memset(&program, 0, sizeof(program));
    ck_assert_int_eq(mr_datarep_register(name, &calls), MR_SUCCESS);
    ck_assert_int_eq(mr_datarep_register(name, &calls), MR_ERR_DUP_DATAREP);
    ck_assert_str_eq(mr_datarep_name(mr_datarep_find(name)), name);
    return mr_datarep_find(name);
}

/* An int, a hole, two doubles. */
static struct mr_type *of_three(void)
{
    const int64_t lengths[] = {1, 2}, disps[] = {0, 16};
    struct mr_type *const types[] = {&mr_type_basic[MR_BASIC_INT], &mr_type_basic[MR_BASIC_DOUBLE]};
    struct mr_type *t = mr_type_struct(2, lengths, disps, types, false);

    ck_assert_ptr_nonnull(t);
    return t;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

START_TEST(names_and_numbers)
{
    const struct mr_datarep *d = made("mine", 100);

    ck_assert_ptr_null(mr_datarep_find("min"));
    ck_assert_ptr_eq(mr_datarep_find("native"), mr_datarep_native);
    ck_assert(!mr_datarep_converts(mr_datarep_native) && !mr_datarep_converts(mr_datarep_find("internal")));
    ck_assert(mr_datarep_converts(d) && mr_datarep_converts(mr_datarep_find("external32")));
    ck_assert_uint_ne(mr_datarep_number(d), mr_datarep_number(mr_datarep_native));
    mr_datarep_finalize();
    ck_assert_ptr_null(mr_datarep_find("mine"));
    d = made("mine", 100); /* again */
    mr_datarep_finalize();
}
END_TEST

START_TEST(each_basic_type_is_asked_for_once)
{
    const struct mr_datarep *d = made("mine", 100);
    struct mr_type *t = of_three(), *in_file;

    ck_assert_int_eq(mr_datarep_measure(d, t), MR_SUCCESS);
    ck_assert_int_eq(mr_datarep_measure(d, t), MR_SUCCESS);
    ck_assert_int_eq(program.asked, 2);
    ck_assert_uint_eq(mr_datarep_size(d, t), 5 + 2 * 9);
    in_file = mr_datarep_type(d, t);
    ck_assert_uint_eq(in_file->size, 5 + 2 * 9);
    ck_assert_int_eq(in_file->true_extent, 16 + 2 * 9); /* displacements in bytes are the file's */
    mr_type_put(in_file);
    mr_type_put(t);
    mr_datarep_finalize();
}
END_TEST

/* Sizes that cancel out each other: a sum tells nothing. */
START_TEST(a_type_keeps_its_form_only_with_its_sizes)
{
    const struct mr_datarep *d = made("mine", 100);
    struct mr_type *t = of_three(), *in_file;

    program.extent = 4;
    ck_assert_int_eq(mr_datarep_measure(d, &mr_type_basic[MR_BASIC_DOUBLE]), MR_SUCCESS);
    program.extent = 12;
    ck_assert_int_eq(mr_datarep_measure(d, t), MR_SUCCESS);
    ck_assert_uint_eq(mr_datarep_size(d, t), t->size);
    in_file = mr_datarep_type(d, t);
    ck_assert_ptr_ne(in_file, t);
    ck_assert_int_eq(in_file->true_extent, 16 + 2 * 4);
    mr_type_put(in_file);
    mr_type_put(t);
    mr_datarep_finalize();
}
END_TEST

START_TEST(errors_of_extents)
{
    const struct mr_datarep *d = made("mine", 100);

    program.fails = 1;
    ck_assert_int_eq(mr_datarep_measure(d, &mr_type_basic[MR_BASIC_INT]), MR_ERR_CONVERSION);
    program.extent = -3;
    ck_assert_int_eq(mr_datarep_measure(d, &mr_type_basic[MR_BASIC_INT]), MR_ERR_CONVERSION);
    program.extent = 0;
    ck_assert_int_eq(mr_datarep_measure(d, &mr_type_basic[MR_BASIC_INT]), MR_SUCCESS);
    mr_datarep_finalize();
}
END_TEST

/* Calls have whole elements, and no more entries than a count can tell. */
START_TEST(long_data_goes_in_pieces)
{
    static const int64_t items[] = {6, 6, 6, 3};
    const struct mr_datarep *d = made("mine", 8);
    struct mr_type *t = of_three();
    char memory[64], file[7 * 23];

    ck_assert_int_eq(mr_datarep_measure(d, t), MR_SUCCESS);
    program.file = file;
    ck_assert_int_eq(mr_datarep_to_file(d, memory, 7, t, file), MR_SUCCESS);
    ck_assert_int_eq(program.calls, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(program.items[i], items[i]);
        ck_assert_int_eq(program.position[i], 6 * i);
        ck_assert_int_eq(program.at[i], 2 * 23 * i);
    }
    program.calls = 0;
    program.fails = 2;
    ck_assert_int_eq(mr_datarep_from_file(d, memory, 7, t, file), MR_ERR_CONVERSION);
    ck_assert_int_eq(program.calls, 2);
    mr_datarep_finalize();
    d = made("tiny", 2); /* an element is longer than that */
    ck_assert_int_eq(mr_datarep_measure(d, t), MR_SUCCESS);
    ck_assert_int_eq(mr_datarep_to_file(d, memory, 1, t, file), MR_ERR_CONVERSION);
    mr_type_put(t);
    mr_datarep_finalize();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("datarep");

    tcase_add_test(tc, names_and_numbers);
    tcase_add_test(tc, each_basic_type_is_asked_for_once);
    tcase_add_test(tc, a_type_keeps_its_form_only_with_its_sizes);
    tcase_add_test(tc, errors_of_extents);
    tcase_add_test(tc, long_data_goes_in_pieces);
    return check_run(tc, NULL);
}
