/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's kinds of links have the operations that their traits promise. */

#include "libmrmpi/verbs/verbs.h"
#include "tests/check.h"

START_TEST(as_promised)
{
    const struct mr_link_ops *ops = mr_link_ops[_i];

    ck_assert_ptr_nonnull(ops);
    ck_assert(ops->open && ops->connect && ops->send && ops->drain && ops->close && ops->leave);
    ck_assert_int_eq(ops->write != NULL, mr_kind_is(_i, MR_IS_RDMA));
    ck_assert_int_eq(ops->read != NULL, mr_kind_is(_i, MR_IS_READING));
    ck_assert_int_eq(ops->run != NULL, mr_kind_is(_i, MR_IS_DATAGRAM));
    ck_assert_int_eq(ops->keepalive != NULL,
                     mr_kind_is(_i, MR_IS_CONNECTED | MR_IS_RELIABLE)); /* the adapter answers */
    ck_assert_int_eq(ops->flush != NULL, mr_kind_is(_i, MR_IS_CONNECTED));
    ck_assert_int_eq(ops->emptied != NULL, mr_kind_is(_i, MR_IS_RING));
    for (int k = 0; k < _i; k++)
        ck_assert_ptr_ne(ops, mr_link_ops[k]);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("link_ops");

    tcase_add_loop_test(t, as_promised, 0, MR_LINK_KINDS);
    return check_run(t, NULL);
}
