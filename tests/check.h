/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of each unit test program: main() makes its cases, adds the tests, and returns check_run(). Tests run in
 * processes of their own, unless CK_FORK is "no".
 */
#ifndef MRMPI_TESTS_CHECK_H
#define MRMPI_TESTS_CHECK_H

#include <check.h>
#include <stdarg.h>

/* Runs the tests of these cases, a list ended by NULL, and prints TAP; returns 0 if no test failed. */
__attribute__((sentinel)) static inline int check_run(TCase *first, ...)
{
    Suite *s = suite_create("");
    SRunner *r = srunner_create(s);
    va_list more;
    int failed;

    va_start(more, first);
    for (TCase *c = first; c; c = va_arg(more, TCase *))
        suite_add_tcase(s, c);
    va_end(more);
    srunner_set_tap(r, "-");
    srunner_run_all(r, CK_SILENT);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}

#endif
