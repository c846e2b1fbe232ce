/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors that return: every wrong argument is named by its class, and the library goes on working afterwards. */
#include "mt.h"

#include <unistd.h>

static int class_of(int code)
{
    int c;
    MPI_Error_class(code, &c);
    return c;
}

/* The error's text begins with the function of the call, and contains the given part. */
static void text_has(int code, const char *call, const char *part)
{
    char text[MPI_MAX_ERROR_STRING];
    int len;
    MPI_Error_string(code, text, &len);
    EQ(strlen(text), len);
    size_t n = strcspn(call, "(");
    if (strncmp(text, call, n) || strncmp(text + n, ": ", 2)) {
        fprintf(stderr, "rank %d: %.*s is not named in \"%s\"\n", rank, (int)n, call, text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (!strstr(text, part)) {
        fprintf(stderr, "rank %d: \"%s\" is not in \"%s\"\n", rank, part, text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* The call fails with this class. */
#define FAILS(call, class, part)                                                                                       \
    do {                                                                                                               \
        int code_ = (call);                                                                                            \
        EQ(class_of(code_), class);                                                                                    \
        text_has(code_, #call, part);                                                                                  \
    } while (0)

/* The names of MPI-1. */
static int seen;

static void note(MPI_Comm *c, int *code, ...)
{
    seen = class_of(*code);
}

static void old_handlers(void)
{
    MPI_Errhandler was, mine, now;
    int x = 0;
    MPI_Errhandler_get(MPI_COMM_WORLD, &was);
    MPI_Errhandler_create(note, &mine);
    MPI_Errhandler_set(MPI_COMM_WORLD, mine);
    MPI_Errhandler_get(MPI_COMM_WORLD, &now);
    EQ(now, mine);
    EQ(class_of(MPI_Send(&x, 1, MPI_INT, size, 0, MPI_COMM_WORLD)), MPI_ERR_RANK);
    EQ(seen, MPI_ERR_RANK);
    MPI_Errhandler_set(MPI_COMM_WORLD, was);
    MPI_Errhandler_free(&mine);
    MPI_Errhandler_free(&now);
    EQ(was, MPI_ERRORS_RETURN);
}

static void arguments(void)
{
    int x = 0, flag, n;
    MPI_Request q;
    MPI_Status st;
    MPI_Comm c;
    MPI_Datatype t;
    MPI_Group g;
    FAILS(MPI_Send(&x, 1, MPI_INT, size, 0, MPI_COMM_WORLD), MPI_ERR_RANK, "not in MPI_COMM_WORLD");
    FAILS(MPI_Send(&x, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD), MPI_ERR_RANK, "for receives");
    FAILS(MPI_Send(&x, 1, MPI_INT, 0, -1, MPI_COMM_WORLD), MPI_ERR_TAG, "tag -1");
    FAILS(MPI_Send(&x, -1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_COUNT, "-1");
    FAILS(MPI_Send(NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER, "null");
    FAILS(MPI_Send(&x, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE, "null handle");
    FAILS(MPI_Send(&x, 1, 12345, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE, "0x00003039");
    FAILS(MPI_Send(&x, 1, MPI_INT, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM, "null handle");
    FAILS(MPI_Recv(&x, 1, MPI_INT, -7, 0, MPI_COMM_WORLD, &st), MPI_ERR_RANK, "-7");
    FAILS(MPI_Irecv(&x, 1, MPI_INT, 0, -9, MPI_COMM_WORLD, &q), MPI_ERR_TAG, "-9");
    FAILS(MPI_Isend(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, NULL), MPI_ERR_ARG, "request");
    FAILS(MPI_Bcast(&x, 1, MPI_INT, size, MPI_COMM_WORLD), MPI_ERR_ROOT, "root");
    FAILS(MPI_Allreduce(&x, &n, 1, MPI_BYTE, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_OP,
          "MPI_SUM is not defined on MPI_BYTE");
    FAILS(MPI_Allreduce(&x, &n, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD), MPI_ERR_OP, "null handle");
    FAILS(MPI_Allreduce(&x, &x, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER, "MPI_IN_PLACE");
    FAILS(MPI_Comm_split(MPI_COMM_WORLD, -5, 0, &c), MPI_ERR_ARG, "color");
    q = MPI_COMM_WORLD;
    FAILS(MPI_Wait(&q, &st), MPI_ERR_REQUEST, "not a valid request");
    c = MPI_COMM_WORLD;
    FAILS(MPI_Comm_free(&c), MPI_ERR_COMM, "cannot be freed");
    t = MPI_INT;
    FAILS(MPI_Type_free(&t), MPI_ERR_TYPE, "built in");
    FAILS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL), MPI_ERR_ARG, "error handler");
    MPI_Type_vector(2, 1, 2, MPI_INT, &t);
    FAILS(MPI_Send(&x, 1, t, 0, 0, MPI_COMM_WORLD), MPI_ERR_TYPE, "MPI_Type_commit");
    MPI_Datatype old = t;
    MPI_Type_free(&t);
    FAILS(MPI_Type_size(old, &n), MPI_ERR_TYPE, "freed");
    EQ(class_of(MPI_Type_ub(MPI_INT, NULL)), MPI_ERR_ARG);
    FAILS(MPI_Type_vector(-1, 1, 1, MPI_INT, &t), MPI_ERR_COUNT, "-1");
    MPI_Comm_group(MPI_COMM_WORLD, &g);
    int ranks[2] = {0, 0};
    FAILS(MPI_Group_incl(g, 2, ranks, &g), MPI_ERR_RANK, "twice");
    MPI_Group_free(&g);
    FAILS(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_KEYVAL_INVALID, &n, &flag), MPI_ERR_KEYVAL, "null handle");
    FAILS(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL), MPI_ERR_KEYVAL, "belongs to MPI");
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm gone = c;
    MPI_Comm_free(&c);
    FAILS(MPI_Barrier(gone), MPI_ERR_COMM, "freed");
    FAILS(MPI_Cart_coords(MPI_COMM_WORLD, 0, 1, &n), MPI_ERR_TOPOLOGY, "Cartesian");
}

/* Truncation: the receive fails, in its status too, and the next message comes through. */
static void truncation(int n)
{
    int *a = calloc((size_t)n, sizeof(int)), *b = calloc((size_t)n, sizeof(int)), *c = calloc((size_t)n, sizeof(int));
    int left = (rank - 1 + size) % size;
    MPI_Request q[2];
    MPI_Status st[2];
    b[n - 1] = -3;
    MPI_Irecv(b, n - 1, MPI_INT, left, 1, MPI_COMM_WORLD, &q[0]);
    MPI_Irecv(c, n, MPI_INT, left, 2, MPI_COMM_WORLD, &q[1]);
    a[0] = 1;
    MPI_Send(a, n, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD);
    EQ(class_of(MPI_Wait(&q[0], &st[0])), MPI_ERR_TRUNCATE);
    EQ(b[n - 1], -3);
    a[n - 1] = 9;
    MPI_Send(a, n, MPI_INT, (rank + 1) % size, 2, MPI_COMM_WORLD);
    MPI_Wait(&q[1], &st[1]);
    EQ(c[n - 1], 9);
    MPI_Irecv(b, 0, MPI_INT, left, 3, MPI_COMM_WORLD, &q[0]);
    MPI_Irecv(b, 1, MPI_INT, left, 4, MPI_COMM_WORLD, &q[1]);
    MPI_Send(a, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD);
    MPI_Send(a, 1, MPI_INT, (rank + 1) % size, 4, MPI_COMM_WORLD);
    EQ(class_of(MPI_Waitall(2, q, st)), MPI_ERR_IN_STATUS);
    EQ(class_of(st[0].MPI_ERROR), MPI_ERR_TRUNCATE);
    EQ(st[1].MPI_ERROR, MPI_SUCCESS);
    free(a);
    free(b);
    free(c);
}

static int calls, seen_class;
static MPI_Comm seen_comm;

static void handler(MPI_Comm *comm, int *code, ...)
{
    calls++;
    seen_comm = *comm;
    seen_class = class_of(*code);
    int n;
    MPI_Comm_size(*comm, &n); /* MPI may be called from here */
    EQ(n, size);
}

static void handlers(void)
{
    MPI_Errhandler h, got;
    MPI_Comm c;
    int x = 0;
    MPI_Comm_create_errhandler(handler, &h);
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Comm_get_errhandler(c, &got); /* inherited */
    EQ(got, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(c, h);
    MPI_Comm_get_errhandler(c, &got);
    EQ(got, h);
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&h);
    EQ(h, MPI_ERRHANDLER_NULL);
    EQ(class_of(MPI_Send(&x, 1, MPI_INT, size + 3, 0, c)), MPI_ERR_RANK);
    EQ(calls, 1);
    EQ(seen_comm, c);
    EQ(seen_class, MPI_ERR_RANK);
    MPI_Comm_call_errhandler(c, MPI_ERR_OTHER);
    EQ(calls, 2);
    EQ(seen_class, MPI_ERR_OTHER);
    MPI_Comm_free(&c);
}

/* ---- the function returns the handler's value of *code ---- */

static int leaves, found; /* the code set by handlers, and the code passed to them */

static void change_of_comm(MPI_Comm *comm, int *code, ...)
{
    found = *code;
    *code = leaves;
}
static void change_of_win(MPI_Win *win, int *code, ...)
{
    found = *code;
    *code = leaves;
}
static void change_of_file(MPI_File *file, int *code, ...)
{
    found = *code;
    *code = leaves;
}
static void change_of_session(MPI_Session *session, int *code, ...)
{
    found = *code;
    *code = leaves;
}

#define CHANGES(call, class)                                                                                           \
    do {                                                                                                               \
        found = -1;                                                                                                    \
        EQ(call, leaves);                                                                                              \
        EQ(class_of(found), class);                                                                                    \
    } while (0)
#define CALLED(call)                                                                                                   \
    do {                                                                                                               \
        found = -1;                                                                                                    \
        EQ(call, MPI_SUCCESS);                                                                                         \
        EQ(found, MPI_ERR_OTHER);                                                                                      \
    } while (0)

static void of_comm(MPI_Comm c)
{
    int x[4] = {0}, flag, n, left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Request q[2];
    MPI_Status st[2];
    MPI_Comm none = MPI_COMM_NULL;
    CHANGES(MPI_Send(x, 1, MPI_INT, size, 0, c), MPI_ERR_RANK);
    CHANGES(MPI_Bcast(x, 1, MPI_INT, size, c), MPI_ERR_ROOT);
    CHANGES(MPI_Comm_free_keyval(&(int){MPI_KEYVAL_INVALID}), MPI_ERR_KEYVAL);
    CHANGES(MPI_Comm_size(none, &n), MPI_ERR_COMM);
    CHANGES(MPI_Type_size(MPI_DATATYPE_NULL, &n), MPI_ERR_TYPE);
    CHANGES(MPI_Info_create(NULL), MPI_ERR_ARG); /* a call allowed at any time */
    CHANGES(MPI_Win_fence(0, MPI_WIN_NULL), MPI_ERR_WIN);
    for (int how = 0; how < 5; how++) { /* errors found at the completion of requests */
        MPI_Irecv(x, 1, MPI_INT, left, how, c, &q[0]);
        q[1] = MPI_REQUEST_NULL;
        MPI_Send(x, 4, MPI_INT, right, how, c);
        MPI_Barrier(MPI_COMM_WORLD);
        switch (how) {
        case 0:
            CHANGES(MPI_Wait(q, st), MPI_ERR_TRUNCATE);
            break;
        case 1:
            CHANGES(MPI_Waitall(2, q, st), MPI_ERR_IN_STATUS);
            EQ(class_of(st[0].MPI_ERROR), MPI_ERR_TRUNCATE);
            break;
        case 2:
            CHANGES(MPI_Waitany(2, q, &n, st), MPI_ERR_TRUNCATE);
            break;
        case 3:
            CHANGES(MPI_Waitsome(2, q, &n, &flag, st), MPI_ERR_IN_STATUS);
            break;
        default:
            do {
                found = -1;
                n = MPI_Test(q, &flag, st);
            } while (!flag);
            EQ(n, leaves);
            EQ(class_of(found), MPI_ERR_TRUNCATE);
        }
    }
    MPI_Irecv(x, 1, MPI_INT, left, 9, c, &q[0]);
    MPI_Send(x, 4, MPI_INT, right, 9, c);
    MPI_Wait(&q[0], MPI_STATUS_IGNORE);
    MPI_Isend(x, 4, MPI_INT, right, 10, c, &q[0]);
    CHANGES(MPI_Recv(x, 1, MPI_INT, left, 10, c, st), MPI_ERR_TRUNCATE);
    MPI_Wait(&q[0], MPI_STATUS_IGNORE);
    CALLED(MPI_Comm_call_errhandler(c, MPI_ERR_OTHER));
}

static void changed_codes(void)
{
    MPI_Errhandler comm, win, file, session, was, was_file;
    MPI_Comm c;
    MPI_Win w;
    MPI_File f;
    MPI_Session s;
    MPI_Group g;
    int class, x = 0, *mine;
    MPI_Aint n;
    char name[] = "/tmp/mrmpi-errors-XXXXXX";
    int fd = mkstemp(name);
    CHECK(fd >= 0);
    close(fd);
    MPI_Add_error_class(&class);
    MPI_Comm_create_errhandler(change_of_comm, &comm);
    MPI_Win_create_errhandler(change_of_win, &win);
    MPI_File_create_errhandler(change_of_file, &file);
    MPI_Session_create_errhandler(change_of_session, &session);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &was);
    MPI_File_get_errhandler(MPI_FILE_NULL, &was_file);
    MPI_Comm_dup(MPI_COMM_WORLD, &c);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &w);
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f);
    MPI_Comm_set_errhandler(c, comm);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, comm);
    MPI_Win_set_errhandler(w, win);
    MPI_File_set_errhandler(f, file);
    MPI_File_set_errhandler(MPI_FILE_NULL, file);
    MPI_Session_init(MPI_INFO_NULL, session, &s);
    const int leave[] = {class, MPI_ERR_IO, MPI_SUCCESS};
    for (int k = 0; k < 3; k++) {
        leaves = leave[k];
        of_comm(c);
        CHANGES(MPI_Win_shared_query(w, size, &n, &x, &x), MPI_ERR_RANK);
        CHANGES(MPI_Put(&x, 1, MPI_INT, size, 0, 1, MPI_INT, w), MPI_ERR_RANK);
        CHANGES(MPI_Win_unlock(0, w), MPI_ERR_RMA_SYNC);
        CALLED(MPI_Win_call_errhandler(w, MPI_ERR_OTHER));
        CHANGES(MPI_File_seek(f, -1, MPI_SEEK_SET), MPI_ERR_ARG);
        CHANGES(MPI_File_open(MPI_COMM_SELF, "/no/such/place", MPI_MODE_RDONLY, MPI_INFO_NULL, &(MPI_File){0}),
                MPI_ERR_NO_SUCH_FILE);
        CALLED(MPI_File_call_errhandler(f, MPI_ERR_OTHER));
        CALLED(MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_OTHER));
        CHANGES(MPI_Group_from_session_pset(s, "nowhere", &g), MPI_ERR_ARG);
        CALLED(MPI_Session_call_errhandler(s, MPI_ERR_OTHER));
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, was);
    MPI_File_set_errhandler(MPI_FILE_NULL, was_file);
    MPI_Session_finalize(&s);
    MPI_File_close(&f);
    MPI_Win_free(&w);
    MPI_Comm_free(&c);
    MPI_Errhandler *all[] = {&comm, &win, &file, &session, &was, &was_file};
    for (int i = 0; i < 6; i++)
        MPI_Errhandler_free(all[i]);
}

static void codes(void)
{
    int class, code, got, len, flag, *last;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Add_error_class(&class);
    CHECK(class > MPI_ERR_LASTCODE);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_string(code, "the coffee is out");
    MPI_Error_class(code, &got);
    EQ(got, class);
    MPI_Error_string(code, text, &len);
    CHECK(!strcmp(text, "the coffee is out"));
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
    CHECK(flag && *last >= code);
    MPI_Error_string(MPI_ERR_TRUNCATE, text, &len);
    CHECK(strstr(text, "MPI_ERR_TRUNCATE"));
    EQ(class_of(MPI_Add_error_string(MPI_ERR_RANK, "no")), MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    arguments();
    truncation(10);
    truncation(300000);
    handlers();
    old_handlers();
    changed_codes();
    codes();
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EQ(sum, size * (size - 1) / 2);
    return mt_end();
}
