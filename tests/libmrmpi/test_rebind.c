/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls between libraries that are loaded already, or come later, are redirected; those of the redirecting object are
 * not. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "libmrmpi/api/rebind.h"
#include "tests/check.h"

static volatile unsigned freed, wrapped; /* calls that came by */

static void counted_free(void *p)
{
    freed += p != NULL;
    free(p);
}

static char *wrapped_getenv(const char *name)
{
    wrapped++;
    return getenv(name);
}

static const struct rebinding list[] = {{"free", (void *)counted_free}, {"getenv", (void *)wrapped_getenv}};

START_TEST(calls_of_libraries_come_by)
{
    FILE *f = fopen("/dev/null", "r");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(freed, 0);
    ck_assert(rebind_all(list, 2));
    fclose(f); /* the C library frees it */
    ck_assert_uint_eq(freed, 1);
}
END_TEST

START_TEST(our_own_calls_do_not)
{
    void *volatile p = malloc(100);

    ck_assert(rebind_all(list, 2));
    unsigned before = freed;
    free(p);
    ck_assert_uint_eq(freed, before);
    getenv("HOME");
    ck_assert_uint_eq(wrapped, 0);
}
END_TEST

START_TEST(twice_is_as_once)
{
    FILE *f = fopen("/dev/null", "r");

    ck_assert(rebind_all(list, 2));
    ck_assert(rebind_all(list, 2));
    fclose(f);
    ck_assert_uint_eq(freed, 1);
}
END_TEST

/* fabricd depends on libyaml, so it is there; this program does not load it at its start. */
START_TEST(what_is_loaded_later)
{
    unsigned long long before = rebind_objects_loaded();

    ck_assert(rebind_all(list, 2));
    ck_assert_uint_eq(rebind_objects_loaded(), before);
    void *lib = dlopen("libyaml-0.so.2", RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(lib, "%s", dlerror());
    ck_assert_uint_gt(rebind_objects_loaded(), before);

    void (*yaml_free)(void *) = (void (*)(void *))dlsym(lib, "yaml_free");
    ck_assert_ptr_nonnull((void *)yaml_free);
    yaml_free(malloc(10));
    ck_assert_uint_eq(freed, 0); /* it was bound past us */
    ck_assert(rebind_all(list, 2));
    yaml_free(malloc(10));
    ck_assert_uint_eq(freed, 1);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("rebind");

    tcase_add_test(t, calls_of_libraries_come_by);
    tcase_add_test(t, our_own_calls_do_not);
    tcase_add_test(t, twice_is_as_once);
    tcase_add_test(t, what_is_loaded_later);
    setenv("CK_FORK", "yes", 1); /* each in a process of its own: what is redirected stays so */
    return check_run(t, NULL);
}
