/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of the MPICH binary interface (abi_mpich.h) and the data named in its mpi.h. */
#include "libmrmpi/api/interface.h"

struct mr_type *const abi_basics[256] = {
#define X(h, basic) [(h)&0xff] = &mr_type_basic[MR_BASIC_##basic],
    ABI_BASICS(X)
#undef X
};

struct mr_type *const abi_pairs[5] = {
#define X(h, basic) [(h)&0xff] = &mr_type_basic[MR_BASIC_##basic],
    ABI_PAIRS(X)
#undef X
};

/* Compilers and other libraries decode the size in a handle: ours must agree. */
#define X(h, basic)                                                                                                    \
    _Static_assert(MR_BASIC_##basic >= MR_BASIC_LB || (((h) >> 8) & 0xff) == sizeof(abi_ctype_##basic), #h);
#define Y(basic, ctype, ...) typedef ctype abi_ctype_##basic;
MR_BASICS(Y)
MR_PAIRS(Y)
typedef char abi_ctype_LB, abi_ctype_UB;
ABI_BASICS(X)
#undef X
#undef Y

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
    [MR_ERR_PROC_FAILED] = MPIX_ERR_PROC_FAILED,
    [MR_ERR_PROC_FAILED_PENDING] = MPIX_ERR_PROC_FAILED_PENDING,
    [MR_ERR_REVOKED] = MPIX_ERR_REVOKED,
#undef E
};

const char *abi_error_name(enum mr_err err)
{
    switch (err) {
    case MR_ERR_PROC_FAILED:
        return "MPIX_ERR_PROC_FAILED";
    case MR_ERR_PROC_FAILED_PENDING:
        return "MPIX_ERR_PROC_FAILED_PENDING";
    case MR_ERR_REVOKED:
        return "MPIX_ERR_REVOKED";
    default:
        return mr_err_name(err);
    }
}

const char abi_pending_hint[] = "acknowledge the failure by MPIX_Comm_ack_failed";

const int abi_thread_levels[ABI_THREAD_LEVELS] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                                                  MPI_THREAD_MULTIPLE};

const int abi_version[2] = {-1, -1};
const char abi_library[] = "libmpi.so.12 (MPICH's interface)";
const char abi_description[] = "mrmpi " MRMPI_VERSION " (MPI 4.0, MPICH binary interface)";

void abi_init(void)
{
#define X(h, basic) mr_type_basic[MR_BASIC_##basic].handle = (h);
    ABI_BASICS(X)
    ABI_PAIRS(X)
#undef X
    for (int i = 0; i < MR_OP_COUNT; i++)
        mr_op_builtin[i].handle = MPI_MAX + i;
    mr_group_empty.handle = MPI_GROUP_EMPTY;
    mr_errhandler_fatal.handle = MPI_ERRORS_ARE_FATAL;
    mr_errhandler_return.handle = MPI_ERRORS_RETURN;
    mr_errhandler_throw.handle = MPIR_ERRORS_THROW_EXCEPTIONS;
    mr_errhandler_abort.handle = MPI_ERRORS_ABORT;
    mr_comm_world->handle = MPI_COMM_WORLD;
    mr_comm_self->handle = MPI_COMM_SELF;
}

int MPIR_Dup_fn(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    memcpy(out, &in, sizeof(in));
    *flag = 1;
    return MPI_SUCCESS;
}

/* The values for "no weights" and for the weights of no edges: only the addresses matter. */
static int unweighted, weights_empty;
int *const MPI_UNWEIGHTED = &unweighted;
int *const MPI_WEIGHTS_EMPTY = &weights_empty;

/* Stands for all handles of a session in the tool information interface. */
static char all_handles;
struct MPIR_T_pvar_handle_s *const MPI_T_PVAR_ALL_HANDLES = (struct MPIR_T_pvar_handle_s *)(void *)&all_handles;

MPI_Fint *MPI_F_STATUS_IGNORE;
MPI_Fint *MPI_F_STATUSES_IGNORE;

MPI_F08_status MPIR_F08_MPI_STATUS_IGNORE_OBJ;
MPI_F08_status MPIR_F08_MPI_STATUSES_IGNORE_OBJ[1];
MPI_F08_status *MPI_F08_STATUS_IGNORE = &MPIR_F08_MPI_STATUS_IGNORE_OBJ;
MPI_F08_status *MPI_F08_STATUSES_IGNORE = MPIR_F08_MPI_STATUSES_IGNORE_OBJ;
int MPIR_F08_MPI_IN_PLACE, MPIR_F08_MPI_BOTTOM;
int *MPIR_C_MPI_UNWEIGHTED, *MPIR_C_MPI_WEIGHTS_EMPTY; /* language.c sets the values */

/*
 * The texts of mpichversion(1). The program has copies of these, made at load time, with at most as many bytes as
 * MPICH's own: shorter texts are fine, longer texts would be cut.
 */
extern const char MPII_Version_string[6], MPII_Version_date[29], MPII_Version_device[8], MPII_Version_CC[127];
extern const char MPII_Version_configure[1], MPII_Version_CXX[1], MPII_Version_F77[1], MPII_Version_FC[1];
extern const char MPII_Version_custom[1], MPII_Version_ABI[7];
const char MPII_Version_string[6] = MRMPI_VERSION;
const char MPII_Version_date[29] = "";
const char MPII_Version_device[8] = "mrmpi";
const char MPII_Version_configure[1] = "";
const char MPII_Version_CC[127] = "gcc " __VERSION__;
const char MPII_Version_CXX[1] = "", MPII_Version_F77[1] = "", MPII_Version_FC[1] = "";
const char MPII_Version_custom[1] = "";
const char MPII_Version_ABI[7] = "14:2:2";
_Static_assert(sizeof(MRMPI_VERSION) <= sizeof(MPII_Version_string), "the version is cut");
