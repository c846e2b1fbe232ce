/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Info objects, hints of communicators, error classes and codes; all that is allowed before MPI_Init and after
 * MPI_Finalize, there from several threads at once.
 */
#include "mt.h"

#include <pthread.h>

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static void strings(void)
{
    MPI_Info i, j;
    char value[8], key[MPI_MAX_INFO_KEY + 1];
    int flag, len, n;
    MPI_Info_create(&i);
    MPI_Info_set(i, "first", "123456789");
    MPI_Info_set(i, "second", "2");
    MPI_Info_set(i, "first", "abcdefghi"); /* in its old place */
    len = 0;
    strcpy(value, "?");
    MPI_Info_get_string(i, "first", &len, value, &flag);
    CHECK(flag && len == 10 && !strcmp(value, "?"));
    len = 4;
    MPI_Info_get_string(i, "first", &len, value, &flag);
    CHECK(flag && len == 10 && !strcmp(value, "abc"));
    len = 8;
    MPI_Info_get_string(i, "second", &len, value, &flag);
    CHECK(flag && len == 2 && !strcmp(value, "2"));
    MPI_Info_get_string(i, "third", &len, value, &flag);
    CHECK(!flag && len == 2);
    MPI_Info_dup(i, &j);
    MPI_Info_delete(i, "first");
    MPI_Info_get_nkeys(i, &n);
    EQ(n, 1);
    MPI_Info_get_nkeys(j, &n);
    EQ(n, 2);
    MPI_Info_get_nthkey(j, 0, key);
    CHECK(!strcmp(key, "first"));
    MPI_Info_get_nthkey(j, 1, key);
    CHECK(!strcmp(key, "second"));
    MPI_Info_free(&i);
    MPI_Info_free(&j);
    EQ(j, MPI_INFO_NULL);
}

static void has(MPI_Info i, const char *key, const char *want)
{
    char value[MPI_MAX_INFO_VAL + 1];
    int flag, len = sizeof(value);
    MPI_Info_get_string(i, key, &len, value, &flag);
    CHECK(flag);
    if (strcmp(value, want)) {
        fprintf(stderr, "%s is \"%s\", not \"%s\"\n", key, value, want);
        CHECK(0);
    }
}

static void environment(const char *program)
{
    char *args[] = {"prog", "-a", "b c"}, size_text[16], *end;
    MPI_Info i;
    snprintf(size_text, sizeof(size_text), "%d", size);
    has(MPI_INFO_ENV, "command", program);
    has(MPI_INFO_ENV, "argv", "one two");
    has(MPI_INFO_ENV, "maxprocs", size_text);
    has(MPI_INFO_ENV, "thread_level", "MPI_THREAD_SINGLE");
    CHECK(class_of(MPI_Info_set(MPI_INFO_ENV, "command", "x")) == MPI_ERR_INFO);
    i = MPI_INFO_ENV;
    CHECK(class_of(MPI_Info_free(&i)) == MPI_ERR_INFO);
    MPI_Info_create_env(3, args, &i);
    has(i, "command", "prog");
    has(i, "argv", "-a b c");
    char *dir = realpath(".", NULL);
    has(i, "wdir", dir);
    free(dir);
    int flag;
    MPI_Info_get(i, "thread_level", 0, NULL, &flag); /* independent of MPI's present state */
    CHECK(!flag);
    MPI_Info_set(i, "command", "mine now");
    has(i, "command", "mine now");
    MPI_Info_free(&i);
    EQ(strtol(size_text, &end, 10), size);
}

/* Hints named by the standard are kept, per communicator; others are ignored. */
static void hints(void)
{
    MPI_Comm c, d;
    MPI_Info i;
    char value[8];
    int flag, n;
    MPI_Comm_get_info(MPI_COMM_WORLD, &i);
    has(i, "mpi_assert_exact_length", "false");
    MPI_Info_free(&i);
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Info_create(&i);
    MPI_Info_set(i, "mpi_assert_no_any_tag", "true");
    MPI_Info_set(i, "mpi_assert_exact_length", "true");
    MPI_Info_set(i, "taste", "salty");
    MPI_Comm_set_info(c, i);
    MPI_Info_delete(i, "mpi_assert_no_any_tag");
    MPI_Info_set(i, "mpi_assert_exact_length", "false");
    MPI_Info_set(i, "mpi_assert_allow_overtaking", "perhaps");
    MPI_Comm_set_info(c, i);
    MPI_Info_free(&i);
    MPI_Comm_get_info(c, &i);
    has(i, "mpi_assert_no_any_tag", "true"); /* stays, since the second call did not name it */
    has(i, "mpi_assert_exact_length", "false");
    has(i, "mpi_assert_allow_overtaking", "false");
    has(i, "mpi_assert_no_any_source", "false");
    MPI_Info_get(i, "taste", 7, value, &flag);
    CHECK(!flag);
    MPI_Info_get_nkeys(i, &n);
    EQ(n, 4);
    MPI_Comm_split_type(c, MPI_COMM_TYPE_SHARED, 0, i, &d);
    MPI_Info_free(&i);
    MPI_Comm_get_info(d, &i);
    has(i, "mpi_assert_no_any_tag", "true");
    MPI_Comm_free(&d);
    MPI_Comm_dup(c, &d); /* without the hints */
    MPI_Info_free(&i);
    MPI_Comm_get_info(d, &i);
    has(i, "mpi_assert_no_any_tag", "false");
    MPI_Info_free(&i);
    MPI_Comm_free(&d);
    MPI_Comm_free(&c);
}

static void codes(void)
{
    int class, code, *last, flag, len;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Add_error_class(&class);
    CHECK(class > MPI_ERR_LASTCODE);
    MPI_Add_error_code(class, &code);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
    CHECK(flag && *last >= code);
    EQ(class_of(code), class);
    EQ(class_of(class), class);
    MPI_Error_string(code, text, &len);
    EQ(len, 0);
    MPI_Add_error_string(code, "hot");
    MPI_Error_string(code, text, &len);
    CHECK(len == 3 && !strcmp(text, "hot"));
    CHECK(class_of(MPI_Add_error_string(MPI_ERR_ARG, "x")) == MPI_ERR_ARG);
    CHECK(MPIX_Delete_error_class(class) != MPI_SUCCESS); /* has a code */
    CHECK(MPIX_Delete_error_code(class) != MPI_SUCCESS);
    MPIX_Delete_error_string(code);
    MPI_Error_string(code, text, &len);
    EQ(len, 0);
    EQ(MPIX_Delete_error_code(code), MPI_SUCCESS);
    EQ(MPIX_Delete_error_class(class), MPI_SUCCESS);
    CHECK(MPIX_Delete_error_class(class) != MPI_SUCCESS);
    EQ(class_of(class), MPI_ERR_UNKNOWN);
    /* the same by the names of MPI-4.1 */
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_string(code, "cold");
    EQ(class_of(MPI_Remove_error_class(class)), MPI_ERR_ARG);
    EQ(class_of(MPI_Remove_error_code(class)), MPI_ERR_ARG);
    EQ(class_of(MPI_Remove_error_class(code)), MPI_ERR_ARG);
    EQ(class_of(MPI_Remove_error_string(MPI_ERR_RANK)), MPI_ERR_ARG);
    EQ(MPI_Remove_error_string(code), MPI_SUCCESS);
    MPI_Error_string(code, text, &len);
    EQ(len, 0);
    EQ(MPI_Remove_error_code(code), MPI_SUCCESS);
    EQ(class_of(code), MPI_ERR_UNKNOWN);
    EQ(MPI_Remove_error_class(class), MPI_SUCCESS);
    EQ(class_of(class), MPI_ERR_UNKNOWN);
    EQ(class_of(MPI_Remove_error_class(class)), MPI_ERR_ARG);
    for (int e = MPI_SUCCESS; e <= MPI_ERR_WIN; e++) {
        EQ(class_of(e), e);
        MPI_Error_string(e, text, &len);
        CHECK(len > 4 && !strstr(text, "not an error code"));
    }
}

static void nothing(MPI_Comm *c, int *code, ...)
{
    (void)c;
    (void)code;
}

/* Functions that threads may call at any time. */
static void *anytime(void *arg)
{
    for (int k = 0; k < 200; k++) {
        MPI_Info i, j;
        MPI_Errhandler h;
        int flag, v, s, code, len;
        char key[16], text[MPI_MAX_ERROR_STRING];
        MPI_Info_create(&i);
        snprintf(key, sizeof(key), "%d-%ld", k, (long)arg);
        MPI_Info_set(i, key, key);
        MPI_Info_dup(i, &j);
        MPI_Info_free(&i);
        has(j, key, key);
        MPI_Info_free(&j);
        MPI_Comm_create_errhandler(nothing, &h);
        MPI_Errhandler_free(&h);
        MPI_Initialized(&flag);
        MPI_Finalized(&flag);
        MPI_Get_version(&v, &s);
        if (k % 50 == 0) {
            MPI_Add_error_class(&code);
            MPI_Add_error_string(code, key);
            MPI_Error_string(code, text, &len);
            CHECK(!strcmp(text, key));
        }
    }
    return NULL;
}

static void threads(void)
{
    pthread_t t[4];
    for (long k = 0; k < 4; k++)
        pthread_create(&t[k], NULL, anytime, (void *)k);
    for (int k = 0; k < 4; k++)
        pthread_join(t[k], NULL);
}

int main(int argc, char **argv)
{
    MPI_Info kept;
    int class, len;
    char text[MPI_MAX_ERROR_STRING];
    threads();
    strings();
    MPI_Info_create(&kept);
    MPI_Info_set(kept, "from", "before");
    MPI_Add_error_class(&class);
    MPI_Add_error_string(class, "old");
    mt_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    strings();
    environment(argv[0]);
    hints();
    codes();
    MPI_Finalize();
    has(kept, "from", "before");
    MPI_Info_free(&kept);
    MPI_Error_string(class, text, &len);
    CHECK(!strcmp(text, "old"));
    threads();
    strings();
    return 0;
}
