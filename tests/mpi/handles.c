/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles as integers of Fortran and of C: functions, with their profiling twins, that convert there and back, for null
 * handles, built-in handles and those made at run time; also before and after MPI. MPI's report of its binary
 * interface.
 */
#include "mt.h"

/* Through function pointers: they are no macros. */
#define THERE_AND_BACK(name, type, handle)                                                                             \
    do {                                                                                                               \
        MPI_Fint (*c2f[])(type) = {MPI_##name##_c2f, PMPI_##name##_c2f};                                               \
        type (*f2c[])(MPI_Fint) = {MPI_##name##_f2c, PMPI_##name##_f2c};                                               \
        int (*toint[])(type) = {MPI_##name##_toint, PMPI_##name##_toint};                                              \
        type (*fromint[])(int) = {MPI_##name##_fromint, PMPI_##name##_fromint};                                        \
        for (int i_ = 0; i_ < 2; i_++) {                                                                               \
            CHECK(f2c[i_](c2f[i_](handle)) == (handle));                                                               \
            CHECK(fromint[i_](toint[i_](handle)) == (handle));                                                         \
        }                                                                                                              \
        /* Fortran's integers are those of MPICH's binding: the handle itself */                                       \
        EQ(c2f[0](handle), (MPI_Fint)(long)(handle));                                                                  \
        EQ(toint[0](handle), (int)(long)(handle));                                                                     \
    } while (0)

static void null_handles(void)
{
    THERE_AND_BACK(Comm, MPI_Comm, MPI_COMM_NULL);
    THERE_AND_BACK(Errhandler, MPI_Errhandler, MPI_ERRHANDLER_NULL);
    THERE_AND_BACK(File, MPI_File, MPI_FILE_NULL);
    THERE_AND_BACK(Group, MPI_Group, MPI_GROUP_NULL);
    THERE_AND_BACK(Info, MPI_Info, MPI_INFO_NULL);
    THERE_AND_BACK(Message, MPI_Message, MPI_MESSAGE_NULL);
    THERE_AND_BACK(Op, MPI_Op, MPI_OP_NULL);
    THERE_AND_BACK(Request, MPI_Request, MPI_REQUEST_NULL);
    THERE_AND_BACK(Session, MPI_Session, MPI_SESSION_NULL);
    THERE_AND_BACK(Type, MPI_Datatype, MPI_DATATYPE_NULL);
    THERE_AND_BACK(Win, MPI_Win, MPI_WIN_NULL);
}

static void built_in(void)
{
    THERE_AND_BACK(Comm, MPI_Comm, MPI_COMM_WORLD);
    THERE_AND_BACK(Errhandler, MPI_Errhandler, MPI_ERRORS_RETURN);
    THERE_AND_BACK(Group, MPI_Group, MPI_GROUP_EMPTY);
    THERE_AND_BACK(Info, MPI_Info, MPI_INFO_ENV);
    THERE_AND_BACK(Message, MPI_Message, MPI_MESSAGE_NO_PROC);
    THERE_AND_BACK(Op, MPI_Op, MPI_MINLOC);
    THERE_AND_BACK(Type, MPI_Datatype, MPI_LONG_DOUBLE_INT);
}

static void made(void)
{
    MPI_Comm c, d;
    MPI_Request q;
    MPI_Message m;
    MPI_Session s;
    MPI_Status st;
    MPI_Datatype t;
    int x = 5, y = 0, n;
    MPI_Comm_dup(MPI_COMM_SELF, &c);
    THERE_AND_BACK(Comm, MPI_Comm, c);
    d = MPI_Comm_f2c(MPI_Comm_c2f(c)); /* a working handle */
    MPI_Comm_size(d, &n);
    EQ(n, 1);
    MPI_Type_contiguous(3, MPI_INT, &t);
    THERE_AND_BACK(Type, MPI_Datatype, t);
    MPI_Type_free(&t);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
    THERE_AND_BACK(Session, MPI_Session, s);
    MPI_Session_finalize(&s);
    MPI_Isend(&x, 1, MPI_INT, 0, 1, c, &q);
    THERE_AND_BACK(Request, MPI_Request, q);
    MPI_Mprobe(0, 1, c, &m, &st);
    THERE_AND_BACK(Message, MPI_Message, m);
    m = MPI_Message_fromint(MPI_Message_toint(m));
    MPI_Mrecv(&y, 1, MPI_INT, &m, &st);
    EQ(y, 5);
    q = MPI_Request_fromint(MPI_Request_toint(q));
    MPI_Wait(&q, &st);
    MPI_Comm_free(&c);
}

/* ---- the binary interface ---- */

static const char *value(MPI_Info i, const char *key)
{
    static char text[32];
    int flag = 0, room = sizeof(text);
    MPI_Info_get_string(i, key, &room, text, &flag);
    return flag ? text : "";
}

static int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static void interface(void)
{
    int major = 5, minor = 5;
    MPI_Info i;
    MPI_Abi_get_version(&major, &minor);
#ifdef MPI_ABI_VERSION
    CHECK(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
#else
    CHECK(major == -1 && minor == -1); /* not the standard's */
#endif
    MPI_Abi_get_info(&i);
    EQ(atoi(value(i, "mpi_aint_size")), sizeof(MPI_Aint));
    EQ(atoi(value(i, "mpi_count_size")), sizeof(MPI_Count));
    EQ(atoi(value(i, "mpi_offset_size")), sizeof(MPI_Offset));
    MPI_Info_free(&i);
    MPI_Abi_get_fortran_info(&i);
    EQ(atoi(value(i, "mpi_logical_size")), 4);
    EQ(atoi(value(i, "mpi_integer_size")), sizeof(MPI_Fint));
    EQ(atoi(value(i, "mpi_real_size")), 4);
    EQ(atoi(value(i, "mpi_double_precision_size")), 8);
    CHECK(!strcmp(value(i, "mpi_logical16_supported"), "true"));
    CHECK(!strcmp(value(i, "mpi_integer8_supported"), "true"));
    CHECK(!strcmp(value(i, "mpi_integer16_supported"), "false"));
    CHECK(!strcmp(value(i, "mpi_real2_supported"), "false"));
    CHECK(!strcmp(value(i, "mpi_complex32_supported"), "true"));
    EQ(class_of(MPI_Abi_set_fortran_info(i)), MPI_ERR_ABI);
    MPI_Info_free(&i);
}

static void booleans(void)
{
    struct {
        char bytes[16], end;
    } yes, no;
    int is_set;
    for (int n = 1; n <= 16; n *= 2) {
        memset(&yes, 77, sizeof(yes));
        memset(&no, 77, sizeof(no));
        is_set = 0;
        EQ(MPI_Abi_get_fortran_booleans(n, &yes, &no, &is_set), MPI_SUCCESS);
        CHECK(is_set && yes.bytes[0] == 1 && no.bytes[0] == 0);
        for (int i = 1; i < 16; i++)
            CHECK(yes.bytes[i] == (i < n ? 0 : 77) && no.bytes[i] == (i < n ? 0 : 77));
        EQ(class_of(MPI_Abi_set_fortran_booleans(n, &yes, &no)), MPI_ERR_ABI);
    }
    EQ(class_of(MPI_Abi_get_fortran_booleans(3, &yes, &no, &is_set)), MPI_ERR_ARG);
    EQ(class_of(MPI_Abi_set_fortran_booleans(0, &yes, &no)), MPI_ERR_ARG);
}

int main(int argc, char **argv)
{
    null_handles();
    built_in();
    MPI_Session s;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s); /* errors are returned from here on */
    MPI_Session_finalize(&s);
    mt_begin(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    null_handles();
    built_in();
    made();
    interface();
    booleans();
    int code = mt_end();
    null_handles();
    int major;
    MPI_Abi_get_version(&major, &major);
    return code;
}
