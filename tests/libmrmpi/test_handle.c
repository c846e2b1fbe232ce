/* SPDX-License-Identifier: BSD-3-Clause */
/* The handle table: freed handles are recognised, slots are used again, objects asked for twice keep their handle. */
#include <stdlib.h>

#include "libmrmpi/api/api.h"
#include "tests/check.h"

/* Stand-ins: neither communicators nor requests are made here. */
struct mr_comm *mr_comm_world, *mr_comm_self;
void mr_comm_put(struct mr_comm *c)
{
    abort();
}
void mr_request_put(struct mr_request *r)
{
    abort();
}

START_TEST(freed_is_not_found)
{
    int a = 1, b = 2;
    int h = api_handle_new(ABI_REQUEST, &a);
    ck_assert_ptr_eq(api_find(ABI_REQUEST, h), &a);
    ck_assert(api_handle_free(ABI_REQUEST, h));
    ck_assert_ptr_null(api_find(ABI_REQUEST, h));
    int again = api_handle_new(ABI_REQUEST, &b);
    ck_assert_int_ne(again, h);
    ck_assert_uint_eq(abi_handle_index(again), abi_handle_index(h)); /* the slot is the same */
    ck_assert_ptr_null(api_find(ABI_REQUEST, h));
    ck_assert_ptr_eq(api_find(ABI_REQUEST, again), &b);
    api_handles_finalize();
}
END_TEST

START_TEST(kinds_are_apart)
{
    int a = 1;
    int h = api_handle_new(ABI_COMM, &a);
    ck_assert_ptr_null(api_find(ABI_REQUEST, h));
    ck_assert_ptr_null(api_find(ABI_TYPE, h));
    ck_assert_ptr_null(api_find(ABI_COMM, MPI_COMM_NULL));
    ck_assert_ptr_null(api_find(ABI_COMM, -1));
    ck_assert_ptr_null(api_find(ABI_COMM, 0));
    api_handles_finalize();
}
END_TEST

START_TEST(many)
{
    enum { N = 300000 };
    static int objects[N], handles[N];
    for (int i = 0; i < N; i++)
        ck_assert_int_ne(handles[i] = api_handle_new(ABI_REQUEST, &objects[i]), 0);
    for (int i = 0; i < N; i++)
        ck_assert_ptr_eq(api_find(ABI_REQUEST, handles[i]), &objects[i]);
    for (int i = 0; i < N; i += 2)
        api_handle_free(ABI_REQUEST, handles[i]);
    for (int i = 0; i < N; i++)
        ck_assert_ptr_eq(api_find(ABI_REQUEST, handles[i]), i % 2 ? &objects[i] : NULL);
    api_handles_finalize();
}
END_TEST

START_TEST(asked_for_twice)
{
    struct mr_group *g = mr_group_new(2, (int[]){4, 5});
    MPI_Group a, b;
    struct mr_group *found;
    ck_assert_int_eq(api_new_group(mr_group_get(g), &a), MR_SUCCESS);
    ck_assert_int_eq(api_new_group(mr_group_get(g), &b), MR_SUCCESS);
    ck_assert_int_eq(a, b);
    ck_assert(!api_handle_free(ABI_GROUP, a));
    ck_assert_int_eq(api_group(b, &found), MR_SUCCESS);
    ck_assert(api_handle_free(ABI_GROUP, b));
    ck_assert_int_eq(api_group(b, &found), MR_ERR_GROUP);
    g->refs = 1;
    mr_group_put(g);
    api_handles_finalize();
}
END_TEST

START_TEST(builtin_types)
{
    struct mr_type *t;
#define X(h, basic) mr_type_basic[MR_BASIC_##basic].handle = (h);
    ABI_BASICS(X)
    ABI_PAIRS(X)
#undef X
    ck_assert_int_eq(api_type(MPI_DOUBLE, &t), MR_SUCCESS);
    ck_assert_ptr_eq(t, &mr_type_basic[MR_BASIC_DOUBLE]);
    ck_assert_int_eq(api_type(MPI_LONG_DOUBLE_INT, &t), MR_SUCCESS);
    ck_assert_ptr_eq(t, &mr_type_basic[MR_BASIC_LONG_DOUBLE_INT]);
    ck_assert_int_eq(api_type((MPI_DOUBLE & ~0xff00) | 0x0400, &t), MR_ERR_TYPE); /* the size is wrong */
    ck_assert_int_eq(api_type(MPI_DATATYPE_NULL, &t), MR_ERR_TYPE);
    ck_assert_int_eq(api_type(0x8c000005, &t), MR_ERR_TYPE);
}
END_TEST

START_TEST(status_counts)
{
    MPI_Status st;
    uint64_t n = 0x123456789abcdefull;
    abi_status_set_bytes(&st, n, false);
    ck_assert_uint_eq(abi_status_bytes(&st), n);
    ck_assert(!abi_status_cancelled(&st));
    abi_status_set_bytes(&st, 3, true);
    ck_assert_uint_eq(abi_status_bytes(&st), 3);
    ck_assert(abi_status_cancelled(&st));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("handle");
    tcase_add_test(t, freed_is_not_found);
    tcase_add_test(t, kinds_are_apart);
    tcase_add_test(t, many);
    tcase_add_test(t, asked_for_twice);
    tcase_add_test(t, builtin_types);
    tcase_add_test(t, status_counts);
    return check_run(t, NULL);
}
