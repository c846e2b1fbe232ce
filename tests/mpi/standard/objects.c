/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The standard's binary interface where the interface differs from MPICH's: handles as pointers, ignored statuses as
 * null pointers, numbers of ranks, tags, modes and levels that have another order, and functions that are constants.
 */
#include "tests/mpi/mt.h"

#include <stdint.h>
#include <unistd.h>

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

/* Handles below 0x1000 are MPI's: no object of the program has one, and a number that is none is refused. */
static void handles(void)
{
    MPI_Comm c;
    MPI_Datatype t;
    int n;
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Type_contiguous(3, MPI_INT, &t);
    CHECK((uintptr_t)c >= 0x1000 && (uintptr_t)t >= 0x1000);
    MPI_Comm old = c;
    MPI_Comm_free(&c);
    EQ(c, MPI_COMM_NULL);
    EQ(class_of(MPI_Comm_size(old, &n)), MPI_ERR_COMM);
    EQ(class_of(MPI_Comm_size((MPI_Comm)((uintptr_t)MPI_COMM_WORLD | 1ull << 32), &n)), MPI_ERR_COMM);
    EQ(class_of(MPI_Comm_size((MPI_Comm)0, &n)), MPI_ERR_COMM);
    EQ(class_of(MPI_Type_size((MPI_Datatype)MPI_COMM_WORLD, &n)), MPI_ERR_TYPE);
    EQ(class_of(MPI_Type_size(MPI_REAL2, &n)), MPI_ERR_TYPE); /* not supported */
    MPI_Type_size(MPI_COMPLEX32, &n);
    EQ(n, 32);
    MPI_Type_free(&t);
}

/* An ignored status is a null pointer; the error of a status is left alone by a single completion. */
static void statuses(void)
{
    MPI_Status st = {.MPI_ERROR = 77}, all[2];
    MPI_Request r[2];
    int x = 5, y = 0, n, flag, index;
    EQ(sizeof(MPI_Status), 32);
    MPI_Isend(&x, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &r[0]);
    MPI_Recv(&y, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &st);
    CHECK(y == 5 && st.MPI_SOURCE == 0 && st.MPI_TAG == 3 && st.MPI_ERROR == 77);
    MPI_Wait(&r[0], &st);
    CHECK(st.MPI_ERROR == 77);
    MPI_Wait(&r[0], &st); /* the null request: an empty status */
    CHECK(st.MPI_SOURCE == MPI_ANY_SOURCE && st.MPI_TAG == MPI_ANY_TAG);
    MPI_Get_count(&st, MPI_INT, &n);
    EQ(n, 0);
    MPI_Irecv(&y, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_SELF, &r[0]);
    MPI_Wait(&r[0], &st);
    CHECK(st.MPI_SOURCE == MPI_PROC_NULL && st.MPI_TAG == MPI_ANY_TAG);
    MPI_Isend(&x, 1, MPI_INT, 0, 4, MPI_COMM_SELF, &r[0]);
    MPI_Probe(0, 4, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    MPI_Irecv(&y, 1, MPI_INT, 0, 4, MPI_COMM_SELF, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Isend(&x, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &r[0]);
    MPI_Irecv(&y, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &r[1]);
    MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
    MPI_Testall(2, r, &flag, all);
    while (!flag)
        MPI_Testall(2, r, &flag, all);
    CHECK(all[0].MPI_ERROR == MPI_SUCCESS && all[1].MPI_ERROR == MPI_SUCCESS);
    MPI_Status_set_elements_c(&st, MPI_BYTE, 5000000000);
    MPI_Status_set_cancelled(&st, 1);
    MPI_Count many;
    MPI_Get_count_c(&st, MPI_BYTE, &many);
    MPI_Test_cancelled(&st, &flag);
    CHECK(many == 5000000000 && flag);
}

/* Ranks that are none are refused, with the program's number in the text; -2 is a tag, and no rank. */
static void ranks(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int x = 0, len, code = MPI_Send(&x, 1, MPI_INT, -2, 0, MPI_COMM_SELF);
    EQ(class_of(code), MPI_ERR_RANK);
    MPI_Error_string(code, text, &len);
    CHECK(strstr(text, "-2 is not in"));
    code = MPI_Send(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_SELF);
    EQ(class_of(code), MPI_ERR_RANK);
    MPI_Error_string(code, text, &len);
    CHECK(strstr(text, "MPI_ANY_SOURCE is for receives"));
    code = MPI_Send(&x, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_SELF);
    EQ(class_of(code), MPI_ERR_TAG);
    EQ(class_of(MPI_Recv(&x, 1, MPI_INT, 0, -1, MPI_COMM_SELF, MPI_STATUS_IGNORE)), MPI_ERR_TAG);
    EQ(class_of(MPI_Bcast(&x, 1, MPI_INT, MPI_ROOT, MPI_COMM_SELF)), MPI_ERR_ROOT);
    EQ(MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF), MPI_SUCCESS);
    int *io, *host, dims = 1, periods = 0, from, to, flag;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &io, &flag);
    CHECK(flag && *io == MPI_ANY_SOURCE);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &host, &flag);
    CHECK(flag && *host == MPI_PROC_NULL);
    MPI_Comm cart;
    MPI_Cart_create(MPI_COMM_SELF, 1, &dims, &periods, 0, &cart);
    MPI_Cart_shift(cart, 0, 1, &from, &to);
    CHECK(from == MPI_PROC_NULL && to == MPI_PROC_NULL);
    MPI_Comm_free(&cart);
}

static void modes(void)
{
    char name[64];
    const int amode = MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_EXCL;
    int got, *flavor, flag, level;
    MPI_File f;
    MPI_Win w;
    snprintf(name, sizeof(name), "/tmp/mrmpi-objects-%d", (int)getpid());
    EQ(MPI_File_open(MPI_COMM_SELF, name, amode, MPI_INFO_NULL, &f), MPI_SUCCESS);
    MPI_File_get_amode(f, &got);
    EQ(got, amode);
    MPI_File_close(&f);
    EQ(f, MPI_FILE_NULL);
    EQ(class_of(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE, MPI_INFO_NULL, &f)), MPI_ERR_AMODE);
    EQ(class_of(MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDONLY | 512, MPI_INFO_NULL, &f)), MPI_ERR_AMODE);
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &w);
    MPI_Win_get_attr(w, MPI_WIN_CREATE_FLAVOR, &flavor, &flag);
    CHECK(flag && *flavor == MPI_WIN_FLAVOR_CREATE);
    MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
    EQ(MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSTORE, w), MPI_SUCCESS);
    EQ(class_of(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, w)), MPI_ERR_ASSERT);
    EQ(MPI_Win_fence(MPI_MODE_NOSUCCEED, w), MPI_SUCCESS);
    MPI_Win_free(&w);
    MPI_Query_thread(&level);
    EQ(level, MPI_THREAD_FUNNELED);
}

static int copies;
static int counted_copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    copies++;
    *flag = 0;
    return MPI_SUCCESS;
}

static void attributes(void)
{
    int key[3], x = 1, flag, *got;
    MPI_Comm c;
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key[0], NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key[1], NULL);
    MPI_Comm_create_keyval(counted_copy, MPI_COMM_NULL_DELETE_FN, &key[2], NULL);
    for (int i = 0; i < 3; i++) {
        CHECK(key[i] != MPI_KEYVAL_INVALID);
        MPI_Comm_set_attr(MPI_COMM_SELF, key[i], &x);
    }
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    MPI_Comm_get_attr(c, key[0], &got, &flag);
    CHECK(flag && got == &x);
    MPI_Comm_get_attr(c, key[1], &got, &flag);
    CHECK(!flag && copies == 1);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_delete_attr(MPI_COMM_SELF, key[i]);
        MPI_Comm_free_keyval(&key[i]);
        EQ(key[i], MPI_KEYVAL_INVALID);
    }
    MPI_Comm_free(&c);
}

/* The forum's header declares large counts for partitioned operations, too. */
static void partitioned(void)
{
    int x[2] = {3, 4}, y[2] = {0};
    MPI_Request r[2];
    MPI_Psend_init_c(x, 1, 2, MPI_INT, 0, 7, MPI_COMM_SELF, MPI_INFO_NULL, &r[0]);
    MPI_Precv_init_c(y, 1, 2, MPI_INT, 0, 7, MPI_COMM_SELF, MPI_INFO_NULL, &r[1]);
    MPI_Startall(2, r);
    MPI_Pready(0, r[0]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    CHECK(y[0] == 3 && y[1] == 4);
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

/* Functions that the other programs do not call. */
static void others(void)
{
    int n;
    MPI_Status st = {0};
    MPI_Info info = MPI_INFO_NULL;
    MPI_File f;
    MPI_Count extent = -1;
    char name[] = "/tmp/mrmpi-objects-XXXXXX";
    MPI_Status_set_source(&st, 7);
    MPI_Status_set_tag(&st, 8);
    MPI_Status_set_error(&st, MPI_ERR_TRUNCATE);
    CHECK(st.MPI_SOURCE == 7 && st.MPI_TAG == 8 && st.MPI_ERROR == MPI_ERR_TRUNCATE);
    MPI_Status_get_source(&st, &n);
    EQ(n, 7);
    MPI_Status_get_tag(&st, &n);
    EQ(n, 8);
    MPI_Status_get_error(&st, &n);
    EQ(n, MPI_ERR_TRUNCATE);
    EQ(MPI_Get_hw_resource_info(&info), MPI_SUCCESS);
    MPI_Info_get_nkeys(info, &n);
    CHECK(n > 0);
    MPI_Info_free(&info);
    close(mkstemp(name));
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f);
    MPI_File_get_type_extent_c(f, MPI_DOUBLE, &extent);
    EQ(extent, 8);
    MPI_File_close(&f);
}

int main(int argc, char **argv)
{
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED + 5, &provided);
    EQ(provided, MPI_THREAD_FUNNELED);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    handles();
    statuses();
    ranks();
    modes();
    attributes();
    partitioned();
    others();
    return MPI_Finalize();
}
