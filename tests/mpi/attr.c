/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes: errors of their callbacks, order of deletion, keys freed in use, callbacks that change attributes
 * themselves, intercommunicators, MPI's predefined attributes; and at the end those of MPI_COMM_SELF and MPI_COMM_WORLD
 * in MPI_Finalize.
 */
#include "mt.h"

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static char order[64]; /* deleted attributes */
static int refuse;     /* the delete function refuses this value */
static int seen_key;
static MPI_Comm seen_comm;

static int delete_fn(MPI_Comm c, int key, void *value, void *extra)
{
    char *v = value;
    (void)extra;
    seen_key = key;
    seen_comm = c;
    if (refuse == *v)
        return MPI_ERR_OTHER;
    strncat(order, v, 1);
    return MPI_SUCCESS;
}

static int copy_fn(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag)
{
    (void)c;
    (void)key;
    *flag = *(char *)in != *(char *)extra; /* one value is not inherited */
    *(void **)out = in;
    return MPI_SUCCESS;
}

static void order_and_refusal(void)
{
    MPI_Comm c, d;
    int key[4], flag;
    char values[] = "abcd", *got, extra = 'b';
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    for (int i = 0; i < 4; i++) {
        MPI_Comm_create_keyval(copy_fn, delete_fn, &key[i], &extra);
        MPI_Comm_set_attr(c, key[i], &values[i]);
    }
    MPI_Comm_dup(c, &d);
    for (int i = 0; i < 4; i++) {
        MPI_Comm_get_attr(d, key[i], &got, &flag);
        EQ(flag, values[i] != 'b');
        CHECK(!flag || got == &values[i]);
    }
    order[0] = '\0';
    MPI_Comm_free(&d);
    CHECK(!strcmp(order, "dca")); /* the last attribute set is deleted first */

    /* set again: the old value is deleted, and not if its function refuses */
    order[0] = '\0';
    MPI_Comm_set_attr(c, key[1], &values[0]);
    CHECK(!strcmp(order, "b") && seen_key == key[1] && seen_comm == c);
    refuse = 'a';
    CHECK(MPI_Comm_set_attr(c, key[1], &values[2]) != MPI_SUCCESS);
    MPI_Comm_get_attr(c, key[1], &got, &flag);
    CHECK(flag && got == &values[0]);
    CHECK(MPI_Comm_delete_attr(c, key[1]) != MPI_SUCCESS);
    MPI_Comm_get_attr(c, key[1], &got, &flag);
    CHECK(flag);

    /* a communicator whose attribute refuses deletion stays usable */
    d = c;
    CHECK(MPI_Comm_free(&d) != MPI_SUCCESS);
    EQ(d, c);
    int one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, c);
    EQ(sum, size);
    refuse = 0;
    MPI_Comm_free(&c);
    EQ(c, MPI_COMM_NULL);
    for (int i = 0; i < 4; i++)
        MPI_Comm_free_keyval(&key[i]);
}

static void freed_keys(void)
{
    MPI_Comm c;
    int key, was, other, flag;
    char x = 'x', *got;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_fn, &key, NULL);
    MPI_Comm_set_attr(c, key, &x);
    was = key;
    MPI_Comm_free_keyval(&key);
    EQ(key, MPI_KEYVAL_INVALID);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &other, NULL);
    CHECK(other != was);
    MPI_Comm_get_attr(c, other, &got, &flag); /* a new key does not find the old key's value */
    EQ(flag, 0);
    EQ(class_of(MPI_Comm_set_attr(c, MPI_KEYVAL_INVALID, &x)), MPI_ERR_KEYVAL);
    EQ(class_of(MPI_Comm_set_attr(c, was, &x)), MPI_ERR_KEYVAL);
    MPI_Comm_get_attr(c, was, &got, &flag); /* the number means the key while an attribute has it */
    CHECK(flag && got == &x);
    EQ(class_of(MPI_Comm_set_attr(c, MPI_TAG_UB, &x)), MPI_ERR_KEYVAL);
    MPI_Comm_free_keyval(&other);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &other, NULL);
    EQ(class_of(MPI_Comm_set_attr(c, other, &x)), MPI_ERR_KEYVAL);
    MPI_Type_free_keyval(&other);
    order[0] = '\0';
    MPI_Comm_free(&c); /* the function of the freed key is still called, with the key as it was */
    CHECK(!strcmp(order, "x") && seen_key == was);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(class_of(MPI_Comm_get_attr(MPI_COMM_WORLD, was, &got, &flag)) == MPI_ERR_KEYVAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static int own_error;

static int failing_copy(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag)
{
    return own_error;
}

/* A program's own error is returned by the function that called the failing attribute function. */
static void own_errors(void)
{
    MPI_Comm c, d = MPI_COMM_SELF;
    int key, class;
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    MPI_Comm_set_errhandler(c, MPI_ERRORS_RETURN);
    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &own_error);
    MPI_Comm_create_keyval(failing_copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(c, key, NULL);
    EQ(MPI_Comm_dup(c, &d), own_error);
    EQ(class_of(own_error), class);
    EQ(d, MPI_COMM_NULL);
    EQ(class_of(MPI_Comm_call_errhandler(c, MPI_ERR_OTHER)), MPI_SUCCESS);
    EQ(class_of(MPI_Comm_set_attr(c, MPI_KEYVAL_INVALID, NULL)), MPI_ERR_KEYVAL); /* the next error is its own */
    MPI_Comm_free_keyval(&key);
    MPI_Comm_free(&c);
}

static int second;

/* Deletes another attribute of the communicator, too. */
static int meddling_fn(MPI_Comm c, int key, void *value, void *extra)
{
    (void)key;
    (void)extra;
    strncat(order, value, 1);
    return MPI_Comm_delete_attr(c, second);
}

static void meddling(void)
{
    MPI_Comm c;
    int key, flag;
    char m = 'm', s = 's', *got;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, meddling_fn, &key, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_fn, &second, NULL);
    for (int way = 0; way < 3; way++) {
        MPI_Comm_dup(MPI_COMM_SELF, &c);
        MPI_Comm_set_attr(c, way == 1 ? second : key, way == 1 ? &s : &m);
        MPI_Comm_set_attr(c, way == 1 ? key : second, way == 1 ? &m : &s);
        order[0] = '\0';
        if (way < 2) {
            MPI_Comm_delete_attr(c, key);
            CHECK(!strcmp(order, "ms"));
            MPI_Comm_get_attr(c, second, &got, &flag);
            EQ(flag, 0);
            MPI_Comm_get_attr(c, key, &got, &flag);
            EQ(flag, 0);
        } else {
            MPI_Comm_delete_attr(c, second);
            MPI_Comm_set_attr(c, second, &s);
        }
        if (way == 2) {
            MPI_Comm_delete_attr(c, key);
            CHECK(!strcmp(order, "sms"));
        }
        MPI_Comm_free(&c);
    }
    MPI_Comm_free_keyval(&key);
    MPI_Comm_free_keyval(&second);
}

static void predefined(void)
{
    static const int keys[] = {MPI_TAG_UB,        MPI_HOST,   MPI_IO,          MPI_WTIME_IS_GLOBAL,
                               MPI_UNIVERSE_SIZE, MPI_APPNUM, MPI_LASTUSEDCODE};
    MPI_Comm c;
    int flag, *v;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        v = NULL;
        MPI_Comm_get_attr(c, keys[i], &v, &flag);
        CHECK(flag && v);
    }
    MPI_Comm_get_attr(c, MPI_HOST, &v, &flag);
    EQ(*v, MPI_PROC_NULL);
    MPI_Comm_get_attr(c, MPI_IO, &v, &flag);
    EQ(*v, MPI_ANY_SOURCE);
    MPI_Comm_get_attr(c, MPI_LASTUSEDCODE, &v, &flag);
    CHECK(*v >= MPI_ERR_LASTCODE);
    MPI_Attr_get(c, MPI_TAG_UB, &v, &flag);
    CHECK(flag && *v >= 32767);
    if (size > 1) { /* the largest tag can be used */
        int x = 5, y = 0;
        MPI_Sendrecv(&x, 1, MPI_INT, (rank + 1) % size, *v, &y, 1, MPI_INT, (rank + size - 1) % size, *v, c,
                     MPI_STATUS_IGNORE);
        EQ(y, 5);
    }
    MPI_Comm_free(&c);
}

static void between_groups(void)
{
    MPI_Comm half, inter, d;
    int key, flag;
    char v = 'i', extra = 0, *got;
    if (size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 0, &inter);
    MPI_Comm_create_keyval(copy_fn, delete_fn, &key, &extra);
    MPI_Comm_set_attr(inter, key, &v);
    MPI_Comm_dup(inter, &d);
    MPI_Comm_get_attr(d, key, &got, &flag);
    CHECK(flag && got == &v);
    order[0] = '\0';
    MPI_Comm_free(&inter);
    MPI_Comm_free(&d);
    CHECK(!strcmp(order, "ii"));
    MPI_Comm_free_keyval(&key);
    MPI_Comm_free(&half);
}

static int at_end(MPI_Comm c, int key, void *value, void *extra)
{
    int flag, n;
    (void)key;
    (void)extra;
    MPI_Initialized(&flag);
    CHECK(flag);
    MPI_Comm_size(MPI_COMM_WORLD, &n); /* MPI still works */
    EQ(n, size);
    CHECK((c == MPI_COMM_WORLD) == (*(char *)value == 'w'));
    strncat(order, value, 1);
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    static char end[] = "w123";
    int key;
    mt_begin(&argc, &argv);
    order_and_refusal();
    freed_keys();
    own_errors();
    meddling();
    predefined();
    between_groups();
    for (int i = 0; i < 4; i++) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &key, NULL);
        MPI_Comm_set_attr(i ? MPI_COMM_SELF : MPI_COMM_WORLD, key, &end[i]);
        MPI_Comm_free_keyval(&key);
    }
    order[0] = '\0';
    MPI_Finalize();
    if (strcmp(order, "321w")) {
        fprintf(stderr, "MPI_Finalize deleted %s\n", order);
        return 1;
    }
    return 0;
}
