/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of the standard's binary interface (abi_standard.h). */
#include "libmrmpi/api/interface.h"

/* X(handle, basic). Compilers have no MPI_INTEGER16, MPI_REAL2 and MPI_COMPLEX4. */
/* clang-format off */
#define TYPES(X) \
    X(MPI_AINT, AINT) X(MPI_COUNT, COUNT) X(MPI_OFFSET, OFFSET) X(MPI_PACKED, PACKED) X(MPI_SHORT, SHORT) \
    X(MPI_INT, INT) X(MPI_LONG, LONG) X(MPI_LONG_LONG, LONG_LONG_INT) X(MPI_UNSIGNED_SHORT, UNSIGNED_SHORT) \
    X(MPI_UNSIGNED, UNSIGNED) X(MPI_UNSIGNED_LONG, UNSIGNED_LONG) X(MPI_UNSIGNED_LONG_LONG, UNSIGNED_LONG_LONG) \
    X(MPI_FLOAT, FLOAT) X(MPI_C_FLOAT_COMPLEX, C_COMPLEX) X(MPI_CXX_FLOAT_COMPLEX, CXX_FLOAT_COMPLEX) \
    X(MPI_DOUBLE, DOUBLE) X(MPI_C_DOUBLE_COMPLEX, C_DOUBLE_COMPLEX) X(MPI_CXX_DOUBLE_COMPLEX, CXX_DOUBLE_COMPLEX) \
    X(MPI_LOGICAL, LOGICAL) X(MPI_INTEGER, INTEGER) X(MPI_REAL, REAL) X(MPI_COMPLEX, COMPLEX) \
    X(MPI_DOUBLE_PRECISION, DOUBLE_PRECISION) X(MPI_DOUBLE_COMPLEX, DOUBLE_COMPLEX) X(MPI_CHARACTER, CHARACTER) \
    X(MPI_LONG_DOUBLE, LONG_DOUBLE) X(MPI_C_LONG_DOUBLE_COMPLEX, C_LONG_DOUBLE_COMPLEX) \
    X(MPI_CXX_LONG_DOUBLE_COMPLEX, CXX_LONG_DOUBLE_COMPLEX) X(MPI_FLOAT_INT, FLOAT_INT) \
    X(MPI_DOUBLE_INT, DOUBLE_INT) X(MPI_LONG_INT, LONG_INT) X(MPI_2INT, 2INT) X(MPI_SHORT_INT, SHORT_INT) \
    X(MPI_LONG_DOUBLE_INT, LONG_DOUBLE_INT) X(MPI_2REAL, 2REAL) X(MPI_2DOUBLE_PRECISION, 2DOUBLE_PRECISION) \
    X(MPI_2INTEGER, 2INTEGER) X(MPI_C_BOOL, C_BOOL) X(MPI_CXX_BOOL, CXX_BOOL) X(MPI_WCHAR, WCHAR) \
    X(MPI_INT8_T, INT8_T) X(MPI_UINT8_T, UINT8_T) X(MPI_CHAR, CHAR) X(MPI_SIGNED_CHAR, SIGNED_CHAR) \
    X(MPI_UNSIGNED_CHAR, UNSIGNED_CHAR) X(MPI_BYTE, BYTE) X(MPI_INT16_T, INT16_T) X(MPI_UINT16_T, UINT16_T) \
    X(MPI_INT32_T, INT32_T) X(MPI_UINT32_T, UINT32_T) X(MPI_INT64_T, INT64_T) X(MPI_UINT64_T, UINT64_T) \
    X(MPI_LOGICAL1, LOGICAL1) X(MPI_INTEGER1, INTEGER1) X(MPI_LOGICAL2, LOGICAL2) X(MPI_INTEGER2, INTEGER2) \
    X(MPI_LOGICAL4, LOGICAL4) X(MPI_INTEGER4, INTEGER4) X(MPI_REAL4, REAL4) X(MPI_LOGICAL8, LOGICAL8) \
    X(MPI_INTEGER8, INTEGER8) X(MPI_REAL8, REAL8) X(MPI_COMPLEX8, COMPLEX8) X(MPI_LOGICAL16, LOGICAL16) \
    X(MPI_REAL16, REAL16) X(MPI_COMPLEX16, COMPLEX16) X(MPI_COMPLEX32, COMPLEX32)
#define OPS(X) \
    X(MAX) X(MIN) X(SUM) X(PROD) X(LAND) X(BAND) X(LOR) X(BOR) X(LXOR) X(BXOR) X(MINLOC) X(MAXLOC) X(REPLACE) X(NO_OP)
/* clang-format on */

#define AT(handle, first) [(uintptr_t)(handle) - (first)]

struct mr_type *const abi_basics[ABI_TYPES] = {
#define X(h, basic) AT(h, ABI_TYPE_FIRST) = &mr_type_basic[MR_BASIC_##basic],
    TYPES(X)
#undef X
};

#define Y(basic, ctype, ...) typedef ctype abi_ctype_##basic;
MR_BASICS(Y)
MR_PAIRS(Y)
#undef Y
const uint8_t abi_basic_sizes[ABI_TYPES] = {
#define X(h, basic) AT(h, ABI_TYPE_FIRST) = sizeof(abi_ctype_##basic),
    TYPES(X)
#undef X
};

struct mr_op *const abi_ops[ABI_OPS] = {
#define X(op) AT(MPI_##op, ABI_OP_FIRST) = &mr_op_builtin[MR_OP_##op],
    OPS(X)
#undef X
};

/* The fault tolerance of other interfaces has classes of its own, of which the last three are the nearest. */
const int abi_error_of[MR_ERR_LAST + 1] = {
#define E(name) [MR_ERR_##name] = MPI_ERR_##name
    E(BUFFER),
    E(COUNT),
    E(TYPE),
    E(TAG),
    E(COMM),
    E(RANK),
    E(ROOT),
    E(GROUP),
    E(OP),
    E(TOPOLOGY),
    E(DIMS),
    E(ARG),
    E(UNKNOWN),
    E(TRUNCATE),
    E(OTHER),
    E(INTERN),
    E(IN_STATUS),
    E(PENDING),
    E(REQUEST),
    E(NO_MEM),
    E(KEYVAL),
    E(INFO),
    E(INFO_KEY),
    E(INFO_VALUE),
    E(INFO_NOKEY),
    E(NAME),
    E(UNSUPPORTED_OPERATION),
    E(FILE),
    E(BASE),
    E(WIN),
    E(SESSION),
    E(ABI),
    E(SIZE),
    E(DISP),
    E(ASSERT),
    E(LOCKTYPE),
    E(RMA_CONFLICT),
    E(RMA_SYNC),
    E(RMA_RANGE),
    E(RMA_ATTACH),
    E(RMA_SHARED),
    E(RMA_FLAVOR),
    E(ACCESS),
    E(AMODE),
    E(BAD_FILE),
    E(CONVERSION),
    E(DUP_DATAREP),
    E(FILE_EXISTS),
    E(FILE_IN_USE),
    E(IO),
    E(NOT_SAME),
    E(NO_SPACE),
    E(NO_SUCH_FILE),
    E(QUOTA),
    E(READ_ONLY),
    E(UNSUPPORTED_DATAREP),
    E(PORT),
    E(SERVICE),
    E(SPAWN),
    [MR_ERR_PROC_FAILED] = MPI_ERR_PROC_ABORTED,
    [MR_ERR_PROC_FAILED_PENDING] = MPI_ERR_PENDING,
    [MR_ERR_REVOKED] = MPI_ERR_OTHER,
#undef E
};

const char *abi_error_name(enum mr_err err)
{
    switch (err) {
    case MR_ERR_PROC_FAILED:
        return "MPI_ERR_PROC_ABORTED";
    case MR_ERR_PROC_FAILED_PENDING:
        return "MPI_ERR_PENDING";
    case MR_ERR_REVOKED:
        return "MPI_ERR_OTHER";
    default:
        return mr_err_name(err);
    }
}

const char abi_pending_hint[] = "cancel the receive, or receive from each rank by its number";

const int abi_thread_levels[ABI_THREAD_LEVELS] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                                                  MPI_THREAD_MULTIPLE};

const int abi_version[2] = {MPI_ABI_VERSION, MPI_ABI_SUBVERSION};
const char abi_library[] = "libmpi_abi.so.1 (the interface of MPI 5.0)";
const char abi_description[] = "mrmpi " MRMPI_VERSION " (MPI 5.0, the standard's binary interface)";

void abi_init(void)
{
    for (int i = 0; i < ABI_TYPES; i++)
        if (abi_basics[i])
            abi_basics[i]->handle = ABI_TYPE_FIRST + i;
    for (int i = 0; i < ABI_OPS; i++)
        if (abi_ops[i])
            abi_ops[i]->handle = ABI_OP_FIRST + i;
    mr_group_empty.handle = abi_number(MPI_GROUP_EMPTY);
    mr_errhandler_fatal.handle = abi_number(MPI_ERRORS_ARE_FATAL);
    mr_errhandler_return.handle = abi_number(MPI_ERRORS_RETURN);
    mr_errhandler_abort.handle = abi_number(MPI_ERRORS_ABORT);
    mr_comm_world->handle = abi_number(MPI_COMM_WORLD);
    mr_comm_self->handle = abi_number(MPI_COMM_SELF);
}

/* ---- numbers ---- */

static const struct {
    int program, own;
} modes[] = {
    {MPI_MODE_APPEND, MR_FILE_APPEND},
    {MPI_MODE_CREATE, MR_FILE_CREATE},
    {MPI_MODE_DELETE_ON_CLOSE, MR_FILE_DELETE_ON_CLOSE},
    {MPI_MODE_EXCL, MR_FILE_EXCL},
    {MPI_MODE_RDONLY, MR_FILE_RDONLY},
    {MPI_MODE_RDWR, MR_FILE_RDWR},
    {MPI_MODE_SEQUENTIAL, MR_FILE_SEQUENTIAL},
    {MPI_MODE_UNIQUE_OPEN, MR_FILE_UNIQUE_OPEN},
    {MPI_MODE_WRONLY, MR_FILE_WRONLY},
};
enum { MODES = sizeof(modes) / sizeof(modes[0]), ALL_MODES = (1 << MODES) - 1 }; /* the same bits, in another order */

unsigned abi_amode_in(int amode)
{
    unsigned own = (unsigned)amode & ~(unsigned)ALL_MODES;
    for (int i = 0; i < MODES; i++)
        if (amode & modes[i].program)
            own |= (unsigned)modes[i].own;
    return own;
}

int abi_amode_out(unsigned amode)
{
    int program = 0;
    for (int i = 0; i < MODES; i++)
        if (amode & (unsigned)modes[i].own)
            program |= modes[i].program;
    return program;
}

unsigned abi_assertions(int assert)
{
    return (assert &MPI_MODE_NOCHECK ? MR_MODE_NOCHECK : 0u) | (assert &MPI_MODE_NOSTORE ? MR_MODE_NOSTORE : 0u) |
           (assert &MPI_MODE_NOPUT ? MR_MODE_NOPUT : 0u) | (assert &MPI_MODE_NOPRECEDE ? MR_MODE_NOPRECEDE : 0u) |
           (assert &MPI_MODE_NOSUCCEED ? MR_MODE_NOSUCCEED : 0u);
}
